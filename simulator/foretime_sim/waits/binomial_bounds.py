"""Which order statistic bounds a quantile with a stated confidence (Brevik et al. 2006).

J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel
machines", PPoPP 2006. Of n independent observations the number below the q-quantile is binomial
(n, q), whatever their distribution; so the k-th smallest is above the quantile with the probability
that fewer than k observations are below it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError

MOST_EXACT = 1_000
"""Observations beyond which the binomial is taken as normal."""
_FAR = 12.0
"""Standard deviations of a binomial beyond which nothing is left that a double could show."""


@lru_cache(maxsize=65_536)
def upper_rank(count: int, level: float, confidence: float) -> int | None:
    """Rank, from 1, of the smallest observation that bounds the level's quantile from above.

    The least k for which P(Binomial(count, level) <= k - 1) >= confidence.

    Parameters
    ----------
    count
        Observations.
    level
        Of the quantile, between 0 and 1.
    confidence
        Probability with which the bound is to hold, between 0 and 1.

    Returns
    -------
    int or None
        ``None`` where not even the largest observation is one: where level**count > 1 - confidence.
    """
    _check(count, level, confidence)
    if count > MOST_EXACT:
        spread = math.sqrt(count * level * (1 - level))
        # Half a count of continuity correction: P(B <= k - 1) ~ Phi((k - 1/2 - mean) / spread).
        rank = math.ceil(count * level + NormalDist().inv_cdf(confidence) * spread + 0.5)
        return rank if rank <= count else None
    first, cumulative = _cumulative(count, level)
    # Sums of many small numbers: without the slack 0.95 itself would be missed at times.
    place = int(np.searchsorted(cumulative, confidence - 1e-12))
    rank = first + place + 1
    return rank if rank <= count else None


def lower_rank(count: int, level: float, confidence: float) -> int | None:
    """Rank, from 1, of the largest observation that bounds the level's quantile from below.

    The mirror image of `upper_rank`; ``None`` where not even the smallest observation is one.
    """
    mirrored = upper_rank(count, 1 - level, confidence)
    return None if mirrored is None else count + 1 - mirrored


@lru_cache(maxsize=1_024)
def fewest_observations(level: float, confidence: float) -> int:
    """Observations from which on the largest of them bounds the quantile: 59 for 0.95 at 0.95."""
    _check(1, level, confidence)
    return math.ceil(math.log(1 - confidence) / math.log(level) - 1e-12)


def _cumulative(count: int, level: float) -> tuple[int, Float64Array]:
    """Give P(Binomial <= k) for every k that matters, and the first such k."""
    mean, deviation = count * level, math.sqrt(count * level * (1 - level))
    first = max(0, math.floor(mean - _FAR * deviation - _FAR))
    last = min(count, math.ceil(mean + _FAR * deviation + _FAR))
    steps = np.arange(first + 1, last + 1, dtype=np.float64)
    start = (
        math.lgamma(count + 1)
        - math.lgamma(first + 1)
        - math.lgamma(count - first + 1)
        + first * math.log(level)
        + (count - first) * math.log1p(-level)
    )
    # P(k) / P(k - 1) = (count - k + 1) / k * level / (1 - level)
    ratios = np.log((count - steps + 1) / steps) + math.log(level) - math.log1p(-level)
    logs = np.concatenate([[start], start + np.cumsum(ratios)])
    cumulative: Float64Array = np.cumsum(np.exp(logs))
    return first, cumulative


def _check(count: int, level: float, confidence: float) -> None:
    if count < 0:
        raise InputError(f"{count} observations: give 0 or more")
    for name, value in (("level", level), ("confidence", confidence)):
        if not 0 < value < 1:
            raise InputError(f"{name} is {value}: give one between 0 and 1")
