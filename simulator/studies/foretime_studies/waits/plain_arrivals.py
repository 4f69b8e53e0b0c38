"""Independent later arrivals (a Poisson process): what other models of arrivals are measured by."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import HOUR_S
from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.waits.submission_history import NEVER_RAN, SubmissionHistory

_WEEK = 168  # hours


class PoissonArrivals:
    """Arrivals at the mean rate of their hour of the week, each like any past job that has ended.

    Parameters
    ----------
    window_s
        How far back is looked, seconds.
    """

    def __init__(self, window_s: int) -> None:
        self._history = SubmissionHistory(window_s)

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._history.submitted(job)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._history.finished(job)

    def sample(
        self, now: int, until: int, samples: int, rng: np.random.Generator
    ) -> SampledArrivals:
        """Draw the jobs submitted after ``now``, and not after ``until``, in each sample."""
        none = np.zeros(0, dtype=np.int64)
        ended = np.flatnonzero(self._history.runtime > 0)
        if not len(ended) or until <= now:
            return SampledArrivals(none, none, none, none, none)
        hours = np.arange(now // HOUR_S, (until - 1) // HOUR_S + 1)
        begin = np.maximum(hours * HOUR_S, now)
        length = np.minimum((hours + 1) * HOUR_S, until) - begin
        expected = self._hourly(now)[hours % _WEEK] * length / HOUR_S
        count = rng.poisson(np.tile(expected, samples))
        sample = np.repeat(np.repeat(np.arange(samples), len(hours)), count)
        within = np.floor(rng.random(len(sample)) * np.repeat(np.tile(length, samples), count))
        submission = np.repeat(np.tile(begin, samples), count) + within.astype(np.int64) + 1
        job = rng.choice(ended, len(sample))
        return SampledArrivals(
            sample=sample,
            submit_time=submission,
            processors=self._history.processors[job],
            requested_time=self._history.requested_time[job],
            actual_runtime=self._history.runtime[job],
        )

    def _hourly(self, now: int) -> Float64Array:
        """Give the mean submissions in each hour of the week, shape (168,)."""
        ran = self._history.submit_time[self._history.runtime != NEVER_RAN]
        first = int(ran[0]) // HOUR_S
        seen = np.bincount(np.arange(first, now // HOUR_S + 1) % _WEEK, minlength=_WEEK)
        submitted = np.bincount(ran // HOUR_S % _WEEK, minlength=_WEEK)
        if not seen.all():  # less than a week is known
            return np.full(_WEEK, submitted.sum() / seen.sum())
        mean: Float64Array = submitted / seen
        return mean
