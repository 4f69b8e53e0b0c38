"""What a Blue Gene costs: a whole Intrepid-like log with draining, and against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.models import intrepid_like
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import bgp as reference_bgp
from foretime_sim.workloads.bgp_jobs import sizes_for, with_bgp_machine
from foretime_sim.workloads.workload import Workload

JOBS = 68_936
"""Of ANL-Intrepid-2009-1."""
GOAL_S = 2.0


@cache
def generated() -> Workload:
    jobs = intrepid_like.generate(JOBS, overruns="cut")
    return with_bgp_machine(jobs, intrepid(), leave_out=True)


def tiled(log: Path, load: float) -> Workload:
    """Repeat the real records that we have until there are as many, at so much of the machine."""
    records, _ = workload_of_log(read_log(log), filters=Filters(occupied="allocated"))
    jobs = np.resize(np.arange(len(records)), JOBS)
    period = int(np.ptp(records.submit_time)) + 1_000
    submit = records.submit_time[jobs] + period * (np.arange(JOBS) // len(records))
    order = np.argsort(submit, kind="stable")
    whole = replace(records.take(jobs[order]), submit_time=submit[order], job_id=np.arange(JOBS))
    machine = intrepid()
    whole = with_bgp_machine(whole, machine, processors_per_node=4)
    area = int(sizes_for(machine, whole.processors) @ whole.actual_runtime)
    offered = area / (machine.nodes * int(np.ptp(whole.submit_time)))
    return whole.with_interarrival_factor(offered / load)


@pytest.mark.parametrize("order", [Order.WFP, Order.FCFS])
@pytest.mark.parametrize("interval_s", [None, 10], ids=["every-event", "every-10-s"])
def test_generated_log(benchmark: Any, order: Order, interval_s: int | None) -> None:
    benchmark.group = "Blue Gene"
    workload = generated()
    policy = Policy(order=order, scheduling_interval_s=interval_s)
    schedule = benchmark.pedantic(simulate, args=(workload, policy), rounds=3)
    benchmark.extra_info |= {
        "jobs": len(workload),
        "goal_s": GOAL_S,
        "passes": schedule.counters.passes,
        "deepest_queue": schedule.counters.deepest_queue,
    }


@pytest.mark.parametrize("load", [0.7, 0.8, 0.9])
def test_tiled_real_records(benchmark: Any, trace: Callable[[str], Path], load: float) -> None:
    benchmark.group = "Blue Gene"
    workload = tiled(trace("ANL-Intrepid-2009-1-first1200.swf.gz"), load)
    schedule = benchmark.pedantic(simulate, args=(workload, Policy(order=Order.WFP)), rounds=3)
    benchmark.extra_info |= {
        "jobs": len(workload),
        "goal_s": GOAL_S,
        "deepest_queue": schedule.counters.deepest_queue,
    }


def test_estimator_in_the_loop(benchmark: Any) -> None:
    """Stepwise, with one that learns: what a study runs."""
    benchmark.group = "Blue Gene"
    workload = generated()

    def run() -> None:
        estimator = estimator_of("user", workload)
        simulate_with_estimator(workload, Policy(order=Order.WFP), estimator)

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["jobs"] = len(workload)


def test_against_the_reference(
    benchmark: Any, times_reference: Callable[[Callable[[], object], Callable[[], object]], int]
) -> None:
    benchmark.group = "Blue Gene"
    workload, policy = generated().head(150), Policy(order=Order.WFP)
    benchmark.pedantic(simulate, args=(workload, policy), rounds=3)
    benchmark.extra_info["times_reference"] = times_reference(
        lambda: reference_bgp.simulate(workload, policy), lambda: simulate(workload, policy)
    )
