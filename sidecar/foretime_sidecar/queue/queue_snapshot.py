"""A scheduler's queue as a snapshot that forward runs begin with.

What is planned with is what the scheduler plans with: time_min or soft_walltime under a soft limit,
the time limit otherwise. How long the jobs will run is for the caller to draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.node_snapshot import NodeRequests
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob
from foretime_sim.logs.pbs_records import NO_PROJECT
from foretime_sim.workloads.node_request import HostChunk, JobResources, Request, fit_request
from foretime_sim.workloads.site_jobs import SiteJob

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState, Reservation
from foretime_sidecar.clients.cluster import AskedChunks, Cluster
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.queue.job_columns import JobColumns, why_not_released
from foretime_sidecar.queue.live_machine import LiveMachine

FLAT_POOL = "which nodes a job may have, reservations and limits are not looked at"
LIMITS_UNKNOWN = "limits of users, accounts and QOS are not known: jobs at one are left out"
ON_NODES = (
    "nodes that are drained or down stay so",
    "nobody is preempted",
)
NO_FAILURES = "jobs that others wait for are taken to succeed"
_MIB = 2**20
_UNAVAILABLE = ("ReqNodeNotAvail", "Partition", "BadConstraints", "NodeDown")


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
    live
        The machine of nodes, for what a new job asks of it; ``None`` on a flat pool.
    closed
        Why no job can start on any node now, in words; empty where some can.
    """

    snapshot: Snapshot
    requests: tuple[JobRequest, ...]
    jobs: tuple[QueuedJob, ...]
    left_out: tuple[LeftOut, ...]
    not_modelled: tuple[str, ...]
    live: LiveMachine | None = None
    closed: str = ""

    def left_out_by_reason(self) -> Mapping[str, int]:
        """Count the jobs that don't take part, tasks of arrays one by one, by why."""
        counted: Counter[str] = Counter()
        for each in self.left_out:
            counted[each.reason] += each.job.tasks
        return dict(counted)


def snapshot_of(
    queue: Queue,
    machine: Cluster | None = None,
    *,
    taken_at: int,
    soft_limit: bool = False,
    reservations: Sequence[Reservation] = (),
    knows_limits: bool = False,
    of_pbs: bool = False,
    tells: bool = True,
) -> QueueSnapshot:
    """Take a queue as the beginning of forward runs.

    Parameters
    ----------
    queue
        What ran and what waited.
    machine
        The cluster's nodes and slurm_partitions; ``None`` for a flat pool of the processors that
        are up. If none of its nodes takes jobs, every job is left out.
    taken_at
        When the queue was looked at, epoch seconds.
    soft_limit
        Whether the scheduler plans with time_min.
    reservations
        Of nodes, current and to come; on a flat pool they are not looked at.
    knows_limits
        Whether jobs that a limit keeps waiting are taken along, for who knows the limits.
    of_pbs
        Whether the scheduler is PBS, which tells other things of jobs.
    tells
        Whether the snapshot says whose its jobs are, for a site's own rules.
    """
    live = None
    if machine is not None:
        waiting = [job for job in queue.jobs if job.state is QueueState.PENDING]
        try:
            live = LiveMachine.of(machine, waiting, reservations, taken_at)
        except InputError as error:
            pending = [LeftOut(job, str(error)) for job in queue.jobs]
            nothing = snapshot_of(Queue(0, ()), taken_at=taken_at)
            return replace(nothing, left_out=tuple(pending), closed=str(error))
    sorted_out = _SortedOut.of(queue, live, knows_limits=knows_limits and live is not None)
    running = sorted(sorted_out.running, key=lambda job: _start_time(job, taken_at))
    pending_jobs = sorted_out.pending
    columns = JobColumns.of(running, pending_jobs)
    tasks = np.array([job.tasks for job in pending_jobs], dtype=np.int64)
    each_task = [job for job in pending_jobs for _ in range(job.tasks)]
    requests = None
    if live is not None:
        numbered = NodeRequests.of_each([sorted_out.request[id(job)] for job in pending_jobs])
        requests = replace(numbered, number=np.repeat(numbered.number, tasks))
    # Jobs run on in nodes that take no new ones, which the scheduler may not count as up.
    occupied = sum(job.request.processors for job in running)
    snapshot = Snapshot(
        taken_at,
        max(queue.processors, occupied, 1) if live is None else live.machine.cpus,
        _running_jobs(running, taken_at, soft_limit, live),
        replace(
            _pending_jobs(pending_jobs, tasks, taken_at, soft_limit, requests),
            dependencies=columns.dependencies(),
        ),
        () if live is None else live.reservations,
        machine=None if live is None else live.machine,
        limits=columns.array_limits(),
        told=_told(live, (*running, *each_task), of_pbs=of_pbs) if tells else None,
        away=queue.away,
    )
    submitted = {id(job): as_submitted(job) for job in (*running, *pending_jobs)}
    return QueueSnapshot(
        snapshot,
        tuple(submitted[id(job)] for job in (*running, *each_task)),
        (*running, *each_task),
        tuple(sorted_out.left_out),
        _not_modelled(pending_jobs, live, knows_limits=knows_limits),
        live,
    )


def told_of(job: QueuedJob) -> ToldJob:
    """Give what the scheduler tells of a job besides what it asks of nodes."""
    since = job.ages_since
    if since is None:
        since = max(job.eligible_time or 0, job.request.submit_time)
    return ToldJob(
        job.request.user,
        job.request.project,
        job.reservation,
        SiteJob(qos=job.qos, nice=job.nice, licenses=job.licenses or None),
        since or None,
        job.priority or None,
        at_limit=_at_limit(job),
    )


def told_of_pbs(job: QueuedJob) -> ToldPbsJob:
    """Give what PBS tells of a job besides its times."""
    request, asked = job.request, job.chunks or AskedChunks(())
    return ToldPbsJob(
        request.user,
        asked.project or request.project or NO_PROJECT,
        request.queue,
        asked.chunks,
        asked.place,
        asked.exclusive,
        asked.priority,
        tuple(
            (has.name, HostChunk(1, has.cpus, has.memory_mib * _MIB, has.gpus))
            for has in job.has_nodes
        ),
        reserved=job.reservation is not None,
        not_modelled=asked.not_modelled,
    )


def _told(
    live: LiveMachine | None, jobs: Iterable[QueuedJob], *, of_pbs: bool
) -> tuple[ToldJob, ...] | tuple[ToldPbsJob, ...] | None:
    if of_pbs:
        return tuple(map(told_of_pbs, jobs))
    return None if live is None else tuple(map(told_of, jobs))


@dataclass(frozen=True, slots=True)
class _SortedOut:
    """The jobs of a queue: those that run, those that can start, and what these ask of nodes."""

    running: list[QueuedJob]
    pending: list[QueuedJob]
    left_out: list[LeftOut]
    request: dict[int, Request]

    @classmethod
    def of(cls, queue: Queue, live: LiveMachine | None, *, knows_limits: bool) -> _SortedOut:
        out = cls([], [], [], {})
        fitted: dict[tuple[JobResources, int, int], Request] = {}
        for job in queue.jobs:
            reason = _why_left_out(job, knows_limits=knows_limits)
            if reason is None and job.state is QueueState.PENDING:
                try:
                    if live is not None:
                        out.request[id(job)] = _fit(live, job, fitted)
                    elif job.reservation is not None:
                        reason = "in a reservation"
                    elif job.request.processors > queue.processors:
                        reason = "too wide for the machine"
                    elif job.reason.startswith(_UNAVAILABLE):
                        reason = "waiting for nodes that are not available"
                except InputError as error:
                    reason = str(error)
            if reason is not None:
                out.left_out.append(LeftOut(job, reason))
            elif job.state is QueueState.RUNNING:
                out.running.append(job)
            else:
                out.pending.append(job)
        out.leave_out_dependents()
        return out

    def leave_out_dependents(self) -> None:
        """Leave out jobs that wait for jobs that are left out, and for what is not modelled."""
        while True:
            missing = {each.job.request.job_id: each.reason for each in self.left_out}
            late = [(job, why) for job in self.pending if (why := why_not_released(job, missing))]
            if not late:
                return
            for job, reason in late:
                self.pending.remove(job)
                self.left_out.append(LeftOut(job, reason))


def _fit(
    live: LiveMachine, job: QueuedJob, known: dict[tuple[JobResources, int, int], Request]
) -> Request:
    """Work out what a job asks of the machine; InputError if it could not run on it."""
    request = as_submitted(job)
    if job.reservation is not None:
        reserved = {each.name: each for each in live.reservations}.get(job.reservation)
        if reserved is None:
            raise InputError(f"in reservation {job.reservation}, which has no nodes to start it on")
        if request.requested_time > reserved.duration:
            raise InputError(f"longer than its reservation {job.reservation}")
    asked = (live.resources(job), request.processors, request.requested_time)
    if asked not in known:
        known[asked] = fit_request(live.machine, *asked, live.reservations)
    return known[asked]


def _not_modelled(
    pending: Sequence[QueuedJob], live: LiveMachine | None, *, knows_limits: bool
) -> tuple[str, ...]:
    said = [FLAT_POOL] if live is None else list(ON_NODES)
    if live is not None and not knows_limits:
        said.insert(0, LIMITS_UNKNOWN)
    if any(job.dependent for job in pending):
        said.append(NO_FAILURES)
    if live is not None:
        counted = Counter(words for job in pending if job.asked for words in job.asked.not_modelled)
        said += [f"{words} ({jobs:,} jobs)" for words, jobs in counted.most_common()]
        said += [f"partition {name}: {why}" for name, why in live.unmodelled.items()]
    return tuple(said)


def as_submitted(job: QueuedJob) -> JobRequest:
    """Give the job with the t_req of its user, where the hook has lowered the limit."""
    note = read_note(job.admin_comment)
    if note is None or note.lowered_limit is None:
        return job.request
    requested = max(note.requested_time, job.request.requested_time)
    return replace(job.request, requested_time=requested)


def _at_limit(job: QueuedJob) -> bool:
    """Say whether a limit of a QOS or an association keeps a job waiting, by Slurm's reasons."""
    return job.state is QueueState.PENDING and job.reason.startswith(("Assoc", "QOS"))


def _why_left_out(job: QueuedJob, *, knows_limits: bool) -> str | None:
    if job.state is QueueState.SUSPENDED:
        return "suspended"
    if job.state is QueueState.RUNNING:
        return None
    if job.held:
        return "held"
    if job.dependent and not job.dependency:
        return "dependent"
    if _at_limit(job) and not knows_limits:
        return "at a limit"
    if job.reason.startswith("JobArrayTaskLimit") and job.array_limit is None:
        return "at a limit"
    return None


def _start_time(job: QueuedJob, now: int) -> int:
    """Give when a running job would have started that was never suspended, not after now."""
    return now if job.start_time is None else min(job.start_time + job.suspended_time, now)


def _planned(job: QueuedJob, soft_limit: bool) -> int:
    """Give the runtime that the scheduler plans a job with."""
    limit = job.request.requested_time
    return min(job.time_min or limit, limit) if soft_limit else limit


def _running_jobs(
    jobs: Sequence[QueuedJob], now: int, soft_limit: bool, live: LiveMachine | None
) -> RunningJobs:
    return RunningJobs(
        _column(_start_time(job, now) for job in jobs),
        _column(job.request.processors for job in jobs),
        _column(as_submitted(job).requested_time for job in jobs),
        _column(_planned(job, soft_limit) for job in jobs),
        slurm_partition=None if live is None else _column(live.partition_of(job) for job in jobs),
        held=None if live is None else live.held(jobs),
    )


def _pending_jobs(
    jobs: Sequence[QueuedJob],
    tasks: Int64Array,
    now: int,
    soft_limit: bool,
    requests: NodeRequests | None,
) -> PendingJobs:
    def each_task(column: Int64Array) -> Int64Array:
        return np.repeat(column, tasks)

    submitted = _column(min(job.request.submit_time, now) for job in jobs)
    # That a job was eligible later than it was submitted is over, unless it is still to come.
    eligible = _column(now if job.eligible_time is None else job.eligible_time for job in jobs)
    return PendingJobs(
        each_task(submitted),
        each_task(_column(job.request.processors for job in jobs))
        if requests is None
        else requests.processors(),
        each_task(_column(as_submitted(job).requested_time for job in jobs)),
        each_task(_column(_planned(job, soft_limit) for job in jobs)),
        priority=each_task(_column(job.priority for job in jobs)),
        eligible_time=each_task(np.where(eligible > now, eligible, submitted)),
        requests=requests,
    )


def _column(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, dtype=np.int64)
