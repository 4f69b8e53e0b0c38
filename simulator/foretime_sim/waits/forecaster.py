"""What every forecast of waits offers: quantiles for jobs of a moment, and learning from events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.waits.moment import Moment

LEVELS = (
    0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
    0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99,
)  # fmt: skip
"""Of the quantiles that a forecast has."""
MEDIAN = LEVELS.index(0.5)
BOUNDS = (0.5, 0.75, 0.9, 0.95)
"""Levels that people are told, and that are scored."""


@dataclass(frozen=True, slots=True)
class WaitForecasts:
    """How much longer jobs will wait, as forecast at one moment.

    Attributes
    ----------
    wait_s
        Seconds from the moment to the start, shape (asked, len(LEVELS)): the quantile at each of
        `LEVELS`, never falling along a row. Every column alike for a method that says one number;
        a row of NaN where there is no answer.
    starts_now
        Probability of a start at the moment itself, shape (asked,); NaN where there is no answer.
    planned_s
        Seconds to the start if every job took all of its request and nobody came later, shape
        (asked,); NaN where that is not known. ``None``: of nobody.

    Examples
    --------
    >>> from foretime_sim.waits.forecaster import WaitForecasts
    >>> none = WaitForecasts.none(asked=2)
    >>> none.answered.tolist()
    [False, False]
    """

    wait_s: Float64Array
    starts_now: Float64Array
    planned_s: Float64Array | None = None

    def __post_init__(self) -> None:
        asked = len(self.starts_now)
        if self.wait_s.shape != (asked, len(LEVELS)):
            raise InputError(f"wait_s has shape {self.wait_s.shape}, not {(asked, len(LEVELS))}")

    @classmethod
    def none(cls, asked: int) -> WaitForecasts:
        """Give no answer about so many jobs."""
        return cls(np.full((asked, len(LEVELS)), np.nan), np.full(asked, np.nan))

    @property
    def answered(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which rows hold an answer, shape (asked,)."""
        return ~np.isnan(self.starts_now)

    def later(self, to_come_s: Int64Array) -> WaitForecasts:
        """Give the same of jobs that can't start before so many seconds each, shape (asked,)."""
        can_now = np.isnan(self.starts_now) | (to_come_s == 0)
        return replace(
            self,
            wait_s=self.wait_s + to_come_s[:, np.newaxis],
            starts_now=np.where(can_now, self.starts_now, 0.0),
        )

    def from_then(self, to_come_s: Int64Array) -> WaitForecasts:
        """Give the same as counted from when jobs can start: the reverse of `later`.

        The probability of a start then is that of the highest level without a wait after it.
        """
        wait_s = np.maximum(self.wait_s - to_come_s[:, np.newaxis], 0)
        at_once = np.array([0.0, *LEVELS[:-1], 1.0])[(wait_s == 0).sum(axis=1)]
        can_now = np.isnan(self.starts_now) | (to_come_s == 0)
        return replace(self, wait_s=wait_s, starts_now=np.where(can_now, self.starts_now, at_once))


class WaitForecaster(Protocol):
    """Forecasts waits, and learns from what happens, told in the order of time.

    At equal times ends are told first, then submissions, then the moment is asked about, then
    starts are told; so nothing that is asked about at its submission has been told to have started.
    """

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def oracle(self) -> bool:
        """Whether it is told the future: a bound for studies, not for production."""
        ...

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait, in the order of ``moment.asked``."""
        ...

    def submitted(self, job: JobRequest) -> None:
        """Take note of a submission at ``job.submit_time``."""
        ...

    def started(self, job: JobRequest, start_time: int) -> None:
        """Take note of a start; the wait is ``start_time - job.submit_time``.

        A job that could not start from its submission on is told as if submitted when it could.
        """
        ...

    def finished(self, job: FinishedJob) -> None:
        """Take note of an end; a job that was withdrawn has the ending ``NEVER_STARTED``."""
        ...


@runtime_checkable
class LearnsFromAnswers(WaitForecaster, Protocol):
    """One that remembers what it said of whom, and so must be told who may never be submitted."""

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same as `forecast` of jobs that are not in the queue; nothing is kept of it."""
        ...


def considered(forecaster: WaitForecaster, moment: Moment) -> WaitForecasts:
    """Ask about jobs that may never be submitted, leaving no trace."""
    if isinstance(forecaster, LearnsFromAnswers):
        return forecaster.consider(moment)
    return forecaster.forecast(moment)
