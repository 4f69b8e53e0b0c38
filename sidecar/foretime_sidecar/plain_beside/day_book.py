"""The book that runs beside are made of: days and jobs, as they happen, kept in the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob
from foretime_estimators.time_units import DAY_S
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.days import Day
from foretime_sidecar.plain_beside.journal import Expected, Journal
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

_LONGEST_DAY_S = 8 * DAY_S
"""Where no day can begin for so long, nothing more is noted."""
_READ_AT_A_TIME = 5_000


class DayBook:
    """Days and jobs that runs still need; used from one thread, but for `must_read`.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    site
        Keeps the site that is run; ``None`` where nobody knows it.
    keeps
        Whether days and jobs are written to the store: for a restart, and for accounts.

    Attributes
    ----------
    rows
        What is kept.
    days
        That are not settled, the earliest first; the last one goes on.
    must_read
        Whether what is kept has to be read anew; set with the lock held, by any thread.
    why_not
        Why the last day that should have begun has not; "" if it has.
    """

    def __init__(
        self, store: Store, lock: threading.RLock, site: KeptSite | None, *, keeps: bool = True
    ) -> None:
        self.rows = PlainStarts(store)
        self.days: list[Day] = []
        self.must_read = True
        self.why_not = "the queue has not been looked at yet"
        self._store = store
        self._lock = lock
        self._site = site
        self._keeps = keeps
        self._journal = Journal()
        self._last_seq = 0

    @property
    def jobs(self) -> Mapping[Key, KnownJob]:
        """All jobs that runs still need."""
        return self._journal.jobs

    def read(self) -> None:
        """Take over what is kept."""
        self.must_read = False
        with self._lock:
            rows, days = self.rows.open(), self.rows.days()
        try:
            self.days = [Day.of_row(row) for row in days if row.settled_at is None]
            self._journal = Journal(KnownJob.of_row(row) for row in rows)
        except (InputError, ValueError) as error:
            logger.warning("the plain scheduler beside begins anew: %s", error)
            self.days, self._journal = [], Journal()
        first = self.days[0].began_at if self.days else None
        with self._lock:
            self._last_seq = self.rows.last_read(first)

    def note(self, look: Look, expected: Expected, *, works_now: bool) -> None:
        """Note a look, and what has ended since the last one.

        Parameters
        ----------
        look
            The latest.
        expected
            How long jobs that are new are expected to run.
        works_now
            Whether Foretime changes anything now.
        """
        begun = self._begin_day(look)
        if not self.days:
            return
        if len(self.days) == len(begun):  # what ended before the first day nobody needs
            with self._lock:
                self._last_seq = self.rows.last_read(None)
        changed = self._journal.note(look, self._ended(), expected)
        if works_now and not self.days[-1].with_us:
            self.days[-1].with_us = True
            begun = [self.days[-1]]
        self._keep(changed, begun)

    def settle(self, now: int, then: Mapping[bool, Beginning]) -> None:
        """Note that the first day is worked out for good, and let go of what no later run needs.

        Parameters
        ----------
        now
            Epoch seconds.
        then
            How jobs stood at its end in the models without and with Foretime, as far as these ran.
        """
        day, following = self.days[:2]
        day.settled_at = now
        real = Beginning.real(self._journal.jobs.values(), following.moment).over
        over = [then[ours].over if ours in then else real for ours in (False, True)]
        gone = [
            job
            for job in self._journal.jobs.values()
            if job.end_time is not None
            and job.end_time <= following.began_at
            and all(job.key in each for each in over)
        ]
        keys = [job.key for job in gone]
        following.beginnings = {ours: each.without(keys) for ours, each in then.items()}
        self._keep(gone, [day, following], is_needed=False)
        for key in keys:
            del self._journal.jobs[key]
        del self.days[0]

    def forget_before(self, time: int) -> None:
        """Delete what was compared before a time, epoch seconds, and days that no run needs."""
        needed_from = self.days[0].began_at if self.days else time
        with self._lock:
            self.rows.forget_before(time, needed_from)

    def take(self, starts: Mapping[Key, int | None], *, with_us: bool) -> None:
        """Keep when jobs start in a run without Foretime, or with it."""
        changed = []
        for key, start in starts.items():
            job = self._journal.jobs.get(key)
            if job is None:
                continue
            before = job.plain_start, job.start_with_us, job.with_us
            if with_us:
                job.start_with_us = start
            else:
                job.plain_start = start
            for day in self.days:
                if day.began_at <= (job.could_start or 0):
                    job.with_us = day.with_us
            if self._keeps and (job.plain_start, job.start_with_us, job.with_us) != before:
                changed.append(job.as_row(is_needed=False))
        if changed:
            with self._lock:
                self.rows.note_starts(changed)

    def _ended(self) -> list[tuple[FinishedJob, int | None]]:
        """Give the jobs stored since the last time; not those that no run needs."""
        first = self.days[0].began_at
        found: list[tuple[FinishedJob, int | None]] = []
        while True:
            with self._lock:
                jobs = self._store.finished_after(self._last_seq, _READ_AT_A_TIME)
            if jobs:
                self._last_seq = jobs[-1][0]
            found += [(job, since) for _, job, since in jobs if job.end_time > first]
            if len(jobs) < _READ_AT_A_TIME:
                return found

    def _begin_day(self, look: Look) -> list[Day]:
        """Begin a day if this is its first look; give it."""
        now = look.taken_at
        if self.days and now // DAY_S <= self.days[-1].began_at // DAY_S:
            return []
        site, cluster = None if self._site is None else self._site.site, look.cluster
        why_not = ""
        if self._site is None:
            why_not = 'the site is not known (forecast.run_as = "site")'
        elif site is None:
            why_not = self._site.standing.why_not or "the site has not been read yet"
        elif not isinstance(site, SlurmSite):
            why_not = "a plain PBS is not run beside yet"
        elif cluster is None:
            why_not = f"which nodes there are is not known: {look.nodes_unread}"
        if why_not != self.why_not and why_not:
            logger.info("the plain scheduler is not run beside: %s", why_not)
        self.why_not = why_not
        if cluster is None or not isinstance(site, SlurmSite):
            if self.days and now - self.days[-1].began_at > _LONGEST_DAY_S:
                self.days, self._journal = [], Journal()
            return []
        held = {
            (task, job.request.submit_time): job.has_nodes
            for job in look.queue.jobs
            if job.state is QueueState.RUNNING
            for task in job.task_ids
        }
        day = Day(RealMoment(now, cluster, look.reservations, held, site))
        self.days.append(day)
        return [day]

    def _keep(
        self, jobs: Iterable[KnownJob], days: Iterable[Day], *, is_needed: bool = True
    ) -> None:
        if not self._keeps:
            return
        rows = [job.as_row(is_needed=is_needed) for job in jobs]
        kept = [day.as_row() for day in days]
        with self._lock:
            if (rows or kept) and not self.must_read:  # else somebody was forgotten meanwhile
                self.rows.keep(rows, kept)
