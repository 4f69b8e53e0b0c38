"""The 20 losses: by hand, slopes against differences, convex, and least at the runtime."""

from __future__ import annotations

import math

import pytest
from foretime_estimators.estimators.regression.prediction_loss import (
    E_LOSS,
    LEAST_WEIGHT,
    LOSSES,
    Branch,
    PredictionLoss,
    Weight,
)
from hypothesis import given
from hypothesis import strategies as st

LOSS = st.sampled_from([*LOSSES.values()])
RUNTIME = st.integers(0, 500_000)
PROCESSORS = st.integers(1, 100_000)
PREDICTED = st.floats(-1e6, 1e6)


def test_there_are_the_20_of_the_table() -> None:
    assert len(LOSSES) == 20
    assert {(loss.over, loss.under, loss.weight) for loss in LOSSES.values()} == {
        (over, under, weight) for over in Branch for under in Branch for weight in Weight
    }
    assert all(loss.name == name for name, loss in LOSSES.items())


@pytest.mark.parametrize(
    ("weight", "by_hand"),
    [
        (Weight.CONSTANT, 1.0),
        (Weight.SHORT_WIDE, 3.0),  # 5 + log(10 / 1000)
        (Weight.LONG_NARROW, 7.0),
        (Weight.SMALL_AREA, 7.0),  # 11 + log(1 / 10,000)
        (Weight.LARGE_AREA, 4.0),
    ],
)
def test_each_weight_is_its_formula_with_either_logarithm(weight: Weight, by_hand: float) -> None:
    """A job of 1,000 s on 10 processors, in decades; and with natural logarithms."""
    loss = PredictionLoss(Branch.LINEAR, Branch.LINEAR, weight)
    assert loss.weight_of(1_000, 10) == pytest.approx(by_hand, rel=1e-14)
    natural = PredictionLoss(Branch.LINEAR, Branch.LINEAR, weight, log_base=math.e)
    expected = {
        Weight.CONSTANT: 1.0,
        Weight.SHORT_WIDE: 5 + math.log(10 / 1_000),
        Weight.LONG_NARROW: 5 + math.log(1_000 / 10),
        Weight.SMALL_AREA: 11 + math.log(1 / 10_000),
        Weight.LARGE_AREA: math.log(10_000),
    }
    assert natural.weight_of(1_000, 10) == pytest.approx(expected[weight], rel=1e-14)


def test_the_e_loss_is_squared_above_and_linear_below() -> None:
    """Equation 3 for 1,000 s on 10 processors: squared where f >= p, linear where f < p."""
    assert E_LOSS.value(1_030, 1_000, 10) == pytest.approx(4 * 900)
    assert E_LOSS.value(970, 1_000, 10) == pytest.approx(4 * 30)
    assert E_LOSS.value(1_000, 1_000, 10) == 0
    assert E_LOSS.slope(1_030, 1_000, 10) == pytest.approx(4 * 60)
    assert E_LOSS.slope(970, 1_000, 10) == pytest.approx(-4)


@given(LOSS, st.floats(1.1, 100), RUNTIME, PROCESSORS)
def test_weights_are_positive(
    loss: PredictionLoss, log_base: float, runtime: int, processors: int
) -> None:
    weighted = PredictionLoss(loss.over, loss.under, loss.weight, log_base)
    assert weighted.weight_of(runtime, processors) >= LEAST_WEIGHT


def test_in_decades_the_papers_constants_keep_weights_positive_and_natural_ones_do_not() -> None:
    """A job of 18 hours on one processor; 5 + ln(q / p) is negative beyond 148 s."""
    short = LOSSES["linear-linear-short-wide"]
    assert short.weight_of(18 * 3_600, 1) == pytest.approx(5 - math.log10(64_800))
    natural = PredictionLoss(short.over, short.under, short.weight, math.e)
    assert natural.weight_of(140, 1) > LEAST_WEIGHT
    assert natural.weight_of(149, 1) == LEAST_WEIGHT


@given(LOSS, PREDICTED, RUNTIME, PROCESSORS)
def test_slopes_are_those_of_the_values(
    loss: PredictionLoss, predicted: float, runtime: int, processors: int
) -> None:
    slope = loss.slope(predicted, runtime, processors)
    apart = abs(predicted - max(runtime, 1))
    if apart < 1e-3:
        assert abs(slope) <= loss.weight_of(runtime, processors)
        return
    step = min(apart, 1.0) / 2
    above = loss.value(predicted + step, runtime, processors)
    below = loss.value(predicted - step, runtime, processors)
    scale = loss.weight_of(runtime, processors) * max(apart, 1.0)
    assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-6, abs=1e-6 * scale)


@given(LOSS, PREDICTED, PREDICTED, st.floats(0, 1), RUNTIME, PROCESSORS)
def test_every_loss_is_convex_and_least_at_the_runtime(
    loss: PredictionLoss, one: float, other: float, share: float, runtime: int, processors: int
) -> None:
    def value(predicted: float) -> float:
        return loss.value(predicted, runtime, processors)

    between = share * one + (1 - share) * other
    chord = share * value(one) + (1 - share) * value(other)
    assert value(between) <= chord * (1 + 1e-9) + 1e-6
    assert value(max(runtime, 1)) == 0 <= value(one)
    assert loss.slope(max(runtime, 1), runtime, processors) == 0
    tangent = value(one) + loss.slope(one, runtime, processors) * (other - one)
    assert tangent <= value(other) * (1 + 1e-9) + 1e-6 * (1 + value(one))
