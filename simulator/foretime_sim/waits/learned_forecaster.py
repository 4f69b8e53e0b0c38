"""A forecast learned from how long jobs have waited, for schedulers that are not known enough."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts, considered
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.moment_features import RecentEvents, moment_features
from foretime_sim.waits.survival_forest import (
    ForestSettings,
    SurvivalForest,
    quantiles_of,
    share_within,
)

FEWEST = 200
"""Answers of which something is known, before the first forest is grown."""
GROWN_BY = 0.1
"""By what share they must have become more for the next."""
LONGEST_MEMORY = 20_000
"""Latest answers that a forest learns from."""
AGAIN_AFTER_S = 600
"""A job's next answer is learned from once it has waited this long more, and twice as long."""
_OF_BASE = tuple(LEVELS.index(level) for level in (0.1, 0.5, 0.9))


@dataclass(slots=True)
class _Lesson:
    """What was asked, and what is known of what came of it.

    Attributes
    ----------
    features
        As the moment showed them.
    made_at
        When it was asked.
    waits_from
        From when its wait counts: when the job can start, not before ``made_at``.
    until
        When the job started or was withdrawn; ``None`` while it waits.
    started
        Whether it has started.
    """

    features: Float64Array
    made_at: int
    waits_from: int
    until: int | None = None
    started: bool = False


class LearnedForecaster:
    """A forest of survival curves on what a moment shows, grown anew as more becomes known.

    It learns from the answers that it was asked for: of those whose jobs still wait, that they do.
    What it says depends on these, so a daemon should ask about every job at its submission. Given
    another forecaster, it goes by what that one says, too, and so corrects it; until there is
    enough to learn from, that one's answer is given, or none.

    Needs the extra ``learn``.

    Parameters
    ----------
    base
        A fresh forecaster that is corrected; ``None``: none.
    settings
        How forests are grown.
    seed
        Of the forests.
    now_within_s
        A start within so many seconds is one at once.
    memory
        Latest answers that are learned from.
    """

    oracle = False

    def __init__(
        self,
        base: WaitForecaster | None = None,
        settings: ForestSettings | None = None,
        seed: int = 0,
        *,
        now_within_s: int = 0,
        memory: int = LONGEST_MEMORY,
    ) -> None:
        self._base = base
        self.name = "learned" if base is None else f"learned from {base.name}"
        self._settings = settings or ForestSettings()
        self._seed = seed
        self._now_within_s = now_within_s
        self._events = RecentEvents()
        self._lessons: deque[_Lesson] = deque(maxlen=memory)
        self._open: dict[str, list[_Lesson]] = {}
        self._next_lesson: dict[str, int] = {}
        self._forest: SurvivalForest | None = None
        self._next_forest = FEWEST
        self._known = 0

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait, and learn from what comes of it."""
        based = None if self._base is None else self._base.forecast(moment)
        features = self._features(moment, based)
        self._learn(moment.now)
        self._take_note(moment, features)
        return self._answer(features, based, moment)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted: nothing is learned of them."""
        based = None if self._base is None else considered(self._base, moment)
        return self._answer(self._features(moment, based), based, moment)

    def _features(self, moment: Moment, based: WaitForecasts | None) -> Float64Array:
        features = moment_features(moment, self._events)
        if based is not None and len(moment.asked):
            features = np.column_stack([features, _of_base(based.from_then(moment.to_come_s()))])
        return features

    def _answer(
        self, features: Float64Array, based: WaitForecasts | None, moment: Moment
    ) -> WaitForecasts:
        asked = len(features)
        if self._forest is not None and asked:
            survival = self._forest.survival(features)
            at_once = share_within(survival, self._now_within_s)
            said = WaitForecasts(quantiles_of(survival, LEVELS), at_once)
            return said.later(moment.to_come_s())
        if based is not None:
            return based
        return WaitForecasts.none(asked)

    def _learn(self, now: int) -> None:
        if self._known >= self._next_forest:
            lessons = self._lessons
            waited = [
                max((now if one.until is None else one.until) - one.waits_from, 0)
                for one in lessons
            ]
            self._forest = SurvivalForest(
                np.array([one.features for one in lessons]),
                np.array(waited, dtype=np.int64),
                np.array([one.started for one in lessons], dtype=np.bool_),
                self._settings,
                self._seed,
            )
            grown = len(lessons) * GROWN_BY
            self._next_forest = self._known + max(FEWEST, int(grown))

    def _take_note(self, moment: Moment, features: Float64Array) -> None:
        columns = moment.asked.tolist(), moment.waits_from().tolist()
        for column, since, row in zip(*columns, features, strict=True):
            job = moment.requests[column]
            if moment.now >= self._next_lesson.get(job.job_id, moment.now):
                self._next_lesson[job.job_id] = moment.now + max(moment.now - since, AGAIN_AFTER_S)
                lesson = _Lesson(row, moment.now, max(since, moment.now))
                self._lessons.append(lesson)
                self._open.setdefault(job.job_id, []).append(lesson)

    def submitted(self, job: JobRequest) -> None:
        """Tell the corrected forecaster."""
        if self._base is not None:
            self._base.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn a wait."""
        self._events.started(job, start_time)
        self._close(job, start_time, started=True)
        if self._base is not None:
            self._base.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Learn a runtime; or that a job was withdrawn after a wait that was not over."""
        self._events.finished(job)
        self._close(job.request, job.end_time, started=False)
        if self._base is not None:
            self._base.finished(job)

    def _close(self, job: JobRequest, time: int, *, started: bool) -> None:
        lessons = self._open.pop(job.job_id, [])
        # What was asked later is of the job requeued, which waits.
        later = [lesson for lesson in lessons if lesson.made_at > time]
        if later:
            self._open[job.job_id] = later
        else:
            self._next_lesson.pop(job.job_id, None)
        for lesson in lessons[: len(lessons) - len(later)]:
            lesson.until, lesson.started = time, started
            self._known += 1


def _of_base(based: WaitForecasts) -> Float64Array:
    """Give the corrected forecaster's quantiles as logs, and its probability of a start at once."""
    said = np.nan_to_num(np.log1p(based.wait_s[:, _OF_BASE]), nan=-1.0)
    return np.column_stack([said, np.nan_to_num(based.starts_now, nan=-1.0)])
