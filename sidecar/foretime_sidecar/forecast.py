"""When a job would start: the queue of now, run forward in the engine with t_sched as runtimes.

What the engine plans with is what the scheduler plans with (time_min or soft_walltime under a soft
limit, the time limit otherwise); how long the jobs really take is taken to be t_sched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import JobRequest
from foretime_sim import forward
from foretime_sim.policy import Backfill, Correction, Order, Policy
from foretime_sim.workload import Int64Array

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.job_note import read_note
from foretime_sidecar.settings import ForecastSettings


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue as it was at one moment.

    Attributes
    ----------
    taken_at
        Epoch seconds.
    queue
        What ran and what waited.
    soft_limit
        Whether the scheduler took time_min as a soft limit.
    correction
        What it plans a job with that outlives its soft limit.
    """

    taken_at: int
    queue: Queue
    soft_limit: bool = False
    correction: Correction = Correction.SLURM


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """When a job would start, and what was assumed.

    Attributes
    ----------
    made_at
        Epoch seconds: the job is taken to be submitted then.
    start_time, wait_s
        Expected start, epoch seconds, and the wait until then; ``None`` if the queue was too long
        to be run forward.
    requested_time_s, scheduled_time_s
        Of the job asked for: t_req and t_sched.
    snapshot_age_s
        Seconds between the look at the queue and ``made_at``.
    machine_processors
        Processors of nodes that were up.
    running_jobs, pending_jobs
        Jobs that took part; each pending task of an array is one.
    left_out
        Jobs that did not, by why.
    assumptions
        In words.
    """

    made_at: int
    start_time: int | None
    requested_time_s: int
    scheduled_time_s: int
    snapshot_age_s: int
    machine_processors: int
    running_jobs: int
    pending_jobs: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()

    @property
    def wait_s(self) -> int | None:
        """Seconds from ``made_at`` to the start."""
        return None if self.start_time is None else self.start_time - self.made_at


def expected_start(
    snapshot: Snapshot,
    job: JobRequest,
    now: int,
    scheduled_time: Callable[[JobRequest], int],
    settings: ForecastSettings,
    *,
    enforced: bool = False,
) -> ExpectedStart:
    """Say when a job submitted now would start.

    A running job that has outlived its t_sched is taken to run on as the scheduler corrects it:
    half of what is left to its limit under Slurm's soft limit, to the next multiple of its t_sched
    on PBS, up to the limit otherwise.

    Parameters
    ----------
    snapshot
        The queue that it would join.
    job
        The job.
    now
        Epoch seconds, when it is submitted.
    scheduled_time
        t_sched of a job, seconds.
    settings
        Order and backfilling of the scheduler, and the longest queue to run forward.
    enforced
        Whether the hook would make the scheduler plan this job with t_sched.

    Raises
    ------
    InputError
        If the machine is too small for the job.
    """
    taken_at = snapshot.taken_at
    now = max(now, taken_at)
    running, pending, left_out = _sort_out(snapshot)
    occupied = sum(each.request.processors for each in running)
    # Jobs run on in nodes that take no new ones, which the scheduler may not count as up.
    processors = max(snapshot.queue.processors, occupied)
    if job.processors > processors:
        raise InputError(
            f"processors = {job.processors}: only {processors} processors are up now; ask for less"
        )
    waiting = sum(each.tasks for each in pending)
    mine = min(scheduled_time(job), job.requested_time)
    answer = ExpectedStart(
        made_at=now,
        start_time=None,
        requested_time_s=job.requested_time,
        scheduled_time_s=mine,
        snapshot_age_s=now - taken_at,
        machine_processors=processors,
        running_jobs=len(running),
        pending_jobs=waiting,
        left_out=left_out,
        assumptions=_assumptions(settings),
    )
    if len(running) + waiting > settings.most_jobs:
        too_long = (
            f"the queue has {len(running) + waiting:,} jobs and is not run forward beyond "
            f"{settings.most_jobs:,} (forecast.most_jobs)"
        )
        return replace(answer, assumptions=(too_long,))
    correction = snapshot.correction if snapshot.soft_limit else Correction.REQUESTED
    policy = Policy(Order(settings.order), Backfill(settings.backfill), correction)
    runs, ends = _running_jobs(running, taken_at, correction, scheduled_time)
    waits, runtimes = _pending_jobs(pending, taken_at, correction, scheduled_time)
    begin = forward.Snapshot(taken_at, processors, runs, waits).with_job(
        job.processors, job.requested_time, mine if enforced else None, submit_time=now
    )
    sample = np.concatenate([ends, runtimes, [mine]])[np.newaxis]
    (start_time,) = forward.start_times_of(-1, begin, policy, sample, threads=1).tolist()
    return replace(answer, start_time=start_time)


def _assumptions(settings: ForecastSettings) -> tuple[str, ...]:
    return (
        "jobs run for their scheduled time",
        f"the queue's order is {settings.order}, backfilling {settings.backfill}",
        "slurm_partitions, nodes, reservations and limits are not looked at",
        "nobody submits another job that goes first",
    )


def _sort_out(snapshot: Snapshot) -> tuple[list[QueuedJob], list[QueuedJob], dict[str, int]]:
    """Part the jobs into running, pending, and those left out, counted by why."""
    running, pending = [], []
    left_out: Counter[str] = Counter()
    for job in snapshot.queue.jobs:
        why = _left_out(job, snapshot.queue.processors)
        if why:
            left_out[why] += job.tasks
        elif job.state is QueueState.RUNNING:
            running.append(job)
        else:
            pending.append(job)
    return running, pending, dict(left_out)


def _left_out(job: QueuedJob, processors: int) -> str | None:
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


def as_submitted(job: QueuedJob) -> JobRequest:
    """Give the job with the t_req of its user, where the hook has lowered the limit."""
    note = read_note(job.admin_comment)
    if note is None or note.lowered_limit is None:
        return job.request
    requested = max(note.requested_time, job.request.requested_time)
    return replace(job.request, requested_time=requested)


def _planned(job: QueuedJob, soft_limit: bool) -> int:
    """Give the runtime that the scheduler plans a job with."""
    limit = job.request.requested_time
    return min(job.time_min or limit, limit) if soft_limit else limit


def _running_jobs(
    jobs: list[QueuedJob],
    now: int,
    correction: Correction,
    scheduled_time: Callable[[JobRequest], int],
) -> tuple[forward.RunningJobs, Int64Array]:
    """Give the running jobs as the scheduler plans with them, and how long they are to run."""
    soft_limit = correction is not Correction.REQUESTED
    rows = []
    for job in jobs:
        request = as_submitted(job)
        start_time = now if job.start_time is None else job.start_time + job.suspended_time
        start_time = min(start_time, now)
        elapsed, limit = now - start_time, request.requested_time
        runtime = scheduled_time(request)
        if runtime <= elapsed:
            match correction:
                case Correction.SLURM:
                    runtime = elapsed + max((limit - elapsed) // 2, 1)
                case Correction.PBS:
                    runtime *= 1 + elapsed // runtime
                case _:
                    runtime = limit
        planned = _planned(job, soft_limit)
        rows.append((start_time, request.processors, limit, planned, min(runtime, limit)))
    start, processors, requested, scheduled, runtimes = _columns(rows, 5)
    return forward.RunningJobs(start, processors, requested, scheduled), runtimes


def _pending_jobs(
    jobs: list[QueuedJob],
    now: int,
    correction: Correction,
    scheduled_time: Callable[[JobRequest], int],
) -> tuple[forward.PendingJobs, Int64Array]:
    """Give the pending jobs, each task of an array being one, and how long they are to run."""
    soft_limit = correction is not Correction.REQUESTED
    rows = []
    for job in jobs:
        request = as_submitted(job)
        submit_time = min(request.submit_time, now)
        if job.eligible_time is not None and job.eligible_time > now:
            submit_time = job.eligible_time  # it joins the queue when it was told to begin
        runtime = min(scheduled_time(request), request.requested_time)
        planned = _planned(job, soft_limit)
        row = (submit_time, request.processors, request.requested_time, planned, runtime)
        rows += [row] * job.tasks
    submit, processors, requested, scheduled, runtimes = _columns(rows, 5)
    return forward.PendingJobs(submit, processors, requested, scheduled), runtimes


def _columns(rows: Sequence[tuple[int, ...]], columns: int) -> Int64Array:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns).T
