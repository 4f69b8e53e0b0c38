"""Quantiles of many runtime distributions at once, each a weighted set of log runtimes.

All distributions stand in flat arrays, one after the other, so that a thousand jobs cost a few
passes over memory. Weights at lower bounds are redistributed to what lies above (Efron 1967, the
same as Kaplan and Meier's estimate). Between neighbouring values a quantile is interpolated
linearly in log runtime: what has been seen to the second is not expected to the second again, and
values that keep coming back (the limit) keep their weight.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_PER_DISTRIBUTION = 64.0
"""Distance between distributions where they share one sorted axis; log runtimes are below it."""
_STEPS_PER_DEVIATION = 16
_DEVIATIONS = 4.0
NORMAL_SCORES = np.arange(2 * _DEVIATIONS * _STEPS_PER_DEVIATION + 1) / _STEPS_PER_DEVIATION - (
    _DEVIATIONS
)
"""Normal scores of the levels at which a quantile table is made."""
NOTHING = -1.0
"""Log runtime that a job which has not begun is known to exceed."""
_LEVELS = np.array([0.5 * math.erfc(-score / math.sqrt(2)) for score in NORMAL_SCORES.tolist()])


class RuntimeQuantiles:
    """Distributions of log runtime.

    Parameters
    ----------
    of
        Which distribution each value belongs to, from 0, every one with at least one value that is
        no bound and lies highest; shape (values,).
    log_runtime
        Natural logarithms of seconds, 0 to 40; shape (values,).
    weight
        Above 0; shape (values,).
    bound
        Whether the runtime is above the value instead of at it; shape (values,).
    """

    def __init__(
        self, of: Int64Array, log_runtime: Float64Array, weight: Float64Array, bound: BoolArray
    ) -> None:
        place = of * _PER_DISTRIBUTION + log_runtime
        order = np.lexsort((bound, place))
        of, weight = of[order], weight[order]
        first = np.searchsorted(of, np.arange(of[-1] + 2))
        total = np.add.reduceat(weight, first[:-1])
        weight = weight / total[of]
        reached = _running_sum(weight, first)
        if bound.any():
            weight, reached = _redistributed(weight, reached, bound[order], first)
            kept = ~bound[order]
            of, order, weight, reached = of[kept], order[kept], weight[kept], reached[kept]
            first = np.searchsorted(of, np.arange(of[-1] + 2))
        self._first = first
        self._place = place[order]
        self._log_runtime = log_runtime[order]
        # A value stands for the middle of its weight.
        self._level = np.clip(reached - weight / 2, 0.0, 1.0)
        self._level_place = of * 2.0 + self._level

    def level_of(self, of: Int64Array, log_runtime: Float64Array) -> Float64Array:
        """Give the share of distributions' weight up to log runtimes; shapes (rows,)."""
        after = np.searchsorted(self._place, of * _PER_DISTRIBUTION + log_runtime, side="right")
        before = after - 1
        below = before < self._first[of]
        above = after >= self._first[of + 1]
        before, after = np.where(below, after, before), np.where(above, before, after)
        before = np.minimum(before, after)
        gap = self._log_runtime[after] - self._log_runtime[before]
        part = (log_runtime - self._log_runtime[before]) / np.where(gap > 0, gap, 1.0)
        level = self._level[before] + part * (self._level[after] - self._level[before])
        found: Float64Array = np.where(below, 0.0, np.where(above, 1.0, level))
        return found

    def table(self, of: Int64Array, beyond: Float64Array) -> Float64Array:
        """Give quantiles of log runtime at the levels of `NORMAL_SCORES`.

        Parameters
        ----------
        of
            Which distribution each row wants, shape (rows,).
        beyond
            What the row's log runtime is known to exceed, shape (rows,); `NOTHING` for nothing.

        Returns
        -------
        Float64Array
            Shape (rows, len(NORMAL_SCORES)), never falling along a row.
        """
        known = self.level_of(of, beyond)
        level = known[:, np.newaxis] + _LEVELS * (1 - known[:, np.newaxis])
        wanted = (of * 2.0)[:, np.newaxis] + level
        after = np.searchsorted(self._level_place, wanted.ravel()).reshape(level.shape)
        first, last = self._first[of][:, np.newaxis], self._first[of + 1][:, np.newaxis] - 1
        before = np.clip(after - 1, first, last)
        after = np.clip(after, first, last)
        gap = self._level[after] - self._level[before]
        part = np.clip((level - self._level[before]) / np.where(gap > 0, gap, 1.0), 0.0, 1.0)
        low = self._log_runtime[before]
        log_runtime = low + part * (self._log_runtime[after] - low)
        quantiles: Float64Array = np.maximum(log_runtime, beyond[:, np.newaxis])
        return quantiles


def _running_sum(values: Float64Array, first: Int64Array) -> Float64Array:
    """Give running sums that begin anew at each of ``first[:-1]``."""
    total = np.cumsum(values)
    before = np.concatenate(([0.0], total))[first[:-1]]
    sums: Float64Array = total - np.repeat(before, np.diff(first))
    return sums


def _redistributed(
    weight: Float64Array, reached: Float64Array, bound: BoolArray, first: Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Give weights, and their running sums, when that of each bound went to what lies above it.

    Of what has not ended before a value, its share of what is left (itself included) ends there.
    """
    left = np.maximum(1 - reached + weight, weight)
    ending = np.where(bound, 0.0, np.minimum(weight / left, 1 - 1e-12))
    survival = np.exp(_running_sum(np.log1p(-ending), first))
    before = np.concatenate(([1.0], survival[:-1]))
    before[first[:-1]] = 1.0
    return before - survival, 1 - survival
