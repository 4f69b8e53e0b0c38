"""Limits that the sidecar itself must change, so that no job is harmed by its t_sched.

Pure: from the queue to the changes; `foretime_sidecar.safety.slurm_limits` makes them at each look,
and `foretime_sidecar.safety.watchdog` where the sidecar does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from foretime_sidecar.clients.client import JobChange, QueuedJob, QueueState
from foretime_sidecar.clients.slurm.job_note import JobNote, read_note
from foretime_sidecar.learning.exclusions import Exclusions, why_plain
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined

AS_PLANNED = "as the hook planned them"
AS_REFINED = "as is estimated now"
PLANS = frozenset([AS_PLANNED, AS_REFINED])
"""Why a job is planned short; every other repair gives a job back what its user asked for."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change, and why, in words that follow "jobs"."""

    change: JobChange
    why: str


def lowered_limits(
    jobs: Iterable[QueuedJob],
    soft_limit: bool,
    waited_with: Mapping[str, int],
    ran_before: Set[str] = frozenset(),
    refined: Refined = NOTHING_REFINED,
) -> list[Repair]:
    """Give back its own limit to each running job whose limit was lowered for its plan's sake.

    Under rewrite-limit PrologSlurmctld does so when a job starts; if it failed, the job would be
    killed at t_sched. A limit that is not t_sched was changed by somebody since, and stays. Under
    the native mechanism, where the soft limit was taken from slurm.conf, Slurm itself lowers the
    limit of a job with a time_min as it starts it (docs/left_alone.md: V2), to time_min or above.

    Parameters
    ----------
    jobs
        The queue.
    soft_limit
        Whether Slurm takes time_min as a soft limit.
    waited_with
        The limit, seconds, that each job by its id waited with at the last look.
    ran_before
        Jobs that had started by then: if their limit has changed since, somebody meant it.
    refined
        Which time_min are ours besides the notes'.
    """
    repairs = []
    for job in jobs:
        note = read_note(job.admin_comment)
        if job.state is QueueState.PENDING or note is None:
            continue
        job_id, limit = job.request.job_id, job.request.requested_time
        if note.lowered_limit is not None:
            if limit == note.lowered_limit < note.requested_time:
                change = JobChange(job_id, time_limit=note.requested_time)
                repairs.append(Repair(change, "that PrologSlurmctld left with a lowered limit"))
            continue
        if not note.is_ours(job.time_min):
            continue
        before = None
        if job_id not in ran_before:
            before = waited_with.get(job_id) or waited_with.get(job.request.array_id or "")
        is_planned = limit == note.time_min or limit in refined.ours_of(job)
        if before is None and not soft_limit and is_planned:
            before = note.requested_time
        if before is not None and limit < before and (is_planned or not soft_limit):
            change = JobChange(job_id, time_limit=before)
            repairs.append(Repair(change, "whose limit Slurm lowered to time_min"))
    return repairs


def time_min_changes(
    jobs: Iterable[QueuedJob],
    exclusions: Exclusions,
    now: int,
    start_within_s: int,
    refined: Refined = NOTHING_REFINED,
) -> list[Repair]:
    """Bring time_min of every pending job to what it must be while the hook plans jobs.

    A job with a note gets the t_sched in it, or what that is refined to, unless it must be planned
    with its whole limit; that also returns to it what it lost to a reservation since cancelled, or
    to the starvation guard.
    A time_min of its user's own a job loses only where it is a danger.
    """
    repairs = []
    for job in _pending(jobs):
        note = read_note(job.admin_comment)
        planned = note.time_min if note is not None else None
        short = job.is_short
        if not short and planned is None:
            continue
        why = why_plain(job, exclusions, now, start_within_s)
        if why is None:
            repairs += _planned(job, note, refined)
        elif short and (why.is_danger or (note is not None and note.is_ours(job.time_min))):
            own = note.own_time_min if note is not None and not why.is_danger else None
            repairs += _with_time_min(job, own or 0, why.phrase)
    return repairs


def _planned(job: QueuedJob, note: JobNote | None, refined: Refined) -> list[Repair]:
    if note is None or note.time_min is None or note.time_min > job.request.requested_time:
        return []
    known = {None, note.own_time_min, note.time_min} | refined.ours_of(job)
    if job.time_min not in known:
        return []  # somebody meant that one
    due = refined.due.get(job.request.job_id, note.time_min)
    if due > job.request.requested_time:
        due = note.time_min  # the job asks for less since
    return _with_time_min(job, due, AS_PLANNED if due == note.time_min else AS_REFINED)


def limit_changes(
    jobs: Iterable[QueuedJob], exclusions: Exclusions, now: int, start_within_s: int
) -> list[Repair]:
    """Bring the limit of every pending job to what it must be while rewrite-limit plans jobs.

    A job that waits with the limit in its note gets the t_sched there, unless it must be planned
    with its whole limit, as one with a deadline, or before a reservation: then it gets that back.
    Any other limit was set by somebody since, and stays. Nor is one lowered that got a time_min
    since: there that is a limit that Slurm may lower the job to.
    """
    repairs = []
    for job in _pending(jobs):
        note = read_note(job.admin_comment)
        if note is None or note.lowered_limit is None:
            continue
        asked, lowered = note.requested_time, note.lowered_limit
        limit = job.request.requested_time
        if lowered >= asked or limit not in (asked, lowered):
            continue
        whole = replace(job, request=replace(job.request, requested_time=asked))
        danger = why_plain(whole, exclusions, now, start_within_s)
        if danger is None and job.time_min is None:
            due, why = lowered, AS_PLANNED
        else:
            due, why = asked, danger.phrase if danger is not None else "with a time_min"
        if limit != due:
            repairs.append(_with_limit(job, due, why))
    return repairs


def undone(
    jobs: Iterable[QueuedJob], why: str, *, time_min: bool = True, limits: bool = True
) -> list[Repair]:
    """Give pending jobs back what their users asked for, as their notes say.

    What somebody has set since stays.

    Parameters
    ----------
    jobs
        The queue.
    why
        The reason, in words that follow "jobs".
    time_min, limits
        Whether to undo time_min, and limits lowered under rewrite-limit.
    """
    repairs = []
    for job in _pending(jobs):
        note = read_note(job.admin_comment)
        if note is None:
            continue
        if time_min and job.is_short and note.is_ours(job.time_min):
            repairs += _with_time_min(job, note.own_time_min or 0, why)
        if limits and job.request.requested_time == note.lowered_limit != note.requested_time:
            repairs.append(_with_limit(job, note.requested_time, why))
    return repairs


def planned_short(jobs: Iterable[QueuedJob]) -> list[str]:
    """Give the ids of the jobs that have started with a time_min of the hook's.

    Slurm ignores changes of a running job's TimeMin, and a requeued one waits with it again (seen
    on 22.05 and 26.05).
    """
    return [
        job.request.job_id
        for job in jobs
        if job.state is not QueueState.PENDING
        and (note := read_note(job.admin_comment)) is not None
        and note.time_min is not None
        and job.is_short
    ]


def started(jobs: Iterable[QueuedJob]) -> frozenset[str]:
    """Give the ids of the jobs that have started."""
    return frozenset(job.request.job_id for job in jobs if job.state is not QueueState.PENDING)


def limits_waited_with(jobs: Iterable[QueuedJob]) -> dict[str, int]:
    """Give the limit of each pending job that the hook has planned, seconds by job id."""
    return {
        job.request.job_id: job.request.requested_time
        for job in _pending(jobs)
        if (note := read_note(job.admin_comment)) is not None and note.time_min is not None
    }


def as_changed(jobs: Sequence[QueuedJob], changes: Iterable[JobChange]) -> Sequence[QueuedJob]:
    """Give the queue as it is once changes of limits and of time_min were made."""
    made = {change.job_id: change for change in changes}
    return [_as_changed(job, made) for job in jobs] if made else jobs


def _as_changed(job: QueuedJob, made: Mapping[str, JobChange]) -> QueuedJob:
    job_id = job.request.job_id
    change = made.get(job_id) or made.get(_pending_tasks_of(job))
    if change is None:
        return job
    limit, time_min = job.request.requested_time, job.time_min
    if change.time_limit is not None:
        limit = change.time_limit
    if change.time_min is not None:
        time_min = change.time_min if 0 < change.time_min <= limit else None
    return replace(job, request=replace(job.request, requested_time=limit), time_min=time_min)


def changes_of(repairs: Sequence[Repair]) -> list[JobChange]:
    """Give the changes alone."""
    return [repair.change for repair in repairs]


def _pending(jobs: Iterable[QueuedJob]) -> Iterable[QueuedJob]:
    return (job for job in jobs if job.state is QueueState.PENDING)


def _with_time_min(job: QueuedJob, seconds: int, why: str) -> list[Repair]:
    seconds = min(seconds, job.request.requested_time)  # Slurm refuses more
    if (job.time_min or 0) == seconds:
        return []
    return [Repair(JobChange(job.request.job_id, time_min=seconds), why)]


def _with_limit(job: QueuedJob, seconds: int, why: str) -> Repair:
    # By the array's number alone its running tasks would lose what their users set since.
    job_id = _pending_tasks_of(job) if job.pending_tasks else job.request.job_id
    return Repair(JobChange(job_id, time_limit=seconds), why)


def _pending_tasks_of(job: QueuedJob) -> str:
    return f"{job.request.job_id}_[{job.pending_tasks}]"
