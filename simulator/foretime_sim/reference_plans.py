"""Backfilling families that plan more than the head job, in plain Python: their specification.

Written to be read. `foretime_sim.reference` is the event loop; here stands what a scheduling pass
decides when several jobs hold reservations. No native core for these families exists yet.

A job is planned for its t_sched(backfill), a running one until its expected end. Two rules hold
for every family:

- A running job that has outlived every estimate is planned to end in the next second. One whose
  estimate expires in this very second is planned to end now; who is planned for its processors
  starts once they are really free.
- Advance reservations are promises, so where there are any, everything is planned on the
  requested time: as long as jobs are killed by then, no job ever runs into one.

The starvation guard has no meaning where every waiting job holds a reservation, and is refused.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from foretime_estimators.errors import InputError

from foretime_sim.policy import Correction, EventOrder, Policy
from foretime_sim.reference import _Job, _Simulation
from foretime_sim.role_times import ScheduledTimes, job_times
from foretime_sim.schedule import Counters, Schedule, ScheduleError, StartedBy
from foretime_sim.workload import Int64Array, Workload


class Family(enum.Enum):
    """Which jobs hold a reservation, and when it is made."""

    CONSERVATIVE = "conservative"
    """Every job, made at its submission and kept (Mu'alem and Feitelson; Talby and Feitelson 1999,
    section 3.2). It can only become earlier, when a job ends before its expected end and the
    schedule is compressed; so a job never starts later than its first reservation. Only an
    *underestimate* breaks that: a running job that gets a longer estimate takes processors away
    from reservations, which are then all made anew in the order of the compression."""
    PLANNING = "planning"
    """Every job, all made anew in queue order at each event (Streit 2002, section 3)."""
    FIRST_FIT = "first-fit"
    """None: in queue order whatever fits now starts; wide jobs may starve."""
    EASY = "easy"
    """The first ``depth`` jobs of the queue that can't start now, made anew at each event; the
    others start if they delay none of these. A depth of 1 is EASY."""


class Compression(enum.Enum):
    """In which order conservative backfilling reinserts jobs, and what it removes before."""

    RESERVATION_ORDER = "reservation-order"
    """All removed, reinserted by planned start. None becomes later."""
    SUBMISSION_ORDER = "submission-order"
    """All removed, reinserted by submission. A job may become later than it was promised. In the
    order FCFS this is planning-based scheduling."""
    ONE_BY_ONE = "one-by-one"
    """By submission, each removed alone and reinserted. None becomes later. With the
    event order ``per-event`` the published 7,313.68 s of mean wait on KTH come out."""


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Processors that are claimed from outside for a fixed time, seconds."""

    start: int
    duration: int
    processors: int


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule with what was promised.

    Attributes
    ----------
    schedule
        When each job ran.
    first_planned_start
        Shape (jobs,), seconds: the planned start that each job was first given. For a job
        without any reservation (first-fit, behind the depth of EASY) its start time.
    """

    schedule: Schedule
    first_planned_start: Int64Array


class Profile(Protocol):
    """What a plan is made in; `foretime_sim.availability_profile` has the fast one."""

    def reserve(self, start: int, duration: int, processors: int) -> None:
        """Take processors."""

    def release(self, start: int, duration: int, processors: int) -> None:
        """Give them back."""

    def earliest_fit(self, from_time: int, duration: int, processors: int) -> int | None:
        """Find the first start."""


class PlainProfile:
    """A list of claims, looked at anew for each question."""

    def __init__(self, capacity: int, now: int) -> None:
        self.capacity = capacity
        self.now = now
        self.claims: list[tuple[int, int, int]] = []

    def reserve(self, start: int, duration: int, processors: int) -> None:
        """Take processors."""
        self.claims.append((start, start + duration, processors))

    def release(self, start: int, duration: int, processors: int) -> None:
        """Give them back."""
        self.claims.remove((start, start + duration, processors))

    def free_at(self, time: int) -> int:
        """Processors that no claim holds."""
        return self.capacity - sum(p for start, end, p in self.claims if start <= time < end)

    def earliest_fit(self, from_time: int, duration: int, processors: int) -> int | None:
        """Find the first start: a job that can't start at once starts when a claim ends."""

        def fits(start: int) -> bool:
            changes = [s for s, _, _ in self.claims if start < s < start + duration]
            return all(self.free_at(time) >= processors for time in [start, *changes])

        ends = [end for _, end, _ in self.claims if end > from_time]
        return next((start for start in sorted({from_time, *ends}) if fits(start)), None)


class _PlanningSimulation(_Simulation):
    def __init__(
        self,
        jobs: list[_Job],
        machine_processors: int,
        policy: Policy,
        family: Family,
        compression: Compression,
        depth: int,
        reservations: Sequence[AdvanceReservation],
        new_profile: Callable[[int, int], Profile],
    ) -> None:
        super().__init__(jobs, machine_processors, policy)
        self.machine_processors = machine_processors
        self.family = family
        self.compression = compression
        self.depth = depth
        self.reservations = reservations
        self.new_profile = new_profile
        self.planned: dict[int, int] = {}  # by job index, of pending jobs
        self.first_planned: dict[int, int] = {}
        self.changed = False  # a running job's claim, since the last pass

    # Events: as in the event loop, and each moment for which something is planned

    def run(self) -> None:
        while self.to_submit or self.running or self.pending:
            self.now = min(
                [job.submit for job in self.to_submit[:1]]
                + [job.end for job in self.running]
                + [job.expected_end for job in self.running if not job.expects_no_end]
                + [self.now + 1 for job in self.running if job.expects_no_end and self.pending]
                + [start for start in self.planned.values() if start > self.now]
                + [end for end in map(self.reservation_end, self.reservations) if end > self.now]
            )
            if self.policy.event_order is EventOrder.PER_TIMESTEP:
                while completing := self.first_completing():
                    self.complete(completing)
                for job in self.expiring():
                    self.correct(job)
                while self.to_submit and self.to_submit[0].submit == self.now:
                    self.arrive(self.to_submit.pop(0))
                self.schedule()
            else:
                self.run_single_events()

    def run_single_events(self) -> None:
        happened = False
        while True:
            if self.to_submit and self.to_submit[0].submit == self.now:
                self.arrive(self.to_submit.pop(0))
            elif completing := self.first_completing():
                self.complete(completing)
            elif expiring := self.expiring():
                self.correct(expiring[0])
            elif happened:
                return
            self.schedule()
            happened = True

    def reservation_end(self, reservation: AdvanceReservation) -> int:
        return reservation.start + reservation.duration

    def complete(self, job: _Job) -> None:
        super().complete(job)
        self.changed = True

    def correct(self, job: _Job) -> None:
        super().correct(job)
        self.changed = True

    # A scheduling pass

    def schedule(self) -> None:
        self.passes += 1
        if self.policy.correction is Correction.SLURM:
            for job in self.running:
                if job.corrections > 0 and job.hard_end > self.now:
                    job.expected_end = self.slurm_expected_end(job)
                    self.changed = True
        queue = sorted(self.pending, key=self.place_in_queue)
        match self.family:
            case Family.CONSERVATIVE:
                self.plan_conservatively(queue)
            case Family.PLANNING:
                self.plan_all_anew(queue)
            case Family.FIRST_FIT:
                self.plan_anew(queue, 0)
            case Family.EASY:
                self.plan_anew(queue, self.depth)
        self.changed = False
        head = queue[0] if queue else None
        for job in sorted(queue, key=lambda job: (self.planned.get(job.index, 0), job.index)):
            planned = self.planned.get(job.index)
            if planned is None or planned > self.now or job.processors > self.free:
                continue
            self.start(job, StartedBy.HEAD if job is head else StartedBy.BACKFILLED)
            del self.planned[job.index]

    def time(self, job: _Job) -> int:
        return job.requested if self.reservations else job.backfill_time

    def profile_of_running(self) -> Profile:
        profile = self.new_profile(self.machine_processors, self.now)
        for job in self.running:
            end = job.hard_end if self.reservations else job.expected_end
            if job.expects_no_end:
                end = self.now + 1
            profile.reserve(self.now, max(end, self.now) - self.now, job.processors)
        for claim in self.reservations:
            if self.reservation_end(claim) > self.now:
                start = max(claim.start, self.now)
                profile.reserve(start, self.reservation_end(claim) - start, claim.processors)
        return profile

    def earliest(self, profile: Profile, job: _Job) -> int:
        start = profile.earliest_fit(self.now, self.time(job), job.processors)
        if start is None:
            raise ScheduleError(f"job {job.index} never fits, though every claim ends")
        return start

    def insert(self, profile: Profile, job: _Job) -> None:
        """Reserve the earliest place that is left."""
        start = self.earliest(profile, job)
        profile.reserve(start, self.time(job), job.processors)
        self.planned[job.index] = start
        self.first_planned.setdefault(job.index, start)

    def plan_conservatively(self, queue: list[_Job]) -> None:
        profile = self.profile_of_running()
        kept = sorted(
            (job for job in queue if job.index in self.planned), key=lambda job: job.index
        )
        # One by one is only possible while every reservation still holds.
        one_by_one = self.compression is Compression.ONE_BY_ONE and self.still_fits(kept)
        if not self.changed or one_by_one:
            for job in kept:
                profile.reserve(self.planned[job.index], self.time(job), job.processors)
        if self.changed:
            if self.compression is not Compression.SUBMISSION_ORDER and not one_by_one:
                kept.sort(key=lambda job: (self.planned[job.index], job.index))
            for job in kept:
                if one_by_one:
                    profile.release(self.planned[job.index], self.time(job), job.processors)
                self.insert(profile, job)
        for job in queue:
            if job.index not in self.planned:
                self.insert(profile, job)

    def still_fits(self, kept: list[_Job]) -> bool:
        profile = self.profile_of_running()
        for job in kept:
            start = self.planned[job.index]
            if profile.earliest_fit(start, self.time(job), job.processors) != start:
                return False
            profile.reserve(start, self.time(job), job.processors)
        return True

    def plan_all_anew(self, queue: list[_Job]) -> None:
        profile = self.profile_of_running()
        for job in queue:
            self.insert(profile, job)

    def plan_anew(self, queue: list[_Job], depth: int) -> None:
        """Reservations for the first jobs that have to wait; of the others, those that fit now."""
        profile = self.profile_of_running()
        self.planned.clear()
        waiting = 0
        for job in queue:
            start = self.earliest(profile, job)
            if start == self.now or waiting < depth:
                waiting += start > self.now
                profile.reserve(start, self.time(job), job.processors)
                self.planned[job.index] = start
                self.first_planned.setdefault(job.index, start)


def simulate(
    workload: Workload,
    family: Family,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
    compression: Compression = Compression.RESERVATION_ORDER,
    depth: int = 1,
    reservations: Sequence[AdvanceReservation] = (),
    new_profile: Callable[[int, int], Profile] = PlainProfile,
) -> PlannedSchedule:
    """Schedule a whole workload under a family of backfilling.

    Parameters
    ----------
    workload, scheduled_time, time_limit, priority
        As for `foretime_sim.engine.simulate`.
    family
        Takes the place of ``policy.backfill``.
    policy
        Order, correction, roles and event order. Under conservative backfilling the order only
        decides among jobs submitted at the same time.
    compression
        For conservative backfilling.
    depth
        For EASY: reservations held at once, at least 1.
    reservations
        Claims from outside that every job is planned around.
    new_profile
        Makes an empty profile from a capacity and a start time, seconds.

    Raises
    ------
    InputError
        If the workload, the depth or a reservation is not valid, or a guard is asked for.
    """
    policy = policy or Policy()
    if policy.guard_s is not None:
        raise InputError(f"{family.value} backfilling has no starvation guard: leave guard_s out")
    if depth < 1:
        raise InputError(f"depth is {depth}: give 1 or more; first-fit holds no reservation")
    _check_reservations(reservations, workload.machine_processors)
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    columns = (
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
    simulation = _PlanningSimulation(
        list(jobs), workload.machine_processors, policy, family, compression, depth, reservations,
        new_profile,
    )  # fmt: skip
    if jobs:
        simulation.now = jobs[0].submit
    simulation.run()
    schedule = Schedule(
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
            guard_activations=0,
            deepest_queue=simulation.deepest_queue,
        ),
    )
    first = [simulation.first_planned.get(job.index, job.start) for job in jobs]
    return PlannedSchedule(schedule, np.array(first, dtype=np.int64))


def _check_reservations(reservations: Sequence[AdvanceReservation], machine: int) -> None:
    for number, claim in enumerate(reservations):
        if claim.duration < 1 or claim.processors < 1:
            raise InputError(
                f"advance reservation {number}: duration {claim.duration} s,"
                f" {claim.processors} processors: give at least 1 of each"
            )
        claimed = sum(
            other.processors
            for other in reservations
            if other.start <= claim.start < other.start + other.duration
        )
        if claimed > machine:
            raise InputError(
                f"advance reservation {number}: {claimed} processors are claimed at"
                f" {claim.start} s, the machine has {machine}"
            )
