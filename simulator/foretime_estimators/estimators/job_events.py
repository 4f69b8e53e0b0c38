"""Telling an estimator what happened, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foretime_estimators.estimators.estimator import RuntimeEstimator, observes_starts
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


def tell(
    estimator: RuntimeEstimator,
    started: Iterable[tuple[JobRequest, int]],
    finished: Iterable[FinishedJob],
) -> None:
    """Tell what started and what ended since the last telling.

    An estimator that does not observe starts only learns. A start in the very second of an end is
    told after it, unless it is that job's own.

    Parameters
    ----------
    estimator
        Any.
    started
        Jobs and when they started, seconds, in order of time.
    finished
        Jobs in the order in which they ended.
    """
    if not observes_starts(estimator):
        for job in finished:
            estimator.learn_one(job)
        return
    starts = list(started)
    waiting = {request.job_id for request, _ in starts}
    told = 0
    for job in finished:
        own = job.request.job_id
        while told < len(starts) and (starts[told][1] < job.end_time or own in waiting):
            request, start_time = starts[told]
            estimator.start_one(request, start_time)
            waiting.discard(request.job_id)
            told += 1
        estimator.learn_one(job)
    for request, start_time in starts[told:]:
        estimator.start_one(request, start_time)


def learn_history(estimator: RuntimeEstimator, finished: Sequence[FinishedJob]) -> None:
    """Let an estimator learn jobs that have all ended as if it had been there.

    Ends are learned in order of time, equal ones as given. One that observes starts is told of
    them too, and is asked about each job at its submission, since what was known then is what it
    learns from. Within one second the order is: ends, submissions, starts, and ends of what started
    in that second.

    Examples
    --------
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest, parse_estimator
    >>> from foretime_estimators.estimators.job_events import learn_history
    >>> estimator = parse_estimator("last-two")
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> ended = [FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED) for runtime in (1100, 900)]
    >>> learn_history(estimator, ended)
    >>> estimator.predict_one(job, 2000)
    1000
    """
    if not observes_starts(estimator):
        for job in sorted(finished, key=lambda job: job.end_time):
            estimator.learn_one(job)
        return
    events: list[tuple[int, int, int]] = []
    for index, job in enumerate(finished):
        submit_time = job.request.submit_time
        events.append((submit_time, 1, index))
        if job.start_time is None:
            events.append((job.end_time, 3, index))
            continue
        events.append((job.start_time, 2, index))
        events.append((job.end_time, 3 if job.start_time == job.end_time else 0, index))
    for time, kind, index in sorted(events):
        job = finished[index]
        if kind == 1:
            estimator.predict_one(job.request, time)
        elif kind == 2:
            estimator.start_one(job.request, time)
        else:
            estimator.learn_one(job)
