"""Jobs followed from submission to end: predicted at the one, scored and learned at the other.

Estimators are told what happened in the order in which it happened, so a prediction knows what had
ended by the submission and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.scoreboard.daily_scores import DailyScores
from foretime_sidecar.scoreboard.shadow_estimators import ShadowEstimator

LATE_S = 60
"""A job that is seen after others were learned that ended so long after its submission is not
predicted: it would be known more than was known then."""
MOST_SAVED_BYTES = 100_000_000
"""A larger state is not saved: after a restart they go on from the last smaller one."""


@dataclass(slots=True)
class _Followed:
    """A job that has not ended.

    Attributes
    ----------
    predicted
        Seconds, by estimator, 0 where there is none.
    finished_before
        How many of its user's jobs had ended at its submission.
    """

    predicted: Int64Array
    finished_before: int


class ShadowCourse:
    """What all estimators go through together: a `foretime_sidecar.learning.event_feed.Model`.

    Parameters
    ----------
    estimators
        All of them.
    scores
        What they are scored in, in this order.
    most_jobs
        Predicted at a time; further ones are counted, and not predicted.

    Attributes
    ----------
    late, too_many
        Jobs that were not predicted, as they were seen too late or too many waited and ran.
    told
        Events so far, since it began anew.
    """

    def __init__(
        self, estimators: Sequence[ShadowEstimator], scores: DailyScores, most_jobs: int
    ) -> None:
        self.estimators = tuple(estimators)
        self.scores = scores
        self._most_jobs = most_jobs
        self._clear()

    def _clear(self) -> None:
        self.late = self.too_many = self.told = 0
        self._followed: dict[Key, _Followed] = {}
        self._finished_of: dict[str, int] = {}
        self._latest_end = 0

    def begin_anew(self) -> None:
        """Forget all that was learned, and the scores."""
        self._clear()
        self.scores.clear()
        for estimator in self.estimators:
            estimator.begin_anew()

    @property
    def users(self) -> int:
        """How many users' jobs have ended."""
        return len(self._finished_of)

    def __len__(self) -> int:
        return len(self._followed)

    # -- what happens to jobs ---------------------------------------------------------------------

    def submitted(self, job: JobRequest) -> None:
        """Have them predict it."""
        self.told += 1
        key = job.job_id, job.submit_time
        if len(self._followed) >= self._most_jobs and key not in self._followed:
            self.too_many += 1
        elif job.submit_time < self._latest_end - LATE_S:
            self.late += 1
        else:
            predicted = [estimator.predicted(job) for estimator in self.estimators]
            finished_before = self._finished_of.get(job.user or "", 0)
            self._followed[key] = _Followed(np.array(predicted, dtype=np.int64), finished_before)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Tell those that go by what is running."""
        self.told += 1
        for estimator in self.estimators:
            estimator.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Score them, and have them learn."""
        self.told += 1
        followed = self._followed.pop((job.request.job_id, job.request.submit_time), None)
        if followed is not None:
            self.scores.add(job, followed.predicted, followed.finished_before)
        for estimator in self.estimators:
            estimator.finished(job)
        self._latest_end = max(self._latest_end, job.end_time)
        user = job.request.user
        if user is not None and evidence_of(job) is not Evidence.NONE:
            self._finished_of[user] = self._finished_of.get(user, 0) + 1

    def drop_before(self, submit_time: int) -> None:
        """Follow no job any more that was submitted so long ago: none has told of its end."""
        self._followed = {key: job for key, job in self._followed.items() if key[1] >= submit_time}

    # -- keeping ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Give all of it, as JSON can hold it.

        Raises
        ------
        StateError
            If it is larger than is saved.
        """
        followed = [
            [*key, job.predicted.tolist(), job.finished_before]
            for key, job in self._followed.items()
        ]
        # As texts, so that no single call holds the interpreter for long.
        learned = {estimator.name: estimator.state_text() for estimator in self.estimators}
        sizes = {name: len(text or "") for name, text in learned.items()}
        if sum(sizes.values()) > MOST_SAVED_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            raise StateError(
                f"it takes {sum(sizes.values()) / 1e6:.0f} MB, {largest} alone "
                f"{sizes[largest] / 1e6:.0f} MB, and {MOST_SAVED_BYTES / 1e6:.0f} MB are saved; "
                "leave some out (estimators.names)"
            )
        set_aside = {one.name: one.set_aside for one in self.estimators if one.set_aside}
        return {
            # Others may predict otherwise.
            "foretime": version("foretime"),
            "estimators": [estimator.name for estimator in self.estimators],
            "learned": learned,
            "set_aside": set_aside,
            "scores": self.scores.state(),
            "followed": followed,
            "finished_of": self._finished_of,
            "latest_end": self._latest_end,
            "late": self.late,
            "too_many": self.too_many,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; if it can't be used, begin anew.

        Raises
        ------
        ValueError
            If it can't be used, or is of another version or other estimators; says why.
        """
        self.begin_anew()
        try:
            self._restore(state)
        except (LookupError, AttributeError, TypeError, ValueError, StateError) as error:
            self.begin_anew()
            raise ValueError(f"the scores of estimators: {error}") from error

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["foretime"] != version("foretime"):
            raise ValueError(f"they were saved by Foretime {state['foretime']}")
        names = [estimator.name for estimator in self.estimators]
        if state["estimators"] != names:
            raise ValueError("they are of other estimators")
        self.scores.restore(state["scores"])
        for estimator in self.estimators:
            if estimator.name in state["set_aside"]:
                estimator.leave(str(state["set_aside"][estimator.name]))
            else:
                estimator.restore(json.loads(state["learned"][estimator.name]))
        for job_id, submit_time, predicted, finished_before in state["followed"]:
            row = np.array(predicted, dtype=np.int64)
            if row.shape != (len(names),):
                raise ValueError(f"predictions of {row.shape} for {len(names)} estimators")
            self._followed[str(job_id), int(submit_time)] = _Followed(row, int(finished_before))
        self._finished_of = {str(user): int(jobs) for user, jobs in state["finished_of"].items()}
        self._latest_end, self.late, self.too_many = (
            int(state[name]) for name in ("latest_end", "late", "too_many")
        )
