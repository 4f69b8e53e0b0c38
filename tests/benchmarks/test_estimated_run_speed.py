"""What an estimator in the engine's loop costs: predictions, learning, and steps through Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    simulate_with_estimator,
)
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

LOGS = {"KTH-SP2-1996-2.1-cln": None, "CEA-Curie-2011-2.1-cln": 80_640}
REGRESSION = f"regression:{E_LOSS.name}"
PAPER_CHOICE = Policy(backfill=Backfill.EASY_SJBF, correction=Correction.INCREMENTAL)
STEPS = 200_000
GOAL_STEPS_PER_S = 50_000
SLICE = 2_000
"""Jobs that are run step by step in Python, too."""


class InPython:
    """The regression as an estimator that the native core does not know."""

    oracle = False

    def __init__(self) -> None:
        self.estimator = LearnedRuntime()

    def predict_one(self, job: JobRequest, now: int) -> int:
        return self.estimator.predict_one(job, now)

    def start_one(self, job: JobRequest, start_time: int) -> None:
        self.estimator.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        self.estimator.learn_one(job)

    def state(self) -> dict[str, Any]:
        return self.estimator.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.estimator.restore(state)


@pytest.mark.traces
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("name", ["requested", "actual", "last-two", REGRESSION, "combined"])
def test_estimated_run(
    benchmark: Any,
    trace: Callable[[str], Path],
    log: str,
    name: str,
    times_reference: Callable[[Callable[[], object], Callable[[], object]], int],
) -> None:
    benchmark.group = "easy-sjbf, incremental, with an estimator in the loop"
    jobs = workload_of_log(read_log(trace(f"{log}.swf.gz")), processors=LOGS[log])[0]

    def run() -> EstimatedSchedule:
        return simulate_with_estimator(jobs, PAPER_CHOICE, estimator_of(name, jobs))

    benchmark.pedantic(run, rounds=1 if name == "combined" and len(jobs) > 100_000 else 3)
    benchmark.extra_info["jobs"] = len(jobs)
    if name == REGRESSION:
        some = jobs.head(SLICE)
        benchmark.extra_info["times_reference"] = times_reference(
            lambda: simulate_with_estimator(some, PAPER_CHOICE, InPython()),
            lambda: simulate_with_estimator(some, PAPER_CHOICE, LearnedRuntime()),
        )


def test_steps_of_the_regression(benchmark: Any) -> None:
    """On a machine so large that nobody waits, predicting and learning is nearly all there is."""
    benchmark.group = "online regression, a prediction and an example learned a job"
    rng = np.random.default_rng(1)
    jobs = Workload(
        name="nobody waits",
        machine_processors=64 * STEPS,
        unix_start_time=None,
        job_id=np.arange(STEPS),
        submit_time=np.arange(STEPS) * 60,
        processors=rng.integers(1, 64, STEPS, endpoint=True),
        actual_runtime=rng.integers(1, 3_600, STEPS),
        requested_time=np.full(STEPS, 86_400),
        users=Labels(
            rng.integers(0, 100, STEPS).astype(np.int32), tuple(f"u{i}" for i in range(100))
        ),
    )

    def run() -> EstimatedSchedule:
        return simulate_with_estimator(jobs, Policy(), LearnedRuntime())

    benchmark.pedantic(run, rounds=3)
    benchmark.extra_info["jobs"] = STEPS
    benchmark.extra_info["goal_jobs_per_s"] = GOAL_STEPS_PER_S
