"""A site that is scheduled by PBS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.pbs_limits import PbsLimits
from foretime_sim.sites.pbs_scheduler import PbsScheduler

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PbsHost:
    """A vnode.

    Attributes
    ----------
    name
        As ``pbsnodes`` has it.
    resources
        What is counted: ``ncpus``, ``mem`` (bytes), ``ngpus``, the site's own.
    labels
        What is compared: ``arch``, ``host``, booleans as ``True`` or ``False``.
    priority
        For ``sort_priority``.
    queue
        The only queue whose jobs it takes; ``None``: those of all queues that have no hosts.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import PbsHost
    >>> PbsHost("n1", {"ncpus": 32, "mem": 128 * 2**30}).resources["ncpus"]
    32
    """

    name: str
    resources: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class PbsQueue:
    """An execution queue.

    Attributes
    ----------
    name
        As jobs name it.
    priority
        Queues of a higher one go first where ``by_queue`` or ``round_robin`` holds.
    enabled, started
        Whether it takes jobs, and whether they start.
    limits
        See `PbsLimits`.
    backfill_depth
        Most top jobs of its own; ``None``: they count towards those of the server.
    resources_available
        What its running jobs may have together.
    resources_min, resources_max, resources_default
        Of a job: least, most, and what it asks for that says nothing; seconds, bytes.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import PbsQueue
    >>> PbsQueue("express", priority=120).started
    True
    """

    name: str
    priority: int = 0
    enabled: bool = True
    started: bool = True
    limits: PbsLimits = field(default_factory=PbsLimits)
    backfill_depth: int | None = None
    resources_available: Mapping[str, int] = field(default_factory=dict)
    resources_min: Mapping[str, int] = field(default_factory=dict)
    resources_max: Mapping[str, int] = field(default_factory=dict)
    resources_default: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PbsServer:
    """The server's own attributes.

    Attributes
    ----------
    default_queue
        Of jobs that name none.
    limits, resources_available, resources_min, resources_max, resources_default
        As of `PbsQueue`, for all jobs.
    backfill_depth
        Most top jobs; ``None``: one. 0: none, and with ``strict_ordering`` nobody passes.
    job_sort_formula, job_sort_formula_threshold
        Jobs of a higher value go first; those at or below the threshold don't start.
    eligible_time_enable
        Whether PBS counts how long jobs have waited for resources.
    scheduler_iteration_s
        A cycle at least that often.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import PbsServer
    >>> PbsServer(job_sort_formula="10 * ncpus").scheduler_iteration_s
    600
    """

    default_queue: str = "workq"
    limits: PbsLimits = field(default_factory=PbsLimits)
    resources_available: Mapping[str, int] = field(default_factory=dict)
    resources_min: Mapping[str, int] = field(default_factory=dict)
    resources_max: Mapping[str, int] = field(default_factory=dict)
    resources_default: Mapping[str, int] = field(default_factory=dict)
    backfill_depth: int | None = None
    job_sort_formula: str | None = None
    job_sort_formula_threshold: float | None = None
    eligible_time_enable: bool = False
    scheduler_iteration_s: int = 600


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A line of resource_group: somebody, or a group of them, in the fair-share tree.

    Attributes
    ----------
    name, parent
        ``root`` is above all.
    shares
        Beside those with the same parent.
    usage
        What it has used, with all below it, as of `PbsSite.usage_at` (``pbsfs -p``); PBS never
        lets that fall below 1.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import ShareGroup
    >>> ShareGroup("alice", "staff", 30).usage
    1.0
    """

    name: str
    parent: str = "root"
    shares: int = 1
    usage: float = 1.0


@dataclass(frozen=True, slots=True)
class PbsReservation:
    """A confirmed reservation.

    Attributes
    ----------
    name
        As ``pbs_rstat`` has it.
    start, end
        Seconds on the clock of the site.
    hosts
        What it has of each host, by name of host and resource.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import PbsReservation
    >>> PbsReservation("R1.pbs01", 3600, 7200, {"n1": {"ncpus": 8}}).end
    7200
    """

    name: str
    start: int
    end: int
    hosts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class PbsSite:
    """All of a site that PBS schedules by.

    Attributes
    ----------
    hosts
        In the order in which the server lists them.
    queues
        In the order in which the server lists them; at least one.
    server, scheduler
        See `PbsServer` and `PbsScheduler`.
    share_groups
        resource_group.
    dedicated_time
        Spans of (from, to), ascending.
    reservations
        Confirmed ones.
    version
        Of PBS.
    usage_at
        When the fair-share tree was last decayed; ``None``: when the site begins.
    usage_lag_s
        How old the server's knowledge of what running jobs have used is: MoM sends it every
        ``$min_check_poll`` to ``$max_check_poll`` seconds (10 to 120).
    not_modelled
        What of the site nothing here knows, a sentence each.

    Raises
    ------
    InputError
        Where a name is there twice, or is not there.

    Examples
    --------
    >>> from foretime_sim.sites.pbs_site import PbsHost, PbsQueue, PbsSite
    >>> site = PbsSite((PbsHost("n1", {"ncpus": 8}),), (PbsQueue("workq"),))
    >>> site.queue("workq").priority, site.machine.cpus
    (0, 8)
    """

    hosts: tuple[PbsHost, ...]
    queues: tuple[PbsQueue, ...]
    server: PbsServer = field(default_factory=PbsServer)
    scheduler: PbsScheduler = field(default_factory=PbsScheduler)
    share_groups: tuple[ShareGroup, ...] = ()
    dedicated_time: tuple[tuple[int, int], ...] = ()
    reservations: tuple[PbsReservation, ...] = ()
    version: str = "23.06.06"
    usage_at: int | None = None
    usage_lag_s: int = 0
    not_modelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, names in (
            ("host", [host.name for host in self.hosts]),
            ("queue", [queue.name for queue in self.queues]),
            ("entity of resource_group", [group.name for group in self.share_groups]),
        ):
            if twice := [name for name in names if names.count(name) > 1]:
                raise InputError(f"the {what} {twice[0]!r} is there twice: leave one of them")
        if not self.hosts or not self.queues:
            raise InputError("a site of PBS needs at least one host and one execution queue")
        known = {"root", *(group.name for group in self.share_groups)}
        for group in self.share_groups:
            if group.parent not in known:
                raise InputError(
                    f"resource_group: {group.name}: there is no parent"
                    f" {group.parent!r}{nearest(group.parent, known)}"
                )
        for host in self.hosts:
            if host.queue is not None:
                self.queue(host.queue)
        for reservation in self.reservations:
            for name in reservation.hosts:
                if all(host.name != name for host in self.hosts):
                    raise InputError(f"reservation {reservation.name}: there is no host {name!r}")

    def queue(self, name: str) -> PbsQueue:
        """Give a queue by name.

        Raises
        ------
        InputError
            If there is none; it says which is nearest.
        """
        for queue in self.queues:
            if queue.name == name:
                return queue
        names = [queue.name for queue in self.queues]
        raise InputError(f"there is no execution queue {name!r}{nearest(name, names)}")

    @property
    def machine(self) -> Machine:
        """Give hosts and queues as the machine of a workload: alike neighbours are a group."""

        def alike(host: PbsHost) -> tuple[object, ...]:
            return (sorted(host.resources.items()), sorted(host.labels.items()), host.queue)

        able = [host for host in self.hosts if host.resources.get("ncpus", 0) > 0]
        groups, owners = [], []
        for _, same in groupby(able, key=lambda host: str(alike(host))):
            hosts = list(same)
            resources = hosts[0].resources
            groups.append(
                NodeGroup(
                    hosts[0].name,
                    nodes=len(hosts),
                    cpus=resources["ncpus"],
                    memory_mib=resources.get("mem", 0) // _MIB,
                    gpus=resources.get("ngpus", 0),
                )
            )
            owners.append(hosts[0].queue)
        owned = {owner for owner in owners if owner is not None}
        queues = []
        for queue in self.queues:
            mine = queue.name if queue.name in owned else None
            names = tuple(
                group.name for group, owner in zip(groups, owners, strict=True) if owner == mine
            )
            if names:
                default = queue.name == self.server.default_queue
                longest = queue.resources_max.get("walltime")
                queues.append(
                    SlurmPartition(queue.name, names, max_time_s=longest, default=default)
                )
        return Machine(tuple(groups), tuple(queues))
