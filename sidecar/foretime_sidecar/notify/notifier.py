"""Finds at each new board what is news of the jobs whose users have asked, and has it sent."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.forecast_answer.coarsening import coarse_wait
from foretime_sidecar.forecasts.forecast_board import Board, JobForecast
from foretime_sidecar.notify.outbox import Outbox
from foretime_sidecar.notify.start_news import News, NewsRule, Outlook, Told, next_news
from foretime_sidecar.notify.ways import Way, way_of
from foretime_sidecar.settings.notify_settings import NotifySettings
from foretime_sidecar.store.store import Store
from foretime_sidecar.store.watched_jobs import WatchedJob, WatchedJobs


class TooManyJobsError(InputError):
    """A user has news of as many jobs as they may."""


class Notifier:
    """Sends users news of their own jobs, as they ask for.

    Parameters
    ----------
    settings
        When, and how many.
    way
        How.
    store
        Where it is kept who has asked.
    lock
        Of the store.
    board
        Gives the latest forecasts.
    hidden
        Says whether the scheduler hides jobs, so that users are told of waits coarsely.

    Attributes
    ----------
    way, outbox
        How news are sent, and those on their way.
    limited
        News that were not sent, as their user had enough of them in a day.
    failures, last_failure
        How often a refresh has failed, and why the last did; "" if it went through.
    """

    def __init__(
        self,
        settings: NotifySettings,
        way: Way,
        store: Store,
        lock: threading.RLock,
        board: Callable[[], Board | None],
        hidden: Callable[[], bool],
    ) -> None:
        self.way = way
        self.outbox = Outbox(settings.attempts)
        self.limited = 0
        self.failures = 0
        self.last_failure = ""
        self._settings = settings
        self._rule = NewsRule(settings.soon_s, settings.between_s)
        self._watched = WatchedJobs(store)
        self._lock = lock
        self._board = board
        self._hidden = hidden
        self._done_at: int | None = None
        self._given: dict[str, deque[int]] = {}  # when, by user

    def ask(self, user: str, job_id: str, now: int) -> str | None:
        """Note that a user wants news of a job of theirs; give the address that it is mailed to.

        Raises
        ------
        InputError
            If they can't be sent any; `TooManyJobsError` if they have news of too many.
        StateError
            If it can't be stored.
        """
        address = self.way.address(user)
        with self._lock:
            jobs = {job.job_id for job in self._watched.of(user)}
            if job_id not in jobs and len(jobs) >= self._settings.most_jobs:
                raise TooManyJobsError(
                    f"you have news of {len(jobs)} jobs, and notify.most_jobs is "
                    f"{self._settings.most_jobs}; stop some: foretime wait JOB --notify off"
                )
            self._watched.add(user, job_id, now)
        return address

    def stop(self, user: str, job_id: str) -> bool:
        """Note that a user wants no more news of a job; say whether they wanted some."""
        with self._lock:
            return self._watched.remove(user, job_id)

    def jobs_of(self, user: str) -> list[WatchedJob]:
        """Give the jobs that a user has news of."""
        with self._lock:
            return self._watched.of(user)

    def forget(self, user: str) -> None:
        """Forget what is known of a user besides what is stored."""
        self._given.pop(user, None)
        self.outbox.forget(user)

    def refresh(self, *, hurried: bool = False) -> bool:
        """Go through the latest board; there is never more to do at once."""
        board = self._board()
        if board is None or board.made_at == self._done_at:
            return False
        with self._lock:
            watched = self._watched.all()
        for job in watched:
            self._look_at(job, board)
        self._done_at = board.made_at
        return False

    def save(self) -> None:
        """Send no more."""
        self.outbox.end()

    def _look_at(self, job: WatchedJob, board: Board) -> None:
        now = board.made_at
        pending, running = board.pending_job(job.job_id), board.running_job(job.job_id)
        # The number may have become another's.
        if pending is not None and pending.request.user == job.user:
            outlook = self._outlook(pending, board)
            if outlook is None:
                return
            before = _told(job)
            news, told = next_news(job.job_id, before, outlook, now, self._rule)
            with self._lock:
                kept = told == before or self._watched.note(_noted(job, told))
        else:
            news = News("gone", job.job_id, now)
            if running is not None and running.request.user == job.user:
                news = News("started", job.job_id, now, started_at=running.start_time)
            if now < job.asked_at:
                return  # the board is older than the question
            with self._lock:
                kept = self._watched.remove(job.user, job.job_id)
        # Only what is noted is sent: a store that can't be written to repeats no message.
        if news is not None and kept:
            self._give(job.user, news)

    def _outlook(self, forecast: JobForecast, board: Board) -> Outlook | None:
        if forecast.waits is None:
            return None
        likely_s, sure_s = forecast.waits.at(0.5), forecast.waits.at(0.95)
        if self._hidden():
            likely_s = coarse_wait(likely_s, board.made_at)
            sure_s = coarse_wait(sure_s, board.made_at)
        return Outlook(board.made_at + likely_s, board.made_at + sure_s)

    def _give(self, user: str, news: News) -> None:
        given = self._given.setdefault(user, deque())
        while given and given[0] <= news.at - DAY_S:
            given.popleft()
        if len(given) >= self._settings.most_per_day:
            self.limited += 1
            return
        given.append(news.at)
        self.outbox.put(user, self.way.attempt(user, news))


def _told(job: WatchedJob) -> Told:
    if job.likely_start is None or job.sure_by is None:
        return Told()
    return Told(Outlook(job.likely_start, job.sure_by), soon=job.soon, moved_at=job.moved_at)


def _noted(job: WatchedJob, told: Told) -> WatchedJob:
    outlook = told.outlook
    return replace(
        job,
        likely_start=None if outlook is None else outlook.likely_start,
        sure_by=None if outlook is None else outlook.sure_by,
        soon=told.soon,
        moved_at=told.moved_at,
    )


def notifier_of(
    settings: NotifySettings,
    store: Store,
    lock: threading.RLock,
    board: Callable[[], Board | None],
    hidden: Callable[[], bool],
) -> Notifier | None:
    """Give what sends news as the settings say; ``None``: nothing does, and nobody wants any.

    Raises
    ------
    InputError
        If the settings can't be used.
    StateError
        If the store can't be read or written.
    """
    way = way_of(settings)
    if way is not None:
        return Notifier(settings, way, store, lock, board, hidden)
    with lock:
        WatchedJobs(store).clear()
    return None
