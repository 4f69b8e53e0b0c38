"""What a cycle sees: hosts, running jobs' counts and the calendar, now or at a later moment."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_sim.reference.pbs import dedicated_time, limits
from foretime_sim.reference.pbs.calendar import Calendar, Event, EventKind, Placement
from foretime_sim.reference.pbs.hosts import Hosts
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.reference.pbs.limits import Counts
from foretime_sim.sites.pbs.site import PbsSite


@dataclass(slots=True)
class World:
    """The site at one moment of a cycle, or of a simulation in it (``server_info``)."""

    site: PbsSite
    now: int
    hosts: Hosts
    counts: Counts
    calendar: Calendar

    def copy(self) -> World:
        """Give another in the same state."""
        return World(
            self.site, self.now, self.hosts.copy(), self.counts.copy(), self.calendar.copy()
        )

    def place(self, job: PbsJob) -> Placement | None:
        """Say where a job can start now; ``None``: it can't (``is_ok_to_run``)."""
        end = self._end(job)
        if limits.why_not_started(self.site, job, self.counts, self.calendar, end) is not None:
            return None
        dedicated = job.queue.startswith(self.site.scheduler.dedicated_prefix)
        spans = self.site.dedicated_time
        # Dedicated time is judged by the soft walltime, whatever is reserved.
        if dedicated_time.why_not_started(spans, dedicated, self.now, self.now + job.planned_s):
            return None
        if not self._are_available(job, end):
            return None
        return self.hosts.place(job, self.calendar, self.now, end)

    def _end(self, job: PbsJob) -> int:
        """By when a job is assumed to end: by its walltime where a reservation begins before."""
        if job.planned_s != job.hard_s and self.calendar.reservation_by(self.now + job.hard_s):
            return self.now + job.hard_s
        return self.now + job.planned_s

    def _are_available(self, job: PbsJob, end: int) -> bool:
        """Whether what server and queue have for all jobs is enough (``simulate_resmin``)."""
        for place, available in limits.resources_available(self.site, job):
            for name, amount in available.items():
                wanted = job.list.get(name, 0)
                used = most = self.counts.of.get((place, "o:PBS_ALL", name), 0)
                if self.calendar.run_before(end):
                    for event in self.calendar.until(end):
                        if event.job is not None and place in ("", event.job.queue):
                            sign = 1 if event.kind is EventKind.RUN else -1
                            used += sign * event.job.list.get(name, 0)
                            most = max(most, used)
                if wanted and most + wanted > amount:
                    return False
        return True

    def run(self, job: PbsJob, placement: Placement) -> None:
        """Start a job now, and put its end into the calendar."""
        self.hosts.take(placement, job.exclusive)
        self.counts.add(job, 1)
        end = self.now + job.planned_s
        self.calendar.add(Event(end, EventKind.END, job, placement, job.exclusive))

    def perform(self, event: Event) -> None:
        """Let an event happen."""
        self.now = event.time
        if event.kind is EventKind.RUN:
            self.hosts.take(event.placement, event.exclusive)
        elif event.kind is EventKind.END:
            self.hosts.give_back(event.placement, event.exclusive)
        if event.job is not None:
            self.counts.add(event.job, 1 if event.kind is EventKind.RUN else -1)

    def planned_start(self, job: PbsJob) -> tuple[int, Placement] | None:
        """Say when and where a job can start at the earliest, by what the calendar knows.

        ``calc_run_time``: this moment is tried, too, and each moment at which something has ended.
        This world is spent by it.
        """
        while True:
            placement = self.place(job)
            if placement is not None:
                return self.now, placement
            while True:
                window = self.calendar.next_window(self.site.scheduler.opt_backfill_fuzzy_s)
                if not window:
                    return None
                for event in window:
                    self.perform(event)
                if any(e.kind in (EventKind.END, EventKind.DEDICATED_END) for e in window):
                    break
