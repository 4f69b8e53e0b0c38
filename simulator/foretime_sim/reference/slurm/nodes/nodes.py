"""What of each node is in use: the state that node choice works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from foretime_sim.machines.machine import Machine
from foretime_sim.reference.slurm.jobs.job import Allocation
from foretime_sim.workloads.node_request import counts_memory


@dataclass(frozen=True, slots=True)
class Node:
    """One node as slurm.conf has it.

    Attributes
    ----------
    group
        Index of its `NodeGroup`.
    memory_mib
        0 where memory is not given out.
    """

    number: int
    group: int
    cpus: int
    memory_mib: int
    gpus: int
    weight: int


def nodes_of(machine: Machine) -> tuple[Node, ...]:
    """Give the nodes of a machine, numbered in its order.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.nodes.nodes import nodes_of
    >>> [node.number for node in nodes_of(Machine.flat(3))]
    [0, 1, 2]
    """
    nodes: list[Node] = []
    for index, group in enumerate(machine.node_groups):
        memory = group.memory_mib if counts_memory(machine, index) else 0
        nodes += [
            Node(len(nodes) + number, index, group.cpus, memory, group.gpus, group.weight)
            for number in range(group.nodes)
        ]
    return tuple(nodes)


@dataclass(slots=True)
class NodeUse:
    """What running jobs have of the nodes (`select_node_usage`, `select_part_record`).

    Cores are counted, not named: the model knows neither sockets nor threads.

    Attributes
    ----------
    cpus, memory_mib, gpus
        In use, by node; a node that is missing is idle.
    cpus_of_partition
        CPUs in use on a node by the jobs of a slurm_partition (`part_core_map`).
    whole
        Nodes that a job has for itself.
    ran_in
        Slurm_partitions that a job has had nodes of, whether it still runs or not.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.job import Allocation
    >>> from foretime_sim.reference.slurm.nodes.nodes import NodeUse
    >>> use = NodeUse()
    >>> use.add(Allocation({0: 2}), 0)
    >>> later = use.copy()
    >>> later.remove(Allocation({0: 2}), 0, nodes=[0])
    >>> use.cpus[0], later.cpus[0]
    (2, 0)
    """

    cpus: dict[int, int] = field(default_factory=dict)
    memory_mib: dict[int, int] = field(default_factory=dict)
    gpus: dict[int, int] = field(default_factory=dict)
    cpus_of_partition: dict[tuple[int, int], int] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)
    ran_in: set[int] = field(default_factory=set)

    def copy(self) -> NodeUse:
        """Give a use that can be changed without this one."""
        return NodeUse(
            dict(self.cpus),
            dict(self.memory_mib),
            dict(self.gpus),
            dict(self.cpus_of_partition),
            set(self.whole),
            set(self.ran_in),
        )

    def add(self, allocation: Allocation, partition_index: int) -> None:
        """Take what a job gets."""
        self.ran_in.add(partition_index)
        self._change(allocation, partition_index, allocation.nodes, 1)
        if allocation.whole:
            self.whole |= allocation.nodes

    def remove(
        self, allocation: Allocation, partition_index: int, nodes: Iterable[int] | None = None
    ) -> None:
        """Give back what a job had, on some of its nodes or on all."""
        mine = allocation.nodes if nodes is None else allocation.nodes & set(nodes)
        self._change(allocation, partition_index, mine, -1)
        if allocation.whole:
            self.whole -= mine

    def _change(
        self, allocation: Allocation, partition_index: int, nodes: frozenset[int], sign: int
    ) -> None:
        pairs: tuple[tuple[dict[int, int], Mapping[int, int]], ...] = (
            (self.cpus, allocation.cpus),
            (self.memory_mib, allocation.memory_mib),
            (self.gpus, allocation.gpus),
        )
        for node in nodes:
            for used, mine in pairs:
                if node in mine:
                    used[node] = used.get(node, 0) + sign * mine[node]
            key = (node, partition_index)
            of_partition = self.cpus_of_partition.get(key, 0)
            self.cpus_of_partition[key] = of_partition + sign * allocation.cpus[node]

    def is_idle(self, node: int) -> bool:
        """Whether no job has anything of a node."""
        return node not in self.whole and not self.cpus.get(node, 0)
