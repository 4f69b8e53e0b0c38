"""What is known of a job at its submission: the 20 features of Gaussier 2015, table 2.

Where the paper leaves something open, this holds:

- A *historically recorded* job is one that has been told as ended and whose ending is evidence
  (`foretime_estimators.jobs.endings`: a cancelled job's runtime counts as it is, a job ended by its
  node does not). They are in the order in which they were told, which is that of their ends. Mean
  resource requests are over these jobs, too, as in the simulator published with the paper.
- What needs a history is 0 without one, as the paper says of the last runtimes: with a single job
  both AVE_2 and AVE_3 are its runtime, with two AVE_3 is the mean of two. The ratio of the request
  to the mean request is 0 without a mean, which it never is otherwise.
- The break is since the user's last job that ran has ended, however it did.
- A job runs from the start to the end that were told, at `now` if it had started by then. Its
  runtime so far is that of the clock: suspended time counts, as nobody tells of it. A start whose
  end has not been told a week after the job's requested end is forgotten at the user's next start:
  the end was lost.
- Jobs without a user have no history, and are nobody's: what depends on the user is 0.
- The time of the day and of the week are of the submission, on the clock that jobs are told in. A
  fixed offset of that clock turns each pair of cosine and sine, which the model's linear and
  quadratic terms make good.

Sums are of whole numbers and exact; a mean is one floating-point division of two of them, an angle
is ``2 pi / period`` times the whole seconds into the period. So another implementation in IEEE
doubles gets the very same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, WEEK_S

FEATURES: tuple[str, ...] = (
    "requested_time_s",
    "last_runtime_s",
    "second_last_runtime_s",
    "third_last_runtime_s",
    "mean_of_last_two_s",
    "mean_of_last_three_s",
    "mean_runtime_s",
    "processors",
    "mean_processors",
    "processors_to_mean",
    "mean_running_processors",
    "running_jobs",
    "longest_running_s",
    "sum_of_running_s",
    "occupied_processors",
    "break_s",
    "cos_time_of_day",
    "sin_time_of_day",
    "cos_time_of_week",
    "sin_time_of_week",
)
"""In the order of table 2; times in seconds, resources in processors."""

_PER_DAY = 2.0 * math.pi / DAY_S
_PER_WEEK = 2.0 * math.pi / WEEK_S
_LOST_AFTER_S = WEEK_S


@dataclass(slots=True)
class _UserJobs:
    """A user's recorded jobs in sums, and the running ones by id: start, processors, limit.

    The limit is when the job ends at the latest, seconds.
    """

    last_runtimes: list[int] = field(default_factory=list)
    """At most three, the latest first."""
    jobs: int = 0
    runtime_sum: int = 0
    processors_sum: int = 0
    last_end: int | None = None
    running: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class RuntimeFeatures:
    """Keeps what the features need, from starts and ends; a job costs its user's running jobs.

    Starts and ends are told in order of time (`foretime_estimators.estimators.job_events`); an end
    without a start told before counts like any other.

    Examples
    --------
    >>> from foretime_estimators.estimators.regression.runtime_features import (
    ...     FEATURES,
    ...     RuntimeFeatures,
    ... )
    >>> from foretime_estimators.jobs.jobs import JobRequest
    >>> job = JobRequest("1", "ann", None, processors=8, requested_time=3600, submit_time=0)
    >>> features = RuntimeFeatures().of(job, now=0)
    >>> FEATURES[0], float(features[0]), float(features[7])
    ('requested_time_s', 3600.0, 8.0)
    """

    def __init__(self) -> None:
        self._users: dict[str, _UserJobs] = {}

    @property
    def any_running(self) -> bool:
        """Whether a job has been told as started and not as ended."""
        return any(user.running for user in self._users.values())

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Take note that a job runs since ``start_time``, seconds; started again, since then."""
        if job.user is None:
            return
        user = self._users.setdefault(job.user, _UserJobs())
        lost = [
            job_id
            for job_id, (_, _, limit) in user.running.items()
            if limit + _LOST_AFTER_S < start_time
        ]
        for job_id in lost:
            del user.running[job_id]
        limit = start_time + job.requested_time
        user.running[job.job_id] = (start_time, job.processors, limit)

    def learn_one(self, job: FinishedJob) -> None:
        """Take note of a job that has ended."""
        request = job.request
        if request.user is None:
            return
        user = self._users.setdefault(request.user, _UserJobs())
        user.running.pop(request.job_id, None)
        if job.start_time is not None:
            user.last_end = job.end_time
        if evidence_of(job) is Evidence.NONE:
            return
        user.last_runtimes = [job.actual_runtime, *user.last_runtimes[:2]]
        user.jobs += 1
        user.runtime_sum += job.actual_runtime
        user.processors_sum += request.processors

    def of(self, job: JobRequest, now: int) -> Float64Array:
        """Give a job's features as known at ``now``, seconds; shape (20,), see `FEATURES`."""
        features = np.zeros(len(FEATURES))
        features[0] = job.requested_time
        features[7] = job.processors
        user = None if job.user is None else self._users.get(job.user)
        if user is not None:
            features[1 : 1 + len(user.last_runtimes)] = user.last_runtimes
            if user.jobs:
                features[4] = sum(user.last_runtimes[:2]) / len(user.last_runtimes[:2])
                features[5] = sum(user.last_runtimes) / len(user.last_runtimes)
                features[6] = user.runtime_sum / user.jobs
                mean_processors = user.processors_sum / user.jobs
                features[8] = mean_processors
                features[9] = job.processors / mean_processors
            running = [ran for ran in user.running.values() if ran[0] <= now]
            if running:
                occupied = sum(processors for _, processors, _ in running)
                features[10] = occupied / len(running)
                features[11] = len(running)
                features[12] = max(now - start_time for start_time, _, _ in running)
                features[13] = sum(now - start_time for start_time, _, _ in running)
                features[14] = occupied
            if user.last_end is not None:
                features[15] = max(now - user.last_end, 0)
        day = _PER_DAY * (job.submit_time % DAY_S)
        week = _PER_WEEK * (job.submit_time % WEEK_S)
        features[16:] = math.cos(day), math.sin(day), math.cos(week), math.sin(week)
        return features

    def state(self) -> dict[str, Any]:
        """Everything kept, as JSON can hold it."""
        return {
            name: {
                "last_runtimes": list(user.last_runtimes),
                "jobs": user.jobs,
                "runtime_sum": user.runtime_sum,
                "processors_sum": user.processors_sum,
                "last_end": user.last_end,
                "running": {job_id: list(ran) for job_id, ran in user.running.items()},
            }
            for name, user in self._users.items()
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that is kept.

        Raises
        ------
        StateError
            If it is no such state.
        """
        try:
            self._users = {
                name: _UserJobs(
                    [int(runtime) for runtime in user["last_runtimes"]],
                    int(user["jobs"]),
                    int(user["runtime_sum"]),
                    int(user["processors_sum"]),
                    None if user["last_end"] is None else int(user["last_end"]),
                    {
                        job_id: (int(start_time), int(processors), int(limit))
                        for job_id, (start_time, processors, limit) in user["running"].items()
                    },
                )
                for name, user in state.items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"the users' histories can't be restored ({type(error).__name__}: {error}): the "
                "state was saved by another estimator"
            ) from None
