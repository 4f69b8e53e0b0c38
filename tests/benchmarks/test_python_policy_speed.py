"""What a policy in Python costs: against the built-in one that does the same, and per asking.

`make bench` runs these; the figures are in the saved results and printed with `-s`. Where a real
log is missing, a generated workload runs all the same.
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
from foretime_sim.engine.stepwise import Engine
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_views import MachineView, QueueView
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.workloads.workload import Workload

LOGS = ("generated", "KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln")


def shortest(queue: QueueView, now: int) -> Any:
    return -queue.scheduled_time


def easy(queue: QueueView, machine: MachineView, now: int) -> list[int]:
    """As in docs/policies.md."""
    running, free, needed = machine.running, machine.free_processors, queue.processors[0]
    by_end = np.argsort(running.expected_end, kind="stable")
    free_after = free + np.cumsum(running.processors[by_end])
    shadow_time = running.expected_end[by_end][np.searchsorted(free_after, needed)]
    extra = free + running.processors[running.expected_end <= shadow_time].sum() - needed
    in_time = now + queue.backfill_time <= shadow_time
    start = []
    for place in range(1, len(queue)):
        processors = queue.processors[place]
        if processors <= free and (in_time[place] or processors <= extra):
            start.append(place)
            free -= processors
            if not in_time[place]:
                extra -= processors
    return start


PAIRS = {
    "order": (Policy(Order.SJF), Policy(PythonOrder(shortest))),
    "backfill": (Policy(), Policy(backfill=PythonBackfill(easy))),
    "both": (Policy(Order.SJF), Policy(PythonOrder(shortest), PythonBackfill(easy))),
}


@cache
def generated() -> Workload:
    return lublin2003.generate(20_000, load=0.9)


@cache
def read_workload(path: Path) -> Workload:
    return workload_of_log(read_log(path))[0]


@pytest.fixture(params=LOGS)
def jobs(request: pytest.FixtureRequest, trace: Callable[[str], Path]) -> Workload:
    name: str = request.param
    return generated() if name == "generated" else read_workload(trace(f"{name}.swf.gz"))


def askings(jobs: Workload, policy: Policy) -> int:
    """How often a run asks Python."""
    asked = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: object) -> Any:
            nonlocal asked
            asked += 1
            return function(*arguments)

        return ask

    order, backfill = policy.order, policy.backfill
    if isinstance(order, PythonOrder):
        order = PythonOrder(counted(order.function), "counted:order")
    if isinstance(backfill, PythonBackfill):
        backfill = PythonBackfill(counted(backfill.function), "counted:backfill")
    simulate(jobs, Policy(order, backfill))
    return asked


# The benchmark fixture is Any: its own types are incomplete.


@pytest.mark.parametrize("kind", PAIRS)
def test_python_policy_speed(benchmark: Any, jobs: Workload, kind: str) -> None:
    built_in, own = PAIRS[kind]
    benchmark.group = f"Python {kind}"
    schedule = benchmark.pedantic(simulate, args=(jobs, own), rounds=2)
    begin = time.perf_counter()
    expected = simulate(jobs, built_in)
    native_s = time.perf_counter() - begin
    np.testing.assert_array_equal(schedule.start_time, expected.start_time)
    seconds: float = benchmark.stats.stats.min
    asked = askings(jobs, own)
    benchmark.extra_info["jobs_per_s"] = round(len(jobs) / seconds)
    benchmark.extra_info["times_native"] = round(seconds / native_s, 1)
    benchmark.extra_info["askings"] = asked
    benchmark.extra_info["us_per_asking"] = round((seconds - native_s) / asked * 1e6, 1)
    print(f"{jobs.name} {kind}: {benchmark.extra_info}")


@pytest.mark.parametrize("depth", [10, 100, 1_000, 10_000])
def test_cost_of_an_asking_by_queue(benchmark: Any, depth: int) -> None:
    """One pass with so many jobs waiting, of which the narrowest would fit but is last."""
    benchmark.group = "Python order by queue"
    engine = Engine(4, Policy(PythonOrder(shortest), Backfill.NONE))
    engine.submit(0, 3, 10**6, 10**6)
    engine.settle()
    narrow = engine.submit(0, 1, 10**6, 10**6)
    for index in range(depth - 1):
        engine.submit(0, 2, 1 + index % 97, 1 + index % 97)
    engine.settle()

    def one_pass() -> None:
        engine.update(narrow, time_limit=10**6)
        engine.settle()

    one_pass()
    benchmark.pedantic(one_pass, rounds=200)
    assert engine.queue()[-1] == narrow
    benchmark.extra_info["us_per_pass"] = round(benchmark.stats.stats.min * 1e6, 1)
    print(f"{depth} waiting: {benchmark.extra_info}")
