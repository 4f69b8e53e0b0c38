"""What jobs cost that a limit holds, thousands of one user beside others; ratios in one run."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_sim import Policy, generate, simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

JOBS, HELD, USERS, PROCESSORS = 3_000, 2_000, 20, 256
NAMES = (*(f"u{number}" for number in range(USERS)), "held")
MACHINE = Machine.flat(PROCESSORS)


def site(max_jobs: int) -> SlurmSite:
    """Fair share; the last user may run so many jobs."""
    return SlurmSite(
        MACHINE,
        priority=SlurmPriority(weight_age=1000, weight_fair_share=100_000),
        associations=(
            Association("root"),
            Association("a", parent="root"),
            *(Association("a", user=name, default=True) for name in NAMES[:-1]),
            Association("a", user="held", default=True, limits=Limits(max_jobs=max_jobs)),
        ),
        enforced=frozenset({"associations", "limits"}),
    )


def workload(held: int) -> Workload:
    """Jobs at a load of 0.85, and half an hour's jobs of the last user, early on."""
    jobs = generate("lublin2003", jobs=JOBS, processors=PROCESSORS, seed=3, load=0.85)
    ones = np.ones(held, np.int64)
    early = int(jobs.submit_time[-1]) // 20
    submit_time = np.append(jobs.submit_time, np.linspace(0, early, held).astype(np.int64))
    order = np.argsort(submit_time, kind="stable")
    codes = np.append(np.arange(JOBS) % USERS, USERS * ones)[order]
    return replace(
        jobs,
        job_id=np.arange(JOBS + held),
        submit_time=submit_time[order],
        processors=np.append(jobs.processors, ones)[order],
        actual_runtime=np.append(jobs.actual_runtime, 1800 * ones)[order],
        requested_time=np.append(jobs.requested_time, 3600 * ones)[order],
        users=Labels(codes.astype(np.int32), NAMES),
        projects=None,
        machine=MACHINE,
    )


@pytest.mark.benchmark(group="jobs that a limit holds")
@pytest.mark.parametrize("max_jobs", [0, 2], ids=["for_ever", "by_twos"])
def test_two_thousand_held_jobs(benchmark: Any, max_jobs: int) -> None:
    policy = Policy(backfill=Slurm(site(max_jobs)))
    plain, crowded = workload(0), workload(HELD)
    began = time.process_time()
    simulate(plain, policy)
    plain_s = time.process_time() - began
    began = time.process_time()
    schedule = benchmark.pedantic(simulate, args=(crowded, policy), rounds=1)
    took_s = time.process_time() - began
    benchmark.extra_info |= {"times_without": took_s / plain_s, "passes": schedule.counters.passes}
