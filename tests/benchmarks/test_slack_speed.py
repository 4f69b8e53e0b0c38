"""Speed of slack-based backfilling: by log, insertion order and depth, and against its reference.

The paper's took a minute for a month of KTH on a Pentium of 200 MHz.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.families import Slack
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import InsertionOrder, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

from tests.support.plans.availability_profile import AvailabilityProfile

TimesReference = Callable[[Callable[[], object], Callable[[], object]], int]
LOGS = (
    "KTH-SP2-1996-2.1-cln",
    "CTC-SP2-1996-3.1-cln",
    "SDSC-SP2-1998-4.2-cln",
    "SDSC-BLUE-2000-4.2-cln",
)
KTH_GOAL_S = 10
"""For the whole of KTH, in each insertion order."""
SLICE = 500
"""Jobs on which the reference runs too."""


@cache
def read_workload(path: Path) -> Workload:
    return workload_of_log(read_log(path))[0]


def slack(insertion_order: InsertionOrder) -> Policy:
    settings = SlackSettings(average_wait_s=2401, insertion_order=insertion_order)
    return Policy(backfill=Slack(settings))


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("insertion_order", InsertionOrder)
def test_slack_speed(
    benchmark: Any,
    trace: Callable[[str], Path],
    log: str,
    insertion_order: InsertionOrder,
    times_reference: TimesReference,
) -> None:
    if insertion_order is not InsertionOrder.AST and log != LOGS[0]:
        pytest.skip("other insertion orders are measured on KTH alone")
    policy = slack(insertion_order)
    jobs = read_workload(trace(f"{log}.swf.gz"))
    benchmark.group = "slack"
    schedule = benchmark.pedantic(simulate, args=(jobs, policy), rounds=1)
    middle = len(jobs) // 2
    some = jobs.take(np.arange(middle, middle + SLICE))
    benchmark.extra_info["times_reference"] = times_reference(
        lambda: reference.simulate(some, policy, new_profile=AvailabilityProfile),
        lambda: simulate(some, policy),
    )
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["deepest_queue"] = schedule.counters.deepest_queue
    if log == LOGS[0]:
        benchmark.extra_info["goal_s"] = KTH_GOAL_S


def deep_queue(depth: int, jobs: int, seed: int = 1) -> Workload:
    """So many jobs come at once; then one comes whenever one can be expected to have started."""
    rng = np.random.default_rng(seed)
    total = depth + jobs
    processors = np.minimum(2 ** rng.integers(0, 7, total), 64)
    requested = np.exp(rng.uniform(np.log(300), np.log(36_000), total)).astype(np.int64)
    actual = np.maximum((requested * rng.uniform(0.1, 1, total)).astype(np.int64), 1)
    gap = int((processors * actual).mean() / 128)
    submit = np.concatenate([np.zeros(depth, dtype=np.int64), gap * np.arange(1, jobs + 1)])
    return Workload(
        f"{depth} deep", 128, None, np.arange(total), submit, processors, actual, requested
    )


@pytest.mark.parametrize("depth", [30, 100, 300])
def test_what_an_event_costs_by_depth(benchmark: Any, depth: int) -> None:
    """An arrival or an end while so many jobs wait: the whole run less the filling of the queue."""
    jobs = 200
    policy = slack(InsertionOrder.AST)
    benchmark.group = "slack by depth"
    workload = deep_queue(depth, jobs)

    def cpu_s(of: Workload) -> float:
        began = time.process_time()
        simulate(of, policy)
        return time.process_time() - began

    filling_s = cpu_s(workload.head(depth))
    whole_s: float = benchmark.pedantic(cpu_s, args=(workload,), rounds=1)
    benchmark.extra_info["us_per_event"] = round((whole_s - filling_s) / (2 * jobs) * 1e6)
