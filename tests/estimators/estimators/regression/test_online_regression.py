"""NAG: by hand, against loops in plain Python to the last bit, and whatever a feature's scale."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from foretime_estimators.estimators.regression.online_regression import (
    OnlineRegression,
    RegressionSettings,
)
from foretime_estimators.jobs.errors import InputError, StateError
from hypothesis import given
from hypothesis import strategies as st

Slope = Callable[[float], float]


def towards(target: float) -> Slope:
    """Give the slope of the squared loss."""
    return lambda predicted: 2.0 * (predicted - target)


def lanes(terms: Sequence[float]) -> float:
    """Add up as the docstring says."""
    lane = [0.0] * 8
    for index, term in enumerate(terms):
        lane[index % 8] += term
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))


class PlainNag:
    """Algorithm 2 of Ross, Mineiro and Langford, one term after the other."""

    def __init__(self, features: int, settings: RegressionSettings) -> None:
        terms = 1 + 2 * features + math.comb(features, 2)
        self.settings = settings
        self.w, self.s, self.g = [0.0] * terms, [0.0] * terms, [0.0] * terms
        self.n, self.t = 0.0, 0

    def phi(self, x: Sequence[float]) -> list[float]:
        products = [one * other for one, other in combinations(x, 2)]
        return [1.0, *x, *products, *(value * value for value in x)]

    def predict(self, x: Sequence[float]) -> float:
        return lanes([w * value for w, value in zip(self.w, self.phi(x), strict=True)])

    def learn(self, x: Sequence[float], slope: Slope) -> float:
        phi = self.phi(x)
        for i, value in enumerate(phi):
            if abs(value) > self.s[i]:
                self.w[i] = self.w[i] * (self.s[i] / abs(value))
                self.s[i] = abs(value)
        predicted = lanes([w * value for w, value in zip(self.w, phi, strict=True)])
        shares = [value / s if s else 0.0 for value, s in zip(phi, self.s, strict=True)]
        self.n += lanes([share * share for share in shares])
        self.t += 1
        half_life = self.settings.recent_half_life
        decay = 1.0 if half_life is None else 0.5 ** (2.0 / half_life)
        for i, value in enumerate(phi):
            gradient = slope(predicted) * value + self.settings.l2 * self.w[i]
            self.g[i] = decay * self.g[i] + gradient * gradient
            if self.s[i] and self.g[i]:
                rate = self.settings.eta * math.sqrt(self.t / self.n)
                self.w[i] -= (rate * gradient) / (self.s[i] * math.sqrt(self.g[i]))
        return predicted


EXAMPLES = st.lists(
    st.tuples(
        st.lists(
            st.one_of(st.just(0.0), st.floats(1e-3, 1e6), st.floats(-1e6, -1e-3)),
            min_size=4,
            max_size=4,
        ),
        st.one_of(st.just(0.0), st.floats(1e-3, 1e5)),  # seconds; of less, squares underflow
    ),
    max_size=12,
)
SETTINGS = st.builds(
    RegressionSettings,
    st.sampled_from([1.0, 5_000.0]),
    st.sampled_from([0.0, 1e-3, 4e9]),
    st.sampled_from([None, 3.0]),
)


def test_the_basis_has_the_terms_of_equation_1_in_its_order() -> None:
    regression = OnlineRegression(3)
    assert regression.basis(np.array([2.0, 3.0, 5.0]))[: regression.terms].tolist() == [
        1, 2, 3, 5, 6, 10, 15, 4, 9, 25,
    ]  # fmt: skip
    assert OnlineRegression(20).terms == 231


def test_two_examples_by_hand() -> None:
    """One feature, eta 1, no l2: phi = (1, x, x^2), the squared loss.

    First x = 2, p = 7: s = (1, 2, 4), f = 0, N = 3, slope -14, g = (-14, -28, -56), G its square:
    each weight rises by sqrt(1/3) / s. Then x = 4, p = 1: s = (1, 4, 16), so the weights shrink to
    1, 1/2 and 1/4 of themselves over the old s: r, r/4, r/16 with r = sqrt(1/3). f = 3 r, N = 6.
    """
    regression = OnlineRegression(1, RegressionSettings(eta=1.0, l2=0.0))
    assert regression.learn(np.array([2.0]), towards(7.0)) == 0.0
    r = math.sqrt(1 / 3)
    assert regression.weights.tolist() == pytest.approx([r, r / 2, r / 4])
    assert regression.predict(np.array([2.0])) == pytest.approx(3 * r)

    assert regression.learn(np.array([4.0]), towards(1.0)) == pytest.approx(3 * r)
    slope = 2 * (3 * r - 1)
    expected = []
    for scale, size, before in ((1, 1, r), (4, 2, r / 4), (16, 4, r / 16)):
        gradient = slope * scale
        squares = (14 * size) ** 2 + gradient**2
        expected.append(before - math.sqrt(2 / 6) * gradient / (scale * math.sqrt(squares)))
    assert regression.weights.tolist() == pytest.approx(expected)


@given(EXAMPLES, SETTINGS)
def test_the_same_as_one_term_after_the_other_to_the_last_bit(
    examples: list[tuple[list[float], float]], settings: RegressionSettings
) -> None:
    regression, plain = OnlineRegression(4, settings), PlainNag(4, settings)
    for features, target in examples:
        x = np.array(features)
        assert regression.predict(x) == plain.predict(features)
        assert regression.learn(x, towards(target)) == plain.learn(features, towards(target))
        assert regression.weights.tolist() == plain.w


@given(EXAMPLES, st.integers(0, 3), st.sampled_from([1e-3, 1e3, 1e6]))
def test_the_scale_of_a_feature_does_not_matter(
    examples: list[tuple[list[float], float]], scaled: int, factor: float
) -> None:
    """What NAG is for; without l2, which is of raw weights."""
    settings = RegressionSettings(l2=0.0)
    plain, other = OnlineRegression(4, settings), OnlineRegression(4, settings)
    for features, target in examples:
        x = np.array(features)
        rescaled = x.copy()
        rescaled[scaled] *= factor
        first = plain.learn(x, towards(target))
        second = other.learn(rescaled, towards(target))
        assert second == pytest.approx(first, rel=1e-6, abs=1e-3)


def test_it_learns_what_is_linear_in_its_terms_and_l2_holds_it_back() -> None:
    draw = np.random.default_rng(5)
    inputs = draw.uniform(-1, 1, size=(4_000, 2)) * [1.0, 1e6]
    targets = 300 + 200 * inputs[:, 0] + 1e-4 * inputs[:, 0] * inputs[:, 1]
    errors = {}
    for l2 in (0.0, 1e4):
        regression = OnlineRegression(2, RegressionSettings(eta=50.0, l2=l2))
        misses = [
            abs(regression.learn(x, towards(target)) - target)
            for x, target in zip(inputs, targets.tolist(), strict=True)
        ]
        errors[l2] = np.mean(misses[-500:])
    assert errors[0.0] < 2
    assert errors[1e4] > 100


def test_recent_examples_can_weigh_more() -> None:
    """Footnote 2: after a change, what weighs recent examples more has followed it sooner."""
    targets = [1_000.0] * 500 + [3_000.0] * 40
    missed = {}
    for half_life in (None, 20.0):
        regression = OnlineRegression(1, RegressionSettings(100.0, 0.0, half_life))
        for target in targets:
            regression.learn(np.array([1.0]), towards(target))
        missed[half_life] = abs(regression.predict(np.array([1.0])) - targets[-1])
    assert missed[20.0] < missed[None] / 2


def test_weighting_recent_examples_is_weighting_their_losses() -> None:
    """Loss j times 2^(j / h) with plain accumulators gives the same predictions."""
    draw = np.random.default_rng(9)
    recent = OnlineRegression(2, RegressionSettings(100.0, 0.0, 10.0))
    plain = OnlineRegression(2, RegressionSettings(100.0, 0.0))
    for number in range(60):
        x, target = draw.uniform(0, 5, 2), float(draw.uniform(0, 1_000))
        factor = 2.0 ** (number / 10)
        first = recent.learn(x, towards(target))
        second = plain.learn(x, lambda f, p=target, c=factor: c * 2.0 * (f - p))  # type: ignore[misc]
        assert first == pytest.approx(second, rel=1e-9, abs=1e-9)


@given(EXAMPLES, SETTINGS)
def test_a_state_goes_through_json_to_the_last_bit(
    examples: list[tuple[list[float], float]], settings: RegressionSettings
) -> None:
    regression, restored = OnlineRegression(4, settings), OnlineRegression(4, settings)
    for number, (features, target) in enumerate(examples):
        if number == len(examples) // 2:
            restored.restore(json.loads(json.dumps(regression.state(), allow_nan=False)))
        first = regression.learn(np.array(features), towards(target))
        if number >= len(examples) // 2:
            assert restored.learn(np.array(features), towards(target)) == first
            assert restored.state() == regression.state()


def test_states_of_others_are_refused() -> None:
    state = OnlineRegression(3).state()
    with pytest.raises(StateError, match="has 15 terms, the saved state 10 and 10 and 10"):
        OnlineRegression(4).restore(state)
    with pytest.raises(StateError, match="saved by another estimator"):
        OnlineRegression(3, RegressionSettings(eta=1.0)).restore(state)
    del state["weight"]
    with pytest.raises(StateError, match="saved by another estimator"):
        OnlineRegression(3).restore(state)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"eta": 0.0}, "eta is 0.0: give a learning rate above 0"),
        ({"eta": math.nan}, "eta is nan"),
        ({"l2": -1.0}, "l2 is -1.0: give 0 or more"),
        ({"recent_half_life": 0.0}, "recent_half_life is 0.0: give a number of jobs above 0"),
    ],
)
def test_settings_out_of_range_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RegressionSettings(**values)  # type: ignore[arg-type]
