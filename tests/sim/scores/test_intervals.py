"""Intervals hold what they promise, on data whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import WEEK_S
from foretime_sim.scores.intervals import (
    Weeks,
    gains,
    percentile_interval,
    student_t_quantile,
    t_interval,
)
from foretime_sim.scores.metrics import JOB_METRICS, Distribution


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"),
    [
        # Abramowitz & Stegun 1964, table 26.10
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.95, 7, 1.895),
        (0.995, 10, 3.169),
        (0.975, 29, 2.045),
        (0.975, 120, 1.980),
    ],
)
def test_students_quantiles_are_those_of_the_tables(
    probability: float, degrees: int, expected: float
) -> None:
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, abs=6e-4)


def test_one_sample_has_no_interval() -> None:
    with pytest.raises(InputError, match="at least two samples"):
        t_interval([0.1])


def test_the_t_interval_is_the_mean_and_its_quantile() -> None:
    # mean 2, s = 1, t(2 degrees) = 4.303
    interval = t_interval([1.0, 2.0, 3.0])
    half = student_t_quantile(0.975, 2) / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((2 - half, 2 + half))


@pytest.mark.parametrize("count", [3, 4, 10])
def test_t_intervals_hold_the_mean_as_often_as_they_say(count: int) -> None:
    rng = np.random.default_rng(11)
    trials = 2000
    samples = rng.normal(0.2, 0.1, size=(trials, count))
    hits = sum(i.low <= 0.2 <= i.high for i in (t_interval(list(row)) for row in samples))
    # Four standard errors of a share of 0.95 over 2000 trials.
    assert hits / trials == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / trials))


def metrics_of(wait: Float64Array) -> dict[str, Float64Array]:
    return dict.fromkeys(JOB_METRICS, wait)


def test_bootstrap_over_weeks_holds_the_gain_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    weeks, jobs_a_week, true_gain = 40, 8, 0.2
    submit = np.repeat(np.arange(weeks) * WEEK_S, jobs_a_week) + np.tile(
        np.linspace(0, WEEK_S - 1, jobs_a_week).astype(np.int64), weeks
    )
    trials, hits = 200, 0
    for trial in range(trials):
        # Each week has a load of its own, which its jobs share: blocks depend within, not between.
        load = np.repeat(rng.gamma(4, 250, weeks), jobs_a_week)
        effect = np.repeat(rng.normal(true_gain, 0.1, weeks), jobs_a_week)
        drawn = Weeks.of(submit, seed=trial, resamples=300)
        assert drawn is not None
        gained = gains(
            drawn.figures(submit, metrics_of(load), {}),
            drawn.figures(submit, metrics_of(load * (1 - effect)), {}),
        )
        interval = percentile_interval(gained["wait_mean_s"])
        assert interval is not None
        hits += interval.low <= true_gain <= interval.high
    # A percentile bootstrap of 40 blocks is a little narrow; three standard errors besides.
    assert 0.87 <= hits / trials <= 0.99


def test_every_week_drawn_once_gives_the_gains_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    submit = np.sort(rng.integers(0, 8 * WEEK_S, 3000))
    before = rng.lognormal(6, 2, 3000).round()
    after = rng.lognormal(6, 2, 3000).round()
    weeks = Weeks(int(submit.min()), np.ones((2, 8)))
    flags = before > 1000, after > 1000
    gained = gains(
        *(
            weeks.figures(submit, metrics_of(wait), {"starved_jobs": starved})
            for wait, starved in ((before, flags[0]), (after, flags[1]))
        )
    )
    old, new = Distribution.of(before), Distribution.of(after)
    exact = {"mean": 1e-12, "p99": 1e-12, "p99_9": 1e-12, "mean_below_p99": 0.01}
    for statistic, tolerance in (exact | {"p50": 0.02, "p90": 0.02}).items():
        expected = 1 - getattr(new, statistic) / getattr(old, statistic)
        assert gained[f"wait_{statistic}_s"] == pytest.approx([expected] * 2, abs=tolerance)
    assert gained["starved_jobs"] == pytest.approx([1 - flags[1].sum() / flags[0].sum()] * 2)


def test_too_few_weeks_have_no_bootstrap() -> None:
    assert Weeks.of(np.array([0, 5 * WEEK_S]), seed=0) is None
    assert Weeks.of(np.array([0, 6 * WEEK_S]), seed=0) is not None


def test_an_undefined_gain_has_no_interval() -> None:
    assert percentile_interval(np.array([0.1, np.nan])) is None
