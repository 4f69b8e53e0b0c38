"""Limits that the sidecar itself must change, so that no job is harmed by its t_sched.

Pure: from the queue to the changes; `foretime_sidecar.sidecar` makes them at each look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    QueueState,
    Reservation,
)
from foretime_sidecar.job_note import read_note

MINUTE = 60

# What the hook noted with rewrite-limit, a word of AdminComment by itself; the first is the hook's
# (plugin/TABLE.md, "The note").
_NOTE = re.compile(r"(?<!\S)foretime:treq=(\d{1,8}),tsched=(\d{1,8})(?!\S)", re.ASCII)


def noted_limits(admin_comment: str) -> tuple[int, int] | None:
    """Give t_req and t_sched in seconds as the hook noted them with rewrite-limit, if it did."""
    note = _NOTE.search(admin_comment)
    return None if note is None else (int(note[1]) * MINUTE, int(note[2]) * MINUTE)


def unrestored_limits(jobs: Sequence[QueuedJob]) -> list[JobChange]:
    """Give back its own limit to each running job that still has the one that the hook lowered.

    PrologSlurmctld does so when a job starts; if it failed, the job would be killed at t_sched. A
    limit that is not t_sched was changed by somebody since, and stays.
    """
    changes = []
    for job in jobs:
        noted = noted_limits(job.admin_comment)
        if job.state is not QueueState.RUNNING or noted is None:
            continue
        requested_time, scheduled_time = noted
        if scheduled_time < requested_time and job.request.requested_time == scheduled_time:
            changes.append(JobChange(job.request.job_id, time_limit=requested_time))
    return changes


def endangered_by_time_min(
    jobs: Sequence[QueuedJob],
    reservations: Sequence[Reservation],
    now: int,
    poll_interval_s: int,
) -> list[JobChange]:
    """Take time_min from pending jobs that must not be planned with less than their limit.

    Slurm starts a job with a time_min before a reservation or a deadline that its limit reaches
    past, and it runs on into it (SCHEDULERS: V3, V6). The hook leaves such jobs alone, and the
    parts of a heterogeneous job, but a reservation may be made, or a deadline given, after the job
    was submitted. Any reservation ahead counts for any job, as its nodes may belong to every
    slurm_partition; two polls of margin are for a job that starts just before the next look.
    """
    latest_start = now + 2 * poll_interval_s
    first_start = min((r.start_time for r in reservations if r.start_time > now), default=None)
    return [
        JobChange(job.request.job_id, time_min=0)
        for job in _planned_short(jobs)
        if job.deadline
        or job.heterogeneous
        or (first_start is not None and latest_start + job.request.requested_time > first_start)
    ]


def without_time_min(jobs: Sequence[QueuedJob]) -> list[JobChange]:
    """Take time_min from every pending job that is planned short."""
    return [JobChange(job.request.job_id, time_min=0) for job in _planned_short(jobs)]


def _planned_short(jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Give the pending jobs with a time_min below their limit."""
    return [
        job
        for job in jobs
        if job.state is QueueState.PENDING
        and job.time_min is not None
        and job.time_min < job.request.requested_time
    ]


@dataclass(frozen=True, slots=True)
class Repair:
    """A change, and why, in words that follow "jobs"."""

    change: JobChange
    why: str


def undone(jobs: Iterable[QueuedJob], why: str) -> list[Repair]:
    """Give pending jobs back what their users asked for, as their notes say."""
    repairs = []
    for job in jobs:
        note = read_note(job.admin_comment)
        if note is None or job.state is not QueueState.PENDING:
            continue
        limit, time_min = job.request.requested_time, job.time_min
        own = note.own_time_min or 0
        if note.time_min is not None and time_min is not None and own != time_min < limit:
            repairs.append(Repair(JobChange(job.request.job_id, time_min=own), why))
        if limit == note.lowered_limit != note.requested_time:
            repairs.append(
                Repair(JobChange(job.request.job_id, time_limit=note.requested_time), why)
            )
    return repairs


def changes_of(repairs: Sequence[Repair]) -> list[JobChange]:
    """Give the changes alone."""
    return [repair.change for repair in repairs]
