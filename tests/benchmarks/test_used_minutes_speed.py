"""What limits of used minutes cost, for which running jobs are looked at; ratios in one run."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from foretime_sim import Policy, generate, simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels

JOBS, USERS = 10_000, 20
NAMES = tuple(f"u{number}" for number in range(USERS))


def site(limits: Limits, *enforced: str) -> SlurmSite:
    """Users of one account with these limits, and fair share."""
    return SlurmSite(
        Machine.flat(512),
        priority=SlurmPriority(weight_fair_share=1000, weight_age=10),
        qos={"normal": Qos("normal")},
        associations=(
            Association("root", qos=("normal",)),
            Association("a", parent="root", limits=limits),
            *(Association("a", user=name, default=True) for name in NAMES),
        ),
        enforced=frozenset({"associations", "limits", *enforced}),
    )


def test_minutes_that_nobody_uses_up(benchmark: Any) -> None:
    """Against a limit that charges jobs as often, but ends none."""
    benchmark.group = "limits of used minutes"
    jobs = generate("lublin2003", jobs=JOBS, processors=512, seed=3, load=0.8)
    codes = np.arange(JOBS, dtype=np.int32) % USERS
    jobs = replace(jobs, users=Labels(codes, NAMES), projects=None)
    charged = Policy(backfill=Slurm(site(Limits(grp_tres_run_mins={"cpu": 10**12}))))
    began = time.process_time()
    without = simulate(jobs, charged)
    plain_s = time.process_time() - began
    ended = Policy(backfill=Slurm(site(Limits(grp_tres_mins={"cpu": 10**12}))))
    began = time.process_time()
    schedule = benchmark.pedantic(simulate, args=(jobs, ended), rounds=1)
    took_s = time.process_time() - began
    assert schedule.start_time.tolist() == without.start_time.tolist()
    benchmark.extra_info |= {"times_without": took_s / plain_s, "goal_times_without": 1.3}
    benchmark.extra_info["passes"] = [without.counters.passes, schedule.counters.passes]
