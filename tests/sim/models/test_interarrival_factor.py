"""Shrinking the times between submissions (Streit 2002, section 5)."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.models import lublin2003
from foretime_sim.models.description import describe
from foretime_sim.workloads.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

WORKLOAD = lublin2003.generate(300, processors=64, seed=3, load=0.6)


def at(times: list[int]) -> Workload:
    """Give a workload with these submissions."""
    from dataclasses import replace

    made = lublin2003.generate(len(times), processors=4)
    return replace(made, submit_time=np.array(times, dtype=np.int64))


def test_times_between_submissions_are_multiplied_and_rounded_down() -> None:
    workload = at([100, 100, 110, 111, 200])
    assert workload.with_interarrival_factor(0.5).submit_time.tolist() == [100, 100, 105, 106, 150]
    assert workload.with_interarrival_factor(2).submit_time.tolist() == [100, 100, 120, 122, 300]
    assert workload.with_interarrival_factor(0.001).submit_time.tolist() == [100] * 5


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=50).map(sorted),
    st.floats(0.01, 10),
)
def test_order_and_first_submission_stay_and_no_error_adds_up(
    times: list[int], factor: float
) -> None:
    workload = at(times)
    shrunk = workload.with_interarrival_factor(factor).submit_time
    assert shrunk[0] == times[0]
    assert (np.diff(shrunk) >= 0).all()
    exact = times[0] + (np.array(times) - times[0]) * factor
    assert np.abs(shrunk - exact).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25])
def test_the_load_grows_as_the_times_shrink(factor: float) -> None:
    before, after = describe(WORKLOAD), describe(WORKLOAD.with_interarrival_factor(factor))
    assert before.offered_load is not None
    assert after.offered_load == pytest.approx(before.offered_load / factor, rel=1e-5)
    assert after.runtime_s == before.runtime_s
    assert after.size == before.size


def test_one_is_the_workload_as_it_is() -> None:
    same = WORKLOAD.with_interarrival_factor(1.0)
    np.testing.assert_array_equal(same.submit_time, WORKLOAD.submit_time)


def test_factors_multiply() -> None:
    workload = at([0, 64, 640, 6_400])
    once = workload.with_interarrival_factor(0.25)
    twice = workload.with_interarrival_factor(0.5).with_interarrival_factor(0.5)
    np.testing.assert_array_equal(once.submit_time, twice.submit_time)


@pytest.mark.parametrize("factor", [0.0, -1.0, 1001.0, float("nan"), float("inf")])
def test_what_is_no_factor(factor: float) -> None:
    with pytest.raises(InputError, match="interarrival factor"):
        WORKLOAD.with_interarrival_factor(factor)


def test_an_empty_workload_stays_empty() -> None:
    empty = WORKLOAD.take(np.zeros(0, dtype=np.int64))
    assert len(empty.with_interarrival_factor(0.5)) == 0
