"""What was predicted: table 8 and figures 4 and 5 of Gaussier 2015.

Predictions depend on the schedule that they bring about, through which jobs had finished by then:
all are of runs with the paper's choice of correction and backfilling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.estimator import RuntimeEstimator, clamped
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    simulate_with_estimator,
)
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.scores.metrics import bounded_slowdown
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import in_threads
from foretime_studies.frame.progress import Progress, counted_on
from foretime_studies.frame.tables import Row, Rows, StudyTable, study_table
from foretime_studies.gaussier2015 import paper
from foretime_studies.gaussier2015.study import LAST_TWO, REQUESTED, StudiedLog, StudySettings

SQUARED_LOSS = "squared-squared-constant"
"""Name of the standard regression's loss."""
COMPARED = ("requested", "AVE_2", "squared loss", "E-loss")
"""What figures 4 and 5 compare."""
CUT = "AVE_2, seconds cut"
"""Besides: the mean of the last two with its half second cut off, as in the paper's simulator."""
ERRORS_S = np.arange(-24 * 3_600, 24 * 3_600 + 1, 300)
"""Where the distribution of errors is given (figure 4): prediction less runtime, seconds."""
PREDICTED_S = np.unique(np.round(np.geomspace(1, 3 * 86_400, 200)).astype(np.int64))
"""Where the distribution of predictions is given (figure 5), seconds."""


class _LastTwoCut(LastTwo):
    """As `LastTwo`, which rounds up."""

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the mean, seconds, rounded down, at most the requested time."""
        recent = self.recent(job.user)
        if len(recent) < 2:
            return job.requested_time
        return clamped(sum(runtime for runtime, _ in recent) // 2, job)


@dataclass(frozen=True, slots=True)
class Predicted:
    """How one estimator's predictions on one log were."""

    log: str
    prediction: str
    avebsld: float  # mean bounded slowdown of the run
    mae_s: float  # mean absolute error, seconds
    mean_e_loss: float  # mean of equation 3
    under: float  # share of jobs that were predicted shorter than they ran
    # Mean of min(predicted, actual) / max(predicted, actual), the accuracy of other papers.
    ratio: float
    errors: Float64Array  # share of jobs whose error is at most that of `ERRORS_S`, shape as there
    # Share of jobs predicted at most that of `PREDICTED_S`, shape as there.
    predictions: Float64Array

    @classmethod
    def of(
        cls, log: str, prediction: str, schedule: EstimatedSchedule, workload: Workload
    ) -> Predicted:
        """Measure what a workload's jobs were planned with, and what came of it."""
        predicted, actual = schedule.scheduled_time, workload.actual_runtime
        error = predicted - actual
        jobs = (predicted.tolist(), actual.tolist(), workload.processors.tolist())
        wait = schedule.start_time - workload.submit_time
        return cls(
            log,
            prediction,
            float(bounded_slowdown(wait, actual).mean()),
            float(np.abs(error).mean()),
            float(np.mean(list(map(E_LOSS.value, *jobs)))),
            float(np.mean(error < 0)),
            float(np.mean(np.minimum(predicted, actual) / np.maximum(predicted, actual))),
            distribution(error, ERRORS_S),
            distribution(predicted, PREDICTED_S),
        )


def distribution(values: Int64Array, places: Int64Array) -> Float64Array:
    """Give the share of values that are at most each place."""
    return np.searchsorted(np.sort(values), places, side="right") / len(values)


def workload_of(log: StudiedLog) -> Workload:
    """Read a log as the campaign does."""
    return workload_of_log(read_log(log.path), processors=log.processors)[0]


def predictions(
    logs: Sequence[StudiedLog],
    settings: StudySettings,  # as in the campaign
    *,
    workers: int = 2,  # threads; runs that are native leave the interpreter's lock
    progress: Progress | None = None,
) -> list[Predicted]:
    """Run each of `COMPARED`, and `CUT`, on each log."""
    policy = Policy(
        backfill=Backfill.EASY_SJBF,
        correction=Correction.INCREMENTAL,
        event_order=settings.event_order,
    )
    by_regression = (settings.regression(loss) for loss in (SQUARED_LOSS, E_LOSS.name))
    names = dict(zip(COMPARED, (REQUESTED, LAST_TWO, *by_regression), strict=True))

    def run(log: str, workload: Workload, prediction: str) -> Predicted:
        estimator: RuntimeEstimator = _LastTwoCut()
        if prediction != CUT:
            estimator = estimator_of(names[prediction], workload)
        schedule = simulate_with_estimator(workload, policy, estimator)
        return Predicted.of(log, prediction, schedule, workload)

    found: list[Predicted] = []
    for log in logs:
        workload = workload_of(log)
        tasks = {name: partial(run, log.name, workload, name) for name in (*COMPARED, CUT)}
        done = in_threads(tasks, workers, counted_on(progress, len(found)))
        found += [done[name] for name in tasks]
    return found


def runs_in_all(logs: Sequence[StudiedLog]) -> int:
    """Count the runs of `predictions`."""
    return len(logs) * (len(COMPARED) + 1)


DRAWN_LOG = "Curie"
"""Whose predictions figures 4 and 5 show."""
_TOLD_ERRORS_H = (-12, -6, -3, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 3, 6, 12)
_TOLD_PREDICTED_S = (60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400)


def prediction_tables(predicted: Sequence[Predicted]) -> list[StudyTable]:
    """Give all of them."""
    shown = drawn(predicted)
    hours = {int(h * 3_600): f"{h:+g} h" if h else "0" for h in _TOLD_ERRORS_H}
    times = {s: f"{s / 60:g} min" if s < 3_600 else f"{s / 3_600:g} h" for s in _TOLD_PREDICTED_S}
    errors = {name: one.errors for name, one in shown.items()}
    values = {name: one.predictions for name, one in shown.items()}
    log = next(iter(shown.values())).log
    of = f"share of {log}'s jobs"
    figure_4 = _distributions(hours, ERRORS_S, errors)
    figure_5 = _distributions(times, PREDICTED_S, values)
    return [
        _table_8(predicted),
        StudyTable.of("figure4", f"Figure 4. Prediction less runtime: {of}", figure_4),
        StudyTable.of("figure5", f"Figure 5. Predicted values: {of}", figure_5),
    ]


def drawn(predicted: Sequence[Predicted]) -> dict[str, Predicted]:
    """Give the predictions on Curie, or else on the last log, by their names."""
    names = [one.log for one in predicted]
    log = DRAWN_LOG if DRAWN_LOG in names else names[-1]
    shown = {one.prediction: one for one in predicted if one.log == log}
    return {name: shown[name] for name in COMPARED}


@study_table(
    "table8",
    "Table 8. Errors of predictions",
    "In runs with incremental correction and EASY-SJBF, so AVE_2's are of EASY++.",
)
def _table_8(predicted: Sequence[Predicted]) -> Rows:
    """Errors of predictions on each log; the paper does not say of which log its table is."""
    ours = [
        (p.log, p.prediction, p.avebsld, p.mae_s, p.mean_e_loss, p.under, p.ratio)
        for p in predicted
    ]
    printed = [
        ("paper", name, None, paper.MAE_S[key], paper.MEAN_E_LOSS[key], None, None)
        for name, key in {"AVE_2": "last-two", "E-loss": "e-loss"}.items()
    ]
    for log, prediction, avebsld, mae_s, mean_e_loss, under, ratio in (*ours, *printed):
        yield [
            ("log", log),
            ("prediction", prediction),
            ("AVEbsld", avebsld, ",.1f"),
            ("MAE, s", mae_s, ",.0f"),
            ("mean E-loss", f"{mean_e_loss:.3g}"),
            ("under-predicted", under, ".1%"),
            ("mean min/max ratio", ratio, ".2f"),
        ]


def _distributions(
    told: dict[int, str], given: Int64Array, shares: dict[str, Float64Array]
) -> Iterable[Row]:
    """Give the shares at some places, by how these are told."""
    for place, words in told.items():
        at = int(np.searchsorted(given, place, side="right")) - 1
        yield [
            ("at most", words),
            *((name, float(values[at]), ".1%") for name, values in shares.items()),
        ]
