"""How sure a gain is: Student's interval over repeats; a bootstrap over weeks for single runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import WEEK_S

from foretime_sim.scores.metrics import JOB_METRICS, statistic_key

Summed: TypeAlias = Int64Array | Float64Array | BoolArray

FEWEST_WEEKS = 6
"""Blocks that a bootstrap needs; with fewer no interval is given."""
RESAMPLES = 1000
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
_EXACT_LARGEST, _OTHER_VALUES = 500, 500


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the mean lies at the stated level.

    Attributes
    ----------
    low, high
        Its ends.

    Examples
    --------
    >>> from foretime_sim.scores.intervals import Interval
    >>> Interval(low=0.1, high=0.3).low
    0.1
    """

    low: float
    high: float


def gains(
    baseline: Mapping[str, Float64Array], adjusted: Mapping[str, Float64Array]
) -> dict[str, Float64Array]:
    """Give the gain (base - new) / base of each metric in each resample, of two runs' figures.

    Parameters
    ----------
    baseline, adjusted
        What `Weeks.figures` gave for two runs of the same jobs, with the same draws.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return {key: 1 - adjusted[key] / baseline[key] for key in baseline}


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t for a probability above a half, by bisection of the exact CDF.

    Parameters
    ----------
    probability
        0.5 < probability < 1.
    degrees
        Degrees of freedom, at least 1.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        raise InputError(
            f"no Student quantile for probability {probability}, {degrees} degrees of freedom: "
            "give a level between 0 and 1 and at least two samples"
        )
    low, high = 0.0, math.pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        if _central_probability(middle, degrees) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _central_probability(angle: float, degrees: int) -> float:
    """P(|T| < sqrt(degrees) * tan(angle)): Abramowitz & Stegun 1964, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for step in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cosine * cosine * (step - 1) / step
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def t_interval(samples: Sequence[float], level: float = 0.95) -> Interval:
    """Student's interval for the mean of at least two independent samples.

    mean -+ t(1 - (1 - level)/2, n - 1) * s / sqrt(n), s with n - 1 in its denominator. For paired
    runs the samples are the gains of each pair, so what both runs share cancels.
    """
    count = len(samples)
    quantile = student_t_quantile((1 + level) / 2, count - 1)
    mean = math.fsum(samples) / count
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in samples) / (count - 1))
    half = quantile * deviation / math.sqrt(count)
    return Interval(mean - half, mean + half)


def percentile_interval(resampled: Float64Array, level: float = 0.95) -> Interval | None:
    """Interval between the resampled gains' percentiles; ``None`` when some gain is undefined."""
    if not np.isfinite(resampled).all():
        return None
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


@dataclass(frozen=True, slots=True)
class Weeks:
    """Blocks of jobs, by week of submission, and how often each resample draws each block.

    Weeks are drawn whole and with replacement, both runs alike, because waits within a backlog
    depend on each other (a block bootstrap, Künsch 1989).

    Attributes
    ----------
    start_time
        Seconds on the workload's clock at which the first week begins.
    draws
        Shape (resamples, weeks).
    """

    start_time: int
    draws: Float64Array

    @classmethod
    def of(cls, submit_time: Int64Array, seed: int, resamples: int = RESAMPLES) -> Weeks | None:
        """Cut the span of the scored jobs' submissions; ``None`` below `FEWEST_WEEKS` weeks.

        The last week counts when it is at least half a week long, else it joins the one before.
        """
        start = int(submit_time.min())
        weeks = round((int(submit_time.max()) + 1 - start) / WEEK_S)
        if weeks < FEWEST_WEEKS:
            return None
        rng = np.random.default_rng([seed, weeks])
        draws = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=resamples)
        return cls(start, draws.astype(np.float64))

    def week_of(self, submit_time: Int64Array) -> Int64Array:
        """Give each job's week, from 0; what lies outside of the weeks counts with the nearest."""
        week: Int64Array = (submit_time - self.start_time) // WEEK_S
        return np.clip(week, 0, self.draws.shape[1] - 1)

    def figures(
        self,
        submit_time: Int64Array,
        values: Mapping[str, Int64Array | Float64Array],
        sums: Mapping[str, Summed],
    ) -> dict[str, Float64Array]:
        """Work out each metric of one run in each resample, shape (resamples,); see `gains`.

        Parameters
        ----------
        submit_time
            Shape (jobs,), scored jobs only, as all that follows.
        values
            All `JOB_METRICS`; their means, means below p99 and percentiles are resampled. A maximum
            is not: no resample can exceed the largest job seen.
        sums
            Per metric key, what each job adds to it (weighted means, counts).

        Returns
        -------
        dict
            Means and sums are given up to a factor that every run of the same jobs shares.
        """
        week, weeks = self.week_of(submit_time), self.draws.shape[1]

        def total(added: Summed) -> Float64Array:
            return np.asarray(self.draws @ np.bincount(week, added, minlength=weeks))

        found = {key: total(added) for key, added in sums.items()}
        for name in JOB_METRICS:
            found[statistic_key(name, "mean")] = total(values[name])
            statistics = self._order_statistics(week, values[name])
            found |= {statistic_key(name, key): array for key, array in statistics.items()}
        return found

    def _order_statistics(
        self, week: Int64Array, values: Int64Array | Float64Array
    ) -> dict[str, Float64Array]:
        """Percentiles and the mean below p99 in each resample.

        Exact among the 500 largest values; below, to the nearest of 500 evenly ranked values.
        """
        ordered = np.sort(values).astype(np.float64)
        body = max(0, len(ordered) - _EXACT_LARGEST)
        ranks = np.linspace(0, body, _OTHER_VALUES, dtype=np.int64)
        marks = np.unique(ordered[np.append(ranks[ranks < body], np.arange(body, len(ordered)))])
        cell = week * len(marks) + np.searchsorted(marks, values)
        shape = (self.draws.shape[1], len(marks))
        counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        sums = np.bincount(cell, values, minlength=shape[0] * shape[1]).reshape(shape)
        jobs_up_to = np.cumsum(self.draws @ counts, axis=1)
        sum_up_to = np.cumsum(self.draws @ sums, axis=1)

        def ranked(share: float) -> tuple[Float64Array, Int64Array]:
            wanted = np.maximum(1.0, np.ceil(np.round(share * jobs_up_to[:, -1], 6)))  # as `rank`
            return wanted, np.argmax(jobs_up_to >= wanted[:, np.newaxis], axis=1)

        found = {name: marks[ranked(share)[1]] for name, share in _PERCENTILES.items()}
        wanted, position = ranked(0.99)
        rows = np.arange(len(position))
        beyond = jobs_up_to[rows, position] - wanted
        found["mean_below_p99"] = (sum_up_to[rows, position] - beyond * marks[position]) / wanted
        return found
