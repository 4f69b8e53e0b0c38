"""Lifetimes that are piecewise linear in ln t: closed forms, the inverse, Bayes, many at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.distributions.lifetimes import Lifetimes, Overdue, RunningLives
from foretime_estimators.jobs.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

ONE_STAGE = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))
TWO_STAGES = Lifetimes(np.log([10.0, 12_600.0, 43_200.0]), np.array([0.0, 0.4, 1.0]))


@st.composite
def lifetimes(draw: st.DrawFn) -> Lifetimes:
    widths = draw(st.lists(st.floats(0.05, 4), min_size=1, max_size=4))
    weights = draw(
        st.lists(st.floats(0.05, 1), min_size=len(widths), max_size=len(widths)).map(np.array)
    )
    begin = draw(st.floats(0, 5))
    ends = begin + np.concatenate([[0], np.cumsum(widths)])
    reached = np.concatenate([[0], np.cumsum(weights)])
    return Lifetimes(ends, reached / reached[-1])


def test_one_stage_gives_the_closed_forms() -> None:
    """Ten to ten thousand seconds are three decades: after one, a third of the jobs are over."""
    assert ONE_STAGE.cdf([1, 10, 100, 1_000, 1e9]) == pytest.approx([0, 0, 1 / 3, 2 / 3, 1])
    assert ONE_STAGE.conditional_cdf(1_000, 100) == pytest.approx(1 / 2)
    assert ONE_STAGE.median_life(100) == pytest.approx(1_000)  # sqrt(t_max a), equation 4
    assert ONE_STAGE.median_life() == pytest.approx(math.sqrt(10 * 10_000))
    mean = (10_000 - 100) / (math.log(10_000) - math.log(100))
    assert ONE_STAGE.mean_life(100) == pytest.approx(mean)
    assert ONE_STAGE.mean_life(20_000) == 20_000


def test_the_median_remaining_life_is_longest_at_a_quarter_of_t_max() -> None:
    ages = np.linspace(100, 9_999, 2_000)
    remaining = [ONE_STAGE.median_life(age) - age for age in ages]
    assert ages[int(np.argmax(remaining))] == pytest.approx(2_500, abs=10)


def test_a_stage_counts_for_less_the_further_age_is_in_it() -> None:
    """At 3.5 hours the first stage is over; at 355 s half of its jobs are (ln t is halfway)."""
    assert TWO_STAGES.stage_weights(0) == pytest.approx([0.4, 0.6])
    halfway = math.sqrt(10 * 12_600)
    assert TWO_STAGES.stage_weights(halfway) == pytest.approx([0.25, 0.75])
    assert TWO_STAGES.stage_weights(12_600) == pytest.approx([0, 1])
    assert TWO_STAGES.stage_weights(1e6) == pytest.approx([0, 0])


@given(lifetimes(), st.floats(0, 1), st.floats(0, 0.95))
def test_bayes_is_the_ratio_of_survivals(model: Lifetimes, along: float, share: float) -> None:
    """Section 5.4's mixture over stages is the conditional cdf of the whole."""
    age = float(model.quantile(share))
    time = age + along * (model.t_max - age)
    alive = model.stage_survival(age)
    of_stage = np.divide(
        model.stage_survival(time), alive, out=np.zeros_like(alive), where=alive > 0
    )
    mixture = float((model.stage_weights(age) * (1 - of_stage)).sum())
    assert mixture == pytest.approx(float(model.conditional_cdf(time, age)), abs=1e-9)


@given(lifetimes(), st.floats(0, 1), st.floats(0, 0.99))
def test_the_quantile_is_the_inverse(model: Lifetimes, share: float, past: float) -> None:
    age = float(model.quantile(past))
    life = model.conditional_quantile(share, age)
    assert life >= age
    assert model.conditional_cdf(life, age) == pytest.approx(share, abs=1e-7)


@given(lifetimes(), st.floats(0, 0.95))
def test_the_mean_is_that_of_numeric_integration(model: Lifetimes, past: float) -> None:
    age = float(model.quantile(past)) if past > 0.1 else 0.0
    shares = (np.arange(20_000) + 0.5) / 20_000
    numeric = model.conditional_quantile(shares, age).mean()
    assert model.mean_life(age) == pytest.approx(numeric, rel=1e-3)


@given(
    st.lists(st.tuples(lifetimes(), st.floats(0, 0.95)), min_size=1, max_size=5),
    st.lists(st.floats(0, 1e5), min_size=1, max_size=4),
)
def test_many_lives_at_once(jobs: list[tuple[Lifetimes, float]], later: list[float]) -> None:
    ages = np.array([float(model.quantile(past)) for model, past in jobs])
    survival = RunningLives([model for model, _ in jobs], ages).survival(np.array(later))
    for column, (model, _) in enumerate(jobs):
        alone = 1 - model.conditional_cdf(ages[column] + np.array(later), ages[column])
        assert survival[:, column] == pytest.approx(alone, abs=1e-9)


@given(lifetimes(), st.floats(1, 1e6), st.floats(0, 2e6))
def test_a_limit_ends_what_reaches_it(model: Lifetimes, limit: float, time: float) -> None:
    limited = model.until(limit)
    if time <= limit:
        assert limited.cdf(time) == pytest.approx(float(model.cdf(time)), abs=1e-6)
    elif time > limit * 1.00001:
        assert limited.cdf(time) == 1
    assert limited.quantile(0.9) <= limit * 1.00001 or model.t_max <= limit


def test_past_repeats_and_overdue() -> None:
    """Of a job without a model the median remaining life is its age; so of one past its t_max."""
    ages = np.array([600, 20_000])
    for overdue, alive in (
        (Overdue.PAST_REPEATS, 0.5), (Overdue.ENDS_NOW, 0), (Overdue.NEVER_ENDS, 1),
    ):  # fmt: skip
        lives = RunningLives([None, ONE_STAGE], ages, overdue)
        assert lives.overdue.tolist() == [False, True]
        survival = lives.survival(ages[None].astype(float))
        assert survival.tolist() == [[0.5, alive]]


@pytest.mark.parametrize(
    ("log_time", "reached"),
    [([1.0], [0.0]), ([2.0, 1.0], [0, 1]), ([1.0, 2.0], [0.1, 1]), ([1, 2, 3], [0, 1.1, 1])],
)
def test_stages_and_shares_that_do_not_rise_are_refused(
    log_time: list[float], reached: list[float]
) -> None:
    with pytest.raises(InputError, match=r"have to rise|has to rise"):
        Lifetimes(np.array(log_time), np.array(reached))
