"""Which CPUs, MiB and GPUs of which nodes each job had, and the laws that this obeys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int32Array, Int64Array

from foretime_sim.machines.machine import Machine
from foretime_sim.workloads.node_request import Request, counts_memory
from foretime_sim.workloads.resource_requests import FittedRequests
from foretime_sim.workloads.workload import Workload

Rows = Sequence[tuple[int, int, int, int, int]] | Int64Array


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """One row for each node of each job, in the order in which jobs started.

    Attributes
    ----------
    job
        Index of the job in the workload.
    node
        Number of the node in its machine, from 0.
    cpus, memory_mib, gpus
        What the job had of it. Memory that is not counted on the node is 0.
    """

    job: Int64Array
    node: Int64Array
    cpus: Int64Array
    memory_mib: Int64Array
    gpus: Int64Array

    @classmethod
    def of_rows(cls, rows: Rows) -> NodeAllocation:
        """Make it of rows of job, node, cpus, memory_mib, gpus, one after the other."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 5)
        return cls(*(np.ascontiguousarray(table[:, column]) for column in range(5)))

    def __len__(self) -> int:
        return len(self.job)


def broken_law(
    workload: Workload,
    fitted: FittedRequests,
    slurm_partition: Int32Array,
    allocation: NodeAllocation,
    start_time: Int64Array,
    end_time: Int64Array,
    *,
    whole_nodes: bool = True,
) -> str | None:
    """Find a broken law of conservation; ``None`` if all hold.

    No CPU, MiB or GPU of a node is used twice or lost; every job has what it asked for, on nodes
    of its slurm_partition with the features it needs, within the limits; no slurm_partition ever
    uses more nodes than it may.

    Parameters
    ----------
    workload, fitted
        Jobs and what they ask for.
    slurm_partition
        Shape (jobs,): where each ran.
    allocation
        What each had.
    start_time, end_time
        Shape (jobs,), seconds.
    whole_nodes
        Whether exclusive jobs have all that their nodes have, as under Slurm; otherwise they have
        what they ask for, and nobody else is on their nodes, as under PBS.
    """
    machine = workload.machine
    if not isinstance(machine, Machine):
        return "the workload has no machine of nodes"
    groups = np.repeat(
        np.arange(len(machine.node_groups)), [group.nodes for group in machine.node_groups]
    )
    capacity = _capacities(machine)
    lasting = (end_time > start_time)[allocation.job]
    for name, column, most in zip(
        ("CPUs", "MiB", "GPUs"),
        (allocation.cpus, allocation.memory_mib, allocation.gpus),
        capacity,
        strict=True,
    ):
        jobs, nodes, used = allocation.job[lasting], allocation.node[lasting], column[lasting]
        over = _overuse(nodes, start_time[jobs], end_time[jobs], used, most[groups])
        if over is not None:
            node, time, amount = over
            return f"node {node} has {most[groups[node]]} {name}, {amount} are used at {time} s"
    for part_index, part in enumerate(machine.slurm_partitions):
        if part.max_nodes_in_use is None:
            continue
        mine = lasting & (slurm_partition[allocation.job] == part_index)
        jobs = allocation.job[mine]
        over = _overuse(
            np.zeros(len(jobs), dtype=np.int64),
            start_time[jobs],
            end_time[jobs],
            np.ones(len(jobs), dtype=np.int64),
            np.array([part.max_nodes_in_use]),
        )
        if over is not None:
            return f"slurm_partition {part.name} uses {over[2]} nodes at {over[1]} s"
    if not whole_nodes:
        exclusive = np.array(
            [_is_exclusive(request) for request in fitted.requests], dtype=np.bool_
        )
        alone = exclusive[fitted.request_of][allocation.job]
        many = len(workload) + 1
        over = _overuse(
            allocation.node[lasting],
            start_time[allocation.job[lasting]],
            end_time[allocation.job[lasting]],
            np.where(alone[lasting], many, 1),
            np.full(len(groups), many),
        )
        if over is not None:
            return f"node {over[0]} of an exclusive job has another at {over[1]} s"
    return _wrong_job(
        workload, machine, fitted, slurm_partition, allocation, groups, whole_nodes=whole_nodes
    )


def _is_exclusive(request: Request) -> bool:
    return any(choice.exclusive for choice in request.choices)


def _capacities(machine: Machine) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Give CPUs, counted MiB and GPUs of a node of each group."""
    return (
        np.array([group.cpus for group in machine.node_groups]),
        np.array(
            [
                group.memory_mib if counts_memory(machine, index) else 0
                for index, group in enumerate(machine.node_groups)
            ]
        ),
        np.array([group.gpus for group in machine.node_groups]),
    )


def _overuse(
    where: Int64Array, start: Int64Array, end: Int64Array, used: Int64Array, most: Int64Array
) -> tuple[int, int, int] | None:
    """Find a place, time and amount where more than the most is used."""
    places = np.concatenate([where, where])
    times = np.concatenate([start, end])
    change = np.concatenate([used, -used])
    order = np.lexsort((change, times, places))
    places, times, change = places[order], times[order], change[order]
    total = np.cumsum(change)  # every place ends at 0, so it needs no restart
    over = np.flatnonzero(total > most[places]) if len(places) else np.array([], dtype=np.int64)
    if not len(over):
        return None
    first = int(over[0])
    return int(places[first]), int(times[first]), int(total[first])


def _wrong_job(
    workload: Workload,
    machine: Machine,
    fitted: FittedRequests,
    slurm_partition: Int32Array,
    allocation: NodeAllocation,
    groups: Int64Array,
    *,
    whole_nodes: bool,
) -> str | None:
    order = np.argsort(allocation.job, kind="stable")
    bounds = np.searchsorted(allocation.job[order], np.arange(len(workload) + 1))
    for job in np.flatnonzero(slurm_partition >= 0).tolist():  # the others never ran
        rows = order[bounds[job] : bounds[job + 1]]
        request = fitted.requests[int(fitted.request_of[job])]
        name = f"job {workload.job_id[job]}"
        choice = next(
            (c for c in request.choices if c.slurm_partition == slurm_partition[job]), None
        )
        if choice is None:
            return f"{name} ran in a partition in which it may not"
        nodes = allocation.node[rows]
        if len(set(nodes.tolist())) < len(nodes):
            return f"{name} has a node twice"
        if not 1 <= len(nodes) <= choice.most_nodes or len(nodes) != (request.nodes or len(nodes)):
            return f"{name} has {len(nodes)} nodes"
        had = 0
        for row in rows.tolist():
            group = int(groups[allocation.node[row]])
            node = machine.node_groups[group]
            if group not in choice.node_groups:
                return f"{name} has node {allocation.node[row]}, of a group that it may not use"
            cpus, memory, gpus = (
                int(column[row])
                for column in (allocation.cpus, allocation.memory_mib, allocation.gpus)
            )
            if whole_nodes and (choice.exclusive or machine.is_whole(group)):
                counted = node.memory_mib if counts_memory(machine, group) else 0
                if (cpus, memory, gpus) != (node.cpus, counted, node.gpus):
                    return f"{name} has a part of node {allocation.node[row]}, not the whole"
                tasks = node.cpus // request.cpus_per_task
                if node.memory_mib and choice.memory_per_task_mib:
                    tasks = min(tasks, node.memory_mib // choice.memory_per_task_mib)
            else:
                tasks = cpus // request.cpus_per_task
                asked = request.memory_per_node_mib + tasks * choice.memory_per_task_mib
                if not counts_memory(machine, group):
                    asked = 0
                if (cpus, memory, gpus) != (
                    tasks * request.cpus_per_task,
                    asked,
                    request.gpus_per_node,
                ):
                    return f"{name} has not what it asked for on node {allocation.node[row]}"
            had += tasks
        if had < request.tasks:
            return f"{name} has room for {had} of its {request.tasks} tasks"
    return None
