"""What docs/learning.md says of KTH and Curie is what comes out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.online_regression import RegressionSettings
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS, PredictionLoss
from foretime_sim.engine.estimated_run import EstimatedSchedule, simulate_with_estimator
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.scores.metrics import bounded_slowdown
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.workload import Workload

from tests.support.workloads.real_logs import CURIE, KTH, Load

pytestmark = pytest.mark.traces

CHOSEN = Policy(
    backfill=Backfill.EASY_SJBF,
    correction=Correction.INCREMENTAL,
    event_order=EventOrder.PER_EVENT,
)
"""What the paper's cross-validation chooses, with the event order of its simulator."""
REPEATS = Repeats(8, seed=7)
PAPERS = RegressionSettings()
SETTINGS = [
    ("as above", E_LOSS, PAPERS),
    ("negative predictions as 1 s (`clipped`)", E_LOSS, replace(PAPERS, absolute=False)),
    ("natural logarithms", replace(E_LOSS, log_base=math.e), PAPERS),
    ("no l2", E_LOSS, replace(PAPERS, l2=0.0)),
]


def run(
    jobs: Workload, loss: PredictionLoss, settings: RegressionSettings
) -> tuple[float, EstimatedSchedule]:
    """Give AVEbsld, and the schedule."""
    schedule = simulate_with_estimator(jobs, CHOSEN, LearnedRuntime(loss, settings))
    wait = schedule.start_time - jobs.submit_time
    return float(bounded_slowdown(wait, jobs.actual_runtime).mean()), schedule


@pytest.mark.parametrize(
    ("what", "loss", "settings"), SETTINGS, ids=[name for name, *_ in SETTINGS]
)
def test_kth_gives_the_rows_of_the_page(
    load: Load, repository: Path, what: str, loss: PredictionLoss, settings: RegressionSettings
) -> None:
    jobs = load(KTH)
    once, schedule = run(jobs, loss, settings)
    jittered = [run(REPEATS.varied(jobs, i), loss, settings)[0] for i in range(REPEATS.count)]
    short = (schedule.scheduled_time < jobs.actual_runtime).mean()
    row = (
        f"| {what} | {once:.1f} | {np.mean(jittered):.1f} ± {np.std(jittered, ddof=1):.1f} | "
        f"{short:.0%} | {np.median(schedule.scheduled_time):.0f} s |"
    )
    assert row in (repository / "docs" / "learning.md").read_text()


@pytest.mark.parametrize(
    ("what", "absolute"), [("E-loss", True), ("E-loss, negative predictions as 1 s", False)]
)
def test_curie_gives_the_rows_of_the_page(
    load: Load, repository: Path, what: str, absolute: bool
) -> None:
    jobs = load(CURIE)
    once, schedule = run(jobs, E_LOSS, replace(PAPERS, absolute=absolute))
    row = f"| {what} | {once:.1f} | {table_8(jobs, schedule.scheduled_time)} |"
    assert row in (repository / "docs" / "learning.md").read_text()


def test_one_second_for_every_job_of_curie_gives_the_row_of_the_page(
    load: Load, repository: Path
) -> None:
    jobs = load(CURIE)
    row = f"| one second for every job | | {table_8(jobs, np.ones(len(jobs), dtype=np.int64))} |"
    assert row in (repository / "docs" / "learning.md").read_text()


def table_8(jobs: Workload, predicted: np.ndarray) -> str:
    """Give the mean absolute error, and the mean E-loss with either logarithm."""
    runtime = np.maximum(jobs.actual_runtime, 1).astype(np.float64)
    error = predicted - runtime
    cost = np.where(error >= 0, error**2, -error)
    decades = float((np.log10(runtime * jobs.processors) * cost).mean())
    return f"{np.abs(error).mean():,.0f} s | {decades:.3g} | {decades * math.log(10):.3g}"
