"""How well waits were forecast: the scores of forecasts whose outcome is known.

Every figure is of the rows that have an answer, unless it says otherwise. The median is what is
held to be forecast where one number is compared; scores of ratios and logs are of waits above ten
minutes, and there (as in `foretime_sim.waits.scores.bound_tightness`) a forecast below a minute
counts as a minute: nobody is helped by a better one, and a logarithm knows no end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import MINUTE_S

from foretime_sim.waits.block_sums import Blocks, Figure
from foretime_sim.waits.forecast_records import ForecastRecords
from foretime_sim.waits.forecaster import BOUNDS, LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.order_agreement import pair_counts

TEN_MINUTES_S = 10 * MINUTE_S
AT = {level: LEVELS.index(level) for level in BOUNDS}
"""Column of each bound."""
LIKELY_NOW = 0.5
"""A job is forecast to start at once if that is at least as likely as not."""


@dataclass(frozen=True, slots=True)
class ForecastOutcomes:
    """Rows of one method with what came of them; arrays of shape (rows,).

    Attributes
    ----------
    job
        Which job.
    made_at
        Seconds; rows are in its order.
    wait_s
        Seconds from the moment to the start.
    started_now
        Whether that was at once.
    forecasts
        What was said.
    """

    job: Int64Array
    made_at: Int64Array
    wait_s: Int64Array
    started_now: BoolArray
    forecasts: WaitForecasts

    def __post_init__(self) -> None:
        for name in ("made_at", "wait_s", "started_now"):
            if len(getattr(self, name)) != len(self.job):
                raise InputError(f"{len(self.job)} jobs, but {len(getattr(self, name))} {name}")
        if len(self.forecasts.starts_now) != len(self.job):
            raise InputError(
                f"{len(self.job)} jobs, but {len(self.forecasts.starts_now)} forecasts"
            )

    def __len__(self) -> int:
        return len(self.job)

    @classmethod
    def of(cls, records: ForecastRecords, method: str, now_within_s: int = 0) -> ForecastOutcomes:
        """Take one method's records.

        Parameters
        ----------
        records
            In the order of time.
        method
            Its name.
        now_within_s
            A start within so many seconds of the moment is one at once, a wait of 0 s: 0 for a
            simulated scheduler, more for a real one, which looks at its queue now and then.
        """
        started_now = records.waited_s <= now_within_s
        wait_s = np.where(started_now, 0, records.waited_s)
        return cls(records.job, records.made_at, wait_s, started_now, records.of(method))

    def take(self, rows: BoolArray | Int64Array) -> ForecastOutcomes:
        """Give some of the rows."""
        told = WaitForecasts(self.forecasts.wait_s[rows], self.forecasts.starts_now[rows])
        return ForecastOutcomes(
            self.job[rows], self.made_at[rows], self.wait_s[rows], self.started_now[rows], told
        )

    @property
    def median_s(self) -> Float64Array:
        """Seconds; NaN without an answer."""
        median: Float64Array = self.forecasts.wait_s[:, MEDIAN]
        return median

    @property
    def forecast_to_wait(self) -> BoolArray:
        """Rows with an answer other than that the job is likely to start at once."""
        return np.asarray(self.forecasts.starts_now < LIKELY_NOW)


def scores(rows: ForecastOutcomes, blocks: Blocks) -> dict[str, Figure]:
    """Give every score that is taken row by row; see `SCORES` for what each is."""
    answered = rows.forecasts.answered
    share_answered = blocks.mean(answered)
    rows, blocks = rows.take(answered), blocks.take(answered)
    wait, median = rows.wait_s.astype(np.float64), rows.median_s
    ten = wait > TEN_MINUTES_S
    waiting = rows.forecast_to_wait
    found = {
        "answered": share_answered,
        "forecast_to_wait": blocks.mean(waiting),
        "brier_now": blocks.mean((rows.forecasts.starts_now - rows.started_now) ** 2),
    }
    for level, column in AT.items():
        held = wait <= rows.forecasts.wait_s[:, column]
        found[f"coverage_{100 * level:.0f}"] = blocks.mean(held)
        found[f"waiting_coverage_{100 * level:.0f}"] = blocks.mean(held, waiting)
    found["pinball_s"] = blocks.mean(pinball_loss(wait, rows.forecasts.wait_s))
    told = log10_s(rows.forecasts.wait_s)
    found["pinball_log"] = blocks.mean(pinball_loss(log10_s(wait), told))
    error = np.abs(wait - median)
    found["within_1min"] = blocks.mean(error <= MINUTE_S)
    found["within_10min"] = blocks.mean(error <= TEN_MINUTES_S)
    for name, factor in (("within_double", 2), ("within_triple", 3)):
        near = (median >= wait / factor) & (median <= wait * factor)
        found[name] = blocks.mean(near, ten)
    log_error = np.where(ten, told[:, MEDIAN] - log10_s(wait), 0)
    found["log10_error"] = blocks.mean(np.abs(log_error), ten)
    found["log10_squared"] = blocks.mean(log_error**2, ten)
    found["correlation"] = _correlation(blocks, median, wait, ten)
    found["log_correlation"] = _correlation(blocks, told[:, MEDIAN], log10_s(wait), ten)
    return found


SCORES: Mapping[str, str] = {
    "answered": "share of rows with an answer",
    "forecast_to_wait": "share of answers other than that the job is likely to start at once",
    "brier_now": "mean squared error of the probability of a start at once",
    "coverage_50": "share of waits up to the 50% bound",
    "coverage_75": "share of waits up to the 75% bound",
    "coverage_90": "share of waits up to the 90% bound",
    "coverage_95": "share of waits up to the 95% bound",
    "waiting_coverage_50": "the same, of jobs not forecast to start at once",
    "waiting_coverage_75": "the same, of jobs not forecast to start at once",
    "waiting_coverage_90": "the same, of jobs not forecast to start at once",
    "waiting_coverage_95": "the same, of jobs not forecast to start at once",
    "pinball_s": "mean pinball loss over all levels, seconds",
    "pinball_log": "the same of log10 of the wait, at least a minute",
    "within_1min": "share of medians within a minute of the wait",
    "within_10min": "share of medians within ten minutes of the wait",
    "within_double": "share of medians within [t/2, 2t], waits t above ten minutes",
    "within_triple": "share of medians within [t/3, 3t], waits t above ten minutes",
    "log10_error": "mean absolute log10(median / wait), waits above ten minutes",
    "log10_squared": "mean squared log10(median / wait), waits above ten minutes",
    "correlation": "Pearson's, of median and wait, waits above ten minutes",
    "log_correlation": "Pearson's, of their logarithms, waits above ten minutes",
    "order": "Kendall's tau-b of the order of starts, among jobs asked about at one moment",
    "passed_bound": "share of jobs of which a later median passes the first 95% bound",
}
"""What each figure is."""


def log10_s(seconds: Float64Array) -> Float64Array:
    """Give log10 of seconds, at least of a minute."""
    return np.log10(np.maximum(seconds, MINUTE_S))


def pinball_loss(outcome: Float64Array, told: Float64Array) -> Float64Array:
    """Give each row's pinball loss, integrated over the levels: half of its CRPS.

    The loss at level q is q (x - f) if the outcome x is above the forecast f, else (1 - q) (f - x)
    (Koenker and Bassett 1978); each level of `LEVELS` has the weight of the levels nearest to it.

    Parameters
    ----------
    outcome
        Shape (rows,).
    told
        Quantiles, shape (rows, levels).
    """
    levels = np.array(LEVELS)
    edges = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
    off = outcome[:, np.newaxis] - told
    loss: Float64Array = np.maximum(levels * off, (levels - 1) * off) @ np.diff(edges)
    return loss


def order_score(rows: ForecastOutcomes, blocks: Blocks) -> Figure:
    """Give Kendall's tau-b of the forecast and the real order of starts.

    Pairs are of jobs that were asked about at the same moment; those of all moments count alike.
    """
    answered = rows.forecasts.answered
    rows, blocks = rows.take(answered), blocks.take(answered)
    _, first, moment = np.unique(rows.made_at, return_index=True, return_inverse=True)
    counts = pair_counts(moment.astype(np.int64), rows.median_s, rows.wait_s)
    return blocks.take(first).figure(
        lambda balance, one, other: balance / np.sqrt(one * other), *counts
    )


def passed_bound(rows: ForecastOutcomes, blocks: Blocks) -> Figure:
    """Give the share of jobs of which a later answer's median passes the first answer's 95% bound.

    Of the jobs that were asked about more than once.
    """
    answered = rows.forecasts.answered
    rows, blocks = rows.take(answered), blocks.take(answered)
    _, first, number = np.unique(rows.job, return_index=True, return_inverse=True)
    bound = (rows.made_at + rows.forecasts.wait_s[:, AT[0.95]])[first][number]
    later = np.ones(len(rows), dtype=np.bool_)
    later[first] = False
    beyond = later & (rows.made_at + rows.median_s > bound)
    asked_again = np.bincount(number, later) > 0
    passed = np.bincount(number, beyond) > 0
    return blocks.take(first).mean(passed, asked_again)


def _correlation(blocks: Blocks, one: Float64Array, other: Float64Array, of: BoolArray) -> Figure:
    # Centred, so that the sums of squares lose no digits.
    x, y = (np.where(of, values - values[of].mean(), 0) if of.any() else values * 0
            for values in (one, other))  # fmt: skip

    def pearson(
        n: Float64Array, sx: Float64Array, sy: Float64Array,
        sxx: Float64Array, syy: Float64Array, sxy: Float64Array,
    ) -> Float64Array:  # fmt: skip
        covariance = sxy - sx * sy / n
        return covariance / np.sqrt((sxx - sx * sx / n) * (syy - sy * sy / n))

    return blocks.figure(pearson, of, x, y, x * x, y * y, x * y)
