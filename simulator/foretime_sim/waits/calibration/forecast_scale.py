"""A scale on which forecasts of unlike jobs can be compared with what came of them.

A forecast turns a wait into a score: the normal quantile of the level at which the forecast has
it. Were forecasts right, scores would be standard normal, whatever the job. Between levels the
logarithm of the wait is taken as linear in the score; beyond the outermost ones it goes on as
steeply as from the median to there. A forecast that is sure of one wait is given a little width, so
that every wait has a score and every score a wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts

OFFSET_S = 60
"""Added to waits before their logarithm is taken: seconds do not matter."""
SCORES: Float64Array = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
"""Normal quantiles of the levels."""
_LEVELS = np.array(LEVELS)
_LEAST_WIDTH = 0.05
"""Of log wait a unit of score."""
_LEAST_TAIL = 0.1
_SUREST_NOW = 0.98
"""Probability of a start at once up to which there are levels left that tell of a wait."""


def log_wait(seconds: Float64Array | Int64Array) -> Float64Array:
    """Give the logarithm of a wait on this scale; waits below 0 count as 0."""
    logs: Float64Array = np.log(np.maximum(seconds, 0) + float(OFFSET_S))
    return logs


def wait_of_log(logs: Float64Array) -> Float64Array:
    """Give the wait, seconds: the inverse of `log_wait`."""
    seconds: Float64Array = np.maximum(np.exp(logs) - OFFSET_S, 0)
    return seconds


@dataclass(frozen=True, slots=True)
class ForecastScale:
    """Scores of waits by some forecasts, given that the jobs do not start at once.

    Attributes
    ----------
    knots
        Log waits at `SCORES`, rising; shape (rows, levels).
    below, above
        Log wait a unit of score beyond the outermost knots, shape (rows,).
    """

    knots: Float64Array
    below: Float64Array
    above: Float64Array

    @classmethod
    def of(cls, forecasts: WaitForecasts) -> ForecastScale:
        """Make the scale of forecasts that have an answer."""
        logs = log_wait(forecasts.wait_s)
        now = np.minimum(forecasts.starts_now, _SUREST_NOW)[:, np.newaxis]
        # Level u of the waits that are not 0 is level now + u (1 - now) of all.
        place = np.clip(now + _LEVELS * (1 - now), LEVELS[0], LEVELS[-1])
        left = np.clip(np.searchsorted(_LEVELS, place, side="right") - 1, 0, len(LEVELS) - 2)
        share = (place - _LEVELS[left]) / (_LEVELS[left + 1] - _LEVELS[left])
        rows = np.arange(len(logs))[:, np.newaxis]
        knots = logs[rows, left] * (1 - share) + logs[rows, left + 1] * share
        knots = knots + _LEAST_WIDTH * SCORES
        middle = knots[:, MEDIAN]
        return cls(
            knots,
            np.maximum((middle - knots[:, 0]) / -SCORES[0], _LEAST_TAIL),
            np.maximum((knots[:, -1] - middle) / SCORES[-1], _LEAST_TAIL),
        )

    def scores(self, wait_s: Float64Array | Int64Array) -> Float64Array:
        """Give the score of one wait a row, shape (rows,)."""
        logs = log_wait(wait_s)
        rows = np.arange(len(logs))
        left = np.clip(np.sum(self.knots <= logs[:, np.newaxis], axis=1) - 1, 0, len(LEVELS) - 2)
        low, high = self.knots[rows, left], self.knots[rows, left + 1]
        inside = SCORES[left] + (logs - low) / (high - low) * (SCORES[left + 1] - SCORES[left])
        first, last = self.knots[:, 0], self.knots[:, -1]
        scores: Float64Array = np.where(
            logs < first,
            SCORES[0] + (logs - first) / self.below,
            np.where(logs > last, SCORES[-1] + (logs - last) / self.above, inside),
        )
        return scores

    def log_waits(self, scores: Float64Array) -> Float64Array:
        """Give the log waits of scores, shape (rows, any) -> (rows, any)."""
        left = np.clip(np.searchsorted(SCORES, scores, side="right") - 1, 0, len(LEVELS) - 2)
        rows = np.arange(len(scores))[:, np.newaxis]
        low, high = self.knots[rows, left], self.knots[rows, left + 1]
        share = (scores - SCORES[left]) / (SCORES[left + 1] - SCORES[left])
        first, last = self.knots[:, :1], self.knots[:, -1:]
        logs: Float64Array = np.where(
            scores < SCORES[0],
            first + (scores - SCORES[0]) * self.below[:, np.newaxis],
            np.where(
                scores > SCORES[-1],
                last + (scores - SCORES[-1]) * self.above[:, np.newaxis],
                low + share * (high - low),
            ),
        )
        return logs
