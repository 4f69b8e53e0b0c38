"""One scheduling cycle: who starts, and who becomes a top job (fifo.cpp of OpenPBS).

``main_sched_loop``: jobs are looked at in their order. One that can start does. With
``strict_ordering`` one that can't becomes a top job while there are fewer than ``backfill_depth``:
the start that is found for it is put into the calendar, and who comes later starts only if that
delays no top job. Without ``strict_ordering`` there are no top jobs, and any job that fits starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foretime_sim.reference.pbs.calendar import Calendar, Event, EventKind, Placement
from foretime_sim.reference.pbs.classes import class_of
from foretime_sim.reference.pbs.dedicated_time import is_dedicated
from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.reference.pbs.formula import Formula
from foretime_sim.reference.pbs.hosts import Hosts
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.reference.pbs.limits import Counts
from foretime_sim.reference.pbs.order import QueueOrder
from foretime_sim.reference.pbs.world import World
from foretime_sim.sites.pbs.refusals import check_modelled, order_formula
from foretime_sim.sites.pbs.site import PbsSite


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs.

    ``exiting``: it has ended, but still has its hosts: MoM tells of all ends of a second at once,
    and PBS ends these jobs one by one. It is no longer counted, and is planned to end in a second.
    """

    job: PbsJob
    start: int
    placement: Placement
    exiting: bool = False

    def planned_end(self, now: int) -> int:
        """Say when it is assumed to end."""
        return now + 1 if self.exiting else self.job.planned_end(self.start, now)


@dataclass(slots=True)
class Decisions:
    """What a cycle decided, in its order."""

    started: list[tuple[PbsJob, Placement]] = field(default_factory=list)
    top_jobs: list[tuple[PbsJob, int]] = field(default_factory=list)
    """With the start that each was planned for."""


class PbsCycles:
    """The scheduler of a site, from cycle to cycle.

    Parameters
    ----------
    site
        How it is set up.
    begins_at
        When the fair-share tree was last decayed, where the site does not say.

    Raises
    ------
    InputError
        If the site uses what is not modelled.
    """

    def __init__(self, site: PbsSite, begins_at: int) -> None:
        check_modelled(site)
        self.site = site
        self.fair_share = FairShare(site.share_groups, site.scheduler, _decayed_at(site, begins_at))
        read = order_formula(site.server)
        self.formula = None if read is None else Formula(read)

    def cycle(self, now: int, waiting: Sequence[PbsJob], running: Sequence[Running]) -> Decisions:
        """Go through the queue once; gives what was decided."""
        settings = self.site.scheduler
        for job in waiting:
            self.fair_share.entity_of(job)
        known = [(each.job, self._known_s(each.start, now)) for each in running if not each.exiting]
        if settings.fair_share or self.formula is not None:
            self.fair_share.begin_cycle(known if settings.fair_share else [], now)
        decisions = _Cycle(self, now, waiting, running).go_through()
        if settings.fair_share:
            self.fair_share.end_cycle([*known, *((job, 0) for job, _ in decisions.started)])
        return decisions

    def _known_s(self, start: int, now: int) -> int:
        return max(0, now - start - self.site.usage_lag_s)

    def values(self, waiting: Sequence[PbsJob]) -> dict[int, float]:
        """Give job_sort_formula's values by job; empty without a formula."""
        if self.formula is None:
            return {}
        return {
            job.index: self.formula.value(
                job.list
                | self.fair_share.factors(job)
                | {
                    "queue_priority": self.site.queue(job.queue).priority,
                    "job_priority": job.priority,
                }
            )
            for job in waiting
        }


def _decayed_at(site: PbsSite, begins_at: int) -> int:
    """Give when usage was last decayed as a run begins, whenever the site was read."""
    told = site.usage_at if site.decayed_at is None else site.decayed_at
    span = site.scheduler.fairshare_decay_time_s
    if told is None:
        return begins_at
    return begins_at - (begins_at - told) % span if told > begins_at and span > 0 else told


class _Cycle:
    def __init__(
        self,
        scheduler: PbsCycles,
        now: int,
        waiting: Sequence[PbsJob],
        running: Sequence[Running],
    ) -> None:
        self.site = scheduler.site
        self.fair_share = scheduler.fair_share
        values = scheduler.values(waiting)
        able = [job for job in waiting if self._is_looked_at(job, values, now)]
        self.order = QueueOrder(
            self.site.queues, able, self.site.scheduler, scheduler.fair_share, values
        )
        self.world = _world(self.site, now, running)
        self.refused: set[object] = set()
        self.top_jobs_of: dict[str, int] = {}
        self.decisions = Decisions()

    def _is_looked_at(self, job: PbsJob, values: dict[int, float], now: int) -> bool:
        """Leave out jobs of queues that may not run now (``is_ok_to_run_queue``), and of nobody."""
        threshold = self.site.server.job_sort_formula_threshold
        settings = self.site.scheduler
        no_shares = settings.fair_share and settings.fairshare_enforce_no_shares
        dedicated = job.queue.startswith(settings.dedicated_prefix)
        return (
            self.site.queue(job.queue).started
            and dedicated == is_dedicated(self.site.dedicated_time, now)
            and not (values and threshold is not None and values[job.index] <= threshold)
            and not (no_shares and self.fair_share.entity_of(job).part == 0)
        )

    def go_through(self) -> Decisions:
        while (job := self.order.next()) is not None:
            alike = class_of(self.site, job)
            placement = None if alike in self.refused else self.world.place(job)
            if placement is not None:
                self.world.run(job, placement)
                self.decisions.started.append((job, placement))
                self._assume_used(job)
                continue
            if self._may_be_top_job(job) and self._plan(job):
                self._assume_used(job)
                self._count_top_job(job)
            self.refused.add(alike)
            self._stop_behind(job)
        return self.decisions

    def _assume_used(self, job: PbsJob) -> None:
        """Under fair share who starts, or is planned, counts at once, and all are sorted anew."""
        if self.site.scheduler.fair_share:
            self.fair_share.started(job)
            self.order.sort()

    @property
    def _backfills(self) -> bool:
        depths = [queue.backfill_depth for queue in self.site.queues]
        return self.site.server.backfill_depth != 0 or any(depth for depth in depths)

    def _may_be_top_job(self, job: PbsJob) -> bool:
        """``should_backfill_with_job``."""
        if not self._backfills or not self.site.scheduler.strict_ordering:
            return False
        own = self.site.queue(job.queue).backfill_depth
        if own is not None:
            return self.top_jobs_of.get(job.queue, 0) < own
        depth = self.site.server.backfill_depth
        return self.top_jobs_of.get("", 0) < (1 if depth is None else depth)

    def _count_top_job(self, job: PbsJob) -> None:
        place = "" if self.site.queue(job.queue).backfill_depth is None else job.queue
        self.top_jobs_of[place] = self.top_jobs_of.get(place, 0) + 1

    def _plan(self, job: PbsJob) -> bool:
        """``add_job_to_calendar``; no start is found for who could never run."""
        found = self.world.copy().planned_start(job)
        if found is None:
            return False
        start, placement = found
        for time, kind in (
            (start, EventKind.RUN),
            (start + job.planned_s, EventKind.END),
        ):
            self.world.calendar.add(Event(time, kind, job, placement, job.exclusive))
        self.decisions.top_jobs.append((job, start))
        return True

    def _stop_behind(self, job: PbsJob) -> None:
        """With ``strict_ordering`` and no backfilling nobody passes a job that can't start."""
        if not self.site.scheduler.strict_ordering:
            return
        if not self._backfills:
            self.order.drop(lambda _: True)
        elif self.site.queue(job.queue).backfill_depth == 0:
            self.order.drop(lambda other: other.queue == job.queue)


def _world(site: PbsSite, now: int, running: Sequence[Running]) -> World:
    hosts = Hosts(site.hosts, site.scheduler.node_sort_key)
    counts, calendar = Counts(), Calendar()
    for each in sorted(running, key=lambda each: each.planned_end(now)):
        job, end = each.job, each.planned_end(now)
        hosts.take(each.placement, job.exclusive)
        if not each.exiting:
            counts.add(job, 1)
        calendar.add(Event(end, EventKind.END, job, each.placement, job.exclusive))
    for reservation in site.reservations:
        if reservation.end > now:
            if reservation.start <= now:
                hosts.take(reservation.hosts, False)
            else:
                start = Event(reservation.start, EventKind.RUN, None, reservation.hosts)
                calendar.add(start)
            calendar.add(Event(reservation.end, EventKind.END, None, reservation.hosts))
    for begins, ends in site.dedicated_time:
        if ends > now:
            calendar.add(Event(begins, EventKind.DEDICATED_START, None, {}))
            calendar.add(Event(ends, EventKind.DEDICATED_END, None, {}))
    return World(site, now, hosts, counts, calendar)
