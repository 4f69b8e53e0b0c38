"""Checks that every runtime estimator passes; a new one is tested by being registered.

Each check takes ``make``, which builds a fresh estimator for a list of finished jobs (an oracle is
told their actual runtimes), and such a list; it raises AssertionError with the reason.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.estimators.job_events import tell
from foretime_estimators.jobs.jobs import FinishedJob

Make: TypeAlias = Callable[[Sequence[FinishedJob]], RuntimeEstimator]
Check: TypeAlias = Callable[[Make, Sequence[FinishedJob]], None]


def predictions(
    estimator: RuntimeEstimator, jobs: Sequence[FinishedJob], until: int | None = None
) -> list[int]:
    """Predict each job at its submission, after learning all that had finished by then, seconds.

    An estimator that observes starts is told of those, too. With ``until`` only jobs submitted up
    to that time are predicted.
    """
    by_start = sorted(
        (job.start_time, index) for index, job in enumerate(jobs) if job.start_time is not None
    )
    by_end = sorted(jobs, key=lambda job: job.end_time)
    starts_told = learned = 0
    predicted = []
    for job in sorted(jobs, key=lambda job: job.request.submit_time):
        now = job.request.submit_time
        if until is not None and now > until:
            break
        started = by_start[starts_told : bisect_right(by_start, (now, len(jobs)))]
        finished = by_end[learned : bisect_right(by_end, now, key=lambda job: job.end_time)]
        starts_told += len(started)
        learned += len(finished)
        tell(estimator, [(jobs[index].request, time) for time, index in started], finished)
        predicted.append(estimator.predict_one(job.request, now))
    return predicted


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def check_within_request(make: Make, jobs: Sequence[FinishedJob]) -> None:
    """Check that a prediction is whole seconds, at least 1 and at most the requested time."""
    in_order = sorted(jobs, key=lambda job: job.request.submit_time)
    for job, predicted in zip(in_order, predictions(make(jobs), jobs), strict=True):
        _require(type(predicted) is int, f"{predicted!r} is not a whole number of seconds")
        _require(
            1 <= predicted <= job.request.requested_time,
            f"job {job.request.job_id}: predicted {predicted} s of {job.request.requested_time} s",
        )


def check_empty_history(make: Make, jobs: Sequence[FinishedJob]) -> None:
    """Check that without history the request stands, unless the job alone decides."""
    for job in jobs:
        estimator = make(jobs)
        empty = estimator.predict_one(job.request, job.request.submit_time)
        _require(1 <= empty <= job.request.requested_time, f"predicted {empty} s")
        if estimator.state():
            _require(
                empty == job.request.requested_time,
                f"job {job.request.job_id}: {empty} s without history; the request must stand",
            )


def check_learns_nothing_from_the_future(make: Make, jobs: Sequence[FinishedJob]) -> None:
    """Check that what has not ended at a submission can't change the prediction there."""
    if make(jobs).oracle:
        return  # it says so itself
    times = sorted(job.request.submit_time for job in jobs)
    cut = times[len(times) // 2]
    otherwise = [
        job
        if job.end_time <= cut
        else replace(job, actual_runtime=job.actual_runtime // 3, end_time=job.end_time + 17)
        for job in jobs
    ]
    _require(
        predictions(make(jobs), jobs, until=cut)
        == predictions(make(otherwise), otherwise, until=cut),
        f"predictions up to {cut} depend on jobs that ended later",
    )


def check_deterministic(make: Make, jobs: Sequence[FinishedJob]) -> None:
    """Check that a history always gives the same predictions, and predicting changes none."""
    estimator = make(jobs)
    first = predictions(estimator, jobs)
    _require(first == predictions(make(jobs), jobs), "two runs differ")
    now = max(job.end_time for job in jobs)
    once = [estimator.predict_one(job.request, now) for job in jobs]
    again = [estimator.predict_one(job.request, now) for job in reversed(jobs)]
    _require(once == again[::-1], "a prediction changed a later one")


def check_save_and_restore(make: Make, jobs: Sequence[FinishedJob]) -> None:
    """Check that a state survives JSON, and what takes it over goes on in the same way."""
    by_end = sorted(jobs, key=lambda job: job.end_time)
    half = len(by_end) // 2
    original = make(jobs)
    for job in by_end[:half]:
        original.learn_one(job)
    text = json.dumps(original.state(), allow_nan=False)
    restored = make(jobs)
    for job in by_end[half:]:
        restored.learn_one(job)  # must all be replaced
    restored.restore(json.loads(text))
    _require(json.dumps(restored.state()) == text, "the state changes by being restored")
    for job in by_end[half:]:
        now = job.end_time
        _require(
            original.predict_one(job.request, now) == restored.predict_one(job.request, now),
            f"job {job.request.job_id} is predicted otherwise after restoring",
        )
        original.learn_one(job)
        restored.learn_one(job)
    _require(original.state() == restored.state(), "learning on gives another state")


CHECKS: tuple[Check, ...] = (
    check_within_request,
    check_empty_history,
    check_learns_nothing_from_the_future,
    check_deterministic,
    check_save_and_restore,
)
