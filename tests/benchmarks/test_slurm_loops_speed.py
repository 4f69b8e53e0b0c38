"""Speed of Slurm's loops in the core, with Slurm's defaults, on 5,000 nodes of 32 CPUs.

Goals: 300,000 jobs in 60 s of CPU, and 5 ms for a forward run of 1,000 pending jobs.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_sim import Policy, Snapshot, forward_runs, generate, simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import Workload

JOBS, PENDING = 300_000, 1_000
MACHINE = Machine((NodeGroup("n", 5_000, 32),), (SlurmPartition("all", ("n",)),))
SITE = SlurmSite(MACHINE, priority=SlurmPriority(multifactor=False))

pytestmark = pytest.mark.benchmark(group="Slurm's loops, 5,000 nodes")


def drawn(jobs: int, load: float) -> Workload:
    """Jobs of 1 to 8,192 CPUs and 10 minutes to a day; what they run is some third of that."""
    rng = np.random.default_rng(1)
    processors = np.floor(2 ** rng.uniform(0, 13, jobs)).astype(np.int64)
    requested = (600 * 2 ** rng.uniform(0, 7, jobs)).astype(np.int64) // 60 * 60
    runtime = np.maximum(1, requested * rng.beta(0.8, 2, jobs)).astype(np.int64)
    lasts_s = float((processors * runtime).sum()) / (MACHINE.cpus * load)
    submit_time = np.sort(rng.uniform(0, lasts_s, jobs)).astype(np.int64)
    return Workload(
        "drawn", MACHINE.cpus, None, np.arange(jobs), submit_time, processors, runtime, requested,
        machine=MACHINE, requests=ResourceRequests(),
    )  # fmt: skip


def test_a_log_at_a_load_of_85_percent(benchmark: Any) -> None:
    workload = drawn(JOBS, 0.85)
    began = time.process_time()
    benchmark.pedantic(lambda: simulate(workload, Policy(backfill=Slurm(SITE))), rounds=1)
    took_s = time.process_time() - began
    benchmark.extra_info |= {"jobs": JOBS, "cpu_s": took_s, "goal_cpu_s": 60}


@pytest.mark.parametrize("coarse", [False, True], ids=["in_full", "coarse"])
def test_a_forward_run_of_a_thousand_pending_jobs(benchmark: Any, coarse: bool) -> None:
    workload = drawn(PENDING + 150, 1.0)  # some 150 of them find room
    policy = Policy(backfill=Slurm(SITE, coarse=coarse))
    engine = Engine(MACHINE.cpus, policy)
    columns = (workload.processors, workload.actual_runtime, workload.requested_time)
    for asked in zip(*(column.tolist() for column in columns), strict=True):
        engine.submit(0, *asked)
    engine.advance(40)
    snapshot = Snapshot.of(engine)
    runtimes = workload.actual_runtime[snapshot.engine_index][None, :]
    began = time.process_time()
    benchmark.pedantic(lambda: forward_runs(snapshot, policy, runtimes, threads=1), rounds=1)
    took_s = time.process_time() - began
    pending = len(snapshot.pending.submit_time)
    benchmark.extra_info |= {"cpu_s": took_s, "goal_cpu_s": 0.005, "pending": pending}


def test_a_pool_of_64_times_the_processors(benchmark: Any) -> None:
    """The same jobs, each on 64 times the processors of 64 times as large a pool."""
    small = generate("lublin2003", jobs=5_000, processors=1_024, seed=1, load=0.85)
    large = replace(
        small, processors=64 * small.processors, machine_processors=64 * small.machine_processors
    )
    took_s = []
    for workload in (small, large):
        policy = default_policy("slurm", workload)
        began = time.process_time()
        schedule = simulate(workload, policy)
        took_s.append(time.process_time() - began)
    benchmark.pedantic(lambda: schedule, rounds=1)
    benchmark.extra_info |= {"times_small": took_s[1] / took_s[0], "goal_times_small": 20}
