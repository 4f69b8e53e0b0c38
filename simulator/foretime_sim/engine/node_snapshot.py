"""What jobs of a snapshot have, and ask, of a machine of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.native.snapshot_columns import NEVER, checked_column
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.workloads.node_request import JobResources, Request, counts_memory, fit_request


@dataclass(frozen=True, slots=True)
class HeldNodes:
    """What jobs have of nodes, or are to have: a row for each node, or for several alike.

    Attributes
    ----------
    job
        Row of the job among the running jobs; of planned ones, among the pending.
    node
        Number of the node in its machine, from 0.
    nodes
        How many nodes from this one on, all of one group. Of interchangeable nodes
        (`foretime_sim.machines.machine.Machine.is_whole`) only the number counts, not which.
    cpus, memory_mib, gpus
        What the job has of each. Memory that is not counted on the node is 0.
    """

    job: Int64Array
    node: Int64Array
    nodes: Int64Array
    cpus: Int64Array
    memory_mib: Int64Array
    gpus: Int64Array

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[int, ...]] | Int64Array) -> HeldNodes:
        """Make it of rows of job, node, nodes, cpus, memory_mib, gpus."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 6)
        return cls(*(np.ascontiguousarray(table[:, column]) for column in range(6)))

    def rows(self) -> Int64Array:
        """Give the rows as a table, shape (rows, 6)."""
        columns = [getattr(self, column.name) for column in fields(self)]
        return np.stack(columns, axis=1).astype(np.int64)

    def checked(self, machine: Machine, kind: str, jobs: int) -> HeldNodes:
        """Check every row, give it as int64; InputError names the row and the field."""
        rows = len(self.job)
        sizes = [group.nodes for group in machine.node_groups]
        first = np.repeat(machine.first_nodes, sizes)
        last = first + np.repeat(sizes, sizes)
        columns = [
            checked_column(kind, "job", self.job, rows, 0, jobs - 1),
            checked_column(kind, "node", self.node, rows, 0, machine.nodes - 1),
            checked_column(kind, "nodes", self.nodes, rows, 1, machine.nodes),
            *(
                checked_column(kind, name, getattr(self, name), rows, 0)
                for name in ("cpus", "memory_mib", "gpus")
            ),
        ]
        node, nodes = columns[1], columns[2]
        beyond = node + nodes > last[node]
        if beyond.any():
            row = int(np.flatnonzero(beyond)[0])
            raise InputError(
                f"{kind}: row {row}: {nodes[row]} nodes from node {node[row]} on are not of one"
                " group: give a row for each group"
            )
        return HeldNodes(*columns)


@dataclass(frozen=True, slots=True)
class NodeRequests:
    """What each of some jobs asks of a machine.

    Attributes
    ----------
    distinct
        Requests, each once.
    number
        Shape (jobs,): an index into ``distinct``.
    """

    distinct: tuple[Request, ...]
    number: Int64Array

    @classmethod
    def of(
        cls,
        machine: Machine,
        resources: Sequence[JobResources],
        processors: Int64Array,
        requested_time: Int64Array,
        reservations: Sequence[NodeReservation] = (),
    ) -> NodeRequests:
        """Work out what jobs ask for, one of each for a job.

        Parameters
        ----------
        machine
            What there is.
        resources
            As for sbatch.
        processors
            Shape (jobs,): counts where a job says nothing of tasks.
        requested_time
            Shape (jobs,), seconds.
        reservations
            Groups of nodes that are set aside; those of the snapshot.

        Raises
        ------
        InputError
            Naming the row of a job that could never run.
        """
        known: dict[tuple[JobResources, int, int], Request] = {}
        numbers: dict[Request, int] = {}
        number = []
        columns = zip(resources, processors.tolist(), requested_time.tolist(), strict=True)
        for row, asked in enumerate(columns):
            if asked not in known:
                try:
                    known[asked] = fit_request(machine, *asked, reservations)
                except InputError as error:
                    raise InputError(f"pending jobs: row {row}: {error}") from error
            number.append(numbers.setdefault(known[asked], len(numbers)))
        return cls(tuple(numbers), np.array(number, dtype=np.int64))

    @classmethod
    def of_each(cls, requests: Sequence[Request]) -> NodeRequests:
        """Make them of what each job asks for."""
        numbers: dict[Request, int] = {}
        # Mostly a few objects over and over, and to hash one takes its time.
        number = {
            key: numbers.setdefault(request, len(numbers))
            for key, request in {id(request): request for request in requests}.items()
        }
        return cls(
            tuple(numbers),
            np.fromiter((number[id(request)] for request in requests), np.int64, len(requests)),
        )

    def take(self, jobs: Int64Array) -> NodeRequests:
        """Give the requests of some of the jobs."""
        used, number = np.unique(self.number[jobs], return_inverse=True)
        return NodeRequests(tuple(self.distinct[at] for at in used.tolist()), number)

    def with_one(self, request: Request) -> NodeRequests:
        """Give the requests with that of one more job, the last."""
        distinct = self.distinct
        if request not in distinct:
            distinct = (*distinct, request)
        return replace(
            self, distinct=distinct, number=np.append(self.number, distinct.index(request))
        )

    def processors(self) -> Int64Array:
        """Give the CPUs of each job's tasks, shape (jobs,)."""
        cpus = np.array([request.cpus for request in self.distinct], dtype=np.int64)
        return cpus[self.number] if len(self.number) else self.number

    def __len__(self) -> int:
        return len(self.number)


def check_nodes_in_use(machine: Machine, held: HeldNodes) -> None:
    """Check that no more is in use of any node than there is; InputError names the node."""
    capacity = np.repeat(
        np.array(
            [
                [
                    group.cpus,
                    group.memory_mib if counts_memory(machine, number) else 2**62,
                    group.gpus,
                ]
                for number, group in enumerate(machine.node_groups)
            ],
            dtype=np.int64,
        ),
        [group.nodes for group in machine.node_groups],
        axis=0,
    )
    # What interchangeable nodes have is known by their number only.
    for number, first in enumerate(machine.first_nodes):
        group = machine.node_groups[number]
        if not machine.is_whole(number):
            continue
        mine = (held.node >= first) & (held.node < first + group.nodes)
        used = int(held.nodes[mine].sum())
        if used > group.nodes:
            raise InputError(
                f"running jobs use {used} nodes of node_groups.{group.name}, which has"
                f" {group.nodes}"
            )
        capacity[first : first + group.nodes] = 2**62
    each = np.repeat(np.arange(len(held.job)), held.nodes)
    node = np.repeat(held.node, held.nodes) + (
        np.arange(len(each)) - np.repeat(np.cumsum(held.nodes) - held.nodes, held.nodes)
    )
    for column, name in enumerate(("cpus", "memory_mib", "gpus")):
        used_of = np.zeros(machine.nodes, dtype=np.int64)
        np.add.at(used_of, node, getattr(held, name)[each])
        over = np.flatnonzero(used_of > capacity[:, column])
        if len(over):
            first_over = int(over[0])
            raise InputError(
                f"running jobs use {used_of[first_over]} {name} of node {first_over}, which has"
                f" {capacity[first_over, column]}"
            )


class NodesOfEngine(NamedTuple):
    """What an engine on nodes holds of them at a moment; rows as in its snapshot."""

    slurm_partition: Int64Array
    held: HeldNodes
    requests: NodeRequests
    planned_start: Int64Array
    planned_partition: Int64Array
    planned: HeldNodes


def nodes_held(engine: Engine, running: Int64Array) -> HeldNodes:
    """Take what some running jobs of an engine have; a row's job is a place among them."""
    return _held_rows(_core.nodes_held(engine._core, running))


def _held_rows(table: Int64Array) -> HeldNodes:
    return HeldNodes.of_rows(table[:, [0, 2, 3, 4, 5, 6]])


def nodes_of_engine(engine: Engine, running: Int64Array, pending: Int64Array) -> NodesOfEngine:
    """Take what its running and pending jobs have, ask and are promised."""
    core = engine._core
    table = _core.nodes_held(core, running)
    partition = np.full(len(running), -1, dtype=np.int64)
    partition[table[:, 0]] = table[:, 1]
    planned, starts = _core.nodes_planned(core)
    row_of = np.full(len(core), -1, dtype=np.int64)
    row_of[pending] = np.arange(len(pending))
    planned[:, 0] = row_of[planned[:, 0]]
    planned_start = np.full(len(pending), NEVER, dtype=np.int64)
    planned_start[row_of[starts[:, 0]]] = starts[:, 1]
    planned_partition = np.full(len(pending), -1, dtype=np.int64)
    planned_partition[planned[:, 0]] = planned[:, 1]
    used, number = np.unique(_core.requests_of(core)[pending], return_inverse=True)
    return NodesOfEngine(
        partition,
        _held_rows(table),
        NodeRequests(tuple(engine._asked[each] for each in used.tolist()), number),
        planned_start,
        planned_partition,
        _held_rows(planned),
    )
