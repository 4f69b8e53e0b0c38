"""The multi-stage model, fitted automatically (Downey 1997, section 5.4, fits its two by eye).

The ends of the stages lie on the empirical cdf, at some of its quantiles. Which, is found by
dynamic programming: for each number of stages the ends with the least squared distance between the
piecewise linear cdf and the empirical one; of these the fewest stages whose distance is small.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes

CANDIDATES = 64
"""Quantiles, evenly spread, at which a stage may end."""
TOLERANCE = 0.01
"""Root mean square distance between model and empirical cdf that is good enough: 1% of the jobs."""
MOST_STAGES = 6


def fit_stages(
    runtimes: npt.ArrayLike,
    *,
    stages: int | None = None,
    tolerance: float = TOLERANCE,
    most_stages: int = MOST_STAGES,
) -> Lifetimes | None:
    """Fit stages to lifetimes.

    Parameters
    ----------
    runtimes
        Seconds, shape (jobs,). A whole number t stands for any life within half a second of it, so
        that a time limit at which many jobs end is a steep stage; what is shorter than a second
        counts as one.
    stages
        How many; ``None`` for the fewest that come within the tolerance.
    tolerance
        Root mean square distance that is good enough. Where there are so few jobs that chance alone
        puts the empirical cdf further off, 1 / sqrt(6 jobs) (Cramer-von Mises), that counts.
    most_stages
        No more than these, however far off.

    Returns
    -------
    Lifetimes | None
        ``None`` for fewer than two jobs.
    """
    time = np.maximum(np.sort(np.asarray(runtimes, dtype=np.float64)), 1.0)
    jobs = len(time)
    if jobs < 2:
        return None
    log_time = np.log(_apart(time))
    reached = (np.arange(jobs) + 0.5) / jobs
    place = np.unique(np.linspace(0, jobs - 1, min(CANDIDATES + 1, jobs)).round().astype(np.int64))
    at, value = log_time[place], reached[place]
    value[0], value[-1] = 0.0, 1.0
    cost = _segment_costs(log_time, reached, place, at, value) / jobs
    enough = max(tolerance, 1 / math.sqrt(6 * jobs)) ** 2
    most = min(most_stages if stages is None else stages, len(place) - 1)
    ends = _best_ends(cost, most, None if stages is not None else enough)
    return Lifetimes(at[ends], value[ends])


def _apart(time: Float64Array) -> Float64Array:
    """Spread equal lifetimes evenly over the second that they stand for."""
    _, first, count = np.unique(time, return_index=True, return_counts=True)
    rank = np.arange(len(time)) - np.repeat(first, count)
    return np.asarray(time - 0.5 + (rank + 0.5) / np.repeat(count, count))


def _segment_costs(
    log_time: Float64Array,
    reached: Float64Array,
    place: Int64Array,
    at: Float64Array,
    value: Float64Array,
) -> Float64Array:
    """Give the squared distances summed over the jobs between any two candidates; from, to."""

    def summed(terms: Float64Array) -> Float64Array:
        return np.concatenate([[0.0], np.cumsum(terms)])

    sums = [
        summed(terms)
        for terms in (
            np.ones_like(log_time), log_time, reached,
            log_time**2, reached**2, log_time * reached,
        )
    ]  # fmt: skip
    cost = np.full((len(place), len(place)), np.inf)
    for begin in range(len(place) - 1):
        end = np.arange(begin + 1, len(place))
        n, x, y, xx, yy, xy = (total[place[end] + 1] - total[place[begin]] for total in sums)
        slope = (value[end] - value[begin]) / (at[end] - at[begin])
        level = value[begin] - slope * at[begin]
        # Sum of (y - level - slope x)^2, multiplied out.
        total = yy + level**2 * n + slope**2 * xx
        total += 2 * (level * slope * x - level * y - slope * xy)
        cost[begin, end] = np.maximum(total, 0.0)
    return cost


def _best_ends(cost: Float64Array, most: int, enough: float | None) -> list[int]:
    """Give the candidates that are the ends of the best stages: as few as are enough, or all."""
    best = cost[0]
    came_from: list[Int64Array] = []
    while len(came_from) + 1 < most and (enough is None or best[-1] > enough):
        through = best[:, None] + cost
        came_from.append(through.argmin(axis=0))
        best = through.min(axis=0)
    ends = [len(cost) - 1]
    for origins in reversed(came_from):
        ends.append(int(origins[ends[-1]]))
    return [0, *reversed(ends)]
