"""A cluster as the simulator's machine: nodes that are alike for every job make a group.

Nodes are alike if they have the same resources, features and weight, are in the same
slurm_partitions and reservations, and are named by the same jobs (``--nodelist``, ``--exclude``):
so a list of nodes is a list of groups, and nothing about single nodes is lost. Nodes that take no
new jobs are not in the machine: what runs on them ends in nobody's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.node_snapshot import HeldNodes
from foretime_sim.machines.machine import Machine, NodeGroup, Selection
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.workloads.node_request import JobResources

from foretime_sidecar.clients.client import QueuedJob, Reservation
from foretime_sidecar.clients.cluster import AskedNodes, Cluster, ClusterPartition
from foretime_sidecar.queue.alike_nodes import alike_nodes, machine_partition, node_group


@dataclass(frozen=True, slots=True)
class LiveMachine:
    """A machine, and where the cluster's nodes are in it.

    Attributes
    ----------
    machine
        Of the nodes that take jobs, in the slurm_partitions that are up.
    number_of
        Number of each such node, by name.
    partitions
        The cluster's slurm_partitions that are the machine's, in its order.
    groups_of
        By a set of names of nodes that a job or a reservation gave: the groups that make it up.
    reservations
        Those of nodes of the machine that are not over.
    unmodelled
        Slurm_partitions that a simulated machine can't have, and why, by name.
    """

    machine: Machine
    number_of: dict[str, int]
    partitions: tuple[ClusterPartition, ...]
    groups_of: dict[frozenset[str], tuple[str, ...]]
    reservations: tuple[NodeReservation, ...]
    unmodelled: dict[str, str]

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        jobs: Iterable[QueuedJob],
        reservations: Sequence[Reservation],
        now: int,
    ) -> LiveMachine:
        """Make it of what a scheduler says.

        Parameters
        ----------
        cluster
            Nodes and slurm_partitions.
        jobs
            Those that wait: lists of nodes that they give.
        reservations
            Current and to come.
        now
            Epoch seconds.

        Raises
        ------
        InputError
            If no node of a partition that is up takes jobs.
        """
        reserved = tuple(each for each in reservations if each.nodes and each.end_time > now)
        lists = {each.nodes for each in reserved if each.nodes is not None}
        for job in jobs:
            if job.asked is not None:
                lists |= {job.asked.required, job.asked.excluded} - {frozenset()}
        named = tuple(sorted(lists, key=sorted))
        # From one look to the next it is mostly the same, and to hash a cluster takes its time.
        for whose, live in _LATELY.machines:
            if whose[1:] == (named, reserved) and (whose[0] is cluster or whose[0] == cluster):
                return live
        live = cls._with_lists(cluster, named, reserved)
        _LATELY.machines = (((cluster, named, reserved), live), *_LATELY.machines[:1])
        return live

    @classmethod
    def _with_lists(
        cls,
        cluster: Cluster,
        named: tuple[frozenset[str], ...],
        reserved: tuple[Reservation, ...],
    ) -> LiveMachine:
        up: list[ClusterPartition] = []
        unmodelled: dict[str, str] = {}
        for part in cluster.partitions:
            try:
                machine_partition(part, ("any",), cluster)
            except InputError as error:
                unmodelled[part.name] = str(error)
            else:
                if part.is_up:
                    up.append(part)
        alike = alike_nodes(cluster.nodes, up, named)
        if not alike:
            raise InputError("no node of a partition that is up takes jobs now")
        groups: list[NodeGroup] = []
        group_of: dict[str, str] = {}
        number_of: dict[str, int] = {}
        for nodes in alike:
            name = f"nodes{len(groups) + 1}"
            for node in nodes:
                number_of[node.name] = len(number_of)
                group_of[node.name] = name
            groups.append(node_group(name, nodes))

        def groups_with(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(group_of[name] for name in names if name in group_of))

        with_nodes = tuple(part for part in up if not part.nodes.isdisjoint(group_of))
        partitions = [
            machine_partition(part, groups_with(sorted(part.nodes)), cluster) for part in with_nodes
        ]
        selection = Selection.CPU_MEMORY if cluster.counts_memory else Selection.CPU
        return cls(
            Machine(tuple(groups), tuple(partitions), selection),
            number_of,
            with_nodes,
            {names: groups_with(sorted(names)) for names in named},
            tuple(
                NodeReservation(each.name, each.start_time, each.end_time - each.start_time, whose)
                for each in reserved
                if (whose := groups_with(sorted(each.nodes or ())))
                and each.end_time > each.start_time
            ),
            unmodelled,
        )

    def resources(self, job: QueuedJob) -> JobResources:
        """Give what a job asks for in the machine's terms; InputError if there is no such thing."""
        return self.resources_of(job.request.queue, job.asked, job.reservation)

    def resources_of(
        self, slurm_partitions: str | None, asked: AskedNodes | None, reservation: str | None = None
    ) -> JobResources:
        """Give what is asked for in the machine's terms.

        Parameters
        ----------
        slurm_partitions
            Names, with commas; ``None`` for the default.
        asked
            ``None``: the processors as tasks.
        reservation
            Name of the reservation that it is to run in.

        Raises
        ------
        InputError
            If none of the slurm_partitions, or none of the nodes asked for, takes jobs.
        """
        asked = asked or AskedNodes()
        names = tuple(filter(None, (slurm_partitions or "").split(","))) or None
        known = {part.name for part in self.machine.slurm_partitions}
        if names is not None:
            if not known.intersection(names):
                for name in self.unmodelled.keys() & set(names):
                    raise InputError(f"partition {name} is not modelled")
                raise InputError(f"partition {slurm_partitions} takes no jobs now")
            names = tuple(name for name in names if name in known)
        every = {group.name for group in self.machine.node_groups}
        open_to = set(every)
        if asked.required:
            open_to &= set(self.groups_of.get(asked.required, ()))
        open_to -= set(self.groups_of.get(asked.excluded, ()))
        nodes = asked.nodes
        if asked.required and nodes is None and asked.required <= self.number_of.keys():
            nodes = len(asked.required)
        first = self.machine.default_partition
        if names is not None:
            first = self.machine.partition_index(names[0])
        memory = asked.memory_per_node_mib
        whole_memory = False
        if memory is None and asked.memory_per_cpu_mib is None:
            memory = self.partitions[first].default_memory_per_node_mib
            # What says nothing of memory gets all of a node's, so nobody else is there.
            whole_memory = (
                self.machine.selection is Selection.CPU_MEMORY
                and memory is None
                and self.partitions[first].default_memory_per_cpu_mib is None
            )
        return JobResources(
            slurm_partitions=names,
            nodes=nodes,
            tasks=asked.tasks,
            cpus_per_task=asked.cpus_per_task,
            memory_per_node_mib=memory,
            memory_per_cpu_mib=asked.memory_per_cpu_mib,
            gpus_per_node=asked.gpus_per_node,
            constraint="&".join(asked.constraint),
            exclusive=asked.exclusive or whole_memory,
            reservation=reservation,
            node_groups=None if open_to == every else tuple(sorted(open_to)),
        )

    def nodes_of(self, job: QueuedJob) -> Int64Array:
        """Give what a running job has: rows of node, cpus, memory_mib and gpus."""
        rows = [
            (node, has.cpus, has.memory_mib, has.gpus)
            for has in job.has_nodes
            if (node := self.number_of.get(has.name)) is not None
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    def held(self, jobs: Sequence[Int64Array]) -> HeldNodes:
        """Give what running jobs have of the machine's nodes, no more than there is of any.

        (Where nodes are oversubscribed, so that jobs share CPUs, the first of them have these.)

        Parameters
        ----------
        jobs
            Of each, what `nodes_of` gives.
        """
        has = np.concatenate([np.empty((0, 4), dtype=np.int64), *jobs])
        row = np.repeat(np.arange(len(jobs)), [len(nodes) for nodes in jobs])
        node, amounts = has[:, 0], has[:, 1:]
        size, whole = self._sizes()
        in_use = np.zeros_like(size)
        np.add.at(in_use, node, amounts)
        twice = np.bincount(node, minlength=len(size)) > 1
        if (in_use > size).any() or (twice & whole).any():
            row, node, amounts = self._no_more(row, node, amounts, size, whole)
        memory = np.where(size[node, 1] < 2**39, amounts[:, 1], 0)
        return HeldNodes(row, node, np.ones_like(row), amounts[:, 0], memory, amounts[:, 2])

    def _sizes(self) -> tuple[Int64Array, BoolArray]:
        """Give what there is of each node: cpus, memory_mib, gpus; and which are given out whole.

        Memory that is not counted is more than anybody asks for.
        """
        groups = self.machine.node_groups
        sizes = np.array(
            [
                (group.cpus, group.memory_mib if self._counts_memory(group) else 2**40, group.gpus)
                for group in groups
            ]
        )
        whole = np.array([self.machine.is_whole(at) for at in range(len(groups))])
        group_of = np.repeat(np.arange(len(groups)), [group.nodes for group in groups])
        return sizes[group_of], whole[group_of]

    def most_free(self, jobs: Sequence[Int64Array]) -> int:
        """Give how many CPUs may be free at the most, beside what running jobs have.

        Parameters
        ----------
        jobs
            As of `held`.
        """
        has = np.concatenate([np.empty((0, 4), dtype=np.int64), *jobs])
        size = np.repeat(
            [group.cpus for group in self.machine.node_groups],
            [group.nodes for group in self.machine.node_groups],
        )
        in_use = np.bincount(has[:, 0], has[:, 1], len(size))
        return int(np.maximum(size - in_use, 0).sum())

    @staticmethod
    def _no_more(
        row: Int64Array, node: Int64Array, amounts: Int64Array, size: Int64Array, whole: BoolArray
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Give each job what those before it have left, of whole nodes each to the first alone."""
        left, amounts = size.copy(), amounts.copy()
        taken: set[int] = set()
        kept = []
        for at, number in enumerate(node.tolist()):
            if whole[number] and number in taken:
                continue
            taken.add(number)
            amounts[at] = np.minimum(amounts[at], left[number])
            left[number] -= amounts[at]
            kept.append(at)
        return row[kept], node[kept], amounts[kept]

    def _counts_memory(self, group: NodeGroup) -> bool:
        return self.machine.selection is Selection.CPU_MEMORY and group.memory_mib > 0

    def partition_of(self, job: QueuedJob) -> int:
        """Give the index of a running job's slurm_partition; of one that is gone, the first."""
        names = [part.name for part in self.machine.slurm_partitions]
        name = job.request.queue
        return names.index(name) if name in names else 0


_Whose = tuple[Cluster, tuple[frozenset[str], ...], tuple[Reservation, ...]]


class _Lately:
    """The machines last made, and of what."""

    def __init__(self) -> None:
        self.machines: tuple[tuple[_Whose, LiveMachine], ...] = ()


_LATELY = _Lately()
