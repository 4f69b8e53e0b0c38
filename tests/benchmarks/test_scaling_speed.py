"""How the engine's cost grows: with jobs, with the depth of the queue, with the machine's size.

All workloads are generated. The smallest of each kind runs through the plain Python reference, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

TimesReference = Callable[[Callable[[], object], Callable[[], object]], int]
Measure = Callable[[Workload, Policy, int, bool], None]

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


@pytest.fixture
def measure(benchmark: Any, times_reference: TimesReference) -> Measure:
    """Run a policy on jobs so many times; through the reference, too, where asked."""

    def run(jobs: Workload, policy: Policy, rounds: int, plain: bool) -> None:
        schedule = benchmark.pedantic(simulate, args=(jobs, policy), rounds=rounds)
        benchmark.extra_info["jobs"] = len(jobs)
        benchmark.extra_info["deepest_queue"] = schedule.counters.deepest_queue
        if plain:
            some = jobs.head(SLICE)
            benchmark.extra_info["times_reference"] = times_reference(
                lambda: reference.simulate(some, policy), lambda: simulate(some, policy)
            )

    return run


@pytest.mark.parametrize("jobs", [10_000, 100_000, 1_000_000, 10_000_000])
def test_jobs(benchmark: Any, measure: Measure, jobs: int) -> None:
    """EASY on 256 processors at a load of 0.9."""
    benchmark.group = "cost by number of jobs (easy, 256 processors)"
    workload = generated(jobs, 256)
    rounds = 1 if jobs >= 10_000_000 else 3
    measure(workload, Policy(), rounds, jobs == 10_000)


@pytest.mark.parametrize("processors", [100, 10_000, 1_000_000])
def test_machine_size(benchmark: Any, measure: Measure, processors: int) -> None:
    benchmark.group = "cost by machine size (easy, 100,000 jobs)"
    workload = generated(100_000, processors)
    measure(workload, Policy(), 3, processors == 100)


@pytest.mark.parametrize("depth", [100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("policy", POLICIES)
def test_queue_depth(benchmark: Any, measure: Measure, policy: str, depth: int) -> None:
    """All jobs at the same second: the queue is as deep as there are jobs, and shrinks."""
    benchmark.group = f"cost by queue depth ({policy}, 256 processors, all submitted at once)"
    jobs = generated(100_000, 256).head(depth)
    at_once = replace(jobs, submit_time=np.zeros(len(jobs), dtype=np.int64))
    measure(at_once, POLICIES[policy], 3, depth == 1_000)


@pytest.mark.parametrize("jobs", [100_000, 1_000_000])
def test_generation(benchmark: Any, jobs: int) -> None:
    benchmark.group = "generating jobs (lublin2003)"
    benchmark.pedantic(lublin2003.generate, args=(jobs,), kwargs={"load": 0.9}, rounds=2)
    benchmark.extra_info["jobs"] = jobs
