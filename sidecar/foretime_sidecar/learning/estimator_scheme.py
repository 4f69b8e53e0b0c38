"""The scheme ``learned``: an estimator that the daemon feeds, and what the table has from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.learning.enforced_part import outside
from foretime_sidecar.learning.estimator_rows import LearnedRows, as_if_now
from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.learning.guarded_estimator import HeldEstimator
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.queue.queue_events import PastEvents
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Scheme

logger = logging.getLogger("foretime")

_ASKED_AGAIN = 100
"""Kinds of which nothing has ended since are asked about again, so many with each table."""


def learned_scheme_of(
    settings: Settings, store: Store, lock: threading.RLock
) -> LearnedScheme | None:
    """Give the estimator of the scheme ``learned``; ``None`` if nobody goes by it.

    Who starts jobs at once goes by it under any scheme.
    """
    wanted = settings.accuracy.scheme == "learned" or settings.starts_jobs
    return LearnedScheme(settings, store, lock) if wanted else None


class LearnedScheme:
    """Holds the estimator; used from the thread that polls, but for `forget`.

    Parameters
    ----------
    settings, store
        The sidecar's.
    lock
        Held while the store and the rows are used, not while the estimator works.

    Attributes
    ----------
    estimator
        As it is held.
    """

    def __init__(self, settings: Settings, store: Store, lock: threading.RLock) -> None:
        order = settings.queue_order
        name = order.estimator if settings.starts_jobs else settings.learned.estimator
        self.estimator = HeldEstimator(name, settings.accuracy.to_model())
        self._settings = settings
        self._lock = lock
        self._feed = EventFeed(
            self.estimator,
            f"{NAMED}scheme learned, {name}",
            PastEvents(store, lock),
            ModelStates(store, lock),
            settings.store.retention_days * DAY_S,
        )
        self._was_ready: bool | None = None

    @property
    def why_not(self) -> str:
        """Why the estimator can't be gone by now; "" if it can."""
        if not self._feed.caught_up:
            return "it has not learned all that is stored yet"
        if not self.estimator.in_order:
            return f"it fails again and again: {self.estimator.last_failure}"
        return ""

    def follow(self, look: Look, rows: LearnedRows | None, most_s: float) -> bool:
        """Learn what has happened, and have the estimator vote; say whether it can be gone by.

        Parameters
        ----------
        look
            The latest.
        rows
            Of the sidecar's learner; ``None`` where the table is another scheme's.
        most_s
            About how long each of both may take, seconds.
        """
        try:
            self._feed.follow(look, most_s)
        except StateError as error:
            logger.error("the scheme learned: %s", error)  # noqa: TRY400 - no mistake of ours
        if self._feed.caught_up and rows is not None:
            with self._lock:
                votes = rows.to_ask(_ASKED_AGAIN)
            if not self.estimator.in_order:
                votes = votes[:1]  # to see whether it is again
            until, now = time.monotonic() + most_s, look.taken_at
            answers = []
            for vote in votes:
                answers.append((vote, self.predict(as_if_now(vote.request, now), now)))
                if time.monotonic() > until:
                    break
            with self._lock:
                rows.answered(answers)
        self._log()
        return not self.why_not

    def _log(self) -> None:
        reason = self.why_not
        if self._was_ready is not (not reason):
            name = self.estimator.name
            if reason:
                logger.warning("estimator %s can't be gone by: %s", name, reason)
            else:
                logger.info("jobs are planned by estimator %s", name)
        self._was_ready = not reason

    def predict(self, job: JobRequest, now: int) -> int | None:
        """Give the scheduled time of a job, seconds, as of ``now``; ``None`` if it has none."""
        return self.estimator.predict(job, now)

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction | None:
        """Give a job's time for each use of it, seconds, as of ``now``; ``None`` if it has none."""
        return self.estimator.predict_roles(job, now)

    def estimates(self, learner: Learner, now: int) -> Callable[[QueuedJob], int | None] | None:
        """Give what says what pending jobs are to be planned with; ``None`` if nothing is refined.

        Parameters
        ----------
        learner
            The sidecar's: of jobs that its table would not plan, nothing is said.
        now
            Epoch seconds.
        """
        if not self._settings.learned.refine or learner.scheme is not Scheme.LEARNED:
            return None

        def estimated(job: QueuedJob) -> int | None:
            request = as_submitted(job)
            with self._lock:
                known = learner.adjustment(request) is not None
            if not known or outside(job, self._settings.hook):
                return None
            expected_s = self.predict(request, now)
            return None if expected_s is None else learner.as_planned(request, expected_s)

        return estimated

    def forget(self) -> None:
        """Learn all anew, as somebody's history was erased; with the lock held."""
        self._feed.forget()

    def save(self, now: int) -> None:
        """Save what was learned; what fails is logged."""
        self._feed.save(now)
