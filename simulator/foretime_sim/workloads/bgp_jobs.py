"""Jobs on a Blue Gene: how many nodes they need, and the laws of what they are given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int32Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.workloads.job_log import JobLog
from foretime_sim.workloads.workload import Workload


def with_bgp_machine(
    workload: Workload,
    machine: BgpMachine,
    *,
    processors_per_node: int = 1,
    leave_out: bool = False,
) -> Workload:
    """Put a workload on a Blue Gene; its processors are nodes from then on.

    Parameters
    ----------
    workload
        Its machine, if it has one, is replaced.
    machine
        Takes the place of the flat pool.
    processors_per_node
        What the workload counts: 1 where its processors are nodes, `BgpMachine.cores_per_node`
        where they are cores. A job gets whole nodes, rounded up.
    leave_out
        Leave jobs out that no bgp_partition holds, and say so in the notes. Otherwise they are
        refused.

    Raises
    ------
    InputError
        For the first job that is larger than every bgp_partition; or if none is left.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
    >>> from foretime_sim.workloads.bgp_jobs import with_bgp_machine
    >>> workload = generate("lublin2003", jobs=100, seed=1)
    >>> placed = with_bgp_machine(workload, find_bgp_machine("intrepid"))
    >>> placed.machine_processors
    40960
    """
    if processors_per_node < 1:
        raise InputError(f"processors_per_node is {processors_per_node}: give at least 1")
    placed = replace(
        workload,
        machine=machine,
        machine_processors=machine.nodes,
        requests=None,
        processors=-(-workload.processors // processors_per_node),
    )
    refusal = too_large(placed, machine)
    if refusal is None:
        return placed
    if not leave_out:
        raise InputError(refusal)
    held = placed.processors <= machine.sizes[-1]
    if not held.any():
        raise InputError(f"{refusal}; no job is left")
    gone = int((~held).sum())
    note = (
        f"{gone:,} {'job' if gone == 1 else 'jobs'} left out that no partition of"
        f" {machine.name} holds: more than {machine.sizes[-1]:,} nodes."
    )
    return replace(placed.take(held), notes=(*workload.notes, note))


def processors_per_node(log: JobLog, machine: BgpMachine) -> int:
    """Tell how many of a log's processors are a node: by its header, else by its machine's size.

    Raises
    ------
    InputError
        If neither says.
    """
    processors, nodes = log.machine_processors, log.machine_nodes
    if processors is not None and nodes is not None and processors % nodes == 0:
        return processors // nodes
    for per_node in (1, machine.cores_per_node):
        if processors == machine.nodes * per_node:
            return per_node
    raise InputError(
        f"{log.source}: does not say how many of its processors are a node (MaxProcs, MaxNodes):"
        f" give --processors-per-node, 1 if it counts nodes, {machine.cores_per_node} if it counts"
        " cores"
    )


def too_large(workload: Workload, machine: BgpMachine) -> str | None:
    """Say of the first job that no bgp_partition holds why it could never run."""
    larger = workload.processors > machine.sizes[-1]
    if not larger.any():
        return None
    job = int(np.flatnonzero(larger)[0])
    return (
        f"{workload.name}: job {workload.job_id[job]} needs {workload.processors[job]} nodes, the"
        f" largest partition of {machine.name} has {machine.sizes[-1]}: drop such jobs with a"
        " filter, or say how many of the log's processors are a node"
    )


@dataclass(frozen=True, slots=True)
class BgpUse:
    """How much each bgp_partition was used; arrays of shape (bgp_partitions,), in their order.

    Attributes
    ----------
    jobs
        How many jobs ran on it.
    busy_s
        For how many seconds.
    """

    jobs: Int64Array
    busy_s: Int64Array

    @classmethod
    def of(
        cls,
        machine: BgpMachine,
        bgp_partition: Int32Array,
        start_time: Int64Array,
        end_time: Int64Array,
    ) -> BgpUse:
        """Add up what jobs had, by the indices of their bgp_partitions and their times, seconds."""
        count = len(machine.bgp_partitions)
        jobs = np.bincount(bgp_partition, minlength=count)
        busy_s = np.zeros(count, dtype=np.int64)
        np.add.at(busy_s, bgp_partition, end_time - start_time)
        return cls(jobs.astype(np.int64), busy_s)


def sizes_for(machine: BgpMachine, nodes: Int64Array) -> Int64Array:
    """Give the smallest size of bgp_partition that holds each job; nodes, shape (jobs,)."""
    sizes = np.array(machine.sizes, dtype=np.int64)
    held: Int64Array = sizes[np.searchsorted(sizes, nodes)]
    return held


def broken_bgp_law(
    workload: Workload,
    machine: BgpMachine,
    bgp_partition: Int32Array,
    start_time: Int64Array,
    end_time: Int64Array,
) -> str | None:
    """Say which law of Blue Genes a schedule breaks, if any.

    Each job has a bgp_partition of the smallest size that holds it, and at no moment are two in use
    that conflict (share a midplane or a wire).

    Parameters
    ----------
    workload, machine
        Jobs, their processors being nodes, and what they ran on.
    bgp_partition
        Shape (jobs,): on which each ran.
    start_time, end_time
        Shape (jobs,), seconds.
    """
    parts = machine.bgp_partitions
    nodes = np.array([part.nodes for part in parts], dtype=np.int64)[bgp_partition]
    wrong = np.flatnonzero(nodes != sizes_for(machine, workload.processors))
    if len(wrong):
        job = int(wrong[0])
        return (
            f"job {workload.job_id[job]} of {workload.processors[job]} nodes ran on"
            f" {parts[bgp_partition[job]].name}, which has {nodes[job]}"
        )
    lasting = np.flatnonzero(end_time > start_time)
    times = np.concatenate([end_time[lasting], start_time[lasting]])
    starts = np.repeat([False, True], len(lasting))
    in_use = np.zeros(len(parts), dtype=np.bool_)
    for event in np.lexsort((starts, times)).tolist():
        partition = int(bgp_partition[lasting[event % len(lasting)]])
        if not starts[event]:
            in_use[partition] = False
            continue
        met = np.flatnonzero(machine.conflicts[partition] & in_use)
        if len(met):
            return (
                f"{parts[partition].name} and {parts[int(met[0])].name}, which conflict, are both"
                f" in use at {times[event]} s"
            )
        in_use[partition] = True
    return None
