"""Downey's speedup model: by hand, continuous, never above linear nor above A."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.models.speedup import Speedup
from hypothesis import given
from hypothesis import strategies as st


def test_the_speedup_is_that_of_the_formulas() -> None:
    linear = Speedup(8, 0)
    assert linear(np.array([1, 4, 8, 64])).tolist() == [1, 4, 8, 8]
    # sigma 1, A 8: 8 n / (8 + (n - 1) / 2) up to 8, 8 n / (7.5 + n / 2) up to 15, then 8.
    assert Speedup(8, 1)(np.array([1, 3, 8, 10, 15, 99])) == pytest.approx(
        [1, 24 / 9, 64 / 11.5, 80 / 12.5, 8, 8]
    )
    # sigma 2, A 8: 24 n / (2 n + 22) up to 22.
    assert Speedup(8, 2)(np.array([1, 11, 22, 23])) == pytest.approx([1, 6, 8, 8])
    assert linear.runtime_s(100.0, 4) == pytest.approx(25)


@given(st.floats(1, 200), st.floats(0, 4))
def test_the_speedup_never_falls_and_is_at_most_the_parallelism(
    parallelism: float, variation: float
) -> None:
    processors = np.arange(1, 1_000)
    speedup = Speedup(parallelism, variation)(processors)
    assert speedup[0] == pytest.approx(1)
    assert (np.diff(speedup) >= -1e-9).all()
    assert (speedup <= np.minimum(processors, parallelism) + 1e-9).all()
    # Its slope is at most 1, so it does not leap where its formulas meet.
    assert (np.diff(speedup) <= 1 + 1e-9).all()
    low, high = (Speedup(parallelism, sigma)(processors) for sigma in (1, 1 + 1e-9))
    assert low == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize(("parallelism", "variation"), [(0.5, 1), (2, -0.1)])
def test_bad_parameters_are_refused(parallelism: float, variation: float) -> None:
    with pytest.raises(InputError, match="parallelism"):
        Speedup(parallelism, variation)
