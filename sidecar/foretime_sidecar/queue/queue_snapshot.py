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
from foretime_sim.workloads.node_request import HostChunk
from foretime_sim.workloads.site_jobs import SiteJob

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState, Reservation
from foretime_sidecar.clients.cluster import AskedChunks, Cluster
from foretime_sidecar.queue.job_columns import JobColumns, why_not_released
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.prepared_jobs import (
    PreparedJob,
    PreparedJobs,
    at_limit,
)

FLAT_POOL = "which nodes a job may have, reservations and limits are not taken into account"
LIMITS_UNKNOWN = "limits of users, accounts and QOS are not known: jobs at one are left out"
ON_NODES = (
    "nodes that are drained or down stay so",
    "no job is preempted",
)
NO_FAILURES = "jobs that others depend on are expected to succeed"
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
    sorted_out: SortedOut | None = None,
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
    sorted_out
        The jobs of just this queue, if that is known.
    """
    try:
        out = sorted_out or SortedOut.of(
            queue, machine, taken_at, reservations, knows_limits=knows_limits
        )
    except InputError as error:
        shut_out = tuple(LeftOut(job, str(error)) for job in queue.jobs)
        nothing = snapshot_of(Queue(0, ()), taken_at=taken_at)
        return replace(nothing, left_out=shut_out, closed=str(error))
    live = out.live
    running = sorted(out.running, key=lambda each: _start_time(each.job, taken_at))
    pending = out.pending
    tasks = np.fromiter((each.job.tasks for each in pending), np.int64, len(pending))
    each_task = pending
    if (tasks > 1).any():
        each_task = [each for each in pending for _ in range(each.job.tasks)]
    requests = None
    if live is not None:
        numbered = NodeRequests.of_each([each.request for each in pending if each.request])
        requests = replace(numbered, number=np.repeat(numbered.number, tasks))
    in_columns = [*running, *each_task]
    jobs = tuple(each.job for each in in_columns)
    # Jobs run on in nodes that take no new ones, which the scheduler may not count as up.
    occupied = sum(each.job.request.processors for each in running)
    columns = JobColumns.of(jobs[: len(running)], [each.job for each in pending])
    snapshot = Snapshot(
        taken_at,
        max(queue.processors, occupied, 1) if live is None else live.machine.cpus,
        _running_jobs(running, taken_at, soft_limit, live),
        replace(
            _pending_jobs(pending, tasks, taken_at, soft_limit, requests),
            dependencies=columns.dependencies(),
        ),
        () if live is None else live.reservations,
        machine=None if live is None else live.machine,
        limits=columns.array_limits(),
        told=_told(live, jobs, of_pbs=of_pbs) if tells else None,
        away=queue.away,
    )
    return QueueSnapshot(
        snapshot,
        tuple(each.submitted for each in in_columns),
        jobs,
        tuple(out.left_out),
        _not_modelled([each.job for each in pending], live, knows_limits=knows_limits),
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
        at_limit=at_limit(job),
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
class SortedOut:
    """The jobs of a queue: those that run, those that can start, and the others.

    Attributes
    ----------
    live
        The machine; ``None`` for a flat pool.
    running, pending, left_out
        The jobs.
    """

    live: LiveMachine | None
    running: list[PreparedJob]
    pending: list[PreparedJob]
    left_out: list[LeftOut]

    @classmethod
    def of(
        cls,
        queue: Queue,
        machine: Cluster | None,
        taken_at: int,
        reservations: Sequence[Reservation] = (),
        *,
        knows_limits: bool = False,
        prepared: PreparedJobs | None = None,
    ) -> SortedOut:
        """Sort the jobs of a queue.

        Parameters
        ----------
        queue, machine, taken_at, reservations, knows_limits
            As of `snapshot_of`.
        prepared
            What was worked out of the jobs of the queue before; ``None``: nothing.

        Raises
        ------
        InputError
            If no node of the machine takes jobs.
        """
        live = None
        if machine is not None:
            waiting = [job for job in queue.jobs if job.state is QueueState.PENDING]
            live = LiveMachine.of(machine, waiting, reservations, taken_at)
        out = cls(live, [], [], [])
        for each in (prepared or PreparedJobs()).of(
            queue.jobs, live, knows_limits=knows_limits and live is not None
        ):
            job, reason = each.job, each.left_out
            if reason is None and live is None and job.state is QueueState.PENDING:
                reason = _why_not_in_pool(job, queue)
            if reason is not None:
                out.left_out.append(LeftOut(job, reason))
            elif job.state is QueueState.RUNNING:
                out.running.append(each)
            else:
                out.pending.append(each)
        out.leave_out_dependents()
        return out

    def leave_out_dependents(self) -> None:
        """Leave out jobs that wait for jobs that are left out, and for what is not modelled."""
        while any(each.job.dependent for each in self.pending):
            missing = {each.job.request.job_id: each.reason for each in self.left_out}
            late = {
                id(each): why
                for each in self.pending
                if (why := why_not_released(each.job, missing))
            }
            if not late:
                return
            self.left_out.extend(
                LeftOut(each.job, late[id(each)]) for each in self.pending if id(each) in late
            )
            self.pending[:] = [each for each in self.pending if id(each) not in late]


def _why_not_in_pool(job: QueuedJob, queue: Queue) -> str | None:
    if job.reservation is not None:
        return "in a reservation"
    if job.request.processors > queue.processors:
        return "too wide for the machine"
    if job.reason.startswith(_UNAVAILABLE):
        return "waiting for nodes that are not available"
    return None


def _not_modelled(
    pending: Sequence[QueuedJob], live: LiveMachine | None, *, knows_limits: bool
) -> tuple[str, ...]:
    said = [FLAT_POOL] if live is None else list(ON_NODES)
    if live is not None and not knows_limits:
        said.insert(0, LIMITS_UNKNOWN)
    if any(job.dependent for job in pending):
        said.append(NO_FAILURES)
    if live is not None:
        asked = [job.asked for job in pending if job.asked]
        counted = Counter(words for each in asked for words in each.not_modelled + each.assumed)
        said += [f"{words} ({jobs:,} jobs)" for words, jobs in counted.most_common()]
        said += [f"partition {name}: {why}" for name, why in live.unmodelled.items()]
    return tuple(said)


def _start_time(job: QueuedJob, now: int) -> int:
    """Give when a running job would have started that was never suspended, not after now."""
    return now if job.start_time is None else min(job.start_time + job.suspended_time, now)


def _planned(job: QueuedJob, soft_limit: bool) -> int:
    """Give the runtime that the scheduler plans a job with."""
    limit = job.request.requested_time
    return min(job.time_min or limit, limit) if soft_limit else limit


def _running_jobs(
    jobs: Sequence[PreparedJob], now: int, soft_limit: bool, live: LiveMachine | None
) -> RunningJobs:
    return RunningJobs(
        _column(_start_time(each.job, now) for each in jobs),
        _column(each.job.request.processors for each in jobs),
        _column(each.submitted.requested_time for each in jobs),
        _column(_planned(each.job, soft_limit) for each in jobs),
        slurm_partition=None if live is None else _column(each.slurm_partition for each in jobs),
        held=None if live is None else live.held([each.has for each in jobs]),
    )


def _pending_jobs(
    jobs: Sequence[PreparedJob],
    tasks: Int64Array,
    now: int,
    soft_limit: bool,
    requests: NodeRequests | None,
) -> PendingJobs:
    def each_task(column: Int64Array) -> Int64Array:
        return np.repeat(column, tasks)

    submitted = np.minimum(_column(each.job.request.submit_time for each in jobs), now)
    # That a job was eligible later than it was submitted is over, unless it is still to come.
    eligible = _column(
        now if each.job.eligible_time is None else each.job.eligible_time for each in jobs
    )
    return PendingJobs(
        each_task(submitted),
        each_task(_column(each.job.request.processors for each in jobs))
        if requests is None
        else requests.processors(),
        each_task(_column(each.submitted.requested_time for each in jobs)),
        each_task(_column(_planned(each.job, soft_limit) for each in jobs)),
        priority=each_task(_column(each.job.priority for each in jobs)),
        eligible_time=each_task(np.where(eligible > now, eligible, submitted)),
        requests=requests,
    )


def _column(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, dtype=np.int64)
