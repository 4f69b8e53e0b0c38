"""The plain scheduler beside: what happens is noted, days are lived again, and it is told.

One run goes on with the clock, and says until now when jobs start. That is an estimate until all
jobs of a day have ended: then the day is worked out once more, with the runtimes that they really
had, and settled. Each run begins with what the run of the last settled day has become: only the
first begins with the real queue.
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
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.learning.enforced_part import outside
from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.learning.guarded_estimator import HeldEstimator
from foretime_sidecar.plain_beside.account import Account, By, account_of
from foretime_sidecar.plain_beside.beginnings import Beginning
from foretime_sidecar.plain_beside.day_book import DayBook
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.late_jobs import LateJobs
from foretime_sidecar.plain_beside.lived_days import lived
from foretime_sidecar.plain_beside.model_starts import ModelStarts
from foretime_sidecar.plain_beside.plain_run import PlainRun
from foretime_sidecar.plain_beside.worse_days import why_worse
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.queue.queue_events import Key, PastEvents
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

ACCOUNT_DAYS = 28
"""Of which the metrics tell."""
_SETTLED_AFTER_S = 8 * DAY_S
"""A day is settled at the latest so long after its end, whatever still runs."""
_MOST_WITH_US_S = 600.0
"""Of a processor: where a run with jobs started at once takes longer, it waits for the day to be
settled."""
_RUN_EVERY_S = 900
_AT_A_TIME_S = 0.5
_JUDGED_DAYS = 14
_MOST_OFF_PERCENT = 10.0
"""Where the model of what really was has waited so much longer or shorter, nobody is late by it."""

_Run = Generator[None, None, None]


@dataclass(frozen=True, slots=True)
class BesideStanding:
    """How the runs beside stand.

    Attributes
    ----------
    why_not
        Why nothing is run; "" if it is.
    days
        That were begun, and are not settled.
    settled_until
        Until when jobs were judged for good, epoch seconds; ``None``: none were.
    open_jobs
        Jobs that runs still need.
    ran_at
        Until when the latest run knows what happened, epoch seconds; ``None`` before the first.
    model_is_off
        Whether the model's waits are so far from those that were that nobody is late by it.
    """

    why_not: str
    days: int
    settled_until: int | None
    open_jobs: int
    ran_at: int | None
    model_is_off: bool


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
    only_late
        Whether nothing is wanted but who is late: nobody is told what Foretime brings, and nothing
        is kept for a restart.

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
        only_late: bool = False,
    ) -> None:
        self.failures = 0
        self.last_failure = ""
        self.late = _late_jobs(settings)
        self.latest_account: Account | None = None
        self._settings = settings
        self._lock = lock
        self._works_now = works_now
        self._unhurried = unhurried
        self._only_late = only_late
        self._book = DayBook(store, lock, site, keeps=not only_late)
        self._breaker = BreakerEvents(store)
        estimator = settings.queue_order.estimator  # as jobs that start at once go by
        self._estimator = HeldEstimator(estimator, settings.accuracy.to_model())
        self._feed = EventFeed(
            self._estimator,
            f"{NAMED}plain scheduler beside, {estimator}",
            PastEvents(store, lock),
            ModelStates(store, lock),
            settings.store.retention_days * DAY_S,
        )
        self._look: Look | None = None
        self._worked_on: Look | None = None
        self._run: _Run | None = None
        self._run_at: int | None = None
        self._plain: PlainRun | None = None  # from the first day on
        self._model_is_off = False
        self._run_failed = ""
        self._has_time_with_us = True
        self._estimated: int | None = None  # the day that was last lived with us, by its beginning

    @property
    def standing(self) -> BesideStanding:
        """How things stand."""
        book, days = self._book, list(self._book.days)
        settled_until = days[0].began_at if days and days[0].beginnings else None
        why_not = book.why_not or self._run_failed
        return BesideStanding(
            why_not, len(days), settled_until, len(book.jobs), self._run_at, self._model_is_off
        )

    def account(self, since: int, by: By, user: str | None = None) -> Account:
        """Say what Foretime has brought since a time, of everybody's jobs or of one user's.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        jobs = self._book.rows.judged(since)
        if user is not None:
            jobs = [job for job in jobs if job.user == user]
        return account_of(jobs, since, by)

    def looked(self, look: Look) -> None:
        """Leave a look at the queue; takes no time."""
        self._look = look

    def forget(self) -> None:
        """Read all anew, as somebody's rows were erased; with the store's lock held."""
        self._book.must_read = True
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
        if self._book.must_read:
            self._run, self._run_at, self._plain = None, None, None
            self._book.read()
            self._note_waiting()
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
            except StateError:
                self._run = self._plain = None
                raise
            except Exception as error:  # noqa: BLE001 - a model's mistake costs its answer alone
                self._run = self._plain = None
                self._failed(error)
                return False
        return True

    def _note(self, look: Look) -> None:
        try:
            self._feed.follow(look, math.inf if self._unhurried else _AT_A_TIME_S)
        except StateError as error:
            logger.warning("the plain scheduler beside goes by requests: %s", error)
        self._book.note(look, self._expected, works_now=self._works_now())

    def _expected(self, job: QueuedJob, now: int) -> RolePrediction | None:
        if not self._feed.caught_up:
            return None
        return self._estimator.predict_roles(as_submitted(job), now)

    def _failed(self, error: Exception) -> None:
        why_not = f"{error}" if isinstance(error, InputError) else repr(error)
        if why_not != self._run_failed:
            logger.warning("the plain scheduler can't be run beside: %s", why_not)
        self._run_failed = why_not

    def _next_run(self, now: int) -> _Run | None:
        """Give what is to be worked out next; ``None``: nothing is due."""
        days = self._book.days
        if len(days) > 1:
            over_at = days[1].began_at
            if self._is_known(days[0].began_at, over_at) or now - over_at > _SETTLED_AFTER_S:
                return self._settle(now)
        is_due = self._run_at is None or now - self._run_at >= _RUN_EVERY_S
        if days and is_due and (not self._only_late or self._waiting):
            return self._live_on(now)
        return None

    @property
    def _waiting(self) -> list[KnownJob]:
        return [job for job in self._book.jobs.values() if job.waits]

    def _note_waiting(self) -> None:
        """Note when those who wait would have started, unless the model is too far off for that."""
        self.late.note(() if self._model_is_off else self._waiting)

    def _is_known(self, since: int, until: int) -> bool:
        """Whether all jobs that could start in a time have ended."""
        return all(
            job.has_ended
            for job in self._book.jobs.values()
            if job.could_start is not None and since <= job.could_start < until
        )

    def _live_on(self, now: int) -> _Run:
        """Run on up to now, and ahead until all who wait have started."""
        self._run_at, days, jobs = now, self._book.days, self._book.jobs.values()
        if self._plain is None:
            day = days[0]
            beginning = day.beginnings.get(False) or Beginning.real(jobs, day.moment)
            self._plain = PlainRun(day.moment, beginning)
        run = self._plain
        yield from run.go_on(jobs, now)
        starts: Mapping[Key, int | None]
        if self._only_late:  # who has not started is not late before the next run
            starts = {key: start or now + _RUN_EVERY_S for key, start in run.starts().items()}
        else:
            starts = yield from run.starts_ahead()
        self._take(starts, now, with_us=False)
        self._run_failed = ""
        self._note_waiting()
        if self._only_late:
            return
        if len(days) > 1 and days[-2].began_at != self._estimated and self._has_time_with_us:
            self._estimated, began = days[-2].began_at, time.thread_time()
            yield from self._live(now, days[-1].began_at, ours=True)
            took_s = time.thread_time() - began
            self._has_time_with_us = self._unhurried or took_s < _MOST_WITH_US_S

    def _settle(self, now: int) -> _Run:
        """Work the first day out for good, and let go of what no later run needs."""
        book, until = self._book, self._book.days[1].began_at
        then: dict[bool, Beginning] = {}
        for ours in (False,) if self._only_late else (False, True):
            try:
                then[ours] = yield from self._live(now, until, ours=ours)
            except StateError:
                raise
            except Exception as error:  # noqa: BLE001 - who can't be run must not stop others
                self._failed(error)
        book.settle(now, then)
        self._plain = None
        book.forget_before(now - self._settings.store.retention_days * DAY_S)
        self._judge(now)

    def _live(self, now: int, until: int, *, ours: bool) -> Generator[None, None, Beginning]:
        """Run from the first day on, with jobs started at once or without."""
        day, jobs = self._book.days[0], list(self._book.jobs.values())
        hook, order = self._settings.hook, self._settings.queue_order
        late = _late_jobs(self._settings)
        late.note(() if self._model_is_off else jobs)
        raiser = ModelStarts(
            self._settings.scheduler.poll_interval_s,
            order,
            lambda job: job.reservation is None and not job.opted_out and not outside(job, hook),
            late,
        )
        beginning = day.beginnings.get(ours) or Beginning.real(jobs, day.moment)
        run = lived(jobs, day.moment, beginning, now, until, raiser if ours else None)
        become = yield from run
        self._take(become.starts, now, with_us=ours)
        return become.then

    def _take(self, starts: Mapping[Key, int | None], now: int, *, with_us: bool) -> None:
        """Note when jobs start, and what Foretime has brought by that."""
        self._book.take(starts, with_us=with_us)
        if self._only_late:
            return
        since = now - ACCOUNT_DAYS * DAY_S
        judged = self._book.rows.judged(since)
        account = account_of(judged, since, "week")
        users = {job.user for job in judged if job.user is not None}
        enough = len(users) >= self._settings.api.smallest_group
        self.latest_account = account if enough else None
        model = account.model
        bias = 0.0 if model.spread_percent is None else model.bias_percent  # too few days
        self._model_is_off = abs(bias or 0.0) > _MOST_OFF_PERCENT

    def _judge(self, now: int) -> None:
        """Open the circuit breaker if waits with us have been clearly longer than without."""
        if not self._settings.beside.opens_breaker or not self._works_now():
            return
        with self._lock:
            since = max(self._breaker.reset_at(), now - _JUDGED_DAYS * DAY_S)
        reason = why_worse(self._book.rows.judged(since))
        if reason:
            logger.error("the circuit breaker opens: %s", reason)
            with self._lock:
                self._breaker.add(BreakerEvent(now, "tripped", reason))


def _late_jobs(settings: Settings) -> LateJobs:
    return LateJobs(settings.beside.most_late_s, settings.beside.most_behind_s)
