"""How tight bounds on waits are, beside another method's, once both hold equally often.

A method may look tight by breaking its bounds. So each method's bounds at a level are multiplied by
the one factor with which they hold exactly that share of the compared waits, and then compared. A
bound below a minute is told, and counts, as a minute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import MINUTE_S

from foretime_sim.scores.intervals import Weeks
from foretime_sim.waits.block_sums import Blocks, Figure
from foretime_sim.waits.wait_scores import AT, ForecastOutcomes

_MARKS = 4_000
"""Quantiles of the ratios that a factor is taken from in resamples."""


@dataclass(frozen=True, slots=True)
class Tightness:
    """Bounds beside another method's, at equal coverage.

    Attributes
    ----------
    rows
        Compared: those that both answered, and the method did not forecast to start at once.
    factor, other_factor
        What the bounds were multiplied by to hold as often as they say.
    ratio
        Geometric mean of bound / other's bound: 0.8 is 20% tighter.
    median_ratio
        Median of the same.
    mean_ratio
        Mean bound / other's mean bound: here the longest waits decide.
    """

    rows: int
    factor: float
    other_factor: float
    ratio: Figure
    median_ratio: float
    mean_ratio: Figure


def tightness(
    rows: ForecastOutcomes, other: ForecastOutcomes, blocks: Blocks, level: float = 0.95
) -> Tightness:
    """Compare a method's bounds with another's, row by row.

    Parameters
    ----------
    rows, other
        The same jobs at the same moments.
    blocks
        Of the same rows.
    level
        One of `foretime_sim.waits.forecaster.BOUNDS`.
    """
    chosen = rows.forecast_to_wait & other.forecasts.answered
    rows, other, blocks = rows.take(chosen), other.take(chosen), blocks.take(chosen)
    wait = rows.wait_s.astype(np.float64)
    bound, others = (_bound(method, level) for method in (rows, other))
    if not len(rows):
        nothing = Figure(math.nan, None)
        return Tightness(0, math.nan, math.nan, nothing, math.nan, nothing)
    factor, other_factor = (equal_coverage(wait / its, level) for its in (bound, others))
    logs = blocks.mean(np.log(bound) - np.log(others))
    sums = blocks.figure(lambda one, two: one / two, bound, others)
    # Where all waits are 0, no factor is too small: there is nothing to compare.
    scale = Figure(factor / other_factor if other_factor else math.nan, None)
    if blocks.weeks is not None:
        resampled = [
            _resampled_factors(wait / its, blocks.week, blocks.weeks, level)
            for its in (bound, others)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = Figure(scale.value, resampled[0] / resampled[1])
    return Tightness(
        len(rows),
        factor,
        other_factor,
        _product(scale, logs, exponent=True),
        float(np.median(bound / others)) * scale.value,
        _product(scale, sums),
    )


def equal_coverage(ratios: Float64Array, level: float) -> float:
    """Give the least factor with which bounds hold a share of the waits.

    Parameters
    ----------
    ratios
        Wait / bound of each row.
    level
        The share.
    """
    rank = max(math.ceil(round(level * len(ratios), 9)), 1)
    return float(np.partition(ratios, rank - 1)[rank - 1])


def _bound(rows: ForecastOutcomes, level: float) -> Float64Array:
    bound: Float64Array = np.maximum(rows.forecasts.wait_s[:, AT[level]], MINUTE_S)
    return bound


def _product(scale: Figure, other: Figure, *, exponent: bool = False) -> Figure:
    def times(one: Float64Array | float, two: Float64Array | float) -> Float64Array:
        return np.asarray(one * (np.exp(two) if exponent else two))

    value = float(times(scale.value, other.value))
    if scale.resampled is None or other.resampled is None:
        return Figure(value, None)
    return Figure(value, times(scale.resampled, other.resampled))


def _resampled_factors(
    ratios: Float64Array, week: Int64Array, weeks: Weeks, level: float
) -> Float64Array:
    """Give `equal_coverage` in each resample, to the nearest of `_MARKS` ranks."""
    ordered = np.sort(ratios)
    ranks = np.unique(np.linspace(0, len(ordered) - 1, _MARKS).astype(np.int64))
    marks = np.unique(ordered[ranks])
    cell = np.searchsorted(marks, ratios)
    count = weeks.draws.shape[1]
    shape = (count, len(marks))
    counts = np.bincount(week * len(marks) + cell, minlength=shape[0] * shape[1]).reshape(shape)
    up_to = np.cumsum(weeks.draws @ counts, axis=1)
    wanted = np.maximum(np.ceil(np.round(level * up_to[:, -1], 6)), 1)
    factors: Float64Array = marks[np.argmax(up_to >= wanted[:, np.newaxis], axis=1)]
    return factors
