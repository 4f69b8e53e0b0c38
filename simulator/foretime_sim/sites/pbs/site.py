"""A site that is scheduled by PBS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import table_name
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.site_names import check_no_circle, check_once, check_there

_MIB = 2**20
_ABOVE_ALL = ("root", "unknown")  # groups of the fair-share tree that are always there
OWN_NAME = ("host", "vnode")
"""Labels that are a host's own name where nothing else is said."""


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
        What is compared: ``arch``, booleans as ``True`` or ``False``. ``host`` and ``vnode`` are
        the host's own name where nothing else is said.
    priority
        For ``sort_priority``.
    queue
        The only queue whose jobs it takes; ``None``: those of all queues that have no hosts.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.site import PbsHost
    >>> host = PbsHost("n1", {"ncpus": 32, "mem": 128 * 2**30})
    >>> host.resources["ncpus"], host.labels["vnode"]
    (32, 'n1')
    """

    name: str
    resources: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    queue: str | None = None

    def __post_init__(self) -> None:
        labels = {**dict.fromkeys(OWN_NAME, self.name), **self.labels}
        object.__setattr__(self, "labels", labels)

    @property
    def own_labels(self) -> dict[str, str]:
        """Give the labels that say more than its name."""
        return {
            label: value
            for label, value in self.labels.items()
            if not (label in OWN_NAME and value == self.name)
        }

    def is_like(self, other: PbsHost) -> bool:
        """Whether it differs from another in nothing but the name."""
        return (self.resources, self.own_labels, self.priority, self.queue) == (
            other.resources,
            other.own_labels,
            other.priority,
            other.queue,
        )


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
    >>> from foretime_sim.sites.pbs.site import PbsQueue
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
    >>> from foretime_sim.sites.pbs.site import PbsServer
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
    >>> from foretime_sim.sites.pbs.site import ShareGroup
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
    >>> from foretime_sim.sites.pbs.site import PbsReservation
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
        When usage was as the share groups have it; ``None``: when the site begins.
    decayed_at
        When it was last decayed; decays come every ``fairshare_decay_time`` from then on. ``None``:
        at ``usage_at``.
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
    >>> from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
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
    decayed_at: int | None = None
    usage_lag_s: int = 0
    not_modelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        hosts = [host.name for host in self.hosts]
        queues = [queue.name for queue in self.queues]
        check_once("[[hosts]]", "host", hosts)
        check_once("[queues]", "queue", queues)
        check_once("[resource_group]", "group", (group.name for group in self.share_groups))
        check_once("[reservations]", "reservation", (each.name for each in self.reservations))
        if not hosts or not queues:
            raise InputError("a site of PBS needs at least one host and one execution queue")
        known = frozenset(hosts)
        for host in self.hosts:
            if host.queue is not None:
                check_there(f"[[hosts]] {host.name}: queue", host.queue, queues, "queue")
        self._check_share_tree()
        for each in self.reservations:
            where = f"[{table_name('reservations', each.name)}]"
            for name in each.hosts:
                check_there(f"{where}: hosts", name, known, "host")
            if each.end <= each.start:
                raise InputError(f"{where}: its end is not after its start: mend one of them")
        for begins, ends in self.dedicated_time:
            if ends <= begins:
                raise InputError(
                    f"dedicated_time: the end {ends} is not after the start {begins}: mend one of"
                    " them"
                )

    def _check_share_tree(self) -> None:
        parents = {group.name: group.parent for group in self.share_groups}
        groups = [*_ABOVE_ALL, *parents]
        for name, parent in parents.items():
            where = f"[{table_name('resource_group', name)}]"
            if name in _ABOVE_ALL:
                raise InputError(f"{where}: PBS has this group by itself: leave it out")
            check_there(f"{where}: parent", parent, groups, "group")
        check_no_circle("resource_group", "parent", parents)

    @classmethod
    def flat(cls, processors: int) -> Self:
        """Give a site of one host with so many processors, under PBS's defaults."""
        return cls((PbsHost("pool", {"ncpus": processors}),), (PbsQueue("workq"),))

    def __hash__(self) -> int:
        """Hash what most sites differ in; mappings can't be hashed."""
        return hash((self.version, self.scheduler, tuple(host.name for host in self.hosts)))

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
    def unknown_usage(self) -> float:
        """Give what those below ``unknown`` have used together, 1 where nobody has."""
        parts = (group.usage for group in self.share_groups if group.parent == "unknown")
        return 1.0 + sum(used for used in parts if used != 1.0)

    @property
    def able(self) -> list[PbsHost]:
        """Give the hosts that are nodes of `machine`, in its order: with CPUs, and with a queue."""
        owned = {host.queue for host in self.hosts if host.queue is not None}
        shared = any(queue.name not in owned for queue in self.queues)
        return [
            host
            for host in self.hosts
            if host.resources.get("ncpus", 0) > 0 and (shared or host.queue is not None)
        ]

    @property
    def machine(self) -> Machine:
        """Give hosts and queues as the machine of a workload: alike neighbours are a group.

        Hosts without CPUs, and those that no queue may use, are no part of it.

        Raises
        ------
        InputError
            If no host is left, or a name is none for a machine.
        """
        owned = {host.queue for host in self.hosts if host.queue is not None}
        able = self.able
        if not able:
            raise InputError("[[hosts]]: no queue has a host with ncpus: nothing can run")
        groups: list[NodeGroup] = []
        owners = []
        for hosts in alike_neighbours(able):
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


def alike_neighbours(hosts: Iterable[PbsHost]) -> Iterator[list[PbsHost]]:
    """Give hosts in their order, those together that follow each other and are alike."""
    together: list[PbsHost] = []
    for host in hosts:
        if together and not together[0].is_like(host):
            yield together
            together = []
        together.append(host)
    if together:
        yield together
