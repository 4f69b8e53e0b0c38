"""What an estimator may know of a job: when it is submitted, and when it has finished."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Ending(enum.Enum):
    """How a job came to its end; it decides what its runtime tells about its request.

    Examples
    --------
    >>> from foretime_estimators import Ending
    >>> Ending("timed-out")
    <Ending.TIMED_OUT: 'timed-out'>
    """

    COMPLETED = "completed"
    FAILED = "failed"
    OUT_OF_MEMORY = "out-of-memory"
    TIMED_OUT = "timed-out"
    CANCELLED = "cancelled"
    NODE_FAILED = "node-failed"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    NEVER_STARTED = "never-started"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as its user wrote it.

    Attributes
    ----------
    job_id
        The scheduler's or the log's own identifier.
    user, project
        Names; ``None`` where the log has none.
    processors
        Processors asked for, at least 1.
    requested_time
        Walltime asked for, seconds: the kill limit, at least 1.
    submit_time
        Seconds since the epoch (or since the log's start in a replay).
    queue
        Slurm partition or PBS queue; ``None`` where the log has none.
    array_id
        Identifies the job array that the job is a task of; ``None`` for other jobs.
    executable
        Application or job name; ``None`` where the log has none.

    Examples
    --------
    >>> from foretime_estimators import JobRequest
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> job.user, job.requested_time
    ('ann', 3600)
    """

    job_id: str
    user: str | None
    project: str | None
    processors: int
    requested_time: int
    submit_time: int
    queue: str | None = None
    array_id: str | None = None
    executable: str | None = None


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has come to its end.

    Attributes
    ----------
    request
        The job as submitted.
    start_time, end_time
        Seconds, same clock as ``request.submit_time``; ``start_time`` is ``None`` if it never ran.
    actual_runtime
        Seconds between start and end without suspended time; 0 if it never ran.
    ending
        How it ended.

    Examples
    --------
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> FinishedJob(job, 60, 960, actual_runtime=900, ending=Ending.COMPLETED).accuracy
    0.25
    """

    request: JobRequest
    start_time: int | None
    end_time: int
    actual_runtime: int
    ending: Ending

    @property
    def accuracy(self) -> float:
        """R = t_act / t_req (Tang 2010, equation 2); may slightly exceed 1."""
        return self.actual_runtime / self.request.requested_time
