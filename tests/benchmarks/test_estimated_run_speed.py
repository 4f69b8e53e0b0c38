"""What an estimator in the engine's loop costs: predictions, learning, and steps through Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.estimated_run import EstimatedSchedule, estimator_of, simulate_with_estimator
from foretime_sim.filters import workload_of_log
from foretime_sim.log_files import read_log
from foretime_sim.policy import Policy

LOGS = {"KTH-SP2-1996-2.1-cln": None, "CEA-Curie-2011-2.1-cln": 80_640}


@pytest.mark.traces
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("name", ["requested", "actual", "last-two", "combined"])
def test_estimated_run(benchmark: Any, trace: Callable[[str], Path], log: str, name: str) -> None:
    benchmark.group = "easy with an estimator in the loop (guard 6 h)"
    jobs = workload_of_log(read_log(trace(f"{log}.swf.gz")), processors=LOGS[log])[0]

    def run() -> EstimatedSchedule:
        policy = Policy(guard_s=6 * 3_600)
        return simulate_with_estimator(jobs, policy, estimator_of(name, jobs))

    benchmark.pedantic(run, rounds=1 if len(jobs) > 100_000 else 3)
    benchmark.extra_info["jobs"] = len(jobs)
