"""Weibull fits: what was put in comes out, and no neighbour does better."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.log_files import read_log
from foretime_sim.models.weibull import (
    Weibull,
    fit_likelihood,
    fit_moments,
    fit_shape,
    search_moments,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

# Streit 2002, table 2: alpha, beta; table 3: mean interarrival time of 10,000 draws from them.
PUBLISHED = [(0.35, 60.0, 287), (0.35, 200.0, 1_047), (0.25, 40.0, 1_013), (0.4, 290.0, 945)]


@pytest.mark.parametrize(("alpha", "beta", "mean"), PUBLISHED)
def test_the_papers_sets_are_plain_draws_of_its_weibulls(
    alpha: float, beta: float, mean: float
) -> None:
    weibull = Weibull(alpha, beta)
    error = weibull.deviation_s / math.sqrt(10_000)
    assert abs(mean - weibull.mean_s) < 1.5 * error
    drawn = weibull.draw(400_000, np.random.default_rng(1))
    assert abs(drawn.mean() - weibull.mean_s) < 3 * weibull.deviation_s / math.sqrt(400_000)
    for share in (0.1, 0.5, 0.9):
        assert weibull.cdf(np.quantile(drawn, share)) == pytest.approx(share, abs=0.003)


def test_an_alpha_of_1_gives_an_exponentials_moments() -> None:
    weibull = Weibull(1.0, 50.0)
    assert (weibull.mean_s, weibull.deviation_s) == (50.0, 50.0)
    assert weibull.cdf([0.0, 50.0]).tolist() == pytest.approx([0.0, 1 - math.exp(-1)])


@settings(max_examples=30)
@given(st.lists(st.integers(0, 100_000), min_size=2, max_size=60).filter(lambda gaps: any(gaps)))
def test_moments_are_kept(gaps: list[int]) -> None:
    fitted = fit_moments(gaps)
    assert fitted.mean_s == pytest.approx(np.mean(gaps), rel=1e-9)
    if 0.21 < fitted.alpha < 19:
        assert fitted.deviation_s == pytest.approx(np.std(gaps), rel=1e-6)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5_000), min_size=5, max_size=60).filter(lambda gaps: any(gaps)))
def test_the_search_finds_the_best_of_the_whole_grid(gaps: list[int]) -> None:
    mean, deviation = float(np.mean(gaps)), float(np.std(gaps))

    def error(weibull: Weibull) -> float:
        spread = weibull.deviation_s / deviation - 1 if deviation else 0.0
        return (weibull.mean_s / mean - 1) ** 2 + spread**2

    found = search_moments(gaps, 0.05, 10.0)
    assert found.beta_s % 10 == 0
    assert found.alpha * 20 == pytest.approx(round(found.alpha * 20))
    # A coarse part of the grid: every alpha of 0.2 to 4, forty betas up to twice the mean.
    for alpha in np.arange(0.2, 4.0, 0.05).round(2).tolist():
        for beta in np.linspace(10, 10 * round(mean / 5 + 4), 40).round(-1).tolist():
            assert error(found) <= error(Weibull(alpha, beta)) + 1e-9


@example(alpha=0.25, beta=5.0, count=5, seed=1)  # alpha ends at its bound
@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.25, 3.0), st.floats(5.0, 5_000.0), st.integers(5, 400), st.integers(0, 1_000_000)
)
def test_no_neighbour_is_more_likely(alpha: float, beta: float, count: int, seed: int) -> None:
    gaps = np.floor(Weibull(alpha, beta).draw(count, np.random.default_rng(seed)))
    if len(np.unique(gaps)) < 3:
        return

    def likelihood(weibull: Weibull) -> float:
        share = weibull.cdf(gaps + 1) - weibull.cdf(gaps)
        return float(np.log(np.maximum(share, 1e-300)).sum())

    best = fit_likelihood(gaps)
    top = likelihood(best)
    for a in (0.98, 1.0, 1.02):
        for b in (0.98, 1.0, 1.02):
            there = best.alpha * a
            if 0.2 <= there <= 20:
                assert likelihood(Weibull(there, best.beta_s * b)) <= top + 1e-3


@pytest.mark.parametrize(
    ("gaps", "alpha", "beta_s"),
    [
        # A script submits every 12 s or so and pauses once a week: first steps go beyond any
        # float, and from the moments the way was too long.
        ([11, 12, 13] * 100 + [7 * 86_400], 0.4149, 22.991),
        ([100, 101, 102] * 100 + [5_000], 1.1487, 126.59),
    ],
)
def test_the_likelihood_is_largest_with_one_gap_far_from_the_others(
    gaps: list[int], alpha: float, beta_s: float
) -> None:
    fitted = fit_likelihood(gaps)
    assert (fitted.alpha, fitted.beta_s) == pytest.approx((alpha, beta_s), rel=1e-3)

    def likelihood(alpha: float, beta_s: float) -> float:
        start, end = (((np.array(gaps) + more) / beta_s) ** alpha for more in (0, 1))
        return float((np.log(-np.expm1(start - end)) - start).sum())

    top = likelihood(fitted.alpha, fitted.beta_s)
    for other in np.geomspace(0.2, 19.9, 40):
        for beta in np.geomspace(5, 20_000, 80):
            assert likelihood(other, beta) <= top + 1e-6


def test_likelihood_recovers_what_was_drawn() -> None:
    gaps = np.floor(Weibull(0.35, 60.0).draw(100_000, np.random.default_rng(2)))
    fitted = fit_likelihood(gaps)
    assert fitted.alpha == pytest.approx(0.35, rel=0.01)
    assert fitted.beta_s == pytest.approx(60.0, rel=0.04)


def test_shape_is_the_alpha_of_likelihood_at_the_mean_of_the_gaps() -> None:
    gaps = np.floor(Weibull(0.5, 100.0).draw(20_000, np.random.default_rng(4)))
    down = np.append(gaps, 500_000)  # a machine that was down for six days
    shape, plain = fit_shape(down), fit_shape(gaps)
    assert shape.alpha == fit_likelihood(down).alpha == pytest.approx(plain.alpha, abs=0.01)
    assert shape.mean_s == pytest.approx(down.mean(), rel=1e-9)
    assert shape.distance(down) < 0.05
    assert fit_moments(down).alpha < 0.4 < 0.49 < shape.alpha
    assert fit_moments(down).distance(down) > 0.15


def test_cdfs_are_compared_where_a_second_ends() -> None:
    weibull = Weibull(1.0, 10.0)
    # One gap of 10 s: the cdf has to reach 0 just before it, and 1 a second later.
    assert weibull.distance([10]) == pytest.approx(1 - math.exp(-1.0))
    assert weibull.distance([0]) == pytest.approx(math.exp(-0.1))


def test_equal_gaps_are_as_regular_as_can_be() -> None:
    assert fit_likelihood([60, 60, 60]) == fit_moments([60, 60, 60])
    assert fit_moments([60, 60, 60]).alpha == pytest.approx(20)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "put_back", "published"),
    [
        # Of each log, gaps that its cleaning took away: table 2 counts the jobs, and says the mean.
        ("CTC-SP2-1996-3.1-cln", [(1, 520), (2, 520), (3, 520), (4, 520)], Weibull(0.35, 60)),
        ("KTH-SP2-1996-2.1-cln", [(327_952, 1), (21_500, 13)], Weibull(0.35, 200)),
        ("SDSC-SP2-1998-4.2-cln", [(0, 588), (1, 2_455), (3, 2_455), (8, 2_454)],
         Weibull(0.4, 290)),
    ],
)  # fmt: skip
def test_the_published_fits_are_those_of_the_moments(
    trace: Callable[[str], Path],
    log: str,
    put_back: list[tuple[int, int]],
    published: Weibull,
) -> None:
    """Table 2 of Streit 2002; maximum likelihood is far from it (docs/workloads.md)."""
    submissions = np.sort(read_log(trace(f"{log}.swf.gz")).submit_time.filled(0))
    gaps = np.diff(submissions)
    more = [np.full(count, gap) for gap, count in put_back]
    found = search_moments(np.concatenate((gaps, *more)))
    assert found.alpha == published.alpha
    assert found.beta_s == pytest.approx(published.beta_s, abs=20)
    assert fit_likelihood(gaps).alpha == pytest.approx(0.51, abs=0.03)


@pytest.mark.parametrize(
    ("gaps", "says"),
    [([], "at least one gap"), ([3, -1], "none of them negative"), ([0, 0], "same second")],
)
def test_gaps_that_say_nothing_are_refused(gaps: list[int], says: str) -> None:
    for fit in (fit_moments, search_moments, fit_likelihood, fit_shape):
        with pytest.raises(InputError, match=says):
            fit(gaps)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (21.0, 1.0), (1.0, 0.0), (1.0, math.nan)])
def test_parameters_out_of_range_are_refused(alpha: float, beta: float) -> None:
    with pytest.raises(InputError, match="Weibull"):
        Weibull(alpha, beta)
