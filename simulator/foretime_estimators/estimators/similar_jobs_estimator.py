"""Scheduled times by role from jobs alike, with ageing and percentiles tuned as jobs finish."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.estimators.similar_jobs import Expected, SimilarJobs
from foretime_estimators.estimators.similar_jobs_settings import RoleRule, SimilarJobsSettings
from foretime_estimators.jobs.endings import MICRO, Evidence, accuracy_micro, evidence_of
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

_LEVELS = 200
"""Steps in which percentiles are tuned."""
_JUDGED_SHARES = (0.5, 0.9)
"""Percentiles by which ageings are judged: a likely runtime and a safe one."""
_SHORTEST_S = 10.0
"""Shorter runtimes count as so long where runtimes are compared (the tau of bounded slowdown)."""


class SimilarJobsEstimator:
    """Backs off from the jobs most like one to all; a scheduled time of its own for each role.

    Two things are tuned on what has finished, without a look ahead. When a job has ended (one
    in ``settings.judge_every``), what would have been expected of it is compared with what it
    took, before it is learned:

    - each candidate of ``settings.ageings`` is charged the pinball loss of its median and its 90th
      percentile (in logarithms of runtime); the one with the smallest aged loss serves;
    - the share that was expected to be below what it took is counted. A percentile p is then read
      off at that share which p of the jobs stayed within: what is called the 90th percentile
      covers 90% of the jobs, whatever the mixture's own opinion is.

    Parameters
    ----------
    settings
        The defaults if ``None``.
    """

    oracle = False

    def __init__(self, settings: SimilarJobsSettings | None = None) -> None:
        self.settings = settings if settings is not None else SimilarJobsSettings()
        self._jobs = SimilarJobs(
            self.settings.ageings, self.settings.remembered_jobs, self.settings.window_s
        )
        self._fading = math.exp2(-1 / self.settings.judgement_half_life_jobs)
        self._finished = 0
        self._judged = 0
        self._loss = [0.0] * len(self.settings.ageings)
        self._below = np.zeros(_LEVELS)  # aged counts of jobs by the share expected below them
        self._tune()

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the time for backfilling, seconds."""
        return self.predict_roles(job, now).backfill

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Give each role's time by its rule, seconds; the request where nothing has finished."""
        expected = self._jobs.expected(job, self._ageing)
        if expected is None:
            return RolePrediction(job.requested_time, job.requested_time, job.requested_time)
        rules = self.settings
        return RolePrediction(
            self._scheduled_time(expected, rules.queue, job.requested_time),
            self._scheduled_time(expected, rules.backfill, job.requested_time),
            self._scheduled_time(expected, rules.drain, job.requested_time),
        )

    def _scheduled_time(self, expected: Expected, rule: RoleRule, requested_time: int) -> int:
        if rule.trust == 0:
            return requested_time
        if rule.percentile is None:
            accuracy = expected.mean()
        else:
            accuracy = expected.percentile(self._level(rule.percentile))
        adjustment: float = max(accuracy, rule.least) ** rule.trust
        scheduled = math.ceil(adjustment * requested_time)
        return min(requested_time, max(self.settings.minimum_scheduled_time_s, scheduled))

    def _level(self, share: float) -> float:
        """Give the share of a mixture's weight at which ``share`` of the jobs were covered."""
        if self._judged < self.settings.judged_jobs:
            return share
        place = int(self._covered.searchsorted(share * self._covered[-1] * (1 - 1e-12)))
        return (place + 1) / _LEVELS

    def learn_one(self, job: FinishedJob) -> None:
        """Judge what would have been expected of the job, then remember it under its kinds."""
        evidence = evidence_of(job)
        if evidence is Evidence.NONE:
            return
        micro = accuracy_micro(job)
        exact = evidence is Evidence.EXACT
        if exact:
            self._finished += 1
            if self._finished % self.settings.judge_every == 0:
                self._judge(job.request, micro)
        self._jobs.remember(job.request, micro, exact=exact, end_time=job.end_time)

    def _judge(self, job: JobRequest, micro: int) -> None:
        took = max(_SHORTEST_S, micro / MICRO * job.requested_time)
        for ageing in range(len(self._loss)):
            expected = self._jobs.expected(job, ageing)
            if expected is None:
                return
            loss = 0.0
            for share in _JUDGED_SHARES:
                told = max(_SHORTEST_S, expected.percentile(share) * job.requested_time)
                error = math.log(took / told)
                loss += error * share if error > 0 else error * (share - 1)
            self._loss[ageing] = self._loss[ageing] * self._fading + loss
            if ageing == self._ageing:
                place = min(_LEVELS - 1, int(expected.share_below(micro) * _LEVELS))
        self._below *= self._fading
        self._below[place] += 1
        self._judged += 1
        self._tune()

    def _tune(self) -> None:
        self._covered = self._below.cumsum()
        self._ageing = 0
        if self._judged >= self.settings.judged_jobs:
            self._ageing = min(range(len(self._loss)), key=self._loss.__getitem__)

    def state(self) -> dict[str, Any]:
        """Give what is remembered and how it was judged, as JSON can hold it."""
        return {
            "similar_jobs": 1,
            "settings": _plain(self.settings),
            "finished": self._finished,
            "judged": self._judged,
            "loss": list(self._loss),
            "below": self._below.tolist(),
            "kinds": self._jobs.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another estimator saved it, or it was learned under other settings.
        """
        if state.get("similar_jobs") != 1:
            raise StateError(
                "similar: the state given was saved by another estimator: learn the history anew"
            )
        if state["settings"] != _plain(self.settings):
            raise StateError(
                "similar: the state was learned under other settings: learn the history anew"
            )
        self._finished = state["finished"]
        self._judged = state["judged"]
        self._loss = list(state["loss"])
        self._below = np.array(state["below"])
        self._jobs.restore(state["kinds"])
        self._tune()


def _plain(settings: SimilarJobsSettings) -> dict[str, Any]:
    """Give settings as JSON gives them back: lists in place of tuples."""
    plain = asdict(settings)
    plain["ageings"] = list(plain["ageings"])
    return plain
