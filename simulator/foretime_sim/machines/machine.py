"""A machine as sites have it: groups of nodes, and the overlapping slurm_partitions over them.

Resources are counted as Slurm's ``select/cons_tres`` counts them: CPUs, MiB of memory and GPUs on
each node, without cores' or sockets' places. `foretime_sim.workloads.resource_requests` says what a
job asks for, and `foretime_sim.reference.nodes` how it is placed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.machines.largest_machine import MAX_PROCESSORS

MAX_NODES = 10_000_000
"""No group of nodes may be larger than this."""
MAX_COUNT = 2**40
"""No count of a resource on a node may be larger than this."""


class Selection(enum.Enum):
    """What is counted on each node (Slurm's SelectTypeParameters)."""

    CPU_MEMORY = "CR_CPU_Memory"
    """CPUs, memory and GPUs."""
    CPU = "CR_CPU"
    """CPUs and GPUs: what a job asks of memory only decides which nodes are large enough."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    Attributes
    ----------
    name
        What slurm_partitions call it; a job may also ask for it as a feature.
    nodes
        How many there are.
    cpus, memory_mib, gpus
        What each of them has; a memory of 0 stands for "unknown", and is not counted.
    features
        What a job's constraint may name.
    weight
        Nodes with a small weight are given out first, as in Slurm.

    Examples
    --------
    >>> from foretime_sim.machines.machine import NodeGroup
    >>> group = NodeGroup("gpu", nodes=2, cpus=48, memory_mib=256_000, gpus=4)
    >>> group.nodes * group.gpus
    8
    """

    name: str
    nodes: int
    cpus: int
    memory_mib: int = 0
    gpus: int = 0
    features: tuple[str, ...] = ()
    weight: int = 1

    def __post_init__(self) -> None:
        where = f"node_groups.{self.name}"
        _check_name(self.name, "node_groups")
        _check(where, "nodes", self.nodes, 1, MAX_NODES)
        _check(where, "cpus", self.cpus, 1)
        _check(where, "memory_mib", self.memory_mib, 0)
        _check(where, "gpus", self.gpus, 0)
        _check(where, "weight", self.weight, 0)
        for feature in self.features:
            _check_name(feature, f"{where}: features")


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A queue over some of the nodes, with limits of its own; ``None`` for no limit.

    Attributes
    ----------
    name
        What jobs call it.
    node_groups
        The groups whose nodes it may use; other slurm_partitions may use them as well.
    priority_tier
        Jobs of a higher tier stand before all jobs of a lower one (Slurm's PriorityTier).
    max_time_s
        Longest requested time of a job (MaxTime), seconds.
    max_nodes, max_cpus
        Most nodes (MaxNodes) and CPUs of a job.
    max_nodes_in_use
        Most nodes of all its running jobs together, a node counted once for each job that it has
        (a QOS of the partition with GrpTRES=node=...).
    default_memory_per_cpu_mib
        What a job that says nothing of memory asks for (DefMemPerCPU); 0 for nothing.
    exclusive
        Every job gets whole nodes (OverSubscribe=EXCLUSIVE).
    default
        Where jobs go that name none. If none is marked, the first.

    Examples
    --------
    >>> from foretime_sim.machines.machine import SlurmPartition
    >>> short = SlurmPartition("short", ("cpu",), priority_tier=2, max_time_s=14_400)
    >>> short.name, short.max_time_s
    ('short', 14400)
    """

    name: str
    node_groups: tuple[str, ...]
    priority_tier: int = 1
    max_time_s: int | None = None
    max_nodes: int | None = None
    max_cpus: int | None = None
    max_nodes_in_use: int | None = None
    default_memory_per_cpu_mib: int = 0
    exclusive: bool = False
    default: bool = False

    def __post_init__(self) -> None:
        where = f"partition {self.name}"
        _check_name(self.name, "partitions")
        if not self.node_groups:
            raise InputError(f"{where}: node_groups is empty: name at least one group of nodes")
        if len(set(self.node_groups)) < len(self.node_groups):
            raise InputError(f"{where}: node_groups names a group twice")
        _check(where, "priority_tier", self.priority_tier, 0, 65_533)
        _check(where, "default_memory_per_cpu_mib", self.default_memory_per_cpu_mib, 0)
        limits = {"max_time_s": 0, "max_nodes": 1, "max_cpus": 1, "max_nodes_in_use": 1}
        for limit, least in limits.items():
            value = getattr(self, limit)
            if value is not None:
                _check(where, limit, value, least)


@dataclass(frozen=True, slots=True)
class Machine:
    """Groups of nodes and the slurm_partitions over them.

    Nodes are numbered from 0 in the order of the groups.

    Attributes
    ----------
    node_groups, slurm_partitions
        At least one of each, with distinct names; every group in some slurm_partition.
    selection
        What is counted on each node.

    Raises
    ------
    InputError
        Naming the table, the key and the value.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
    >>> groups = (NodeGroup("cpu", nodes=24, cpus=32), NodeGroup("big", nodes=4, cpus=64))
    >>> machine = Machine(groups, (SlurmPartition("short", ("cpu", "big"), default=True),))
    >>> machine.nodes, machine.cpus
    (28, 1024)
    """

    node_groups: tuple[NodeGroup, ...]
    slurm_partitions: tuple[SlurmPartition, ...]
    selection: Selection = Selection.CPU_MEMORY
    _group_of_name: dict[str, int] = field(init=False, repr=False, compare=False)
    _partition_of_name: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        groups = _by_name([group.name for group in self.node_groups], "node_groups")
        partitions = _by_name([part.name for part in self.slurm_partitions], "partitions")
        object.__setattr__(self, "_group_of_name", groups)
        object.__setattr__(self, "_partition_of_name", partitions)
        used = set()
        for part in self.slurm_partitions:
            for name in part.node_groups:
                if name not in groups:
                    raise InputError(
                        f"partition {part.name}: node_groups: there is no group"
                        f" {name!r}{nearest(name, groups)}"
                    )
                used.add(name)
        for name in groups:
            if name not in used:
                raise InputError(
                    f"node_groups.{name}: no partition has it; add it to one, or leave it out"
                )
        if sum(part.default for part in self.slurm_partitions) > 1:
            raise InputError("partitions: more than one is marked as default")
        if self.cpus > MAX_PROCESSORS:
            raise InputError(
                f"the nodes have {self.cpus:,} CPUs in all, and a machine at most"
                f" {MAX_PROCESSORS:,}: give fewer nodes, or fewer CPUs of each"
            )

    @classmethod
    def flat(cls, processors: int, slurm_partition: str = "all") -> Machine:
        """Give a pool of processors as a machine: nodes of one CPU in one slurm_partition."""
        return cls(
            (NodeGroup("pool", processors, 1),),
            (SlurmPartition(slurm_partition, ("pool",), default=True),),
        )

    @property
    def nodes(self) -> int:
        """All nodes."""
        return sum(group.nodes for group in self.node_groups)

    @property
    def cpus(self) -> int:
        """All CPUs."""
        return sum(group.nodes * group.cpus for group in self.node_groups)

    @property
    def first_nodes(self) -> tuple[int, ...]:
        """Number of each group's first node."""
        numbers, first = [], 0
        for group in self.node_groups:
            numbers.append(first)
            first += group.nodes
        return tuple(numbers)

    @property
    def default_partition(self) -> int:
        """Index of the slurm_partition for jobs that name none."""
        return next((i for i, part in enumerate(self.slurm_partitions) if part.default), 0)

    def partition_index(self, name: str) -> int:
        """Find a slurm_partition by name.

        Raises
        ------
        InputError
            If there is none of that name; it says which is nearest.
        """
        if name not in self._partition_of_name:
            raise InputError(
                f"there is no partition {name!r}{nearest(name, self._partition_of_name)}"
            )
        return self._partition_of_name[name]

    def groups_of(self, partition: int) -> tuple[int, ...]:
        """Give the indices of the groups that a slurm_partition may use, ascending."""
        names = self.slurm_partitions[partition].node_groups
        return tuple(sorted(self._group_of_name[name] for name in names))

    def is_whole(self, group: int) -> bool:
        """Whether nodes of a group are only ever given out whole.

        So it is with nodes of one CPU, and where every slurm_partition over them is exclusive. Such
        nodes are interchangeable, so plans count them and need not say which.
        """
        if self.node_groups[group].cpus == 1:
            return True
        over = [i for i in range(len(self.slurm_partitions)) if group in self.groups_of(i)]
        return all(self.slurm_partitions[i].exclusive for i in over)


def _check_name(name: str, where: str) -> None:
    if not name or set(name) & set(" ,&|\t\n"):
        raise InputError(f"{where}: {name!r} is no name: leave out spaces, commas, & and |")


def _check(where: str, key: str, value: int, least: int, most: int = MAX_COUNT) -> None:
    if not least <= value <= most:
        raise InputError(f"{where}: {key} is {value}: give {least} to {most:,}")


def _by_name(names: list[str], table: str) -> dict[str, int]:
    if not names:
        raise InputError(f"{table}: there are none: give at least one")
    index = {name: number for number, name in enumerate(names)}
    if len(index) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{table}: {twice!r} is there twice")
    return index
