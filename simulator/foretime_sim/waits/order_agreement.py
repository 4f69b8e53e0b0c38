"""How far a forecast order of starts agrees with the real one: Kendall's tau-b, in O(n log^2 n).

W. R. Knight, "A computer method for calculating Kendall's tau with ungrouped data", JASA 61, 1966:
sorted by one value (ties by the other), the pairs that disagree are the inversions of the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array


class PairCounts(NamedTuple):
    """Pairs within each group, shape (groups,); tau-b is ``balance / sqrt(one * other)``.

    Attributes
    ----------
    balance
        Pairs in the same order less pairs in opposite orders.
    one, other
        Pairs that the one value, and the other, does not tie.
    """

    balance: Int64Array
    one: Int64Array
    other: Int64Array


def pair_counts(
    group: Int64Array, one: Float64Array | Int64Array, other: Float64Array | Int64Array
) -> PairCounts:
    """Compare two values of rows pair by pair, within each group.

    Parameters
    ----------
    group
        From 0, shape (rows,).
    one, other
        Shape (rows,), no NaN.
    """
    groups = int(group.max(initial=-1)) + 1

    def tied(*values: Float64Array | Int64Array) -> Int64Array:
        """Count the pairs of each group in which all the values are alike."""
        if not len(group):
            return np.zeros(groups, dtype=np.int64)
        order = np.lexsort((*values, group))
        new = np.zeros(len(group), dtype=np.bool_)
        new[0] = True
        for value in (*values, group):
            new[1:] |= np.diff(value[order]) != 0
        size = np.bincount(np.cumsum(new) - 1)
        pairs = np.bincount(group[order][new], size * (size - 1) / 2, minlength=groups)
        return pairs.astype(np.int64)

    order = np.lexsort((other, one, group))
    # Ranks over all groups, one group's after the other's: no inversion goes across.
    ranks = np.zeros(len(group), dtype=np.int64)
    by_other = np.lexsort((other, group))
    new = np.diff(other[by_other], prepend=np.nan) != 0
    new |= np.diff(group[by_other], prepend=-1) != 0
    ranks[by_other] = np.cumsum(new)
    opposite = np.bincount(group[order], _greater_before(ranks[order]), minlength=groups)
    every, ties_one, ties_other = tied(), tied(one), tied(other)
    untied = every - ties_one - ties_other + tied(one, other)
    return PairCounts(untied - 2 * opposite.astype(np.int64), every - ties_one, every - ties_other)


def _greater_before(values: Int64Array) -> Int64Array:
    """Count for each value the greater ones before it; a merge sort, all blocks at once."""
    index = np.arange(len(values))
    counts = np.zeros(len(values), dtype=np.int64)
    width = 1
    while width < len(values):
        block = index // (2 * width)
        order = np.lexsort((index, values, block))
        left = index[order] // width % 2 == 0
        lefts = np.cumsum(left)  # up to here, of all blocks
        ends = np.append(np.flatnonzero(np.diff(block)), len(values) - 1)
        behind = lefts[ends[block[order]]] - lefts  # left ones of the same block that are greater
        counts[order[~left]] += behind[~left]
        width *= 2
    return counts
