"""How jobs are placed on nodes, in plain Python, node by node: the specification.

Written to be read, not to be fast: everything is worked out anew whenever it is needed.
`foretime_sim.reference.flat` is the event loop; `foretime_sim.reference.nodes` decides the
passes.

**Placement.** Tasks go to nodes of the smallest weight first. There, if one node can hold all tasks
that are left, the one that could hold the fewest is taken (best fit); if none can, the one that can
hold the most, so that a job has few nodes. Among equals: fewest free GPUs, least free memory,
fewest free CPUs, lowest number. A job that would so get more nodes than it may is placed without
regard to weights. A job for N nodes has its tasks spread evenly, over nodes of the smallest weight
first, and there those that could hold the fewest tasks.

**Interchangeable nodes** (`Machine.is_whole`) are planned by their number, as a flat pool is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.schedule import StartedBy
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.reference.flat import Simulation
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.node_request import PartitionChoice, Request, counts_memory
from foretime_sim.workloads.resource_requests import FittedRequests

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Unit:
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
class Share:
    """What a job has of a unit: of one node, or a number of whole nodes."""

    unit: int
    nodes: int
    cpus: int
    memory: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What a job has or is to have for a time."""

    job: int
    start: int
    end: int
    shares: list[Share]
    slurm_partition: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node as a job that is to be placed sees it."""

    unit: int
    number: int
    weight: int
    tasks: int
    gpus: int
    memory: int
    cpus: int

    def best_fit(self) -> tuple[int, ...]:
        """Sort key: the node that could hold the fewest tasks first."""
        return self.tasks, self.gpus, self.memory, self.cpus, self.number

    def largest(self) -> tuple[int, ...]:
        """Sort key: the node that could hold the most tasks first."""
        return -self.tasks, self.gpus, self.memory, self.cpus, self.number


def units_of(machine: Machine) -> list[Unit]:
    """Give the nodes of a machine, interchangeable ones together."""
    units: list[Unit] = []
    for index, group in enumerate(machine.node_groups):
        memory = group.memory_mib if counts_memory(machine, index) else 0
        whole = machine.is_whole(index)
        units.extend(
            Unit(
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


class NodePlans(Protocol):
    """What a scheduling pass knows besides."""

    reserved: list[Claim]
    changed: bool
    first_planned: dict[int, int]

    def moments(self) -> Iterator[int]:
        """Give the times to come at which a pass is due."""

    def expected_end(self, job: ReferenceJob) -> int:
        """Say when a running job is taken to end."""

    def schedule(self) -> None:
        """Decide a pass."""


class NodeSimulation(Simulation):
    """One run on nodes: what each job has of them, and where another one fits."""

    def __init__(
        self,
        jobs: list[ReferenceJob],
        machine: Machine,
        policy: Policy,
        fitted: FittedRequests,
        new_plans: Callable[[NodeSimulation], NodePlans],
    ) -> None:
        calls = PolicyCalls(policy, machine.cpus)  # nobody is asked: the core refuses them
        super().__init__(jobs, machine.cpus, policy, (), PlainProfile, calls)
        self.planner = None
        self.machine = machine
        self.units = units_of(machine)
        self.request: list[Request] = [fitted.requests[int(n)] for n in fitted.request_of]
        self.shares: dict[int, list[Share]] = {}  # of started jobs, by index
        self.partition: dict[int, int] = {}  # the same
        self.allocated: list[tuple[int, int, int, int, int]] = []
        self.nodes_of: dict[int, list[int]] = {}  # of running jobs, interchangeable ones
        self.idle = {
            number: set(range(unit.first_node, unit.first_node + unit.nodes))
            for number, unit in enumerate(self.units)
            if unit.whole
        }
        self.plans = new_plans(self)

    # Claims

    def claims(self) -> list[Claim]:
        """Give all claims from now on: of running jobs, and reservations."""
        running = [
            Claim(
                job.index,
                self.now,
                max(self.plans.expected_end(job), self.now),
                self.shares[job.index],
                self.partition[job.index],
            )
            for job in self.running
        ]
        return [*running, *self.plans.reserved]

    def window(self, start: int, duration: int) -> list[int]:
        """When less can become free in a time: at its beginning, and as claims begin in it."""
        later = {c.start for c in self.plans.reserved if start < c.start < start + duration}
        return [start, *sorted(later)]

    # Placement

    def shares_in_use(self, time: int) -> list[Share]:
        """Give what the claims of a moment hold."""
        return [s for c in self.claims() if c.start <= time < c.end for s in c.shares]

    def nodes(
        self, request: Request, choice: PartitionChoice, start: int, duration: int, now: bool
    ) -> list[Node]:
        """Give the nodes that could hold a task of a job for the whole time."""
        uses = [self.shares_in_use(time) for time in self.window(start, duration)]
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
                node = Node(number, unit.first_node, unit.weight, tasks, gpus, memory, cpus)
                found.extend([node] * count)
        return found

    def tasks_in_memory(
        self, request: Request, choice: PartitionChoice, unit: Unit, memory: int
    ) -> int:
        """Give how many tasks fit into so much memory."""
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
            for time in self.window(start, duration)
        ]
        return min(choice.most_nodes, limit - max(used))

    def place(
        self,
        request: Request,
        choice: PartitionChoice,
        start: int,
        duration: int,
        now: bool,
        time_limit: int,
    ) -> list[Share] | None:
        """Find nodes for a job for a time, open to its time limit; ``None`` if too few are."""
        for closure in choice.closures:
            if closure.start < start + time_limit and start < closure.end:
                groups = tuple(g for g in choice.node_groups if g not in closure.node_groups)
                choice = replace(choice, node_groups=groups)
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
        """Count the nodes of the running jobs of a slurm_partition."""
        return sum(
            share.nodes
            for job in self.running
            if self.partition[job.index] == partition
            for share in self.shares[job.index]
        )

    def fewest(
        self, nodes: list[Node], tasks: int, *, by_weight: bool
    ) -> list[tuple[Node, int]] | None:
        """Choose nodes with room for the tasks, so that they are few."""
        weights = sorted({node.weight for node in nodes}) if by_weight else [None]
        taken: list[tuple[Node, int]] = []
        for weight in weights:
            left = [node for node in nodes if weight in (None, node.weight)]
            left.sort(key=Node.largest)
            while left:
                if enough := [node for node in left if node.tasks >= tasks]:
                    return [*taken, (min(enough, key=Node.best_fit), tasks)]
                taken.append((left[0], left[0].tasks))
                tasks -= left.pop(0).tasks
        return None

    def evenly(self, nodes: list[Node], tasks: int, count: int) -> list[tuple[Node, int]] | None:
        """Choose so many nodes, with the tasks spread evenly."""
        least, more = divmod(tasks, count)
        left = sorted(nodes, key=lambda node: (node.weight, *node.best_fit()))
        taken: list[tuple[Node, int]] = []
        for size, wanted in ((least + 1, more), (least, count - more)):
            chosen = [number for number, node in enumerate(left) if node.tasks >= size][:wanted]
            if len(chosen) < wanted:
                return None
            taken.extend((left[number], size) for number in chosen)
            left = [node for number, node in enumerate(left) if number not in chosen]
        return taken

    def share(self, request: Request, choice: PartitionChoice, node: Node, tasks: int) -> Share:
        """Give what a job takes of a node for so many tasks."""
        unit = self.units[node.unit]
        if unit.whole or choice.exclusive:
            return Share(node.unit, 1, unit.cpus, unit.memory, unit.gpus)
        memory = request.memory_per_node_mib + tasks * choice.memory_per_task_mib
        return Share(
            node.unit, 1, tasks * request.cpus_per_task, memory if unit.memory else 0,
            request.gpus_per_node,
        )  # fmt: skip

    def earliest(
        self, request: Request, choice: PartitionChoice, duration: int, time_limit: int
    ) -> tuple[int, list[Share]]:
        """When and where a job can start: at once, or as a claim or a closure ends."""
        ends = {claim.end for claim in self.claims()} | {c.end for c in choice.closures}
        for start in sorted({self.now} | {end for end in ends if end > self.now}):
            shares = self.place(request, choice, start, duration, False, time_limit)
            if shares is not None:
                return start, shares
        raise InputError("a job never fits, though every claim ends")

    # Events

    def moments(self) -> list[int]:
        """Give the times to come at which a pass is due because of a plan."""
        return list(self.plans.moments())

    def claims_changed(self) -> None:
        """Note that a running job's claim is another than before."""
        self.plans.changed = True

    def complete(self, job: ReferenceJob) -> None:
        """End a job, and take interchangeable nodes back."""
        super().complete(job)
        for node in self.nodes_of.pop(job.index):
            for number, unit in enumerate(self.units):
                if unit.whole and unit.first_node <= node < unit.first_node + unit.nodes:
                    self.idle[number].add(node)

    def start_on(
        self, job: ReferenceJob, how: StartedBy, partition: int, shares: list[Share]
    ) -> None:
        """Start a job on nodes; of interchangeable ones, those with the lowest numbers."""
        self.start(job, how)
        self.shares[job.index] = shares
        self.partition[job.index] = partition
        self.nodes_of[job.index] = []
        for share in shares:
            node = self.units[share.unit].first_node
            if self.units[share.unit].whole:
                node = min(self.idle[share.unit])
                self.idle[share.unit].remove(node)
                self.nodes_of[job.index].append(node)
            self.allocated.append((job.index, node, share.cpus, share.memory, share.gpus))

    def fits_now(self, claim: Claim) -> bool:
        """Whether a planned job can really start where it is planned."""
        used = [share for job in self.running for share in self.shares[job.index]]
        for number, unit in enumerate(self.units):
            mine = [share for share in [*used, *claim.shares] if share.unit == number]
            if self.overused(unit, mine) and any(share.unit == number for share in claim.shares):
                return False
        limit = self.machine.slurm_partitions[claim.slurm_partition].max_nodes_in_use
        nodes = sum(share.nodes for share in claim.shares)
        return limit is None or self.nodes_in_use(claim.slurm_partition) + nodes <= limit

    def overused(self, unit: Unit, shares: list[Share]) -> bool:
        """Whether shares of a unit are more than there is of it."""
        if unit.whole:
            return sum(share.nodes for share in shares) > unit.nodes
        return (
            sum(share.cpus for share in shares) > unit.cpus
            or sum(share.memory for share in shares) > unit.memory
            or sum(share.gpus for share in shares) > unit.gpus
        )

    # A scheduling pass

    def place_in_queue(self, job: ReferenceJob, order: Order | None = None) -> tuple[float, ...]:
        """Smallest first: higher tiers, then as the policy says."""
        return -self.request[job.index].priority_tier, *super().place_in_queue(job, order)

    def schedule(self) -> None:
        """Count a pass, and let the plans decide it."""
        self.passes += 1
        self.reestimate()
        self.plans.schedule()
