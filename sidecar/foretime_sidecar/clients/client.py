"""What the sidecar asks of a scheduler, and the shapes of the answers.

Every time is in epoch seconds, every duration in seconds: a client turns Slurm's minutes into
seconds, nothing behind it does.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sidecar.clients.array_indices import index_ranges
from foretime_sidecar.clients.cluster import AskedChunks, AskedNodes, Cluster, HeldNode

# A job without a limit plans for ever; a year is longer than any real plan.
UNLIMITED_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """How the scheduler is set up, as far as Foretime depends on it.

    Attributes
    ----------
    scheduler
        "slurm" or "pbs".
    cluster
        The cluster's name; the PBS server's.
    version
        As the scheduler prints it, such as "22.05.8".
    scheduler_type
        Such as "sched/backfill".
    parameters
        ``SchedulerParameters``, a parameter without a value having the value ""; the attributes of
        the PBS server.
    prolog_slurmctld
        ``PrologSlurmctld``, "" if none is set.
    accounting_enforce
        ``AccountingStorageEnforce``, lower case, such as "limits" and "safe"; empty if none.
    priority_type
        ``PriorityType``, such as "priority/multifactor"; "" on PBS.
    site_factor_plugin
        ``PrioritySiteFactorPlugin``, "" if none is set.
    qos_weight
        ``PriorityWeightQOS``.
    priority_flags
        ``PriorityFlags``, upper case; empty if none.
    preempt_type
        ``PreemptType``, such as "preempt/none"; "" if not told.
    federation
        The federation that the cluster is a member of, "" if none.
    private_data
        What users may not see of others, in the words of Slurm's ``PrivateData``, lower case.
    digest
        Another one once anything of the scheduler's configuration has changed; "" if not told.
    """

    scheduler: str
    cluster: str
    version: str
    scheduler_type: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    prolog_slurmctld: str = ""
    accounting_enforce: frozenset[str] = frozenset()
    priority_type: str = ""
    site_factor_plugin: str = ""
    qos_weight: int = 0
    priority_flags: frozenset[str] = frozenset()
    preempt_type: str = ""
    federation: str = ""
    private_data: frozenset[str] = frozenset()
    digest: str = field(default="", compare=False)

    @property
    def soft_limit(self) -> bool:
        """Whether ``time_min`` is planned with, and not a limit that jobs are killed at."""
        return (
            "time_min_as_soft_limit" in self.parameters and self.scheduler_type == "sched/backfill"
        )

    @property
    def time_step_s(self) -> int:
        """Whole multiples of it are what the scheduler takes for a time limit, seconds."""
        return 60


@dataclass(frozen=True, slots=True)
class PbsConfiguration(SchedulerConfiguration):
    """How a PBS server is set up: it counts in seconds, and always plans with soft_walltime."""

    @property
    def soft_limit(self) -> bool:
        """True: PBS never ends a job at its soft_walltime."""
        return True

    @property
    def time_step_s(self) -> int:
        """One second."""
        return 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the finished jobs have been read.

    Attributes
    ----------
    end_time
        Latest end, epoch seconds, that was read. What ended at that very second may be incomplete,
        so the next reading begins there again: it is the store that drops what it knows.
    """

    end_time: int = 0


@dataclass(frozen=True, slots=True)
class FinishedRecord:
    """One finished job as the accounting keeps it.

    Attributes
    ----------
    job
        What the estimators learn from. A job that was requeued has one record for each time that
        it ran; ``(job_id, submit_time)`` identifies a record.
    eligible_time
        When the job could first have started; ``None`` if that was never known. Waits count from
        here.
    state
        The scheduler's own word for the ending, such as "OUT_OF_MEMORY".
    admin_comment
        Where the hook recorded what it decided: Slurm's AdminComment, its line in PBS's server log;
        "" if there is nothing.
    """

    job: FinishedJob
    eligible_time: int | None
    state: str
    admin_comment: str = ""


class QueueState(enum.Enum):
    """Where a job in the queue stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A pending or running job.

    Attributes
    ----------
    request
        The job as submitted. ``requested_time`` is the limit that the scheduler holds now.
    state
        Pending, running or suspended.
    tasks
        How many jobs the record stands for: more than 1 for the pending tasks of a job array.
    pending_tasks
        Which tasks those are ("3-6,8"); "" for none, or if not told in full.
    start_time
        Start of a running job; for a pending one the scheduler's own plan, ``None`` without one.
    eligible_time
        When the job could first have started; may lie ahead; ``None`` if unknown.
    time_min
        What the scheduler plans with: ``time_min``, PBS's ``soft_walltime``, seconds; ``None`` if
        it is unset or no shorter than the limit.
    suspended_time
        Seconds that a running job has been suspended so far.
    held, dependent, deadline, heterogeneous
        Held by anyone; waiting for other jobs; must end by a time; part of a heterogeneous job.
    shrinks_to_fit, opted_out
        PBS may choose its walltime; its user wants it to be left alone.
    reason
        Why it does not run, in the scheduler's word; "" if none.
    qos, reservation
        Names, ``None`` if none.
    admin_comment
        Where the hook records what it decided: Slurm's AdminComment, its line in PBS's server log;
        "" if there is nothing.
    priority
        As the scheduler orders the queue, higher first; 0 if it is unknown.
    name
        The job's own, "" if unknown.
    dependency
        What it waits for, as Slurm writes it; "" if nothing, or if that is not told.
    array_limit
        Most tasks of its array that may run at once; ``None`` for no limit.
    asked, has_nodes
        What it asks of nodes, and what it has of each if it runs; ``None`` and nothing where the
        client does not tell.
    chunks
        What a job of PBS asks of hosts; ``None`` where that is not told.
    nice, licenses
        As it was submitted: what Slurm takes off its priority; names with counts.
    ages_since
        From when on its age counts for its priority, epoch seconds; 0: it does not yet; ``None``:
        that is not told.

    Examples
    --------
    >>> from foretime_estimators import JobRequest
    >>> from foretime_sidecar.clients.client import QueueState, QueuedJob
    >>> asked = JobRequest("17", "ann", None, processors=8, requested_time=3600, submit_time=0)
    >>> QueuedJob(asked, QueueState.PENDING, reason="Priority").reason
    'Priority'
    """

    request: JobRequest
    state: QueueState
    tasks: int = 1
    pending_tasks: str = ""
    start_time: int | None = None
    eligible_time: int | None = None
    time_min: int | None = None
    suspended_time: int = 0
    held: bool = False
    dependent: bool = False
    deadline: bool = False
    heterogeneous: bool = False
    shrinks_to_fit: bool = False
    opted_out: bool = False
    reason: str = ""
    qos: str | None = None
    reservation: str | None = None
    admin_comment: str = ""
    priority: int = 0
    name: str = ""
    dependency: str = ""
    array_limit: int | None = None
    asked: AskedNodes | None = None
    has_nodes: tuple[HeldNode, ...] = ()
    chunks: AskedChunks | None = None
    nice: int = 0
    licenses: str = ""
    ages_since: int | None = None

    @property
    def planned_start(self) -> int | None:
        """When the scheduler plans to start a pending job; ``None`` if it tells nothing of its own.

        Of a job that is to begin later Slurm only repeats when that is.
        """
        start = self.start_time
        return None if start is None or start <= (self.eligible_time or 0) else start

    @property
    def is_short(self) -> bool:
        """Whether the job is planned with less than its limit."""
        return self.time_min is not None and self.time_min < self.request.requested_time

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Identifiers of the jobs that the record stands for.

        ``ARRAY_TASK`` where Slurm tells that; on PBS the array's own for each.
        """
        if "[" in self.request.job_id or not self.pending_tasks:
            return (self.request.job_id,) * self.tasks
        ranges = [part for part in index_ranges(self.pending_tasks) if part is not None]
        if sum(map(len, ranges)) != self.tasks:
            return (self.request.job_id,) * self.tasks
        return tuple(f"{self.request.job_id}_{number}" for part in ranges for number in part)


@dataclass(frozen=True, slots=True)
class Queue:
    """What runs and what waits at one moment, in the scheduler's order of submission.

    Attributes
    ----------
    processors
        Processors of nodes that are up, allocated or idle.
    jobs
        Running, suspended and pending jobs.
    away
        On PBS: names of vnodes that take no jobs now.
    """

    processors: int
    jobs: tuple[QueuedJob, ...]
    away: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes set aside for a time.

    Attributes
    ----------
    name
        The reservation's name.
    start_time, end_time
        Epoch seconds.
    processors
        Processors set aside; ``None`` if unknown.
    slurm_partition
        The slurm_partition it is tied to, ``None`` if none.
    flags
        The scheduler's own flags, such as "MAINT".
    nodes
        Names of its nodes; ``None`` if unknown.
    """

    name: str
    start_time: int
    end_time: int
    processors: int | None = None
    slurm_partition: str | None = None
    flags: frozenset[str] = frozenset()
    nodes: frozenset[str] | None = None


Holder: TypeAlias = Literal["user", "account", "slurm_partition", "qos"]


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A slurm_partition, as far as Foretime depends on it.

    Attributes
    ----------
    name
        Its name.
    max_time
        ``MaxTime``, seconds; ``None`` if there is none.
    qos
        The QOS whose limits count for its jobs, ``None`` if none.
    nodes
        Names of its nodes; ``None`` if unknown.
    """

    name: str
    max_time: int | None = None
    qos: str | None = None
    nodes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """What Slurm judges jobs by, beside the limit of each.

    Attributes
    ----------
    slurm_partitions
        All of them.
    accumulating
        Who has a limit on the time of all jobs together, or on one job's processors x time
        (GrpTRESMins, GrpTRESRunMins, MaxTRESMins, ...), by kind and name; of an account also the
        accounts below it. Slurm judges these on time_min (docs/left_alone.md: V5).
    longest_walltime
        MaxWall in seconds by kind and name; of an account also for the accounts below it.
    """

    slurm_partitions: tuple[SlurmPartition, ...] = ()
    accumulating: frozenset[tuple[Holder, str]] = frozenset()
    longest_walltime: Mapping[tuple[Holder, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change to one job; ``None`` leaves a field as it is.

    Attributes
    ----------
    job_id
        The scheduler's identifier; on Slurm ``ARRAY_TASK`` for a task of an array, and
        ``ARRAY_[TASKS]`` for several. ``ARRAY`` alone means those that run, too.
    time_limit, time_min
        Seconds, rounded up to what the scheduler counts in (whole minutes on Slurm);
        ``time_min=0`` clears it.
    site_factor
        Added to the job's priority; Slurm only.
    """

    job_id: str
    time_limit: int | None = None
    time_min: int | None = None
    site_factor: int | None = None


@dataclass(frozen=True, slots=True)
class ControllerLoad:
    """How busy the scheduler says that it is.

    Attributes
    ----------
    server_threads
        Requests that it serves at this moment.
    agent_queue, accounting_queue
        Messages that wait to be sent: to nodes, to slurmdbd.
    scheduling_cycle_s
        Seconds that its last main scheduling cycle took.
    """

    server_threads: int
    agent_queue: int = 0
    accounting_queue: int = 0
    scheduling_cycle_s: float = 0.0


class SchedulerClient(Protocol):
    """The contract of every scheduler client; a failure raises `SchedulerError`."""

    def configuration(self) -> SchedulerConfiguration:
        """Read how the scheduler is set up."""

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Read the jobs that ended at ``cursor.end_time`` or later, by end, and the new cursor.

        With ``until`` (epoch seconds) only those that ended by then; the new cursor stands there.
        A record may be given again by a later call, so that none that the accounting learns of
        late is missed; jobs without a time limit, which have no accuracy, are left out.
        """

    def queue(self) -> Queue:
        """Read what runs and what waits."""

    def reservations(self) -> list[Reservation]:
        """Read the reservations, current and to come."""

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        """Read what jobs are judged by; ``configuration`` tells which of it is enforced.

        PBS judges nothing on soft_walltime, and its answer is empty.
        """

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes; those that the scheduler refuses are named in one `SchedulerError`."""

    def cluster(self) -> Cluster | None:
        """Read the nodes and slurm_partitions; ``None`` if the client can't tell what jobs have."""
        return None

    def load(self) -> ControllerLoad | None:
        """Read how busy the scheduler is; ``None`` if it does not tell."""
        return None

    def site_factors(self) -> Mapping[str, int]:
        """Read the site factor of every pending job that Slurm weighs: of those eligible to start.

        A job array has one, under the array's own number. A client that can't read them raises
        `SchedulerError`, and neither does it set any.
        """
        raise SchedulerError("this scheduler client can't read site factors")

    def qos_priorities(self) -> Mapping[str, int]:
        """Read the priority of each QOS; empty where there are none."""
        return {}
