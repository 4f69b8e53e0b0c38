"""How jobs are placed on nodes and planned there, in plain Python, node by node: the specification.

Written to be read, not to be fast: everything is worked out anew whenever it is needed.
`foretime_sim.reference` is the event loop.

**Queue.** Jobs of a higher priority tier first (a job in several slurm_partitions has the highest
of theirs), then in the policy's order. The first job that can't start in its slurm_partition, and
with a ``depth`` of k the first k, hold reservations there: in each slurm_partition some, or those
over other nodes would starve. A job in several slurm_partitions is planned in the one that gives it
the earliest start and counts in all of them; it starts in the first that can run it. First the jobs
that may hold a reservation are gone through, in queue order; then the others, which start if that
delays none of the reservations: each is for certain nodes, as in Slurm's backfill scheduler.

**Placement.** Tasks go to nodes of the smallest weight first. There, if one node can hold all tasks
that are left, the one that could hold the fewest is taken (best fit); if none can, the one that can
hold the most, so that a job has few nodes. Among equals: fewest free GPUs, least free memory,
fewest free CPUs, lowest number. A job that would so get more nodes than it may is placed without
regard to weights. A job for N nodes has its tasks spread evenly, over nodes of the smallest weight
first, and there those that could hold the fewest tasks.

**Interchangeable nodes** (`Machine.is_whole`) are planned by their number, as a flat pool is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.errors import InputError

from foretime_sim.machine import Machine
from foretime_sim.node_allocation import NodeAllocation
from foretime_sim.policy import Backfill, Policy
from foretime_sim.reference import _Job, _Simulation
from foretime_sim.resource_requests import (
    FittedRequests,
    PartitionChoice,
    Request,
    check_all_fit,
    counts_memory,
    fit_requests,
)
from foretime_sim.role_times import ScheduledTimes, job_times
from foretime_sim.schedule import Counters, Schedule, StartedBy
from foretime_sim.workload import Int64Array, Workload

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class _Unit:
    """A node, or a group of interchangeable nodes."""

    first_node: int
    group: int
    nodes: int
    cpus: int
    memory: int
    gpus: int
    weight: int
    whole: bool


@dataclass(frozen=True, slots=True)
class _Share:
    """What a job has of a unit: of one node, or a number of whole nodes."""

    unit: int
    nodes: int
    cpus: int
    memory: int
    gpus: int


@dataclass(frozen=True, slots=True)
class _Claim:
    start: int
    end: int
    shares: list[_Share]
    slurm_partition: int


@dataclass(frozen=True, slots=True)
class _Node:
    """A node as a job that is to be placed sees it."""

    unit: int
    number: int
    weight: int
    tasks: int
    gpus: int
    memory: int
    cpus: int

    def best_fit(self) -> tuple[int, ...]:
        return self.tasks, self.gpus, self.memory, self.cpus, self.number

    def largest(self) -> tuple[int, ...]:
        return -self.tasks, self.gpus, self.memory, self.cpus, self.number


def units_of(machine: Machine) -> list[_Unit]:
    """Give the nodes of a machine, interchangeable ones together."""
    units: list[_Unit] = []
    for index, group in enumerate(machine.node_groups):
        memory = group.memory_mib if counts_memory(machine, index) else 0
        whole = machine.is_whole(index)
        units.extend(
            _Unit(
                first_node=machine.first_nodes[index] + number,
                group=index,
                nodes=group.nodes if whole else 1,
                cpus=group.cpus,
                memory=memory,
                gpus=group.gpus,
                weight=group.weight,
                whole=whole,
            )
            for number in range(1 if whole else group.nodes)
        )
    return units


class _NodeSimulation(_Simulation):
    def __init__(
        self, jobs: list[_Job], machine: Machine, policy: Policy, fitted: FittedRequests
    ) -> None:
        super().__init__(jobs, machine.cpus, policy)
        self.machine = machine
        self.units = units_of(machine)
        self.request = [fitted.requests[number] for number in fitted.request_of.tolist()]
        self.shares: dict[int, list[_Share]] = {}  # of started jobs, by index
        self.partition: dict[int, int] = {}  # the same
        self.allocated: list[tuple[int, int, int, int, int]] = []
        self.nodes_of: dict[int, list[int]] = {}  # of running jobs, interchangeable ones
        self.idle = {
            number: set(range(unit.first_node, unit.first_node + unit.nodes))
            for number, unit in enumerate(self.units)
            if unit.whole
        }
        self.reserved: list[_Claim] = []
        self.let_in_until: dict[int, int] = {}  # in this pass, before waiting jobs
        self.on_requested = False
        self.waiting: Counter[int] = Counter()  # by slurm_partition, in this pass

    # Claims

    def running_claims(self) -> Iterator[_Claim]:
        for job in self.running:
            end = job.hard_end if self.on_requested else job.expected_end
            end = self.let_in_until.get(job.index, end)
            yield _Claim(
                self.now, max(end, self.now), self.shares[job.index], self.partition[job.index]
            )

    def claims(self) -> list[_Claim]:
        return [*self.running_claims(), *self.reserved]

    def moments(self, start: int, duration: int) -> list[int]:
        """When less can become free in a time: at its beginning, and as claims begin in it."""
        later = {c.start for c in self.reserved if start < c.start < start + duration}
        return [start, *sorted(later)]

    # Placement

    def shares_in_use(self, time: int) -> list[_Share]:
        return [s for c in self.claims() if c.start <= time < c.end for s in c.shares]

    def nodes(
        self, request: Request, choice: PartitionChoice, start: int, duration: int, now: bool
    ) -> list[_Node]:
        """Give the nodes that could hold a task of a job for the whole time."""
        uses = [self.shares_in_use(time) for time in self.moments(start, duration)]
        if now:
            uses.append([share for job in self.running for share in self.shares[job.index]])
        found = []
        for number, unit in enumerate(self.units):
            if unit.group not in choice.node_groups:
                continue
            mine = [[share for share in use if share.unit == number] for use in uses]
            cpus = unit.cpus - max(sum(share.cpus for share in use) for use in mine)
            memory = unit.memory - max(sum(share.memory for share in use) for use in mine)
            gpus = unit.gpus - max(sum(share.gpus for share in use) for use in mine)
            count = 1
            if unit.whole:
                count = unit.nodes - max(sum(share.nodes for share in use) for use in mine)
                cpus, memory, gpus = unit.cpus, unit.memory, unit.gpus
            elif choice.exclusive and (cpus, memory, gpus) != (unit.cpus, unit.memory, unit.gpus):
                continue
            tasks = cpus // request.cpus_per_task
            if gpus < request.gpus_per_node:
                tasks = 0
            tasks = min(tasks, self.tasks_in_memory(request, choice, unit, memory))
            if tasks > 0:
                node = _Node(number, unit.first_node, unit.weight, tasks, gpus, memory, cpus)
                found.extend([node] * count)
        return found

    def tasks_in_memory(
        self, request: Request, choice: PartitionChoice, unit: _Unit, memory: int
    ) -> int:
        if not counts_memory(self.machine, unit.group):
            memory = self.machine.node_groups[unit.group].memory_mib or FOREVER
        if memory < request.memory_per_node_mib:
            return 0
        task = choice.memory_per_task_mib
        return memory // task if task else FOREVER

    def most_nodes(self, choice: PartitionChoice, start: int, duration: int) -> int:
        """Most nodes that a job may have, as its slurm_partition may use only so many."""
        limit = self.machine.slurm_partitions[choice.slurm_partition].max_nodes_in_use
        if limit is None:
            return choice.most_nodes
        used = [
            sum(
                share.nodes
                for claim in self.claims()
                if claim.start <= time < claim.end
                and claim.slurm_partition == choice.slurm_partition
                for share in claim.shares
            )
            for time in self.moments(start, duration)
        ]
        return min(choice.most_nodes, limit - max(used))

    def place(
        self, request: Request, choice: PartitionChoice, start: int, duration: int, now: bool
    ) -> list[_Share] | None:
        """Find nodes for a job for a time; ``None`` if there are not enough."""
        nodes = self.nodes(request, choice, start, duration, now)
        most = self.most_nodes(choice, start, duration)
        if now:  # jobs past every estimate are still there
            limit = self.machine.slurm_partitions[choice.slurm_partition].max_nodes_in_use
            if limit is not None:
                most = min(most, limit - self.nodes_in_use(choice.slurm_partition))
        if request.nodes:
            taken = self.evenly(nodes, request.tasks, request.nodes)
            if request.nodes > most:
                return None
        else:
            taken = self.fewest(nodes, request.tasks, by_weight=True)
            if taken and len(taken) > most:
                taken = self.fewest(nodes, request.tasks, by_weight=False)
                if taken and len(taken) > most:
                    return None
        if not taken:
            return None
        return [self.share(request, choice, node, tasks) for node, tasks in taken]

    def nodes_in_use(self, partition: int) -> int:
        return sum(
            share.nodes
            for job in self.running
            if self.partition[job.index] == partition
            for share in self.shares[job.index]
        )

    def fewest(
        self, nodes: list[_Node], tasks: int, *, by_weight: bool
    ) -> list[tuple[_Node, int]] | None:
        weights = sorted({node.weight for node in nodes}) if by_weight else [None]
        taken: list[tuple[_Node, int]] = []
        for weight in weights:
            left = [node for node in nodes if weight in (None, node.weight)]
            left.sort(key=_Node.largest)
            while left:
                if enough := [node for node in left if node.tasks >= tasks]:
                    return [*taken, (min(enough, key=_Node.best_fit), tasks)]
                taken.append((left[0], left[0].tasks))
                tasks -= left.pop(0).tasks
        return None

    def evenly(self, nodes: list[_Node], tasks: int, count: int) -> list[tuple[_Node, int]] | None:
        least, more = divmod(tasks, count)
        left = sorted(nodes, key=lambda node: (node.weight, *node.best_fit()))
        taken: list[tuple[_Node, int]] = []
        for size, wanted in ((least + 1, more), (least, count - more)):
            chosen = [number for number, node in enumerate(left) if node.tasks >= size][:wanted]
            if len(chosen) < wanted:
                return None
            taken.extend((left[number], size) for number in chosen)
            left = [node for number, node in enumerate(left) if number not in chosen]
        return taken

    def share(self, request: Request, choice: PartitionChoice, node: _Node, tasks: int) -> _Share:
        unit = self.units[node.unit]
        if unit.whole or choice.exclusive:
            return _Share(node.unit, 1, unit.cpus, unit.memory, unit.gpus)
        memory = request.memory_per_node_mib + tasks * choice.memory_per_task_mib
        return _Share(
            node.unit, 1, tasks * request.cpus_per_task, memory if unit.memory else 0,
            request.gpus_per_node,
        )  # fmt: skip

    def earliest(
        self, request: Request, choice: PartitionChoice, duration: int
    ) -> tuple[int, list[_Share]]:
        """When and where a job can start: at once, or as a claim ends."""
        for start in sorted({self.now} | {c.end for c in self.claims() if c.end > self.now}):
            shares = self.place(request, choice, start, duration, now=False)
            if shares is not None:
                return start, shares
        raise InputError("a job never fits, though every claim ends")

    # Events

    def complete(self, job: _Job) -> None:
        super().complete(job)
        for node in self.nodes_of.pop(job.index):
            for number, unit in enumerate(self.units):
                if unit.whole and unit.first_node <= node < unit.first_node + unit.nodes:
                    self.idle[number].add(node)

    def start_on(
        self, job: _Job, how: StartedBy, choice: PartitionChoice, shares: list[_Share]
    ) -> None:
        self.start(job, how)
        self.shares[job.index] = shares
        self.partition[job.index] = choice.slurm_partition
        self.nodes_of[job.index] = []
        for share in shares:
            node = self.units[share.unit].first_node
            if self.units[share.unit].whole:
                node = min(self.idle[share.unit])
                self.idle[share.unit].remove(node)
                self.nodes_of[job.index].append(node)
            self.allocated.append((job.index, node, share.cpus, share.memory, share.gpus))

    # A scheduling pass

    def place_in_queue(self, job: _Job) -> tuple[float, ...]:
        return -self.request[job.index].priority_tier, *super().place_in_queue(job)

    def schedule(self) -> None:
        self.passes += 1
        self.reestimate()
        self.reserved = []
        self.waiting.clear()
        self.on_requested = any(job.guarded for job in self.pending)
        depth = {Backfill.NONE: 1, Backfill.FIRST_FIT: 0}.get(
            self.policy.backfill, self.policy.depth
        )
        others = []
        for job in sorted(self.pending, key=self.place_in_queue):
            choices = self.request[job.index].choices
            if all(self.waiting[choice.slurm_partition] >= depth for choice in choices):
                others.append(job)
            elif not self.start_if_possible(job):
                self.reserve(job)
        if self.policy.backfill is Backfill.EASY_SJBF:
            others.sort(key=lambda job: (self.time(job), job.index))
        if self.policy.backfill is not Backfill.NONE:
            for job in others:
                if not self.start_if_possible(job):
                    self.note_waiting(job)
        self.let_in_until.clear()

    def time(self, job: _Job) -> int:
        return job.requested if self.on_requested else job.backfill_time

    def start_if_possible(self, job: _Job) -> bool:
        request = self.request[job.index]
        for choice in request.choices:
            if self.waiting[choice.slurm_partition] == 0:
                ways = [(StartedBy.HEAD, self.time(job))]
            elif self.policy.backfill is Backfill.NONE:
                continue
            else:  # first without the nodes that are reserved for later
                ways = [(StartedBy.OUT_OF_ORDER, FOREVER), (StartedBy.BACKFILLED, self.time(job))]
            for how, duration in ways:
                shares = self.place(request, choice, self.now, duration, now=True)
                if shares is not None:
                    if how is not StartedBy.HEAD:
                        self.let_in_until[job.index] = self.now + self.time(job)
                    self.start_on(job, how, choice, shares)
                    return True
        return False

    def note_waiting(self, job: _Job) -> None:
        for choice in self.request[job.index].choices:
            self.waiting[choice.slurm_partition] += 1

    def reserve(self, job: _Job) -> None:
        choices = self.request[job.index].choices
        first = any(self.waiting[choice.slurm_partition] == 0 for choice in choices)
        self.note_waiting(job)
        if self.policy.backfill is Backfill.NONE:
            return
        if first:
            self.on_requested = self.guard(job)
        start, shares, partition = self.planned(job)
        self.reserved.append(_Claim(start, start + self.time(job), shares, partition))

    def planned(self, job: _Job) -> tuple[int, list[_Share], int]:
        """Give the earliest start in any of a job's slurm_partitions."""
        request = self.request[job.index]
        plans = [
            (*self.earliest(request, choice, self.time(job)), choice.slurm_partition)
            for choice in request.choices
        ]
        return min(plans, key=lambda plan: plan[0])

    def plan(self, head: _Job, on_requested: bool) -> tuple[int, int]:
        """For the guard: when a job can start."""
        before, self.on_requested = self.on_requested, on_requested
        start, _, _ = self.planned(head)
        self.on_requested = before
        return start, 0


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
) -> Schedule:
    """Schedule a workload on its machine; as `foretime_sim.engine.simulate`, allocation included.

    Raises
    ------
    InputError
        If the workload has no machine, or a job could never run on it.
    """
    policy = policy or Policy()
    fitted = fit_requests(workload)
    check_all_fit(workload, fitted)
    machine = workload.machine
    if machine is None:
        raise InputError(f"{workload.name}: the workload has no machine")
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    columns: Sequence[Int64Array] = (
        workload.submit_time,
        workload.processors,
        workload.actual_runtime,
        workload.requested_time,
        times.queue,
        times.backfill,
        times.drain,
        times.time_limit,
        times.priority,
    )
    jobs = [
        _Job(index, *row)
        for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]
    simulation = _NodeSimulation(list(jobs), machine, policy, fitted)
    if jobs:
        simulation.now = jobs[0].submit
    simulation.run()
    return Schedule(
        start_time=np.array([job.start for job in jobs], dtype=np.int64),
        end_time=np.array([job.end for job in jobs], dtype=np.int64),
        started_by=np.array([job.started_by for job in jobs], dtype=np.int8),
        corrections=np.array([job.corrections for job in jobs], dtype=np.int32),
        killed=np.array([job.actual_runtime > job.time_limit for job in jobs], dtype=np.bool_),
        counters=Counters(
            passes=simulation.passes,
            completions=simulation.completions,
            expiries=simulation.expiries,
            submissions=simulation.submissions,
            guard_activations=simulation.guard_activations,
            deepest_queue=simulation.deepest_queue,
        ),
        slurm_partition=np.array([simulation.partition[job.index] for job in jobs], dtype=np.int32),
        allocation=NodeAllocation.of_rows(simulation.allocated),
    )
