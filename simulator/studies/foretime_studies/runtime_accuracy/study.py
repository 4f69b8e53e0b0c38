"""How well runtimes are predicted, as other papers report it: accuracy, underestimates, errors.

All estimators predict the same jobs of the same schedule, EASY's on requested times, so that a
log's figures can be compared: each job at its submission, by what had started and ended then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.estimator import RuntimeEstimator, StartObserver
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import (
    estimator_of,
    finished_job,
    job_requests,
    logged_endings,
)
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.intervals import Interval, Weeks, percentile_interval
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.progress import Progress, counted_on
from foretime_studies.frame.published import published
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import Row, StudyTable

ESTIMATORS = (
    "requested",
    "combined",
    "last-two",
    "recent-maximum",
    "expected",
    "outcomes:0.5",
    "mixture:0.5",
    "mixture:0.8",
    "calibrated:0.249",
    "calibrated:0.05",
)
"""What is compared unless other names are given."""
PUBLISHED = published(__package__, "published")
_END, _SUBMISSION, _START = 0, 1, 2


@dataclass(frozen=True, slots=True)
class RuntimeAccuracy:
    """How one estimator did on one log."""

    log: str
    estimator: str
    accuracy: float  # mean of min(predicted, actual) / max(predicted, actual)
    # Of the accuracy, 95%, by drawing weeks of submission anew; ``None`` for too few weeks.
    interval: Interval | None
    under: float  # share of jobs that ran longer than predicted
    mae_s: float  # mean absolute error, seconds
    log_error: float  # mean of abs(ln(predicted / actual))

    @classmethod
    def of(cls, workload: Workload, estimator: str, predicted: Int64Array) -> RuntimeAccuracy:
        """Measure predictions, seconds, shape (jobs,), against the runtimes that jobs had."""
        actual = np.maximum(np.minimum(workload.actual_runtime, workload.requested_time), 1)
        ratio = np.minimum(predicted, actual) / np.maximum(predicted, actual)
        return cls(
            workload.name,
            estimator,
            float(ratio.mean()),
            _weekly_interval(workload, ratio),
            float(np.mean(predicted < actual)),
            float(np.abs(predicted - actual).mean()),
            float(np.abs(np.log(predicted / actual)).mean()),
        )


def _weekly_interval(workload: Workload, values: Float64Array) -> Interval | None:
    weeks = Weeks.of(workload.submit_time, 0)
    if weeks is None:
        return None
    week = weeks.week_of(workload.submit_time)
    count = weeks.draws.shape[1]
    jobs = weeks.draws @ np.bincount(week, minlength=count)
    return percentile_interval(weeks.draws @ np.bincount(week, values, count) / jobs)


def predicted_along(
    workload: Workload,  # jobs in submission order
    estimators: Sequence[RuntimeEstimator],  # fresh ones; what they learn stays in them
    progress: Progress | None = None,
) -> Int64Array:
    """Predict every job at its submission while EASY on requested times runs the workload.

    Within a second ends come first, then submissions, then starts.

    Returns
    -------
    Int64Array
        Seconds, shape (estimators, jobs).
    """
    schedule = simulate(workload, Policy())
    requests = job_requests(workload)
    endings = logged_endings(workload)
    starts, ends = schedule.start_time.tolist(), schedule.end_time.tolist()
    observers = [each for each in estimators if isinstance(each, StartObserver)]
    predicted = np.empty((len(estimators), len(workload)), dtype=np.int64)
    step = max(len(workload) // 100, 1)
    for what, job in _events(workload, schedule.start_time, schedule.end_time):
        if what == _SUBMISSION:
            request = requests[job]
            for place, estimator in enumerate(estimators):
                predicted[place, job] = estimator.predict_one(request, request.submit_time)
            if progress is not None and (job + 1) % step == 0:
                progress(job + 1)
        elif what == _START:
            for observer in observers:
                observer.start_one(requests[job], starts[job])
        else:
            finished = finished_job(requests[job], starts[job], ends[job], endings[job])
            for estimator in estimators:
                estimator.learn_one(finished)
    return predicted


def _events(workload: Workload, start: Int64Array, end: Int64Array) -> list[tuple[int, int]]:
    """Give what happens, and to which job, in order of time."""
    jobs = len(workload)
    time = np.concatenate([end, workload.submit_time, start])
    what = np.repeat([_END, _SUBMISSION, _START], jobs)
    job = np.tile(np.arange(jobs), 3)
    order = np.lexsort((job, what, time))
    return list(zip(what[order].tolist(), job[order].tolist(), strict=True))


def study(
    workloads: Sequence[Workload],
    # Estimators as `foretime_estimators.estimators.registry.parse_estimator` reads them.
    names: Sequence[str] = ESTIMATORS,
    progress: Progress | None = None,
) -> list[RuntimeAccuracy]:
    """Measure estimators on logs."""
    found: list[RuntimeAccuracy] = []
    before = 0
    for workload in workloads:
        estimators = [estimator_of(name, workload) for name in names]
        predicted = predicted_along(workload, estimators, counted_on(progress, before))
        before += len(workload)
        found += map(RuntimeAccuracy.of, [workload] * len(names), names, predicted)
    return found


def report(found: Sequence[RuntimeAccuracy]) -> StudyReport:
    """Put everything together."""
    overall: list[Row] = []
    for name in dict.fromkeys(each.estimator for each in found):
        of = [each for each in found if each.estimator == name]
        overall.append(
            [
                ("estimator", name),
                ("accuracy", float(np.mean([each.accuracy for each in of])), ".1%"),
                ("underestimated", float(np.mean([each.under for each in of])), ".1%"),
                ("mean absolute error, s", float(np.mean([each.mae_s for each in of])), ",.0f"),
                ("mean log error", float(np.mean([each.log_error for each in of])), ".2f"),
            ]
        )
    printed: list[Row] = [
        [("source", source), *((title, value, ".1%") for title, value in row.items())]
        for source, row in PUBLISHED.items()
    ]
    by_log: list[Row] = [
        [
            ("log", each.log),
            ("estimator", each.estimator),
            ("accuracy", each.accuracy, ".1%"),
            ("from", None if each.interval is None else each.interval.low, ".1%"),
            ("to", None if each.interval is None else each.interval.high, ".1%"),
            ("underestimated", each.under, ".1%"),
            ("mean absolute error, s", each.mae_s, ",.0f"),
            ("mean log error", each.log_error, ".2f"),
        ]
        for each in found
    ]
    means = (
        "Accuracy is the mean of min(predicted, actual) / max(predicted, actual). The mean log"
        " error is that of abs(ln(predicted / actual))."
    )
    intervals = "From, to: 95% of a bootstrap over weeks of submission."
    how = (
        "Each job is predicted at its submission, by what had started and ended then in EASY's"
        " schedule on requested times; all jobs count, those of users without a history too."
    )
    made = (
        StudyTable.of("overall", "Mean over the logs", overall, means),
        StudyTable.of("published", "Published, on other logs", printed),
        StudyTable.of("logs", "By log", by_log, intervals),
    )
    return StudyReport("How well runtimes are predicted", (how,), made)
