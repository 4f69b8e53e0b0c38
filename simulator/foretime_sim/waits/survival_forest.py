"""Forest of randomized trees whose leaves hold survival curves: waits as distributions, learned.

Trees are grown on the logarithm of how long jobs have waited (P. Geurts, D. Ernst and L. Wehenkel,
"Extremely randomized trees", Machine Learning 63, 2006). A question falls into one leaf of each
tree; the past jobs that share leaves with it, weighted by how many leaves and how small they are,
give its distribution (N. Meinshausen, "Quantile regression forests", JMLR 7, 2006, section 3). Of
jobs that still wait it is known that they wait longer than they have: the distribution is the
life-table estimator with these weights (R. Beran, "Nonparametric regression with randomly censored
survival data", 1981), on a grid of times.

Needs the extra ``learn`` (scikit-learn, which grows the trees).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

_PER_DECADE, _DECADES = 24, 8
_EDGES = np.logspace(0, _DECADES, _DECADES * _PER_DECADE + 1)
"""Seconds between the bins of the grid, steps of a tenth; the first bin is of no wait at all."""
_BINS = len(_EDGES) + 1
_OF_ALL = 1e-3
"""Weight of the distribution of all jobs beside a question's own: it goes on where that ends."""
_AT_ONCE = 256
"""Questions that are answered together, for the memory they take."""


@dataclass(frozen=True, slots=True)
class ForestSettings:
    """How a forest is grown.

    Attributes
    ----------
    trees
        How many.
    least_jobs
        In a leaf.
    tried
        Share of the features that a split is chosen from.
    """

    trees: int = 60
    least_jobs: int = 10
    tried: float = 0.2


class SurvivalForest:
    """Distributions of waits by features, learned from waits that have ended and that have not."""

    def __init__(
        self,
        features: Float64Array,
        waited_s: Int64Array,
        started: BoolArray,
        settings: ForestSettings,
        seed: int,
    ) -> None:
        """Grow a forest.

        Parameters
        ----------
        features
            Shape (jobs, features), finite.
        waited_s
            Seconds that each job has waited, until its start or until now; shape (jobs,).
        started
            Whether its wait has ended, shape (jobs,).
        settings
            How it is grown.
        seed
            What decides the trees.

        Raises
        ------
        InputError
            If scikit-learn is not installed, or there is no job to learn from.
        """
        try:
            from sklearn.ensemble import ExtraTreesRegressor
        except ImportError:
            raise InputError(
                "learning waits needs scikit-learn: pip install 'foretime[learn]'"
            ) from None
        if not len(features):
            raise InputError("no job to learn waits from: begin later")
        self._forest = ExtraTreesRegressor(
            settings.trees,
            min_samples_leaf=settings.least_jobs,
            max_features=settings.tried,
            random_state=seed,
        )
        self._forest.fit(features, np.log10(np.maximum(waited_s, 1)))
        leaf = self._leaf_of(features).ravel()
        jobs = np.repeat(np.arange(len(features)), settings.trees)
        self._members = jobs[np.argsort(leaf, kind="stable")]
        self._size = np.bincount(leaf, minlength=self._leaves)
        self._first = np.cumsum(self._size) - self._size
        self._bin = np.searchsorted(_EDGES, waited_s, side="right")
        self._started = started.astype(np.float64)
        everyone = np.arange(len(features))
        events, at_risk = _life_table(np.zeros_like(everyone), self._bin, self._started, 1.0, 1)
        self._events_of_all, self._at_risk_of_all = events, at_risk

    @property
    def _leaves(self) -> int:
        return int(sum(tree.tree_.node_count for tree in self._forest.estimators_))

    def _leaf_of(self, features: Float64Array) -> Int64Array:
        """Give each question's leaves, numbered through all trees; shape (questions, trees)."""
        nodes = [tree.tree_.node_count for tree in self._forest.estimators_]
        leaves = self._forest.apply(features) + (np.cumsum(nodes) - nodes)
        return np.asarray(leaves, dtype=np.int64)

    def survival(self, features: Float64Array) -> Float64Array:
        """Give the probability to wait beyond each bin of the grid, shape (questions, bins).

        The first bin is of waits below a second.
        """
        parts = [
            self._survival(features[begin : begin + _AT_ONCE])
            for begin in range(0, len(features), _AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.empty((0, _BINS))

    def _survival(self, features: Float64Array) -> Float64Array:
        leaf = self._leaf_of(features)
        size = self._size[leaf.ravel()]
        # Members of each leaf that was hit: so many from its first on.
        begin = np.cumsum(size) - size
        places = np.arange(size.sum()) + np.repeat(self._first[leaf.ravel()] - begin, size)
        jobs = self._members[places]
        question = np.repeat(np.repeat(np.arange(len(leaf)), leaf.shape[1]), size)
        weight = np.repeat(1 / (size * leaf.shape[1]), size)
        events, at_risk = _life_table(
            question, self._bin[jobs], self._started[jobs], weight, len(leaf)
        )
        share = _OF_ALL / self._at_risk_of_all.max()
        events += share * self._events_of_all
        at_risk += share * self._at_risk_of_all
        ended = np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0)
        # The longest wait of all counts as ended, or there would be no quantile (Efron 1967).
        ended[:, self._bin.max()] = 1
        return np.cumprod(1 - np.clip(ended, 0, 1), axis=1)

    def quantiles(self, features: Float64Array, levels: Sequence[float]) -> Float64Array:
        """Give quantiles of the wait, seconds, shape (questions, levels); see `quantiles_of`."""
        return quantiles_of(self.survival(features), levels)


def _life_table(
    question: Int64Array,
    at: Int64Array,
    started: Float64Array,
    weight: Float64Array | float,
    questions: int,
) -> tuple[Float64Array, Float64Array]:
    """Count starts and jobs at risk of one in each bin, shape (questions, bins) each.

    Jobs that are lost sight of in a bin are at risk for half of it (S. Cutler and F. Ederer,
    "Maximum utilization of the life table method", 1958).
    """
    cell = question * _BINS + at
    weights = np.broadcast_to(weight, cell.shape)
    shape = (questions, _BINS)

    def counted(each: Float64Array) -> Float64Array:
        counts = np.bincount(cell, each, minlength=questions * _BINS)
        return np.asarray(counts, dtype=np.float64).reshape(shape)

    events, all_in = counted(weights * started), counted(weights)
    from_here = np.cumsum(all_in[:, ::-1], axis=1)[:, ::-1]
    return events, from_here - (all_in - events) / 2


def share_within(survival: Float64Array, seconds: int) -> Float64Array:
    """Give the probability of a wait of at most so many seconds, to a step of the grid."""
    share: Float64Array = 1 - survival[:, np.searchsorted(_EDGES, seconds, side="right")]
    return share


def quantiles_of(survival: Float64Array, levels: Sequence[float]) -> Float64Array:
    """Give quantiles of curves on the grid, seconds.

    Within a bin every logarithm is as likely as any other.

    Parameters
    ----------
    survival
        Probability to wait beyond each bin, shape (questions, bins); 0 in the last.
    levels
        Rising, between 0 and 1.

    Returns
    -------
    Float64Array
        Shape (questions, levels), never falling along a row.
    """
    below = 1 - survival
    ends = np.log10(np.append(_EDGES, _EDGES[-1]))
    found = np.empty((len(below), len(levels)))
    rows = np.arange(len(below))
    for column, level in enumerate(levels):
        reached = np.argmax(below >= level, axis=1)
        under = np.where(reached > 0, below[rows, reached - 1], 0)
        inside = below[rows, reached] - under
        part = np.clip((level - under) / np.where(inside > 0, inside, 1), 0, 1)
        low = ends[np.maximum(reached - 1, 0)]
        found[:, column] = np.where(reached > 0, 10 ** (low + part * (ends[reached] - low)), 0)
    return np.maximum.accumulate(found, axis=1)
