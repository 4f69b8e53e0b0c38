"""How much more each of several forecasters has lost than the first, as means that forget.

Outcomes of one day have much in common: a reservation, a full machine, one user's thousand jobs.
So what counts is a day's sum, and the error of a mean is that of a ratio of sums over days, the
clusters (W. Cochran, "Sampling Techniques", 1977, sections 6.4 and 9A), not that of so many
independent outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.time_units import DAY_S

_HALF_LIVES = 8
"""A day that counts less than 1/256 is dropped."""


class ExcessLosses:
    """Losses beyond the first forecaster's, by day.

    Parameters
    ----------
    forecasters
        How many.
    half_life_s
        After so long an outcome counts half, by whole days.
    """

    def __init__(self, forecasters: int, half_life_s: int) -> None:
        self._forecasters = forecasters
        self._half_life_s = half_life_s
        # Of each day the sums of what was lost beyond the first, and the outcomes; by forecaster.
        self._days: dict[int, Float64Array] = {}

    def add(self, time: int, beyond: Float64Array) -> None:
        """Take the outcome of one job.

        Parameters
        ----------
        time
            When it came, epoch seconds.
        beyond
            What each lost more than the first, shape (forecasters,); NaN for one that said nothing.
        """
        day = time // DAY_S
        if day not in self._days:
            self._days[day] = np.zeros((2, self._forecasters))
            latest = max(self._days)
            kept_days = _HALF_LIVES * self._half_life_s / DAY_S + 1
            self._days = {each: of for each, of in self._days.items() if latest - each <= kept_days}
        if day in self._days:
            said = ~np.isnan(beyond)
            self._days[day][0][said] += beyond[said]
            self._days[day][1][said] += 1

    def _weighted(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Give the days' weights, shape (days, 1), sums and outcomes, shape (days, forecasters)."""
        days = np.array(sorted(self._days), dtype=np.float64)[:, np.newaxis]
        latest = days.max(initial=0)
        weights = 0.5 ** ((latest - days) * DAY_S / self._half_life_s)
        sums = np.array([self._days[int(day)] for day in days[:, 0]])
        sums = sums.reshape(len(days), 2, self._forecasters)
        return weights, sums[:, 0], sums[:, 1]

    def judged(self, fewest: float, fewest_days: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say of whom enough outcomes are known, counted as they fade, on enough days."""
        weights, _, outcomes = self._weighted()
        enough = (weights * outcomes).sum(axis=0) >= fewest
        return np.asarray(enough & ((outcomes > 0).sum(axis=0) >= fewest_days))

    def upper(self, sureness: float) -> Float64Array:
        """Give what each loses more than the first, a mean and so many standard errors on top.

        Infinite for one of whom nothing is known, or with any sureness only a single day.
        """
        weights, sums, outcomes = self._weighted()
        counted = (weights * outcomes).sum(axis=0)
        mean = (weights * sums).sum(axis=0) / np.maximum(counted, 1e-300)
        upper = np.where(counted > 0, mean, math.inf)
        if sureness:
            days = (outcomes > 0).sum(axis=0)
            off = weights * (sums - mean * outcomes)
            error = np.sqrt((off**2).sum(axis=0) * days / np.maximum(days - 1, 1))
            error /= np.maximum(counted, 1e-300)
            upper = np.where(days > 1, upper + sureness * error, math.inf)
        return np.asarray(upper)

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {str(day): sums.tolist() for day, sums in sorted(self._days.items())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned."""
        self._days = {
            int(day): np.array(sums, dtype=np.float64).reshape(2, self._forecasters)
            for day, sums in state.items()
        }
