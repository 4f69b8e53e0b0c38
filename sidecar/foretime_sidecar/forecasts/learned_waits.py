"""Waits learned from a site's own, if the extra ``learn`` is installed and there is time for it."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable

from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.moment import Moment

logger = logging.getLogger("foretime")

NAME = "learned"
MOST_JOBS = 5_000
"""Of a queue that is looked at: what it takes grows with the square."""
_MEMORY = 5_000
"""Answers that are learned from: a forest is grown within half a second then."""


def can_learn_waits() -> bool:
    """Say whether the extra is installed."""
    return importlib.util.find_spec("sklearn") is not None


class LearnedWaits:
    """A `foretime_sim.waits.forecaster.LearnsFromAnswers` that breaks nothing.

    Once it has failed it has no answer any more, and the daemon's log says why. What it learned is
    not kept over a restart.

    Parameters
    ----------
    now_within_s
        As for `LearnedForecaster`.
    """

    name = NAME
    oracle = False

    def __init__(self, now_within_s: int) -> None:
        self._forest = LearnedForecaster(now_within_s=now_within_s, memory=_MEMORY)
        self._broken = False

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        return self._asked(self._forest.forecast, moment)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted."""
        return self._asked(self._forest.consider, moment)

    def _asked(self, ask: Callable[[Moment], WaitForecasts], moment: Moment) -> WaitForecasts:
        if not self._broken and len(moment.snapshot) <= MOST_JOBS:
            try:
                return ask(moment)
            except Exception:
                # Others answer; they must not go down with what is there if the site wants it.
                logger.exception("waits are not learned any more until the daemon starts again")
                self._broken = True
        return WaitForecasts.none(len(moment.asked))

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._forest.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn from a start."""
        self._forest.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._forest.finished(job)
