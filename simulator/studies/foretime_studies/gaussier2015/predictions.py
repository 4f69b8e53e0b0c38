"""What was predicted: table 8 and figures 4 and 5 of Gaussier 2015.

Predictions depend on the schedule that they bring about, through which jobs had finished by then:
all are of runs with the paper's choice of correction and backfilling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

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
    """How one estimator's predictions on one log were.

    Attributes
    ----------
    log, prediction
        Which.
    avebsld
        Mean bounded slowdown of the run.
    mae_s
        Mean absolute error, seconds.
    mean_e_loss
        Mean of equation 3.
    under
        Share of jobs that were predicted shorter than they ran.
    ratio
        Mean of min(predicted, actual) / max(predicted, actual), the accuracy of other papers.
    errors
        Share of jobs whose error is at most that of `ERRORS_S`, shape as there.
    predictions
        Share of jobs predicted at most that of `PREDICTED_S`, shape as there.
    """

    log: str
    prediction: str
    avebsld: float
    mae_s: float
    mean_e_loss: float
    under: float
    ratio: float
    errors: Float64Array
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
    settings: StudySettings,
    *,
    workers: int = 2,
    progress: Callable[[int], None] | None = None,
) -> list[Predicted]:
    """Run each of `COMPARED`, and `CUT`, on each log.

    Parameters
    ----------
    logs
        Which.
    settings
        As in the campaign.
    workers
        Threads; runs that are native leave the interpreter's lock.
    progress
        Called with the number of runs done.
    """
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
    with ThreadPoolExecutor(workers) as pool:
        for log in logs:
            workload = workload_of(log)
            tasks = [pool.submit(run, log.name, workload, name) for name in (*COMPARED, CUT)]
            for done, _ in enumerate(as_completed(tasks), len(found) + 1):
                if progress is not None:
                    progress(done)
            found += [task.result() for task in tasks]
    return found


def runs_in_all(logs: Sequence[StudiedLog]) -> int:
    """Count the runs of `predictions`."""
    return len(logs) * (len(COMPARED) + 1)
