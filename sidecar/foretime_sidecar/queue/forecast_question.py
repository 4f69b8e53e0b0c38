"""A look at the queue as the moment that forecasts are asked about: columns, policy, what if."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob
from foretime_sim.logs.pbs_records import NO_PROJECT
from foretime_sim.policies.families import family_named
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.waits.moment import Moment
from foretime_sim.workloads.site_jobs import SiteJob

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState, Reservation
from foretime_sidecar.clients.cluster import AskedChunks, AskedNodes, Cluster, ClusterPartition
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of
from foretime_sidecar.settings.settings import ForecastSettings

_MOST_NAMED = 8
_OF_GPUS = "gpu:"
_FLEXIBLE = "FLEX"  # a flag of Slurm's reservations


@dataclass(frozen=True, slots=True)
class Look:
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
    cluster
        Nodes and slurm_partitions; ``None`` where they are not told: a flat pool then.
    reservations
        Of nodes, current and to come.
    nodes_unread
        Why the nodes were not read though somebody wanted them; "" if they were.
    """

    taken_at: int
    queue: Queue
    soft_limit: bool = False
    correction: Correction = Correction.SLURM
    cluster: Cluster | None = None
    reservations: tuple[Reservation, ...] = ()
    nodes_unread: str = ""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is not in the queue: one that nobody has submitted yet.

    Attributes
    ----------
    request
        As it would be submitted.
    planned_s
        What the scheduler would plan it with, seconds; ``None``: its time limit.
    eligible_time
        When it could first start, epoch seconds; ``None``: at once.
    asked
        What it would ask of nodes; ``None``: its processors as tasks.
    chunks
        On PBS, what it would ask of hosts; ``None``: its processors, each on any.
    qos
        On Slurm, ``--qos``; ``None``: the default.
    runs_as
        The job as long as which it runs, times ``runtime_factor``; ``None``: it tells itself.
    let_go_s
        How long the jobs that it waits for keep it from the queue, seconds from the look at it at
        each of ``LEVELS``; ``()``: it waits for none.
    """

    request: JobRequest
    planned_s: int | None = None
    eligible_time: int | None = None
    asked: AskedNodes | None = None
    chunks: AskedChunks | None = None
    qos: str | None = None
    runs_as: JobRequest | None = None
    runtime_factor: float = 1.0
    let_go_s: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueMoment:
    """A look at the queue in the forecasters' terms.

    Attributes
    ----------
    look
        What was seen.
    taken
        The queue as a snapshot, with what it leaves out.
    policy
        What the scheduler does, as far as the settings and the look tell.
    requests
        Every job as its user submitted it, in the order of columns; the pending tasks of an array
        have identifiers of their own where Slurm tells them.
    """

    look: Look
    taken: QueueSnapshot
    policy: Policy
    requests: tuple[JobRequest, ...]

    @classmethod
    def of(
        cls, look: Look, settings: ForecastSettings, *, knows_limits: bool = False
    ) -> QueueMoment:
        """Take a look at the queue under the settings' order and backfilling.

        ``knows_limits``: with the jobs that a limit keeps waiting.
        """
        taken = snapshot_of(
            look.queue,
            look.cluster,
            taken_at=look.taken_at,
            soft_limit=look.soft_limit,
            reservations=look.reservations,
            knows_limits=knows_limits,
            of_pbs=look.correction is Correction.PBS,
        )
        correction = look.correction if look.soft_limit else Correction.REQUESTED
        policy = Policy(Order(settings.order), family_named(settings.backfill), correction)
        return cls(look, taken, policy, _by_task(taken))

    @property
    def first_pending(self) -> int:
        """Column of the first pending job."""
        return len(self.taken.snapshot.running)

    @property
    def queue_order(self) -> Order:
        """The queue's order, which the settings name."""
        order = self.policy.order
        if not isinstance(order, Order):
            raise TypeError(f"the queue's order is {order!r}, not one of the settings'")
        return order

    def everybody(self) -> Moment:
        """Give the moment at which all pending jobs that take part are asked about."""
        return self.asking(range(self.first_pending, len(self.requests)))

    def asking(self, columns: Sequence[int]) -> Moment:
        """Give the moment at which some of the pending jobs are asked about.

        A job in a reservation can't start before that, unless it is a flexible one.
        """
        begins = {
            each.name: each.start_time
            for each in self.look.reservations
            if _FLEXIBLE not in each.flags
        }
        since = [
            max(
                self.taken.jobs[column].eligible_time or 0,
                self.requests[column].submit_time,
                begins.get(self.taken.jobs[column].reservation or "", 0),
            )
            for column in columns
        ]
        return Moment(
            self.taken.snapshot,
            self.policy,
            self.requests,
            np.array(columns, dtype=np.int64),
            np.array(since, dtype=np.int64),
        )

    def released(self, settings: ForecastSettings, *, all_up: bool = False) -> QueueMoment:
        """Give the moment if what is held back were let go now, not to begin before its time.

        Jobs that are held, dependent, at a limit or in a reservation join the queue as if they had
        just been submitted, of an array the first task; what a flat pool is too small for, as if it
        asked for all of it. ``all_up``: as if all nodes and slurm_partitions took jobs, besides.
        """
        now = self.look.taken_at
        back = {id(left.job) for left in self.taken.left_out}
        jobs = tuple(
            _let_go(job, now, self.look.queue.processors)
            if id(job) in back and job.state is QueueState.PENDING
            else job
            for job in self.look.queue.jobs
        )
        look = replace(self.look, queue=replace(self.look.queue, jobs=jobs))
        if all_up and look.cluster is not None:
            look = replace(look, cluster=look.cluster.all_up())
        return QueueMoment.of(look, settings)

    def with_job(self, job: NewJob) -> Moment:
        """Give the moment at which a job is asked about that is submitted just then.

        In a queue by the scheduler's priorities it has that of the job that was submitted last: its
        user's, or else anybody's. Under a site's own rules it is its user's last of its QOS, or
        else as the rules say.

        Raises
        ------
        InputError
            If a slurm_partition is unknown or takes no jobs, or no node has what it asks for.
        """
        snapshot, live = self.taken.snapshot, self.taken.live
        if self.look.cluster is not None and live is not None and job.request.queue:
            _check_partitions(job.request.queue, self.look.cluster, live)
        if live is not None and job.asked is not None:
            _check_gpus(job.asked, live)
        submit_time = max(job.eligible_time or snapshot.now, snapshot.now)
        told: ToldJob | ToldPbsJob
        if self.look.correction is Correction.PBS:
            asked = job.chunks or AskedChunks(())
            told = ToldPbsJob(
                job.request.user,
                job.request.project or NO_PROJECT,
                job.request.queue,
                asked.chunks,
                asked.place,
                asked.exclusive,
            )
        else:
            told = ToldJob(
                job.request.user,
                job.request.project,
                said=SiteJob(qos=job.qos),
                ages_since=submit_time,
                priority=self._own_priority(job.request, job.qos),
            )
        added = snapshot.with_job(
            job.request.processors,
            job.request.requested_time,
            job.planned_s,
            submit_time=submit_time,
            priority=self._new_priority(job.request),
            resources=None if live is None else live.resources_of(job.request.queue, job.asked),
            told=told,
        )
        requests = (*self.requests, job.request)
        return Moment(added, self.policy, requests, np.array([len(added) - 1], dtype=np.int64))

    def _own_priority(self, request: JobRequest, qos: str | None = None) -> int | None:
        """Give the priority of its user's newest job; ``None`` if that user has none waiting.

        ``qos``: of those of that QOS.
        """
        waiting = self.taken.jobs[self.first_pending :]
        own = [
            job for job in waiting if job.request.user == request.user and qos in (None, job.qos)
        ]
        return max(own, key=_submitted).priority or None if own else None

    def _new_priority(self, request: JobRequest) -> int | None:
        waiting = self.taken.jobs[self.first_pending :]
        own = self._own_priority(request)
        if own is not None or not waiting:
            return own
        return max(waiting, key=_submitted).priority


def _submitted(job: QueuedJob) -> int:
    return job.request.submit_time


def _check_partitions(asked: str, cluster: Cluster, live: LiveMachine) -> None:
    """Refuse a job for slurm_partitions (names, with commas) as sbatch would, or that are down."""
    names = list(filter(None, asked.split(",")))
    every = {part.name: part for part in cluster.partitions}
    taking = {part.name for part in live.machine.slurm_partitions}
    for name in names:
        if name not in every:
            raise InputError(f"there is no partition {name}; {_nearest(name, every.values())}")
    if not taking.intersection(names) and not live.unmodelled.keys() & set(names):
        others = [every[name] for name in every if name in taking]
        raise InputError(f"partition {asked} takes no jobs now; {_nearest(names[0], others)}")


def _check_gpus(asked: AskedNodes, live: LiveMachine) -> None:
    """Refuse a job for GPUs that no node has, of the type that it names or at all."""
    if not asked.gpus_per_node:
        return
    groups = live.machine.node_groups
    wanted = {word for word in asked.constraint if word.startswith(_OF_GPUS)}
    if any(group.gpus and wanted <= {*group.features} for group in groups):
        return
    shown = {
        name
        for part, here in zip(live.partitions, live.machine.slurm_partitions, strict=True)
        if not part.hidden
        for name in here.node_groups
    }
    there: set[str] = set()
    for group in groups:
        if group.gpus and group.name in shown:
            types = [word for word in group.features if word.startswith(_OF_GPUS)]
            there.update(types or ["gpu without a type"])
    of_type = "".join(f" of type {word.removeprefix(_OF_GPUS)!r}" for word in sorted(wanted))
    remedy = f"there are {', '.join(sorted(there))}" if there else "ask without GPUs"
    raise InputError(f"no node that takes jobs has GPUs{of_type}; {remedy}")


def _nearest(name: str, parts: Iterable[ClusterPartition]) -> str:
    """Say which slurm_partitions there are besides, those first that are written nearly so."""
    shown = sorted(part.name for part in parts if not part.hidden)
    matcher = difflib.SequenceMatcher(b=name)

    def unlike(other: str) -> float:
        matcher.set_seq1(other)
        return -matcher.ratio()

    first = sorted(shown, key=unlike)[:_MOST_NAMED]
    if not first:
        return "ask which there are"
    if len(shown) == 1:
        return f"the only one is {first[0]}"
    more = len(shown) - len(first)
    return f"there are {', '.join(first)}{f' and {more} more' if more else ''}"


def running_jobs(look: Look) -> Mapping[str, QueuedJob]:
    """Give the jobs that run or are suspended, by identifier."""
    return {
        job.request.job_id: job for job in look.queue.jobs if job.state is not QueueState.PENDING
    }


def _by_task(taken: QueueSnapshot) -> tuple[JobRequest, ...]:
    """Give the requests with the identifiers of tasks, which lie in a row for each array."""
    requests = list(taken.requests)
    column = len(taken.snapshot.running)
    while column < len(requests):
        job = taken.jobs[column]
        for offset, job_id in enumerate(job.task_ids):
            if job_id != requests[column + offset].job_id:
                requests[column + offset] = replace(requests[column + offset], job_id=job_id)
        column += job.tasks
    return tuple(requests)


def _let_go(job: QueuedJob, now: int, processors: int) -> QueuedJob:
    """Give a job as it would be if nothing but the machine kept it from starting."""
    return replace(
        job,
        request=replace(
            job.request,
            submit_time=now,
            processors=max(min(job.request.processors, processors), 1),
        ),
        tasks=1,
        pending_tasks="",
        held=False,
        dependent=False,
        reservation=None,
        reason="",
        eligible_time=max(job.eligible_time or now, now),
    )
