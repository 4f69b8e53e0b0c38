"""A scoreboard of all estimators on the site's own jobs, kept in the background.

Whoever looks at the queue only leaves the look here. What happened since the last one is worked
through a little at a time, in a thread of the daemon's; at first the jobs of the store, so that a
site has its scores on the first day.
"""

from __future__ import annotations

import logging
import threading

from foretime_estimators.jobs.errors import StateError
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import PastEvents
from foretime_sidecar.scoreboard.daily_scores import DailyScores, JobClasses
from foretime_sidecar.scoreboard.estimator_board import EstimatorBoard, board_of, estimator_in_use
from foretime_sidecar.scoreboard.estimator_switches import SwitchWatch
from foretime_sidecar.scoreboard.job_tracking import ShadowCourse
from foretime_sidecar.scoreboard.shadow_estimators import shadow_estimators
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

STATE = NAMED + "estimators in the shadow"
_AT_A_TIME_S, _HURRIED_S = 2.0, 0.5
_BOARD_EVERY_S = 300
# No job waits and runs for longer without its end being told.
_LONGEST_FOLLOWED_S = 90 * DAY_S


class ShadowScoreboard:
    """Follows every job with every estimator; see `foretime_sidecar.queue.background_thread`.

    Parameters
    ----------
    settings
        All settings.
    store, lock
        The sidecar's; the lock is held for a statement or a few thousand jobs at a time.

    Attributes
    ----------
    board
        The scores as of a few minutes ago; ``None`` before the first.
    course
        What the estimators go through.
    switches
        The log of what was in use.
    failures, last_failure
        How often the work has failed, and why the last time; "" if it went through.
    """

    def __init__(self, settings: Settings, store: Store, lock: threading.RLock) -> None:
        self.failures = 0
        self.last_failure = ""
        self.board: EstimatorBoard | None = None
        self._settings = settings
        chosen = settings.estimators
        estimators = shadow_estimators(
            chosen.names, estimator_in_use(settings), settings.accuracy.to_model()
        )
        classes = JobClasses(settings.accuracy.class_bounds_s)
        scores = DailyScores(len(estimators), classes, chosen.half_life_days * DAY_S)
        self.course = ShadowCourse(estimators, scores, chosen.most_jobs)
        self._feed = EventFeed(
            self.course,
            STATE,
            PastEvents(store, lock),
            ModelStates(store, lock),
            chosen.past_days * DAY_S,
        )
        self._watch = SwitchWatch(store, lock)
        self.switches = self._watch.log
        self._look: Look | None = None
        self._is_new = False

    def looked(self, look: Look) -> None:
        """Leave a look at the queue; takes no time."""
        self._look, self._is_new = look, True

    def forget(self) -> None:
        """Begin anew with what is stored, as somebody's jobs were erased.

        Call it with the store's lock held, before they are: nothing that names them is saved after.
        """
        self._feed.forget()

    def refresh(self, *, hurried: bool = False) -> bool:
        """Work for a while on what happened up to the latest look; say whether there is more.

        ``hurried``: for a shorter while.
        """
        look, self._is_new = self._look, False
        if look is None:
            return False
        self._feed.follow(look, _HURRIED_S if hurried else _AT_A_TIME_S)
        now = look.taken_at
        if self._feed.caught_up:
            self.course.scores.drop_old(now)
            self.course.drop_before(now - _LONGEST_FOLLOWED_S)
        if self._is_due(now):
            self.board = self.board_as_of(now)
            if self.board.complete:
                self._log_switches(self.board)
        return self._is_new or not self._feed.caught_up

    def _is_due(self, now: int) -> bool:
        """Whether the board is to be drawn; one that was complete stands until the next one is."""
        board, caught_up = self.board, self._feed.caught_up
        if board is None or caught_up != board.complete:
            return board is None or caught_up
        return not 0 <= now - board.made_at < _BOARD_EVERY_S

    def _log_switches(self, board: EstimatorBoard) -> None:
        try:
            self._watch.note(board)
        except StateError as error:
            logger.warning("the estimator in use is not logged: %s", error)

    def board_as_of(self, now: int) -> EstimatorBoard:
        """Give the scores as of now, epoch seconds; call it from the thread that refreshes."""
        return board_of(self.course, self._settings, now, complete=self._feed.caught_up)

    def save(self) -> None:
        """Save what was learned, if nothing is under way; what fails is logged."""
        if self._look is not None:
            self._feed.save(self._look.taken_at)
