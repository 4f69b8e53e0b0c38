"""Scores of forecast waits: hand-worked values, and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import WEEK_S
from foretime_sim.scores.intervals import Weeks
from foretime_sim.waits.block_sums import Blocks, Figure, combined
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.order_agreement import pair_counts
from foretime_sim.waits.scores.bound_tightness import equal_coverage, tightness
from foretime_sim.waits.scores.coverage_slices import coverage_slices, wilson_interval
from foretime_sim.waits.wait_scores import (
    AT,
    SCORES,
    ForecastOutcomes,
    order_score,
    passed_bound,
    pinball_loss,
    scores,
)
from foretime_sim.workloads.labels import Labels

NO_ANSWER = math.nan


def outcomes(
    waits: list[float],
    medians: list[float],
    bounds: list[float] | None = None,
    now: list[float] | None = None,
    job: list[int] | None = None,
    made_at: list[int] | None = None,
) -> ForecastOutcomes:
    """Rows with a median (and all below), and a 95% bound (and all from 75% on)."""
    told = np.repeat(np.array(medians, dtype=np.float64)[:, np.newaxis], len(LEVELS), axis=1)
    if bounds is not None:
        told[:, AT[0.75] :] = np.array(bounds)[:, np.newaxis]
    starts_now = np.where(np.isnan(medians), math.nan, 0.0) if now is None else np.array(now)
    wait = np.array(waits, dtype=np.int64)
    return ForecastOutcomes(
        np.arange(len(waits)) if job is None else np.array(job),
        np.zeros(len(waits), np.int64) if made_at is None else np.array(made_at),
        wait,
        wait == 0,
        WaitForecasts(told, starts_now),
    )


def unblocked(rows: ForecastOutcomes) -> Blocks:
    return Blocks.of(None, np.zeros(len(rows), np.int64))


def test_scores_are_as_worked_out_by_hand() -> None:
    rows = outcomes(
        waits=[0, 60, 1_000, 4_000, 10_000, 50],
        medians=[0, 0, 2_000, 1_000, 9_700, NO_ANSWER],
        bounds=[0, 30, 2_000, 4_000, 9_999, NO_ANSWER],
        now=[0.9, 0.6, 0.0, 0.2, 0.0, NO_ANSWER],
    )
    found = {name: figure.value for name, figure in scores(rows, unblocked(rows)).items()}
    assert found["answered"] == pytest.approx(5 / 6)
    assert found["forecast_to_wait"] == pytest.approx(3 / 5)
    assert found["brier_now"] == pytest.approx((0.01 + 0.36 + 0.04) / 5)
    assert found["coverage_50"] == pytest.approx(2 / 5)  # 0 and 1,000
    assert found["coverage_95"] == pytest.approx(3 / 5)  # 60 > 30 and 10,000 > 9,999 are not held
    assert found["waiting_coverage_95"] == pytest.approx(2 / 3)
    assert found["within_1min"] == pytest.approx(2 / 5)
    assert found["within_10min"] == pytest.approx(3 / 5)
    assert found["within_double"] == pytest.approx(2 / 3)  # 2,000 of 1,000 is; 1,000 of 4,000 not
    assert found["within_triple"] == pytest.approx(2 / 3)
    decades = [math.log10(2), math.log10(4), math.log10(10_000 / 9_700)]
    assert found["log10_error"] == pytest.approx(sum(decades) / 3)
    assert found["log10_squared"] == pytest.approx(sum(d * d for d in decades) / 3)
    medians, waits = [2_000, 1_000, 9_700], [1_000, 4_000, 10_000]
    assert found["correlation"] == pytest.approx(np.corrcoef(medians, waits)[0, 1])
    logs = np.corrcoef(np.log(medians), np.log(waits))[0, 1]
    assert found["log_correlation"] == pytest.approx(logs)
    assert set(found) | {"order", "passed_bound"} == set(SCORES)


def test_a_zero_forecast_counts_as_a_minute_in_logarithms() -> None:
    rows = outcomes(waits=[6_000], medians=[0])
    assert scores(rows, unblocked(rows))["log10_error"].value == pytest.approx(2)


def test_nothing_to_score_is_nan() -> None:
    rows = outcomes(waits=[5], medians=[NO_ANSWER])
    found = scores(rows, unblocked(rows))
    assert found["answered"].value == 0
    assert math.isnan(found["coverage_95"].value)
    assert math.isnan(order_score(rows, unblocked(rows)).value)
    assert math.isnan(passed_bound(rows, unblocked(rows)).value)


def test_pinball_loss_is_half_of_the_crps() -> None:
    # Of a single number f the integral over all levels is |x - f| / 2, from either side.
    told = np.full((2, len(LEVELS)), 100.0)
    assert pinball_loss(np.array([160.0, 40.0]), told) == pytest.approx([30, 30])
    # Of U(0, 1) the CRPS at x is x**2 - x + 1/3.
    uniform = np.array([LEVELS, LEVELS])
    x = np.array([0.3, 0.9])
    assert pinball_loss(x, uniform) == pytest.approx((x**2 - x + 1 / 3) / 2, rel=0.01)


def test_pair_counts_against_every_pair() -> None:
    rng = np.random.default_rng(3)
    for rows, values in ((80, 6), (80, 1_000), (1, 3), (0, 3)):
        group = np.sort(rng.integers(0, 4, rows))
        one, other = rng.integers(0, values, (2, rows))
        expected = np.zeros((3, 4), dtype=np.int64)
        for a in range(rows):
            for b in range(a):
                if group[a] == group[b]:
                    signs = np.sign(one[a] - one[b]), np.sign(other[a] - other[b])
                    expected[:, group[a]] += (signs[0] * signs[1], abs(signs[0]), abs(signs[1]))
        counts = pair_counts(group, one, other)
        groups = len(counts.balance)
        assert np.array_equal(np.array(counts), expected[:, :groups])
        assert not expected[:, groups:].any()


def test_order_of_starts_is_of_jobs_asked_about_together() -> None:
    # Moment 0: forecast 10 < 20 < 30, real 1 < 3 < 2: two pairs agree, one does not. Moment 50: one
    # pair, the wrong way round. Across moments nothing is compared.
    rows = outcomes(waits=[1, 3, 2, 9, 4], medians=[10, 20, 30, 5, 6], made_at=[0, 0, 0, 50, 50])
    assert order_score(rows, unblocked(rows)).value == pytest.approx((2 - 1 - 1) / 4)


def test_a_bound_is_passed_when_a_later_median_is_beyond_it() -> None:
    # Job 1: at 0 at most till 100, later the median is 101: passed. Job 2: 100 at the most. Job 3
    # was asked about once.
    rows = outcomes(
        waits=[500, 100, 7, 440, 40, 10],
        medians=[50, 50, 1, 30, 40, 61],
        bounds=[100, 100, 1, 300, 300, 300],
        job=[1, 2, 3, 1, 2, 1],
        made_at=[0, 0, 0, 60, 60, 40],
    )
    rows = rows.take(np.argsort(rows.made_at, kind="stable"))
    assert passed_bound(rows, unblocked(rows)).value == 1 / 2


def weeks_of(rows: int, weeks: int, seed: int = 1) -> tuple[Blocks, np.ndarray]:
    submit_time = np.sort(np.random.default_rng(seed).integers(0, weeks * WEEK_S, rows))
    submit_time[[0, -1]] = 0, weeks * WEEK_S - 1
    return Blocks.of(Weeks.of(submit_time, seed=4), submit_time), submit_time


def test_intervals_are_those_of_drawing_weeks_again() -> None:
    blocks, _ = weeks_of(400, 8)
    assert blocks.weeks is not None
    rng = np.random.default_rng(2)
    values = rng.random(400) + blocks.week
    figure = blocks.mean(values)
    expected = []
    for draw in blocks.weeks.draws:
        repeated = np.repeat(np.arange(8), draw.astype(np.int64))
        drawn = np.concatenate([values[blocks.week == week] for week in repeated])
        expected.append(drawn.mean())
    assert figure.resampled is not None
    assert figure.resampled == pytest.approx(expected)
    assert figure.interval is not None
    assert figure.interval.low < figure.value < figure.interval.high
    # Pairs of the same draws: what both share cancels.
    difference = figure.less(blocks.mean(values - 1)).interval
    assert difference is not None
    assert difference.low == pytest.approx(1) == difference.high


def test_few_weeks_give_no_interval() -> None:
    blocks, _ = weeks_of(50, 3)
    assert blocks.weeks is None
    assert blocks.mean(np.ones(50)).interval is None
    assert combined(lambda a, b: a / b, Figure(1, None), Figure(4, np.ones(3))) == Figure(
        0.25, None
    )


def test_the_factor_of_equal_coverage_holds_its_share() -> None:
    # 19 of 20 waits up to 19 times the bound: the factor that holds 95% is 19.
    assert equal_coverage(np.arange(20.0, 0, -1), 0.95) == 19
    assert equal_coverage(np.array([3.0, 1.0, 2.0]), 0.5) == 2
    assert equal_coverage(np.array([0.0, 0.0]), 0.95) == 0


def test_bounds_that_are_the_same_but_for_a_factor_are_as_tight() -> None:
    blocks, _ = weeks_of(2_000, 10)
    rng = np.random.default_rng(8)
    scale = np.exp(8 + rng.standard_normal(2_000))
    waits = np.rint(scale * rng.exponential(1, 2_000)).tolist()
    ours = outcomes(waits, (scale / 9).tolist(), (3 * scale).tolist())
    wide = outcomes(waits, (scale / 9).tolist(), (30 * scale).tolist())
    found = tightness(wide, ours, blocks)
    assert found.ratio.value == pytest.approx(1)
    assert found.mean_ratio.value == pytest.approx(1)
    assert found.factor == pytest.approx(found.other_factor / 10)
    interval = found.ratio.interval
    assert interval is not None
    assert 0.97 < interval.low <= interval.high < 1.03
    # Knowing the scale is better than knowing nothing but the mean.
    blind = outcomes(waits, [0.0] * 2_000, [float(scale.mean())] * 2_000)
    informed = tightness(ours, blind, blocks)
    assert informed.ratio.value < 0.8
    assert informed.ratio.interval is not None
    assert informed.ratio.interval.high < 0.9
    assert informed.rows == 2_000


def test_tightness_scales_each_to_the_coverage_by_hand() -> None:
    # Waits 600 to 12,000. A bound of 6,000 has to double to hold 19 of 20 waits of at most 11,400:
    # factor 1.9. Bounds of twice the wait have to halve.
    waits = [600.0 * step for step in range(1, 21)]
    fixed = outcomes(waits, [700.0] * 20, [6_000.0] * 20)
    knowing = outcomes(waits, [700.0] * 20, [2 * wait for wait in waits])
    found = tightness(knowing, fixed, unblocked(knowing))
    assert found.other_factor == pytest.approx(1.9)
    assert found.factor == pytest.approx(0.5)
    logs = [math.log(wait / 11_400) for wait in waits]
    assert found.ratio.value == pytest.approx(math.exp(sum(logs) / 20))
    assert found.mean_ratio.value == pytest.approx(6_300 / 11_400)
    assert found.median_ratio == pytest.approx(6_300 / 11_400)


def test_jobs_forecast_to_start_at_once_have_no_tightness() -> None:
    rows = outcomes([0, 700], [0, 900], [0, 1_000], now=[0.8, 0.1])
    other = outcomes([0, 700], [5_000, 5_000])
    assert tightness(rows, other, unblocked(rows)).rows == 1
    nobody = outcomes([0, 700], [0, 0], now=[0.8, 0.9])
    assert math.isnan(tightness(nobody, other, unblocked(rows)).ratio.value)


def test_where_nobody_waited_there_is_no_tightness() -> None:
    rows, other = outcomes([0, 0], [0, 900], now=[0.8, 0.1]), outcomes([0, 0], [5_000, 5_000])
    found = tightness(rows, other, unblocked(rows))
    assert found.rows == 1
    assert math.isnan(found.ratio.value)


def test_slices_are_by_what_was_forecast() -> None:
    blocks, _ = weeks_of(2_000, 8)
    rng = np.random.default_rng(8)
    medians = np.where(rng.random(2_000) < 0.5, 300.0, 5_000.0)
    waits = np.rint(medians * rng.exponential(1, 2_000))
    rows = outcomes(waits.tolist(), medians.tolist(), (3 * medians).tolist())
    queues = Labels(np.arange(2_000, dtype=np.int32) % 3 - 1, ("express", "low"))
    found = coverage_slices(rows, blocks, queues)
    names = [(part.by, part.name) for part in found]
    assert names[:4] == [
        ("forecast wait", "up to 10 min"),
        ("forecast wait", "1 to 4 h"),
        ("queue", "express"),
        ("queue", "low"),
    ]
    assert len(names) == 4 + 8
    short = medians == 300
    assert found[0].rows == int(short.sum())
    assert found[0].coverage == pytest.approx(np.mean(waits[short] <= 900))
    express = queues.codes == 0
    assert found[2].coverage == pytest.approx(np.mean((waits <= 3 * medians)[express]))
    for part in found:
        assert part.interval is not None
        assert part.interval.low < part.coverage < part.interval.high


def test_a_wait_as_long_as_its_bound_is_within_it() -> None:
    rows = outcomes([900.0] * 100 + [901.0] * 100, [300.0] * 200, [900.0] * 200)
    found = coverage_slices(rows, unblocked(rows), None)
    assert [(part.name, part.coverage) for part in found] == [("up to 10 min", 0.5)]


def test_the_wilson_interval_is_its_formula() -> None:
    # 1 of 1 at z = 1.96: (1 + 1.92 -+ 1.92) / (1 + 3.84).
    interval = wilson_interval(1, 1)
    assert interval.low == pytest.approx(1 / 4.8415, abs=1e-4)
    assert interval.high == pytest.approx(1)


def test_columns_that_do_not_fit_are_refused() -> None:
    rows = outcomes([1, 2], [1, 2])
    with pytest.raises(InputError, match="2 jobs, but 1 forecasts"):
        ForecastOutcomes(
            rows.job,
            rows.made_at,
            rows.wait_s,
            rows.started_now,
            rows.take(rows.job == 0).forecasts,
        )


def test_the_median_is_the_median() -> None:
    assert LEVELS[MEDIAN] == 0.5
