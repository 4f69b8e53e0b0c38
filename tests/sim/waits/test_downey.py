"""Downey's predictors: by hand, against enumeration, and their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.distributions.lifetimes import Lifetimes, RunningLives
from foretime_estimators.jobs.errors import InputError
from foretime_sim.waits.downey import (
    benefactors,
    combined_wait,
    enumerated_probability,
    exact_median_wait,
    first_time,
    freed_probability,
    mean_wait,
    median_wait,
)
from hypothesis import given
from hypothesis import strategies as st

DECADES = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))


def lives(*ages: float) -> RunningLives:
    return RunningLives([DECADES] * len(ages), np.array(ages, dtype=np.float64))


@st.composite
def machines(draw: st.DrawFn) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], RunningLives]:
    jobs = draw(st.integers(1, 7))
    held = draw(st.lists(st.integers(1, 40), min_size=jobs, max_size=jobs))
    ages = draw(st.lists(st.floats(0, 9_000), min_size=jobs, max_size=jobs))
    return np.array(held, dtype=np.int64), lives(*ages)


def test_one_benefactor_gives_the_closed_forms() -> None:
    """The only job is 100 s old: its median life is sqrt(10,000 * 100) = 1,000 s, 900 from now."""
    held = np.array([8])
    assert median_wait(8, held, lives(100)) == pytest.approx(900, rel=1e-4)
    assert median_wait(8, held, lives(100), 0.95) == pytest.approx(10**3.9 - 100, rel=1e-4)
    # B: half of it is released when half of its probability is gone.
    assert mean_wait(4, held, lives(100)) == pytest.approx(900, rel=1e-4)
    assert mean_wait(8, held, lives(100)) == pytest.approx(9_900, rel=1e-3)


def test_two_benefactors_give_the_closed_forms() -> None:
    """Both 100 s old: each survives with sqrt(1/2), that is to ln t = 2 + 2 (1 - sqrt(1/2)) dec."""
    held = np.array([8, 9])
    expected = 10 ** (2 + 2 * (1 - math.sqrt(0.5))) - 100
    assert median_wait(8, held, lives(100, 100)) == pytest.approx(expected, rel=1e-4)
    assert median_wait(9, held, lives(100, 100)) == pytest.approx(900, rel=1e-4)


def test_there_is_no_answer_where_too_few_processors_run() -> None:
    held = np.array([4, 4])
    assert np.isnan(median_wait(5, held, lives(10, 10)))
    assert np.isnan(mean_wait(9, held, lives(10, 10)))
    assert np.isnan(exact_median_wait(9, held, lives(10, 10)))
    assert np.isnan(median_wait(1, np.zeros(0, dtype=np.int64), lives()))
    assert benefactors(4, held).tolist() == [0, 1]
    for predictor in (median_wait, mean_wait, exact_median_wait):
        assert predictor(0, held, lives(10, 10)) == 0


def test_the_combination_takes_a_below_its_bound_and_b_above() -> None:
    """A below n' = 32, B from there on, and B where A has no answer."""
    held = np.array([40, 40, 10])
    running = lives(50, 500, 5_000)
    assert combined_wait(31, held, running) == median_wait(31, held, running)
    assert combined_wait(32, held, running) == mean_wait(32, held, running)
    assert combined_wait(32, held, running, 40) == median_wait(32, held, running)
    assert combined_wait(11, held[2:], lives(5_000)) != combined_wait(9, held[2:], lives(5_000))
    small = np.array([4, 4, 4])
    assert combined_wait(8, small, running) == mean_wait(8, small, running)


@given(machines(), st.floats(0, 9_000))
def test_adding_jobs_is_enumerating_sets(
    machine: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], RunningLives], later: float
) -> None:
    held, running = machine
    times = np.array([0.0, later])
    for needed in {1, int(held.max()), int(held.sum())}:
        added = freed_probability(needed, held, running, times)
        assert added == pytest.approx(
            enumerated_probability(needed, held, running, times), abs=1e-9
        )


@given(machines(), st.integers(1, 60))
def test_single_benefactors_are_never_quicker_than_sets(
    machine: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], RunningLives], needed: int
) -> None:
    """A is conservative (section 5.1), and exact where no set of others does it."""
    held, running = machine
    by_a, exact = median_wait(needed, held, running), exact_median_wait(needed, held, running)
    if np.isnan(by_a):
        assert held.max() < needed
        return
    assert exact <= by_a * 1.001 + 1e-6
    others = held[held < needed]
    if others.sum() < needed:
        assert exact == pytest.approx(by_a, rel=1e-3)
    at_median = enumerated_probability(needed, held, running, np.array([exact]))
    assert at_median == pytest.approx(0.5, abs=1e-3)


@given(machines(), st.integers(1, 40), st.integers(0, 20))
def test_more_needed_is_waited_for_longer(
    machine: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], RunningLives], needed: int, more: int
) -> None:
    held, running = machine
    for predictor in (median_wait, mean_wait):
        less, longer = (predictor(n, held, running) for n in (needed, needed + more))
        assert np.isnan(longer) or less <= longer * 1.001 + 1e-6


def test_the_first_time_is_found_or_is_none() -> None:
    assert first_time(lambda t: t, 12_345.6) == pytest.approx(12_345.6, rel=1e-6)
    assert first_time(lambda t: t + 5, 3) == 0
    assert np.isnan(first_time(lambda t: np.minimum(t, 7), 8))


def test_too_many_jobs_to_enumerate_are_refused() -> None:
    with pytest.raises(InputError, match="17 running jobs: at most 16"):
        enumerated_probability(1, np.ones(17, dtype=np.int64), lives(*[10] * 17), np.zeros(1))
