"""How the engine's cost grows: with jobs, with the depth of the queue, with the machine's size.

All workloads are generated. The smallest of each kind runs through the plain Python reference, too.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from foretime_sim import lublin2003, reference
from foretime_sim.engine import simulate
from foretime_sim.policy import Backfill, Policy
from foretime_sim.workload import Workload

POLICIES = {
    "fcfs": Policy(backfill=Backfill.NONE),
    "easy": Policy(),
    "easy-sjbf": Policy(backfill=Backfill.EASY_SJBF),
}
SLICE = 2_000
"""Jobs on which the reference runs."""


@lru_cache(maxsize=1)
def generated(jobs: int, processors: int) -> Workload:
    return lublin2003.generate(jobs, processors=processors, load=0.9)


def measure(benchmark: Any, jobs: Workload, policy: Policy, *, rounds: int, plain: bool) -> None:
    schedule = benchmark.pedantic(simulate, args=(jobs, policy), rounds=rounds)
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["deepest_queue"] = schedule.counters.deepest_queue
    if plain:
        some = jobs.head(SLICE)
        begin = time.perf_counter()
        reference.simulate(some, policy)
        between = time.perf_counter()
        simulate(some, policy)
        took = time.perf_counter() - between
        benchmark.extra_info["times_reference"] = round((between - begin) / took)


@pytest.mark.parametrize("jobs", [10_000, 100_000, 1_000_000, 10_000_000])
def test_jobs(benchmark: Any, jobs: int) -> None:
    """EASY on 256 processors at a load of 0.9."""
    benchmark.group = "cost by number of jobs (easy, 256 processors)"
    workload = generated(jobs, 256)
    rounds = 1 if jobs >= 10_000_000 else 3
    measure(benchmark, workload, Policy(), rounds=rounds, plain=jobs == 10_000)


@pytest.mark.parametrize("processors", [100, 10_000, 1_000_000])
def test_machine_size(benchmark: Any, processors: int) -> None:
    benchmark.group = "cost by machine size (easy, 100,000 jobs)"
    workload = generated(100_000, processors)
    measure(benchmark, workload, Policy(), rounds=3, plain=processors == 100)


@pytest.mark.parametrize("depth", [100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("policy", POLICIES)
def test_queue_depth(benchmark: Any, policy: str, depth: int) -> None:
    """All jobs at the same second: the queue is as deep as there are jobs, and shrinks."""
    benchmark.group = f"cost by queue depth ({policy}, 256 processors, all submitted at once)"
    jobs = generated(100_000, 256).head(depth)
    at_once = replace(jobs, submit_time=np.zeros(len(jobs), dtype=np.int64))
    measure(benchmark, at_once, POLICIES[policy], rounds=3, plain=depth == 1_000)


@pytest.mark.parametrize("jobs", [100_000, 1_000_000])
def test_generation(benchmark: Any, jobs: int) -> None:
    benchmark.group = "generating jobs (lublin2003)"
    benchmark.pedantic(lublin2003.generate, args=(jobs,), kwargs={"load": 0.9}, rounds=2)
    benchmark.extra_info["jobs"] = jobs
