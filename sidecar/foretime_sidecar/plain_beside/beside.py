"""The plain scheduler beside: what happens is noted, days are lived again, and it is told.

Each day begins with the real running and waiting jobs at its first look. What a run says of a day
is an estimate until all of the day's jobs have ended: then the day is worked out once more, with
the runtimes that they really had, and settled.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob
from foretime_estimators.time_units import DAY_S
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.learning.enforced_part import outside
from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.learning.guarded_estimator import HeldEstimator
from foretime_sidecar.plain_beside.account import Account, By, account_of
from foretime_sidecar.plain_beside.days import Day
from foretime_sidecar.plain_beside.journal import Journal
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.late_jobs import LateJobs
from foretime_sidecar.plain_beside.lived_days import RealMoment, lived
from foretime_sidecar.plain_beside.model_starts import ModelStarts
from foretime_sidecar.plain_beside.worse_days import why_worse
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import PastEvents
from foretime_sidecar.queue.queue_snapshot import as_submitted
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

WARM_UP_DAYS = 7
"""So many days before the one that it counts for a run begins: the queue has to become what it
would be without Foretime."""
ACCOUNT_DAYS = 28
"""Of which the metrics tell."""
_SETTLED_AFTER_S = 8 * DAY_S
"""A day is settled at the latest so long after its end, whatever still runs."""
_MOST_JOBS = 50_000
"""That are held for runs: with more, runs begin later."""
_MOST_WITH_US_S = 600.0
"""Of a processor: after a run with jobs started at once that takes longer the next begin later."""
_RUN_EVERY_S = 900
_AT_A_TIME_S = 0.5
_READ_AT_A_TIME = 5_000
_JUDGED_DAYS = 14

_Run = Generator[None, None, None]


@dataclass(frozen=True, slots=True)
class BesideStanding:
    """How the runs beside stand.

    Attributes
    ----------
    why_not
        Why nothing is run; "" if it is.
    days, settled_days
        That were begun and are kept, and worked out for good.
    open_jobs
        Jobs that runs still need.
    ran_at
        Until when the latest run knows what happened, epoch seconds; ``None`` before the first.
    """

    why_not: str
    days: int
    settled_days: int
    open_jobs: int
    ran_at: int | None


class PlainBeside:
    """A `foretime_sidecar.queue.background_thread.BackgroundWork`.

    Parameters
    ----------
    settings, store, lock
        The sidecar's; the lock is held for a statement at a time.
    site
        Keeps the site that is run; ``None`` where nobody knows it.
    works_now
        Whether Foretime changes anything now.
    unhurried
        Whether a refresh may take as long as it takes, as in a replay.

    Attributes
    ----------
    failures, last_failure
        How often a refresh has failed, and why the last did; "" if it went through.
    late
        Who waits too long over its start on the plain scheduler.
    latest_account
        What Foretime has brought in four weeks, as of the latest run; ``None`` before, and with
        too few users.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        lock: threading.RLock,
        site: KeptSite | None,
        works_now: Callable[[], bool],
        *,
        unhurried: bool = False,
    ) -> None:
        self.failures = 0
        self.last_failure = ""
        self.late = LateJobs(settings.beside.most_late_s)
        self._settings = settings
        self._store = store
        self._lock = lock
        self._site = site
        self._works_now = works_now
        self._unhurried = unhurried
        self._rows = PlainStarts(store)
        self._breaker = BreakerEvents(store)
        self._estimator = HeldEstimator(settings.learned.estimator, settings.accuracy.to_model())
        self._feed = EventFeed(
            self._estimator,
            f"{NAMED}plain scheduler beside, {settings.learned.estimator}",
            PastEvents(store, lock),
            ModelStates(store, lock),
            settings.store.retention_days * DAY_S,
        )
        self.latest_account: Account | None = None
        self._look: Look | None = None
        self._worked_on: Look | None = None
        self._must_read = True
        self._journal = Journal()
        self._days: list[Day] = []
        self._last_seq = 0
        self._run: _Run | None = None
        self._with_days = WARM_UP_DAYS  # as many as there is time for
        self._estimated: int | None = None  # the day that was last lived with us, by its beginning
        self._run_at: int | None = None
        self._why_not = "the queue has not been looked at yet"

    @property
    def standing(self) -> BesideStanding:
        """How things stand."""
        days = list(self._days)
        settled = sum(day.settled_at is not None for day in days)
        return BesideStanding(
            self._why_not, len(days), settled, len(self._journal.jobs), self._run_at
        )

    def account(self, since: int, by: By, user: str | None = None) -> Account:
        """Say what Foretime has brought since a time, of everybody's jobs or of one user's.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        jobs = self._rows.judged(since)
        if user is not None:
            jobs = [job for job in jobs if job.user == user]
        return account_of(jobs, since, by)

    def looked(self, look: Look) -> None:
        """Leave a look at the queue; takes no time."""
        self._look = look

    def forget(self) -> None:
        """Read all anew, as somebody's rows were erased; with the store's lock held."""
        self._must_read = True
        self._feed.forget()

    def save(self) -> None:
        """Save what the estimator has learned; all else is kept as it happens."""
        if self._worked_on is not None:
            self._feed.save(self._worked_on.taken_at)

    def refresh(self, *, hurried: bool = False) -> bool:
        """Note the latest look, and go on with what is to be worked out; say if there is more."""
        look = self._look
        if look is None:
            return False
        if self._must_read:
            self._read(look.taken_at)
        if look is not self._worked_on:
            self._note(look)
            self._worked_on = look
        if self._run is None:
            self._run = self._next_run(look.taken_at)
        if self._run is None or hurried:
            return False
        began = time.thread_time()
        while self._unhurried or time.thread_time() - began < _AT_A_TIME_S:
            try:
                next(self._run)
            except StopIteration:
                self._run = self._next_run(look.taken_at)
                if self._run is None:
                    return False
            except InputError as error:
                self._run = None
                self._say_not(str(error))
                return False
        return True

    # What happens

    def _read(self, now: int) -> None:
        """Take over what is kept."""
        self._must_read, self._run, self._run_at = False, None, None
        with self._lock:
            rows, days = self._rows.open(), self._rows.days()
        try:
            self._days = [Day.of_row(row) for row in days]
            self._journal = Journal(KnownJob.of_row(row) for row in rows)
        except (InputError, ValueError) as error:
            logger.warning("the plain scheduler beside begins anew: %s", error)
            self._days, self._journal = [], Journal()
        first = self._days[0].began_at if self._days else None
        with self._lock:
            self._last_seq = self._rows.last_read(first)
        self.late.note(self._journal.jobs.values())

    def _note(self, look: Look) -> None:
        try:
            self._feed.follow(look, math.inf if self._unhurried else _AT_A_TIME_S)
        except StateError as error:
            logger.warning("the plain scheduler beside goes by requests: %s", error)
        days = self._begin_day(look)
        if not self._days:
            return
        if len(self._days) == len(days):  # what ended before the first day nobody needs
            with self._lock:
                self._last_seq = self._rows.last_read(None)
        changed = self._journal.note(look, self._ended(), self._expected)
        if self._days and not self._days[-1].with_us and self._works_now():
            self._days[-1].with_us = True
            days = [self._days[-1]]
        self._keep(changed, days)

    def _expected(self, job: QueuedJob, now: int) -> RolePrediction | None:
        if not self._feed.caught_up:
            return None
        return self._estimator.predict_roles(as_submitted(job), now)

    def _ended(self) -> list[tuple[FinishedJob, int | None]]:
        """Give the jobs stored since the last time; not those that no run needs."""
        first = self._days[0].began_at if self._days else 0
        found: list[tuple[FinishedJob, int | None]] = []
        while True:
            with self._lock:
                jobs = self._store.finished_after(self._last_seq, _READ_AT_A_TIME)
            if not jobs:
                return found
            self._last_seq = jobs[-1][0]
            found += [(job, since) for _, job, since in jobs if job.end_time > first]

    def _begin_day(self, look: Look) -> list[Day]:
        """Begin a day if this is its first look; give it."""
        now = look.taken_at
        if self._days and now // DAY_S <= self._days[-1].began_at // DAY_S:
            return []
        site = None if self._site is None else self._site.site
        why_not = ""
        if self._site is None:
            why_not = 'the site is not known (forecast.run_as = "site")'
        elif site is None:
            why_not = self._site.standing.why_not or "the site has not been read yet"
        elif not isinstance(site, SlurmSite):
            why_not = "it is there for Slurm alone"
        elif look.cluster is None:
            why_not = f"which nodes there are is not known: {look.nodes_unread}"
        if why_not or look.cluster is None or not isinstance(site, SlurmSite):
            self._say_not(why_not)
            if self._days and now - self._days[-1].began_at > _SETTLED_AFTER_S:
                self._days, self._journal, self._run = [], Journal(), None
            return []
        self._why_not = ""
        held = {
            (task, job.request.submit_time): job.has_nodes
            for job in look.queue.jobs
            if job.state is QueueState.RUNNING
            for task in job.task_ids
        }
        day = Day(RealMoment(now, look.cluster, look.reservations, held, site))
        self._days.append(day)
        return [day]

    def _say_not(self, why_not: str) -> None:
        if why_not != self._why_not:
            logger.warning("the plain scheduler is not run beside: %s", why_not)
        self._why_not = why_not

    def _keep(self, jobs: list[KnownJob], days: list[Day], needed_from: int = 0) -> None:
        if not jobs and not days:
            return
        rows = [
            job.as_row(is_needed=job.end_time is None or job.end_time > needed_from) for job in jobs
        ]
        with self._lock:
            if not self._must_read:  # else somebody was forgotten meanwhile
                self._rows.keep(rows, [day.as_row() for day in days])

    # What is worked out

    def _next_run(self, now: int) -> _Run | None:
        """Give what is to be worked out next; ``None``: nothing is due."""
        for number, day in enumerate(self._days[:-1]):
            over_at = self._days[number + 1].began_at
            if day.settled_at is not None:
                continue
            if self._is_known(day.began_at, over_at) or now - over_at > _SETTLED_AFTER_S:
                return self._settle(number, now)
            break
        if self._days and (self._run_at is None or now - self._run_at >= _RUN_EVERY_S):
            return self._live_on(now)
        return None

    def _is_known(self, since: int, until: int) -> bool:
        """Whether all jobs that could start in a time have ended."""
        return all(
            job.has_ended
            for job in self._journal.jobs.values()
            if job.could_start is not None and since <= job.could_start < until
        )

    def _live_on(self, now: int) -> _Run:
        """Run the last days up to now, and on until all who wait have started."""
        self._run_at = now
        first = max(len(self._days) - 1 - WARM_UP_DAYS, 0)
        since = self._days[first].began_at
        yield from self._plain(first, now, lambda job: (job.could_start or 0) >= since)
        self.late.note(self._journal.jobs.values())
        yesterday = len(self._days) - 2
        if yesterday >= 0 and self._days[yesterday].began_at != self._estimated:
            self._estimated = self._days[yesterday].began_at
            yield from self._with_us(yesterday, now)

    def _settle(self, number: int, now: int) -> _Run:
        """Work a day out for good, and let go of what no later run needs."""
        day, over_at = self._days[number], self._days[number + 1].began_at

        def of_day(job: KnownJob) -> bool:
            return job.could_start is not None and day.began_at <= job.could_start < over_at

        yield from self._plain(max(number - WARM_UP_DAYS, 0), now, of_day)
        yield from self._with_us(number, now)
        day.settled_at = now
        first = max(number + 1 - WARM_UP_DAYS, 0)
        gone = self._ended_before(self._days[first].began_at)
        while len(self._journal.jobs) - len(gone) > _MOST_JOBS and first <= number:
            first += 1
            gone = self._ended_before(self._days[first].began_at)
        needed_from = self._days[first].began_at
        self._keep(gone, [day], needed_from)
        for job in gone:
            del self._journal.jobs[job.key]
        with self._lock:
            oldest = now - self._settings.store.retention_days * DAY_S
            self._rows.forget_before(oldest, needed_from)
        self._days = self._days[first:]
        self._judge(now)

    def _ended_before(self, time: int) -> list[KnownJob]:
        """Give the jobs that no run needs which begins at a time or later."""
        return [
            job
            for job in self._journal.jobs.values()
            if job.end_time is not None and job.end_time <= time
        ]

    def _plain(self, first: int, now: int, wanted: Callable[[KnownJob], bool]) -> _Run:
        moment, jobs = self._days[first].moment, list(self._journal.jobs.values())
        starts = yield from lived(jobs, moment, now, wanted)
        self._take(starts, "plain_start")
        jobs = self._rows.judged(now - ACCOUNT_DAYS * DAY_S)
        users = {job.user for job in jobs if job.user is not None}
        self.latest_account = None
        if len(users) >= self._settings.api.smallest_group:
            self.latest_account = account_of(jobs, now - ACCOUNT_DAYS * DAY_S, "week")

    def _with_us(self, number: int, now: int) -> _Run:
        """Run a day as it would be with jobs started at once."""
        day = self._days[number]
        over_at = self._days[number + 1].began_at
        moment, began = self._days[max(number - self._with_days, 0)].moment, time.thread_time()
        hook, order = self._settings.hook, self._settings.queue_order
        raiser = ModelStarts(
            self._settings.scheduler.poll_interval_s,
            order.head_delay_s,
            lambda job: job.reservation is None and not job.opted_out and not outside(job, hook),
        )
        starts = yield from lived(
            list(self._journal.jobs.values()),
            moment,
            now,
            lambda job: job.could_start is not None and day.began_at <= job.could_start < over_at,
            raiser,
        )
        self._take(starts, "start_with_us")
        if time.thread_time() - began > _MOST_WITH_US_S and not self._unhurried:
            self._with_days //= 2

    def _take(self, starts: Mapping[tuple[str, int], int | None], column: str) -> None:
        """Keep when jobs start in a run."""
        changed = []
        for key, start in starts.items():
            job = self._journal.jobs.get(key)
            if job is None:
                continue
            setattr(job, column, start)
            for day in self._days:
                if day.began_at <= (job.could_start or 0):
                    job.with_us = day.with_us
            changed.append(job)
        self._keep(changed, [])

    def _judge(self, now: int) -> None:
        """Open the circuit breaker if waits with us have been clearly longer than without."""
        if not self._works_now():
            return
        with self._lock:
            since = max(self._breaker.reset_at(), now - _JUDGED_DAYS * DAY_S)
        reason = why_worse(self._rows.judged(since))
        if reason:
            logger.error("the circuit breaker opens: %s", reason)
            with self._lock:
                self._breaker.add(BreakerEvent(now, "tripped", reason))
