"""Quantiles of many runtime distributions at once, each a weighted set of log runtimes.

All distributions stand in flat arrays, one after the other, so that a thousand jobs cost a few
passes over memory. Weights at lower bounds are redistributed to what lies above (Efron 1967, the
same as Kaplan and Meier's estimate). Between neighbouring values a quantile is interpolated
linearly in log runtime: what has been seen to the second is not expected to the second again, and
values that keep coming back (the limit) keep their weight.
"""

from __future__ import annotations

import math

import numpy as np

from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array

_PER_DISTRIBUTION = 64.0
"""Distance between distributions where they share one sorted axis; log runtimes are below it."""
_STEPS_PER_DEVIATION = 16
_DEVIATIONS = 4.0
NORMAL_SCORES = np.arange(2 * _DEVIATIONS * _STEPS_PER_DEVIATION + 1) / _STEPS_PER_DEVIATION - (
    _DEVIATIONS
)
"""Normal scores of the levels at which a quantile table is made."""
_LEVELS = np.array([0.5 * math.erfc(-score / math.sqrt(2)) for score in NORMAL_SCORES.tolist()])


class RuntimeQuantiles:
    """Distributions of log runtime.

    Parameters
    ----------
    of
        Which distribution each value belongs to, from 0; every one with a value that is no bound
        above all its bounds; shape (values,).
    log_runtime
        Natural logarithms of seconds, 0 to 40; shape (values,).
    weight
        From 0; shape (values,).
    bound
        Whether the runtime is above the value instead of at it; shape (values,).
    """

    def __init__(
        self, of: Int64Array, log_runtime: Float64Array, weight: Float64Array, bound: BoolArray
    ) -> None:
        if bound.any():
            weight, _ = settled_within(of, log_runtime, weight, bound)
            exact = ~bound
            of, log_runtime, weight = of[exact], log_runtime[exact], weight[exact]
        order = np.argsort(of * _PER_DISTRIBUTION + log_runtime, kind="stable")
        of, weight = of[order], weight[order]
        self._first = np.searchsorted(of, np.arange(of[-1] + 2))
        weight = weight / np.add.reduceat(weight, self._first[:-1])[of]
        self._log_runtime = log_runtime[order]
        # A value stands for the middle of its weight.
        reached = _running_sum(weight, self._first)
        self._level = np.clip(reached - weight / 2, 0.0, 1.0)
        self._place = of * 2.0 + self._level

    def table(self) -> Float64Array:
        """Give quantiles of log runtime at the levels of `NORMAL_SCORES`.

        Returns
        -------
        Float64Array
            Shape (distributions, len(NORMAL_SCORES)), never falling along a row.
        """
        distributions = len(self._first) - 1
        wanted = np.arange(distributions)[:, np.newaxis] * 2.0 + _LEVELS
        after = np.searchsorted(self._place, wanted.ravel()).reshape(wanted.shape)
        first, last = self._first[:-1, np.newaxis], self._first[1:, np.newaxis] - 1
        before = np.clip(after - 1, first, last)
        after = np.clip(after, first, last)
        gap = self._level[after] - self._level[before]
        part = (_LEVELS - self._level[before]) / np.where(gap > 0, gap, 1.0)
        low = self._log_runtime[before]
        quantiles: Float64Array = low + np.clip(part, 0.0, 1.0) * (self._log_runtime[after] - low)
        return quantiles


def _running_sum(values: Float64Array, first: Int64Array) -> Float64Array:
    """Give running sums that begin anew at each of ``first[:-1]``."""
    total = np.cumsum(values)
    before = np.concatenate(([0.0], total))[first[:-1]]
    sums: Float64Array = total - np.repeat(before, np.diff(first))
    return sums


def settled_within(
    of: Int64Array, log_runtime: Float64Array, weight: Float64Array, bound: BoolArray
) -> tuple[Float64Array, BoolArray]:
    """Give weights when that of each bound went to what lies above it in the same set.

    Of what has not ended before a value, its share of what is left (itself included) ends there
    (Kaplan and Meier). What is left beyond the highest exact value stays at the highest bound;
    other bounds have no weight any more.

    Parameters
    ----------
    of
        Which set each value belongs to, from 0, none empty; shape (values,).
    log_runtime, weight, bound
        As of `RuntimeQuantiles`.

    Returns
    -------
    tuple
        Weights, which sum to the same in each set, and which of them are still bounds.
    """
    order = np.lexsort((bound, of * _PER_DISTRIBUTION + log_runtime))
    first = np.searchsorted(of[order], np.arange(int(of.max()) + 2))
    sorted_weight, sorted_bound = weight[order], bound[order]
    total = np.repeat(np.add.reduceat(sorted_weight, first[:-1]), np.diff(first))
    reached = _running_sum(sorted_weight, first)
    left = np.maximum(total - reached + sorted_weight, sorted_weight)
    ending = np.where(sorted_bound | (left <= 0), 0.0, sorted_weight / np.where(left > 0, left, 1))
    survival = np.exp(_running_sum(np.log1p(-np.minimum(ending, 1 - 1e-12)), first))
    before = np.concatenate(([1.0], survival[:-1]))
    before[first[:-1]] = 1.0
    settled = (before - survival) * total
    last = first[1:] - 1
    settled[last] += np.where(sorted_bound[last], survival[last] * total[last], 0.0)
    weights, bounds = np.empty_like(weight), np.empty_like(bound)
    weights[order] = settled
    bounds[order] = sorted_bound
    return weights, bounds
