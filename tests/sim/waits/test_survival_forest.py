"""Forests of survival curves: what they learn of waits that have ended and that have not."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.waits.survival_forest import ForestSettings, SurvivalForest, quantiles_of

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
ONE_LEAF = ForestSettings(trees=1, least_jobs=10_000)


def forest_of(
    waited_s: list[int], started: list[bool], settings: ForestSettings = ONE_LEAF
) -> SurvivalForest:
    features = np.zeros((len(waited_s), 1))
    return SurvivalForest(features, np.array(waited_s), np.array(started), settings, seed=1)


def test_one_leaf_is_a_life_table() -> None:
    """Ten jobs. Two start at once; of the eight others one is lost sight of at 100 s; then three
    of seven start at 1,000 s: S = 8/10, then times 4/7, then the last four start, one by one."""
    waits = [0, 0, 100, 1_000, 1_000, 1_000, 10_000, 20_000, 40_000, 80_000]
    forest = forest_of(waits, [place != 2 for place in range(10)])
    survival = forest.survival(np.zeros((1, 1)))[0]
    by_hand = [0.8, 0.8 * 4 / 7, 0.8 * 3 / 7, 0.8 * 2 / 7, 0.8 / 7, 0]
    steps = survival[np.flatnonzero(np.diff(survival, prepend=1.0))]
    # All jobs together have a weight beside the leaf's, and are the same jobs here.
    np.testing.assert_allclose(steps, by_hand, atol=1e-9)
    assert survival[0] == pytest.approx(0.8)
    median = forest.quantiles(np.zeros((1, 1)), [0.5])[0, 0]
    assert 900 < median < 1_100


def test_waits_that_have_not_ended_are_lower_bounds() -> None:
    """Half of the jobs still wait: forgetting them, or taking them as ended, says too little."""
    rng = np.random.default_rng(3)
    wait = rng.exponential(1_000, 4_000)
    seen_for = rng.uniform(0, 2_000, 4_000)
    waited = np.minimum(wait, seen_for).astype(np.int64)
    features = np.zeros((4_000, 1))
    question = np.zeros((1, 1))

    def median(rows: np.ndarray, started: np.ndarray) -> float:
        forest = SurvivalForest(features[rows], waited[rows], started[rows], ONE_LEAF, seed=1)
        return float(forest.quantiles(question, [0.5])[0, 0])

    everyone, ended = np.arange(4_000), wait <= seen_for
    truth = 1_000 * np.log(2)
    assert median(everyone, ended) == pytest.approx(truth, rel=0.07)
    assert median(np.flatnonzero(ended), ended) < 0.7 * truth
    assert median(everyone, np.ones(4_000, dtype=np.bool_)) < 0.8 * truth


def test_quantiles_follow_the_features() -> None:
    """Waits are lognormal around a power of a feature; another feature says nothing."""
    rng = np.random.default_rng(5)
    features = rng.uniform(0, 1, (6_000, 2))
    log_wait = 2 + 3 * features[:, 0] + rng.normal(0, 0.2, 6_000)
    waited = (10**log_wait).astype(np.int64)
    started = np.ones(6_000, dtype=np.bool_)
    forest = SurvivalForest(features, waited, started, ForestSettings(tried=1.0), seed=1)
    asked = np.array([[0.2, 0.5], [0.8, 0.5]])
    found = np.log10(forest.quantiles(asked, LEVELS))
    expected = 2 + 3 * asked[:, :1] + 0.2 * np.array([-1.2816, -0.6745, 0, 0.6745, 1.2816])
    np.testing.assert_allclose(found, expected, atol=0.12)
    # Many questions at once are answered as each by itself.
    many = forest.quantiles(np.repeat(asked, 300, axis=0), LEVELS)
    np.testing.assert_allclose(np.log10(many), np.repeat(found, 300, axis=0))


def test_beyond_the_longest_wait_that_ended() -> None:
    """Half started after 10 s, the others not after 5,000 s: they start then at the earliest."""
    forest = forest_of([10, 10, 5_000, 5_000], [True, True, False, False])
    found = forest.quantiles(np.zeros((1, 1)), [0.25, 0.49, 0.51, 0.9])[0]
    assert (found[:2] > 9).all()
    assert (found[:2] < 12).all()
    assert (found[2:] > 4_500).all()
    assert (found[2:] < 5_600).all()
    nothing = forest_of([10, 20], [False, False]).quantiles(np.zeros((1, 1)), [0.5])[0, 0]
    assert 18 < nothing < 22


def test_quantiles_of_no_question() -> None:
    forest = forest_of([1, 2], [True, True])
    assert forest.quantiles(np.zeros((0, 1)), LEVELS).shape == (0, len(LEVELS))
    assert quantiles_of(np.zeros((1, 194)), [0.5]).tolist() == [[0.0]]


def test_a_forest_without_jobs_is_refused() -> None:
    with pytest.raises(InputError, match="no job to learn waits from"):
        forest_of([], [])
