"""A scheduler's queue as a snapshot that forward runs begin with.

What is planned with is what the scheduler plans with: time_min or soft_walltime under a soft limit,
the time limit otherwise. How long the jobs will run is for the caller to draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.jobs import JobRequest
from foretime_sim.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.workload import Int64Array

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.job_note import read_note

FLAT_POOL = "slurm_partitions, nodes, reservations and limits are not looked at"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A job that does not take part, and why.

    Attributes
    ----------
    job
        The scheduler's record of it; it may stand for several tasks of an array.
    reason
        In words, such as "held".
    """

    job: QueuedJob
    reason: str


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue in the simulator's terms.

    Attributes
    ----------
    snapshot
        Running jobs, then pending ones. Each pending task of an array is a job of its own.
    requests
        Every job of the snapshot as its user submitted it, in the order of columns.
    jobs
        The scheduler's record of each, in the order of columns; the tasks of an array share one.
    left_out
        Jobs that don't take part.
    not_modelled
        What of the site the snapshot does not know, in words.
    """

    snapshot: Snapshot
    requests: tuple[JobRequest, ...]
    jobs: tuple[QueuedJob, ...]
    left_out: tuple[LeftOut, ...]
    not_modelled: tuple[str, ...]

    def left_out_by_reason(self) -> Mapping[str, int]:
        """Count the jobs that don't take part, tasks of arrays one by one, by why."""
        counted: Counter[str] = Counter()
        for each in self.left_out:
            counted[each.reason] += each.job.tasks
        return dict(counted)

    def columns_of(self, job_id: str) -> range:
        """Give the columns of a job, several for the pending tasks of an array, or none."""
        columns = [at for at, each in enumerate(self.jobs) if each.request.job_id == job_id]
        return range(columns[0], columns[-1] + 1) if columns else range(0)


def snapshot_of(
    queue: Queue, machine: None = None, *, taken_at: int, soft_limit: bool = False
) -> QueueSnapshot:
    """Take a queue as the beginning of forward runs.

    Parameters
    ----------
    queue
        What ran and what waited.
    machine
        ``None`` for a flat pool of the processors that are up.
    taken_at
        When the queue was looked at, epoch seconds.
    soft_limit
        Whether the scheduler plans with time_min.
    """
    running: list[QueuedJob] = []
    pending: list[QueuedJob] = []
    left_out: list[LeftOut] = []
    for job in queue.jobs:
        reason = _why_left_out(job, queue.processors)
        if reason is not None:
            left_out.append(LeftOut(job, reason))
        elif job.state is QueueState.RUNNING:
            running.append(job)
        else:
            pending.append(job)
    running.sort(key=lambda job: _start_time(job, taken_at))
    tasks = np.array([job.tasks for job in pending], dtype=np.int64)
    # Jobs run on in nodes that take no new ones, which the scheduler may not count as up.
    occupied = sum(job.request.processors for job in running)
    snapshot = Snapshot(
        taken_at,
        max(queue.processors, occupied, 1),
        _running_jobs(running, taken_at, soft_limit),
        _pending_jobs(pending, tasks, taken_at, soft_limit),
    )
    waiting = [job for job in pending for _ in range(job.tasks)]
    submitted = [as_submitted(job) for job in pending]
    return QueueSnapshot(
        snapshot,
        (
            *map(as_submitted, running),
            *(each for each, job in zip(submitted, pending, strict=True) for _ in range(job.tasks)),
        ),
        (*running, *waiting),
        tuple(left_out),
        (FLAT_POOL,),
    )


def as_submitted(job: QueuedJob) -> JobRequest:
    """Give the job with the t_req of its user, where the hook has lowered the limit."""
    note = read_note(job.admin_comment)
    if note is None or note.lowered_limit is None:
        return job.request
    requested = max(note.requested_time, job.request.requested_time)
    return replace(job.request, requested_time=requested)


def _why_left_out(job: QueuedJob, processors: int) -> str | None:
    if job.state is QueueState.SUSPENDED:
        return "suspended"
    if job.state is QueueState.RUNNING:
        return None
    if job.held:
        return "held"
    if job.dependent:
        return "dependent"
    if job.reservation is not None:
        return "in a reservation"
    if job.reason.startswith(("Assoc", "QOS", "JobArrayTaskLimit")):
        return "at a limit"
    if job.reason.startswith(("ReqNodeNotAvail", "Partition", "BadConstraints", "NodeDown")):
        return "waiting for nodes that are not available"
    if job.request.processors > processors:
        return "too wide for the machine"
    return None


def _start_time(job: QueuedJob, now: int) -> int:
    """Give when a running job would have started that was never suspended, not after now."""
    return now if job.start_time is None else min(job.start_time + job.suspended_time, now)


def _planned(job: QueuedJob, soft_limit: bool) -> int:
    """Give the runtime that the scheduler plans a job with."""
    limit = job.request.requested_time
    return min(job.time_min or limit, limit) if soft_limit else limit


def _running_jobs(jobs: Sequence[QueuedJob], now: int, soft_limit: bool) -> RunningJobs:
    return RunningJobs(
        _column(_start_time(job, now) for job in jobs),
        _column(job.request.processors for job in jobs),
        _column(as_submitted(job).requested_time for job in jobs),
        _column(_planned(job, soft_limit) for job in jobs),
    )


def _pending_jobs(
    jobs: Sequence[QueuedJob], tasks: Int64Array, now: int, soft_limit: bool
) -> PendingJobs:
    def each_task(column: Int64Array) -> Int64Array:
        return np.repeat(column, tasks)

    submitted = _column(min(job.request.submit_time, now) for job in jobs)
    # That a job was eligible later than it was submitted is over, unless it is still to come.
    eligible = _column(now if job.eligible_time is None else job.eligible_time for job in jobs)
    return PendingJobs(
        each_task(submitted),
        each_task(_column(job.request.processors for job in jobs)),
        each_task(_column(as_submitted(job).requested_time for job in jobs)),
        each_task(_column(_planned(job, soft_limit) for job in jobs)),
        priority=each_task(_column(job.priority for job in jobs)),
        eligible_time=each_task(np.where(eligible > now, eligible, submitted)),
    )


def _column(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, dtype=np.int64)
