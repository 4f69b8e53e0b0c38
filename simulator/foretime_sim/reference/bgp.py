"""What a scheduling pass decides on a Blue Gene, in plain Python: the specification.

Written to be read, not to be fast. `foretime_sim.reference.flat` is the event loop. Tang 2010,
section II.C; where Cobalt does otherwise is in docs/backfilling.md.

**Where a job may start.** On a bgp_partition of the smallest size that holds it, if none that it
conflicts with is in use. Of several the one that conflicts with the fewest other free ones, of any
size; of these the first by name.

**Draining.** The head job, when it can't start, drains the bgp_partition of its size that will be
free first: when all running jobs in its way have ended, by their expected ends. Of several that
are free at the same time it is the one that conflicts with the fewest free ones, then the first by
name. The backfill window lasts until then.

**The others**, in queue order, may start on a bgp_partition that does not conflict with the drained
one (out of order). A job for which there is none may start on one that does, if it is expected to
end within the window (backfilled). Both are worked out once for a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.schedule import Schedule, StartedBy
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.families import Easy
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.policies.role_times import ScheduledTimes, job_times
from foretime_sim.reference.flat import Simulation, reference_jobs, reference_schedule
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.workload import Workload


class BgpSimulation(Simulation):
    """One run on a Blue Gene: which bgp_partition each job has, and which another may have."""

    def __init__(self, jobs: list[ReferenceJob], machine: BgpMachine, policy: Policy) -> None:
        calls = PolicyCalls(policy, machine.nodes)  # nobody is asked: the core refuses them
        super().__init__(jobs, machine.nodes, policy, (), PlainProfile, calls)
        self.machine = machine
        self.partition: dict[int, int] = {}  # of started jobs, by index

    # bgp_partitions

    def of_size_for(self, job: ReferenceJob) -> list[int]:
        """Give the bgp_partitions of the smallest size that holds a job."""
        size = min(size for size in self.machine.sizes if size >= job.processors)
        parts = self.machine.bgp_partitions
        return [index for index, part in enumerate(parts) if part.nodes == size]

    def in_the_way(self, partition: int) -> list[ReferenceJob]:
        """Give the running jobs that a bgp_partition waits for."""
        conflicts = self.machine.conflicts[partition]
        return [job for job in self.running if conflicts[self.partition[job.index]]]

    def free_partitions(self) -> list[int]:
        """Give the bgp_partitions that nobody is in the way of."""
        everyone = range(len(self.machine.bgp_partitions))
        return [index for index in everyone if not self.in_the_way(index)]

    def preference(self, free: list[int]) -> Callable[[int], tuple[int, str]]:
        """Smallest first: how many free ones a bgp_partition conflicts with; its name."""

        def of_partition(partition: int) -> tuple[int, str]:
            conflicts = self.machine.conflicts[partition]
            blocked = [other for other in free if conflicts[other]]
            return len(blocked), self.machine.bgp_partitions[partition].name

        return of_partition

    def choose(
        self, job: ReferenceJob, allowed: Callable[[int], bool] = lambda _: True
    ) -> int | None:
        """Give the bgp_partition on which a job starts, if there is any."""
        free = self.free_partitions()
        can = [index for index in self.of_size_for(job) if index in free and allowed(index)]
        return min(can, key=self.preference(free), default=None)

    def start_on(self, job: ReferenceJob, started_by: StartedBy, partition: int) -> None:
        """Start a job."""
        self.partition[job.index] = partition
        self.start(job, started_by)

    # A scheduling pass

    def schedule(self) -> None:
        """Make a scheduling pass."""
        self.passes += 1
        self.reestimate()
        queue = self.in_order(self.pending)
        while queue and (partition := self.choose(queue[0])) is not None:
            self.start_on(queue.pop(0), StartedBy.HEAD, partition)
        if queue and isinstance(self.policy.backfill, Easy):
            self.backfill(queue[0], queue[1:])

    def backfill(self, head: ReferenceJob, candidates: list[ReferenceJob]) -> None:
        """Start what leaves the drained bgp_partition alone, or has ended when it is free."""
        on_requested = self.guard(head)
        window_end, drained = self.plan(head, on_requested)
        touches = self.machine.conflicts[drained]
        for job in candidates:
            time = job.requested if on_requested else job.backfill_time
            beside = self.choose(job, lambda index: not touches[index])
            if beside is not None:
                self.start_on(job, StartedBy.OUT_OF_ORDER, beside)
            elif self.now + time <= window_end and (within := self.choose(job)) is not None:
                self.start_on(job, StartedBy.BACKFILLED, within)

    def plan(self, head: ReferenceJob, on_requested: bool) -> tuple[int, int]:
        """When the head job can start, and the bgp_partition that it drains."""

        def free_at(partition: int) -> int:
            return max(
                max(self.now, job.hard_end if on_requested else job.expected_end)
                for job in self.in_the_way(partition)
            )

        preference = self.preference(self.free_partitions())
        drained = min(
            self.of_size_for(head), key=lambda index: (free_at(index), *preference(index))
        )
        return free_at(drained), drained


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
) -> Schedule:
    """Schedule a workload on its Blue Gene; as `foretime_sim.engine.engine.simulate`.

    Raises
    ------
    InputError
        If the workload's machine is no Blue Gene.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
    >>> from foretime_sim.reference.bgp import simulate
    >>> from foretime_sim.workloads.bgp_jobs import with_bgp_machine
    >>> workload = generate("intrepid-like", jobs=20, seed=1)
    >>> schedule = simulate(with_bgp_machine(workload, find_bgp_machine("intrepid")))
    >>> len(schedule)
    20
    """
    policy = policy or Policy()
    if not isinstance(workload.machine, BgpMachine):
        raise InputError(f"{workload.name}: the workload is not on a Blue Gene")
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    jobs = reference_jobs(workload, times)
    simulation = BgpSimulation(list(jobs), workload.machine, policy)
    simulation.run()
    partition = np.array([simulation.partition[job.index] for job in jobs], dtype=np.int32)
    return replace(reference_schedule(jobs, simulation, None), bgp_partition=partition)
