"""What self-tuning costs: Streit 2002 took 0.05 s for a step with 185 waiting jobs (section 5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models.log_model import LogModel
from foretime_sim.models.weibull import Weibull
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.workloads.workload import Workload

pytestmark = pytest.mark.benchmark(group="switching between queue orders", timer=time.process_time)
PLANNING = Policy(backfill=Backfill.PLANNING)
GOAL_US = 50


@pytest.fixture(scope="module")
def like_ctc(trace: Callable[[str], Path]) -> Callable[[float], Workload]:
    """10,000 jobs like those of CTC, on the paper's machine, by shrinking factor."""
    log, _ = workload_of_log(
        read_log(trace("CTC-SP2-1996-3.1-cln.swf.gz")), filters=Filters(overruns="keep")
    )
    model = LogModel.of(log, interarrival=Weibull(0.35, 60))

    def generate(shrink: float) -> Workload:
        jobs = model.generate(10_000, seed=3, arrivals="independent", shrink=shrink)
        return replace(jobs, machine_processors=430)

    return generate


@pytest.mark.parametrize("decider", ["advanced", "simple"])
def test_a_step_over_185_waiting_jobs(
    benchmark: Any, like_ctc: Callable[[float], Workload], decider: str
) -> None:
    """As in the paper: the mean over a run, in which so many wait on average; all of it counts."""
    jobs = like_ctc(0.83)
    policy = PLANNING.in_order(PolicySwitching.parse(f"dynp-{decider}"))
    counted = benchmark(simulate, jobs, policy).switching
    assert counted is not None
    assert 150 < counted.mean_backlog < 260
    benchmark.extra_info["mean_backlog"] = counted.mean_backlog
    benchmark.extra_info["us_per_step"] = benchmark.stats.stats.min * 1e6 / counted.tries
    benchmark.extra_info["goal_s"] = GOAL_US * 1e-6 * counted.tries


@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "dynp", "dynp-simple", "dynp-basic"])
def test_a_saturated_run(benchmark: Any, like_ctc: Callable[[float], Workload], order: str) -> None:
    """At the hardest shrinking factor of figure 4; a sweep is 192 runs, most of them easier."""
    jobs = like_ctc(0.65)
    named = PolicySwitching.parse(order) if "dynp" in order else Order.parse(order)
    schedule = benchmark.pedantic(simulate, (jobs, PLANNING.in_order(named)), rounds=2)
    assert schedule.counters.deepest_queue > 100
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["goal_s"] = 3.0
