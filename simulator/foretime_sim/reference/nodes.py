"""What a scheduling pass decides on nodes, in plain Python: the specification.

Written to be read, not to be fast. `foretime_sim.reference.flat` is the event loop, and
`foretime_sim.reference.placement` says where jobs are placed.

**Queue.** Jobs of a higher priority tier first (a job in several slurm_partitions has the highest
of theirs), then in the policy's order. A job in several slurm_partitions starts in the first that
can run it, and is planned in the one that gives it the earliest start.

**EASY, depth, first-fit.** The first job that can't start in its slurm_partition, and with a
``depth`` of k the first k, hold reservations there: in each slurm_partition some, or those over
other nodes would starve. A job counts in all its slurm_partitions. First the jobs that may hold a
reservation are gone through, in queue order; then the others, which start if that delays none of
the reservations. Each reservation is for certain nodes, as in Slurm's backfill scheduler.

**Planning, conservative.** Every job is planned for certain nodes. Compression moves a job only if
it can start earlier with all others in place, so none becomes later; only when a claim grows over
others, or a job can't start when planned, are all removed and inserted anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.node_allocation import NodeAllocation
from foretime_sim.engine.schedule import Schedule, StartedBy
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.families import (
    Compression,
    Conservative,
    Easy,
    FirstFit,
    NoBackfilling,
    Planning,
)
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.role_times import ScheduledTimes, job_times
from foretime_sim.reference.candidates import candidate_place
from foretime_sim.reference.flat import reference_jobs, reference_schedule
from foretime_sim.reference.placement import FOREVER, Claim, NodeSimulation, Share
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.node_request import PartitionChoice
from foretime_sim.workloads.resource_requests import check_all_fit, fit_requests
from foretime_sim.workloads.workload import Workload


class NodePlanner:
    """The plans of one simulation on nodes."""

    def __init__(self, simulation: NodeSimulation) -> None:
        self.simulation = simulation
        self.policy = simulation.policy
        self.reserved: list[Claim] = []
        self.first_planned: dict[int, int] = {}
        self.let_in_until: dict[int, int] = {}  # in this pass
        self.on_requested = False
        self.waiting: Counter[int] = Counter()  # by slurm_partition, in this pass
        self.changed = False  # a running job's claim, since the last pass

    @property
    def now(self) -> int:
        """The clock, seconds."""
        return self.simulation.now

    @property
    def head_only(self) -> bool:
        """Whether at most the head job of each slurm_partition is planned."""
        return self.policy.backfill.head_only

    def moments(self) -> Iterator[int]:
        """Give the times to come at which a pass is due."""
        for request in self.simulation.request:
            for choice in request.choices:
                yield from (c.end for c in choice.closures if c.end > self.now)
        if not self.head_only:
            yield from (claim.start for claim in self.reserved if claim.start > self.now)

    def expected_end(self, job: ReferenceJob) -> int:
        """Say when a running job is taken to end.

        A job that was let in before waiting ones is taken, in the same pass, to run for the time
        for which it was let in.
        """
        end = job.hard_end if self.on_requested else job.expected_end
        return self.let_in_until.get(job.index, end)

    def time(self, job: ReferenceJob) -> int:
        """Give the time that a job is planned for, seconds."""
        return job.requested if self.on_requested else job.backfill_time

    def choices(self, job: ReferenceJob) -> tuple[PartitionChoice, ...]:
        """Give the slurm_partitions in which a job can run."""
        return self.simulation.request[job.index].choices

    def schedule(self) -> None:
        """Decide a scheduling pass."""
        queue = sorted(self.simulation.pending, key=self.simulation.place_in_queue)
        self.waiting.clear()
        match self.policy.backfill:
            case Conservative(compression):
                self.plan_conservatively(queue, compression)
            case Planning():
                self.plan_all_anew(queue)
            case Easy(depth=depth):
                self.plan_first(queue, depth)
            case FirstFit():
                self.plan_first(queue, 0)
            case _:  # nothing is reserved, but the head job of each slurm_partition is gone through
                self.plan_first(queue, 1)

    def note_waiting(self, job: ReferenceJob) -> None:
        """Count a job in all its slurm_partitions as waiting."""
        for choice in self.choices(job):
            self.waiting[choice.slurm_partition] += 1

    def planned(self, job: ReferenceJob) -> tuple[int, list[Share], int]:
        """Give the earliest start in any of a job's slurm_partitions."""
        request = self.simulation.request[job.index]
        plans = [
            (
                *self.simulation.earliest(request, choice, self.time(job), job.time_limit),
                choice.slurm_partition,
            )
            for choice in request.choices
        ]
        return min(plans, key=lambda plan: plan[0])

    def reserve(self, job: ReferenceJob) -> None:
        """Reserve the earliest place that is left."""
        start, shares, partition = self.planned(job)
        self.reserved.append(Claim(job.index, start, start + self.time(job), shares, partition))
        self.first_planned.setdefault(job.index, start)

    # None, EASY, first-fit

    def plan_first(self, queue: list[ReferenceJob], depth: int) -> None:
        """Reservations for the first jobs that have to wait; of the others, those that fit now."""
        self.reserved = []
        self.on_requested = any(job.guarded for job in queue)
        others = []
        for job in queue:
            if all(self.waiting[choice.slurm_partition] >= depth for choice in self.choices(job)):
                others.append(job)
            elif not self.start_if_possible(job):
                self.wait(job)
        family = self.policy.backfill
        if isinstance(family, Easy) and family.sorts_candidates:
            others.sort(
                key=lambda job: candidate_place(
                    family.candidates, job, job.requested if self.on_requested else None
                )
            )
        if not isinstance(self.policy.backfill, NoBackfilling):
            for job in others:
                if not self.start_if_possible(job):
                    self.note_waiting(job)
        self.let_in_until.clear()

    def start_if_possible(self, job: ReferenceJob) -> bool:
        """Start a job that fits now and delays no reservation; say whether."""
        request = self.simulation.request[job.index]
        for choice in request.choices:
            head = self.waiting[choice.slurm_partition] == 0
            if head:
                ways = [(StartedBy.HEAD, self.time(job))]
            elif isinstance(self.policy.backfill, NoBackfilling):
                continue
            else:  # first without the nodes that are reserved for later
                unplanned = StartedBy.OUT_OF_ORDER if self.head_only else StartedBy.BACKFILLED
                ways = [(unplanned, FOREVER), (StartedBy.BACKFILLED, self.time(job))]
            for how, duration in ways:
                shares = self.simulation.place(
                    request, choice, self.now, duration, True, job.time_limit
                )
                if shares is not None:
                    if not (head and self.head_only):
                        self.let_in_until[job.index] = self.now + self.time(job)
                    self.simulation.start_on(job, how, choice.slurm_partition, shares)
                    return True
        return False

    def wait(self, job: ReferenceJob) -> None:
        """Note that a job that may hold a reservation has to wait, and make it."""
        first = any(self.waiting[choice.slurm_partition] == 0 for choice in self.choices(job))
        self.note_waiting(job)
        if not isinstance(self.policy.backfill, NoBackfilling):
            if first:
                self.on_requested = self.guard(job)
            self.reserve(job)

    def guard(self, head: ReferenceJob) -> bool:
        """As on the flat pool, for the head job of each slurm_partition."""
        guard = self.policy.guard
        if guard is None:
            return False
        if head.planned_start is None:
            before, self.on_requested = self.on_requested, True
            head.planned_start = self.planned(head)[0]
            self.on_requested = before
        if not head.guarded and self.now > head.planned_start + guard.bound_s:
            head.guarded = True
            self.simulation.guard_activations += 1
        return any(job.guarded for job in self.simulation.pending)

    # Planning

    def plan_all_anew(self, queue: list[ReferenceJob]) -> None:
        """Plan every job in queue order."""
        self.reserved = []
        for job in queue:
            self.reserve(job)
        self.start_planned(queue)

    def start_planned(self, queue: list[ReferenceJob]) -> None:
        """Start, in this order, whoever is planned for now and can."""
        claims = {claim.job: claim for claim in self.reserved}
        for job in queue:
            claim = claims[job.index]
            if claim.start > self.now or not self.simulation.fits_now(claim):
                self.note_waiting(job)
                continue
            self.reserved.remove(claim)
            head = self.waiting[claim.slurm_partition] == 0
            how = StartedBy.HEAD if head else StartedBy.BACKFILLED
            self.simulation.start_on(job, how, claim.slurm_partition, claim.shares)
            if job.drain_time != job.backfill_time:
                self.changed = True

    # Conservative

    def plan_conservatively(self, queue: list[ReferenceJob], compression: Compression) -> None:
        """Keep what was promised, move jobs forward, promise new jobs a start."""
        by_index = {job.index: job for job in queue}
        late = any(claim.start < self.now for claim in self.reserved)
        if self.changed or late:
            anew = late or self.overused() or compression is Compression.SUBMISSION_ORDER
            claims = sorted(self.reserved, key=lambda claim: by_index[claim.job].rank)
            if compression is Compression.RESERVATION_ORDER or (
                anew and compression is Compression.ONE_BY_ONE
            ):
                claims.sort(key=lambda claim: (claim.start, by_index[claim.job].rank))
            if anew:
                self.reserved = []
                for claim in claims:
                    self.reserve(by_index[claim.job])
            else:
                for claim in claims:
                    self.move_if_earlier(by_index[claim.job], claim)
        self.changed = False
        planned = {claim.job for claim in self.reserved}
        for job in queue:
            if job.index not in planned:
                self.reserve(job)
        self.start_planned(sorted(queue, key=lambda job: job.rank))

    def move_if_earlier(self, job: ReferenceJob, claim: Claim) -> None:
        """Give a job an earlier start, if there is one, with all others in place."""
        self.reserved.remove(claim)
        start, shares, partition = self.planned(job)
        if start < claim.start:
            claim = Claim(job.index, start, start + self.time(job), shares, partition)
        self.reserved.append(claim)

    def overused(self) -> bool:
        """Whether more is claimed than there is of what waiting jobs have reserved."""
        run = self.simulation
        for time in {self.now, *(claim.start for claim in self.reserved)}:
            active = [claim for claim in run.claims() if claim.start <= time < claim.end]
            for number, unit in enumerate(run.units):
                mine = [s for claim in active for s in claim.shares if s.unit == number]
                if run.overused(unit, mine):
                    return True
            for index, part in enumerate(run.machine.slurm_partitions):
                nodes = [
                    share.nodes
                    for claim in active
                    if claim.slurm_partition == index
                    for share in claim.shares
                ]
                if part.max_nodes_in_use is not None and sum(nodes) > part.max_nodes_in_use:
                    return True
        return False


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
    new_planner: Callable[[NodeSimulation], NodePlanner] = NodePlanner,
) -> Schedule:
    """Schedule a workload on its machine; as `engine.simulate`, allocation included.

    Parameters
    ----------
    new_planner
        Makes what decides the passes.

    Raises
    ------
    InputError
        If the workload has no machine, or a job could never run on it.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.nodes import simulate
    >>> from foretime_sim.workloads.resource_requests import with_machine
    >>> machine = Machine.flat(256)
    >>> workload = with_machine(generate("lublin2003", jobs=20, seed=1), machine)
    >>> len(simulate(workload))
    20
    """
    policy = policy or Policy()
    fitted = fit_requests(workload)
    check_all_fit(workload, fitted)
    if not isinstance(workload.machine, Machine):
        raise InputError(f"{workload.name}: the workload has no machine of nodes")
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    jobs = reference_jobs(workload, times)
    simulation = NodeSimulation(list(jobs), workload.machine, policy, fitted, new_planner)
    simulation.run()
    planned = simulation.plans.first_planned if policy.backfill.plans_every_job else None
    return replace(
        reference_schedule(jobs, simulation, planned),
        slurm_partition=np.array([simulation.partition[job.index] for job in jobs], dtype=np.int32),
        allocation=NodeAllocation.of_rows(simulation.allocated),
    )
