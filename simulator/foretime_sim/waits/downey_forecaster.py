"""Downey's predictors as forecasters of waits, for any job at any moment."""

from __future__ import annotations

import numpy as np
from foretime_estimators.distributions.lifetimes import Lifetimes, RunningLives
from foretime_estimators.distributions.uniform_log_classes import (
    LifetimeClasses,
    parse_classifiers,
    up_to_request,
)
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.waits.downey import SMALL_NEED
from foretime_sim.waits.downey_queue import QueuePrediction
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment

CLASSES = "queue,requested-time"
"""Attributes of classes, unless others are given."""
SMALL_NEEDS = {"downey-a": float("inf"), "downey-b": 0.0, "downey": float(SMALL_NEED)}
"""n' below which each forecaster uses predictor A."""


class DowneyForecaster:
    """Predictor A, predictor B or both, extended to the whole queue (`QueuePrediction`).

    Lifetimes are fitted to what has finished so far, and end at the requested time, where jobs are
    killed (in the paper a queue's limit is part of its line). The method says one number, which
    stands at every level, but where predictor A answers for the first job of the queue: there
    Pr{F < n'} is its distribution.

    Parameters
    ----------
    name
        ``downey-a``, ``downey-b``, or ``downey`` for the combination.
    classes
        Lifetimes by class, to be learned; by queue and requested time if ``None``.
    small_need
        n' below which A is used; that of the name if ``None``.
    """

    oracle = False

    def __init__(
        self,
        name: str = "downey",
        classes: LifetimeClasses | None = None,
        small_need: float | None = None,
    ) -> None:
        self.name = name
        self._classes = LifetimeClasses(parse_classifiers(CLASSES)) if classes is None else classes
        self._small_need = SMALL_NEEDS[name] if small_need is None else small_need

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        models = [self._lifetimes(job) for job in moment.requests]
        lives = RunningLives(models, moment.ages())
        rows = moment.asked - len(moment.snapshot.running)
        queue = QueuePrediction(moment.snapshot, lives, moment.policy, self._small_need)
        at_head = None
        if len(rows) and queue.head in rows:
            at_head = queue.head_quantiles(LEVELS)
        wait_s = np.repeat(queue.waits(rows.tolist())[rows, None], len(LEVELS), axis=1)
        if at_head is not None:
            wait_s[rows == queue.head] = at_head
        starts_now = np.where(np.isnan(wait_s[:, 0]), np.nan, wait_s[:, 0] <= 0)
        return WaitForecasts(wait_s, starts_now)

    def _lifetimes(self, job: JobRequest) -> Lifetimes:
        model = self._classes.lifetimes(job)
        return up_to_request(job) if model is None else model.until(job.requested_time)

    def submitted(self, job: JobRequest) -> None:
        """Take note of a submission: nothing is learned from it."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Take note of a start: nothing is learned from it."""

    def finished(self, job: FinishedJob) -> None:
        """Learn how long the job ran."""
        self._classes.learn_one(job)
