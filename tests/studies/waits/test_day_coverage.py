"""Coverage by day: who counts on which day, and what chance alone would give."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.wait_scores import ForecastOutcomes
from foretime_studies.waits.day_coverage import FEWEST_JOBS, DayCoverage
from hypothesis import given
from hypothesis import strategies as st

DAY_S = 86_400


def outcomes(
    job: list[int], made_at: list[int], wait_s: list[int], starts_now: list[float] | None = None
) -> ForecastOutcomes:
    """Everybody is told 600 s at most."""
    told = np.full((len(job), len(LEVELS)), 600.0)
    now = np.zeros(len(job)) if starts_now is None else np.array(starts_now)
    waits = np.array(wait_s)
    forecasts = WaitForecasts(told, now)
    return ForecastOutcomes(np.array(job), np.array(made_at), waits, waits == 0, forecasts)


def test_a_job_counts_once_a_day_with_its_first_answer() -> None:
    days = DayCoverage.of(outcomes([1, 1, 2, 1], [10, 20, 30, DAY_S + 5], [700, 500, 600, 100]))
    assert days.jobs.tolist() == [2, 1]
    assert days.held.tolist() == [1, 1]


def test_jobs_likely_to_start_at_once_and_those_without_an_answer_do_not_count() -> None:
    days = DayCoverage.of(outcomes([1, 2, 3], [10, 20, 30], [0, 5, 5], [0.5, 0.4, float("nan")]))
    assert days.jobs.tolist() == [1]


def test_no_jobs_no_days() -> None:
    days = DayCoverage.of(outcomes([], [], []))
    assert len(days) == len(days.of_enough()) == 0
    assert np.isnan(days.overall)
    assert days.interval is None


def test_days_of_few_jobs_are_left_out() -> None:
    jobs = np.array([FEWEST_JOBS - 1, FEWEST_JOBS])
    days = DayCoverage(jobs, jobs - 1).of_enough()
    share = 1 - 1 / FEWEST_JOBS
    assert (days.jobs.tolist(), days.worst) == ([FEWEST_JOBS], share)
    assert days.share_from(share) == 1.0
    assert days.share_from(share + 0.01) == 0.0


def test_chance_is_binomial() -> None:
    chance = DayCoverage(np.full(200, 10), np.full(200, 9)).by_chance()
    by_hand = 0.95**10 + 10 * 0.05 * 0.95**9  # at most one of ten is missed
    assert chance.share_from(0.9) == pytest.approx(by_hand, abs=0.005)
    assert chance.worst == pytest.approx(0.7)


@given(st.integers(0, 2**32 - 1))
def test_variance_of_independent_jobs_is_that_of_chance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = rng.integers(10, 60, 400)
    held = rng.binomial(jobs, 0.95)
    assert 0.6 < DayCoverage(jobs, held).beyond_chance < 1.5
    # Five jobs at a time are missed together.
    assert 2.5 < DayCoverage(5 * jobs, 5 * held).beyond_chance < 8


def test_the_interval_draws_days_whole() -> None:
    held = np.tile([10, 8], 20)
    days = DayCoverage(np.full(40, 10), held)
    interval = days.interval
    assert interval is not None
    assert interval.low < days.overall == 0.9 < interval.high
    # Independent jobs would give -+ 2.9 points; days that are alike, -+ 3.1.
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.1 / 40**0.5, rel=0.15)
    assert DayCoverage(np.full(5, 10), held[:5]).interval is None
