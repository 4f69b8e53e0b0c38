"""What a scheduling pass decides when more than the head job is planned, in plain Python.

Part of the specification, `foretime_sim.reference.flat`, which is the event loop. Written to be
read: every pass works its plans out from nothing.

A job is planned for its t_sched(backfill), a running one until its expected end. Three rules hold
for every family:

- A running job that has outlived every estimate is planned to end now. Who is planned for its
  processors starts once they are really free; then, and at every pass until then, the reservations
  of all are made anew.
- Advance reservations are promises, so where there are any, everything is planned on the time
  limit at which jobs are killed (t_req, unless a mechanism has changed it): no job ever runs into
  one.
- The moments for which something is planned, and the ends of advance reservations, are events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from foretime_sim.engine.schedule import ScheduleError, StartedBy
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import (
    Compression,
    Conservative,
    Easy,
    FirstFit,
    NoBackfilling,
    Planning,
)
from foretime_sim.reference.candidates import candidate_place
from foretime_sim.reference.dynp import PolicySwitcher
from foretime_sim.reference.profile import Profile
from foretime_sim.reference.simulated import ReferenceJob, Simulated


class Planner:
    """The plans of one simulation.

    Parameters
    ----------
    simulation
        Whose queue is planned.
    reservations
        Claims from outside.
    new_profile
        Makes an empty profile from a capacity and a start time, seconds.
    """

    def __init__(
        self,
        simulation: Simulated,
        reservations: Sequence[AdvanceReservation],
        new_profile: Callable[[int, int], Profile],
    ) -> None:
        self.simulation = simulation
        self.policy = simulation.policy
        self.reservations = reservations
        self.new_profile = new_profile
        self.planned: dict[int, int] = {}  # by job index, of pending jobs
        self.first_planned: dict[int, int] = {}
        self.changed = False  # a running job's claim, since the last pass
        self.surprised = False  # likewise, but not by ending when planned
        switching = self.policy.switching
        self.switcher = None if switching is None else PolicySwitcher(self, switching)

    @property
    def now(self) -> int:
        """The clock."""
        return self.simulation.now

    @property
    def plans_anything(self) -> bool:
        """Whether something may be planned for a time to come."""
        return not isinstance(self.policy.backfill, FirstFit) or bool(self.reservations)

    def moments(self) -> Iterator[int]:
        """Give the times to come at which a pass is due."""
        yield from (start for start in self.planned.values() if start > self.now)
        yield from (claim.end for claim in self.reservations if claim.end > self.now)

    def schedule(self) -> None:
        """Decide a scheduling pass."""
        pending = self.simulation.pending
        new = [job for job in pending if job.index not in self.planned]
        if isinstance(self.policy.backfill, Conservative) and len(new) < 2:
            queue = list(pending)  # nobody's place in it matters
        elif not self.plans_anything and not self.simulation.any_fits(pending):
            return
        elif self.switcher:
            queue = self.switcher.queue(pending)
        else:
            queue = self.simulation.in_order(pending)
        match self.policy.backfill:
            case Conservative(compression):
                self.plan_conservatively(queue, compression)
            case Planning():
                self.plan_all_anew(queue)
            case Easy(depth=depth):
                self.plan_first(queue, depth)
            case FirstFit() | NoBackfilling():
                self.plan_first(queue, 0)
            case _:
                raise TypeError(f"{self.policy.backfill} has a planner of its own")

    # Claims

    def time(self, job: ReferenceJob) -> int:
        """Give what a waiting job is planned for."""
        return job.time_limit if self.reservations else job.backfill_time

    def claimed_until(self, job: ReferenceJob) -> int:
        """Until when a running job is planned to keep its processors."""
        if self.reservations:
            return max(job.start + job.time_limit, self.now)
        return max(job.expected_end, self.now)

    def profile_of_running(self) -> Profile:
        """Everything that is claimed, without the waiting jobs."""
        profile = self.new_profile(self.simulation.machine_processors, self.now)
        for job in self.simulation.running:
            profile.reserve(self.now, self.claimed_until(job) - self.now, job.processors)
        for claim in self.reservations:
            if claim.end > self.now:
                start = max(claim.start, self.now)
                profile.reserve(start, claim.end - start, claim.processors)
        return profile

    def claimed_now(self) -> int:
        """Processors that are claimed from outside."""
        return sum(c.processors for c in self.reservations if c.start <= self.now < c.end)

    def fits_really(self, job: ReferenceJob) -> bool:
        """Whether there are processors for it now, not only in the plan."""
        return job.processors <= self.simulation.free - self.claimed_now()

    def start(self, job: ReferenceJob, started_by: StartedBy) -> None:
        """Start a job now."""
        self.simulation.start(job, started_by)
        self.planned.pop(job.index, None)
        if self.switcher:
            self.switcher.started_under[job.index] = self.switcher.current
        if not self.reservations and job.drain_time != job.backfill_time:
            self.changed = self.surprised = True

    def earliest(self, profile: Profile, job: ReferenceJob) -> int:
        """Find the earliest place for a job."""
        start = profile.earliest_fit(self.now, self.time(job), job.processors)
        if start is None:
            raise ScheduleError(f"job {job.index} never fits, though every claim ends")
        return start

    def insert(self, profile: Profile, job: ReferenceJob) -> None:
        """Reserve the earliest place that is left."""
        start = self.earliest(profile, job)
        profile.reserve(start, self.time(job), job.processors)
        self.planned[job.index] = start
        self.first_planned.setdefault(job.index, start)

    # Families

    def plan_conservatively(self, queue: list[ReferenceJob], compression: Compression) -> None:
        """Keep what was promised, compress if claims have changed, and promise new jobs a start."""
        kept = sorted((j for j in queue if j.index in self.planned), key=lambda job: job.rank)
        changed = self.changed or any(self.planned[job.index] < self.now for job in kept)
        self.changed = False
        profile = self.profile_of_running()
        # One by one is only possible while every reservation still holds.
        one_by_one = compression is Compression.ONE_BY_ONE and self.still_fit(kept)
        if not changed or one_by_one:
            for job in kept:
                profile.reserve(self.planned[job.index], self.time(job), job.processors)
        if changed:
            if compression is not Compression.SUBMISSION_ORDER and not one_by_one:
                kept.sort(key=lambda job: (self.planned[job.index], job.rank))
            for job in kept:
                if one_by_one:
                    profile.release(self.planned[job.index], self.time(job), job.processors)
                self.insert(profile, job)
        for job in queue:
            if job.index not in self.planned:
                self.insert(profile, job)
        due = [job for job in queue if self.planned[job.index] <= self.now]
        for job in sorted(due, key=lambda job: job.rank):
            if self.fits_really(job):
                longest_waiting = min(self.simulation.pending, key=lambda job: job.rank)
                self.start(job, StartedBy.HEAD if job is longest_waiting else StartedBy.BACKFILLED)

    def still_fit(self, kept: list[ReferenceJob]) -> bool:
        """Whether every promise can be kept."""
        profile = self.profile_of_running()
        for job in kept:
            start = self.planned[job.index]
            if start < self.now:
                return False
            if profile.earliest_fit(start, self.time(job), job.processors) != start:
                return False
            profile.reserve(start, self.time(job), job.processors)
        return True

    def plan_all_anew(self, queue: list[ReferenceJob]) -> None:
        """Plan every job, in queue order."""
        profile = self.profile_of_running()
        blocked = False
        for job in queue:
            self.insert(profile, job)
        for job in queue:
            if self.planned[job.index] == self.now and self.fits_really(job):
                self.start(job, StartedBy.BACKFILLED if blocked else StartedBy.HEAD)
            else:
                blocked = True

    def plan_first(self, queue: list[ReferenceJob], depth: int) -> None:
        """Reservations for the first jobs that have to wait; of the others, those that fit now."""
        profile = self.profile_of_running()
        family = self.policy.backfill
        self.planned.clear()
        candidates = list(queue)
        blocked = False
        while candidates:
            job = candidates.pop(0)
            start = self.earliest(profile, job)
            if start == self.now and self.fits_really(job):
                profile.reserve(start, self.time(job), job.processors)
                self.start(job, StartedBy.BACKFILLED if blocked else StartedBy.HEAD)
                continue
            blocked = True
            if isinstance(family, NoBackfilling):
                return
            if len(self.planned) < depth:
                profile.reserve(start, self.time(job), job.processors)
                self.planned[job.index] = start
                if len(self.planned) < depth or not isinstance(family, Easy):
                    continue
                if family.sorts_candidates:
                    candidates.sort(
                        key=lambda job: candidate_place(
                            family.candidates, job, job.time_limit if self.reservations else None
                        )
                    )
