"""What one job asks of a machine of nodes, and what of it could hold the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import format_time
from foretime_sim.machines.machine import Machine, Selection
from foretime_sim.machines.reservations import NodeReservation


class HostChunk(NamedTuple):
    """Chunks of a select statement of PBS that are alike.

    Attributes
    ----------
    number
        How many.
    cpus, memory_bytes, gpus
        Of each.
    """

    number: int
    cpus: int
    memory_bytes: int = 0
    gpus: int = 0


ChunkPlace: TypeAlias = Literal["free", "pack", "scatter"]
"""Where chunks go: on any hosts, all on one, each on another."""


@dataclass(frozen=True, slots=True)
class JobResources:
    """What one job asks for; ``None`` where it says nothing.

    Attributes
    ----------
    slurm_partitions
        Names, in the order in which they are tried.
    nodes, tasks, cpus_per_task, memory_per_node_mib, memory_per_cpu_mib, gpus_per_node
        As for `foretime_sim.workloads.resource_columns.ResourceRequests`.
    constraint
        Features joined by ``&``.
    exclusive
        Whole nodes.
    reservation
        Name of the reservation of nodes that it is to run in (``--reservation``).
    node_groups
        Only on nodes of these groups (what ``--nodelist`` and ``--exclude`` leave); ``None``: any.

    Examples
    --------
    >>> from foretime_sim.engine.stepwise import Engine
    >>> from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
    >>> from foretime_sim.workloads.node_request import JobResources
    >>> nodes = (NodeGroup("cpu", nodes=4, cpus=16),)
    >>> machine = Machine(nodes, (SlurmPartition("all", ("cpu",), default=True),))
    >>> engine = Engine(machine.cpus, machine=machine)
    >>> job = engine.submit(0, 32, 600, 3600, resources=JobResources(nodes=2, tasks=32))
    >>> _ = engine.advance(60)
    >>> engine.free_processors
    32
    """

    slurm_partitions: tuple[str, ...] | None = None
    nodes: int | None = None
    tasks: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    gpus_per_node: int | None = None
    constraint: str = ""
    exclusive: bool = False
    reservation: str | None = None
    node_groups: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Closure:
    """Groups of nodes that a job may not have for a time.

    Attributes
    ----------
    start, end
        Seconds. A job may not be there for any of this time, by its time limit.
    node_groups
        Indices.
    """

    start: int
    end: int
    node_groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """One slurm_partition in which a job may run, and what it may have there.

    Attributes
    ----------
    slurm_partition
        Its index.
    node_groups
        Indices of the groups of nodes that are large enough and have the features.
    most_nodes
        Most nodes that the job may have.
    memory_per_task_mib
        Of each task; 0 where memory is asked for by node.
    exclusive
        The job gets whole nodes.
    closures
        When it may not have some of the groups, as they are reserved for others, or not yet for it.
    groups_by_size
        As `node_groups`, and those that lack nothing but GPUs.
    """

    slurm_partition: int
    node_groups: tuple[int, ...]
    most_nodes: int
    memory_per_task_mib: int
    exclusive: bool
    closures: tuple[Closure, ...] = ()
    groups_by_size: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What one job asks for, worked out for a machine.

    Attributes
    ----------
    tasks, cpus_per_task
        The smallest pieces of a job, each on one node.
    nodes
        How many nodes, each with nearly the same number of tasks; 0 for as few as possible.
    memory_per_node_mib, gpus_per_node
        Besides what the tasks need.
    choices
        The slurm_partitions in which it can run, higher tiers first, else as named.
    priority_tier
        The highest of them.
    chunks, place
        Under PBS, where that is told: its select statement, which counts in place of tasks and
        nodes.
    """

    tasks: int
    cpus_per_task: int
    nodes: int
    memory_per_node_mib: int
    gpus_per_node: int
    choices: tuple[PartitionChoice, ...]
    priority_tier: int
    chunks: tuple[HostChunk, ...] = ()
    place: ChunkPlace = "free"

    @property
    def cpus(self) -> int:
        """CPUs of all tasks."""
        return self.tasks * self.cpus_per_task


class NeverRunsError(InputError):
    """A job that no slurm_partition could ever run.

    Attributes
    ----------
    limit
        What it is over, without the job's own figures.
    """

    def __init__(self, reason: str, limit: str) -> None:
        super().__init__(reason)
        self.limit = limit


def fit_request(
    machine: Machine,
    asked: JobResources,
    processors: int,
    requested_time: int,
    reservations: Sequence[NodeReservation] = (),
) -> Request:
    """Work out what a job asks for.

    Parameters
    ----------
    machine
        What there is.
    asked, processors
        What the job says; ``processors`` counts where it says nothing of tasks.
    requested_time
        Seconds.
    reservations
        Groups of nodes that are set aside for a time.

    Raises
    ------
    InputError
        If no slurm_partition could ever run it, with the reason in each; or if there is no
        reservation of the name that it gives.
    """
    cpus_per_task = asked.cpus_per_task or 1
    nodes = asked.nodes or 0
    tasks = asked.tasks if asked.tasks is not None else -(-processors // cpus_per_task)
    tasks = max(tasks, nodes)  # every node has one
    node_memory = asked.memory_per_node_mib
    request = Request(
        tasks, cpus_per_task, nodes, node_memory or 0, asked.gpus_per_node or 0, (), 0
    )
    features = _features(machine, asked.constraint)
    inside = _reservation(asked.reservation, reservations)
    choices: list[PartitionChoice] = []
    obstacles: list[tuple[str, str]] = []
    for index in _partitions(machine, asked.slurm_partitions):
        part = machine.slurm_partitions[index]
        memory = part.default_memory_per_cpu_mib
        if node_memory is not None:
            memory = 0
        elif asked.memory_per_cpu_mib is not None:
            memory = asked.memory_per_cpu_mib
        limits = [machine.nodes, part.max_nodes, part.max_nodes_in_use]
        choice = PartitionChoice(
            slurm_partition=index,
            node_groups=(),
            most_nodes=min(limit for limit in limits if limit is not None),
            memory_per_task_mib=memory * cpus_per_task,
            exclusive=asked.exclusive or part.exclusive,
        )
        tasks_of_group = {
            group: tasks_on_idle_node(machine, request, choice, group)
            for group in machine.groups_of(index)
            if features <= {*machine.node_groups[group].features, machine.node_groups[group].name}
            and (inside is None or machine.node_groups[group].name in inside.node_groups)
            and (asked.node_groups is None or machine.node_groups[group].name in asked.node_groups)
        }
        fitting = tuple(group for group, fit in tasks_of_group.items() if fit > 0)
        without_gpus = replace(request, gpus_per_node=0)
        by_size = tuple(
            group
            for group in tasks_of_group
            if tasks_on_idle_node(machine, without_gpus, choice, group) > 0
        )
        closures = _closures(machine, fitting, inside, reservations)
        choice = replace(choice, node_groups=fitting, closures=closures, groups_by_size=by_size)
        obstacle = _obstacle(machine, request, choice, requested_time, tasks_of_group)
        if obstacle is not None:
            obstacles.append(obstacle)
        else:
            choices.append(choice)
    if not choices:
        reasons, over = zip(*obstacles, strict=True)
        raise NeverRunsError("; ".join(reasons), " and ".join(dict.fromkeys(over)))
    tier = max(machine.slurm_partitions[c.slurm_partition].priority_tier for c in choices)
    return replace(request, choices=tuple(choices), priority_tier=tier)


def _reservation(
    name: str | None, reservations: Sequence[NodeReservation]
) -> NodeReservation | None:
    if name is None:
        return None
    known = {reservation.name: reservation for reservation in reservations}
    if name not in known:
        raise InputError(f"there is no reservation {name!r}{nearest(name, known)}")
    return known[name]


def _closures(
    machine: Machine,
    groups: Sequence[int],
    inside: NodeReservation | None,
    reservations: Sequence[NodeReservation],
) -> tuple[Closure, ...]:
    """Say when a job in one of the reservations, or in none, may not have which of the groups."""
    closures = []
    for reservation in reservations:
        closed = tuple(g for g in groups if machine.node_groups[g].name in reservation.node_groups)
        if reservation is inside:
            # What comes after its end is nobody's: the job could be late by then.
            closures.append(Closure(-LONGEST_S, reservation.start, closed))
        elif closed:
            closures.append(Closure(reservation.start, reservation.end, closed))
    return tuple(closures)


def _partitions(machine: Machine, names: Sequence[str] | None) -> list[int]:
    """Give the slurm_partitions named, higher tiers first."""
    if not names:
        return [machine.default_partition]
    found = [machine.partition_index(name.strip()) for name in names]
    distinct = list(dict.fromkeys(found))
    return sorted(distinct, key=lambda index: -machine.slurm_partitions[index].priority_tier)


def _features(machine: Machine, constraint: str) -> set[str]:
    known = {name for group in machine.node_groups for name in (*group.features, group.name)}
    features = {feature.strip() for feature in constraint.split("&")} - {""}
    for feature in sorted(features - known):
        raise InputError(f"no node has the feature {feature!r}{nearest(feature, sorted(known))}")
    return features


def tasks_on_idle_node(
    machine: Machine, request: Request, choice: PartitionChoice, group: int
) -> int:
    """Tasks of a job that an idle node of a group can run."""
    node = machine.node_groups[group]
    if node.gpus < request.gpus_per_node:
        return 0
    tasks = node.cpus // request.cpus_per_task
    if node.memory_mib:  # its size counts even where its use does not
        if node.memory_mib < request.memory_per_node_mib:
            return 0
        if choice.memory_per_task_mib:
            tasks = min(tasks, node.memory_mib // choice.memory_per_task_mib)
    return tasks


def _obstacle(
    machine: Machine,
    request: Request,
    choice: PartitionChoice,
    requested_time: int,
    tasks_of_group: Mapping[int, int],
) -> tuple[str, str] | None:
    """Say why a job could not even run on the idle machine: in its figures, and the limit alone."""
    part = machine.slurm_partitions[choice.slurm_partition]
    where = f"in partition {part.name}"
    if part.max_time_s is not None and requested_time > part.max_time_s:
        limit = f"above max_time of {format_time(part.max_time_s)} {where}"
        return f"it asks for {format_time(requested_time)}, {limit}", limit
    if part.max_cpus is not None and request.cpus > part.max_cpus:
        limit = f"above max_cpus of {part.max_cpus:,} {where}"
        return f"it asks for {request.cpus:,} CPUs, {limit}", limit
    if request.nodes > choice.most_nodes:
        limit = f"above the limit of {choice.most_nodes:,}"
        return (
            f"it asks for {request.nodes:,} nodes, {limit} {where}",
            f"{limit} nodes {where}",
        )
    counts = sorted(
        ((tasks_of_group[group], machine.node_groups[group].nodes) for group in choice.node_groups),
        reverse=True,
    )
    too_few = f"above what the idle nodes have {where}"
    if request.nodes:
        least, more = divmod(request.tasks, request.nodes)
        have = sum(nodes for tasks, nodes in counts if tasks >= least)
        have_more = sum(nodes for tasks, nodes in counts if tasks > least)
        if have < request.nodes or have_more < more:
            each = _counted(least + (more > 0), "task")
            asked = f"{_counted(request.nodes, 'node')} for {each} on each"
            return f"it needs {asked}, and {have:,} of such a size are there {where}", too_few
        return None
    left, most_nodes = request.tasks, choice.most_nodes
    for tasks, nodes in counts:
        used = min(nodes, most_nodes)
        left -= tasks * used
        most_nodes -= used
    if left > 0:
        tasks_asked = _counted(request.tasks, "task")
        each = _counted(request.cpus_per_task, "CPU")
        if choice.memory_per_task_mib:
            each += f" and {choice.memory_per_task_mib:,} MiB"
        if request.memory_per_node_mib:
            each += f", on nodes with {request.memory_per_node_mib:,} MiB"
        if request.gpus_per_node:
            each += f", on nodes with {_counted(request.gpus_per_node, 'GPU')}"
        fit = f"of which {request.tasks - left} fit {where}"
        return f"it needs {tasks_asked} of {each}, {fit}", too_few
    return None


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def counts_memory(machine: Machine, group: int) -> bool:
    """Whether the memory of a group's nodes is given out."""
    return machine.selection is Selection.CPU_MEMORY and machine.node_groups[group].memory_mib > 0
