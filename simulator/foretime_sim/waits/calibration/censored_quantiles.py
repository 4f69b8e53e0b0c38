"""Quantiles of weighted observations of which some are only lower bounds.

E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", JASA 53, 1958,
with weights; what lies beyond the largest observation goes to it (Efron 1967).
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array


def censored_quantiles(
    values: Float64Array, exact: BoolArray, weights: Float64Array, levels: Float64Array
) -> Float64Array:
    """Give the quantiles of several weightings of the same observations.

    Parameters
    ----------
    values
        Shape (observations,), at least one.
    exact
        Which of them are known; the true values of the others are larger. Shape (observations,).
    weights
        Shape (rows, observations), not negative.
    levels
        Shape (rows, levels), rising along a row.

    Returns
    -------
    Float64Array
        The smallest value at which the distribution function reaches the level; shape of
        ``levels``.
    """
    order = np.lexsort((~exact, values))  # at the same value those that are known come first
    values, exact, weights = values[order], exact[order], weights[:, order]
    at_risk = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        gone = np.where(exact & (at_risk > 0), weights / at_risk, 0)
    reached = 1 - np.cumprod(1 - np.minimum(gone, 1), axis=1)
    found = np.empty_like(levels)
    for row in range(len(levels)):
        # Sums of many small numbers: without the slack a level that is reached could be missed.
        place = np.searchsorted(reached[row], levels[row] - 1e-9)
        found[row] = values[np.minimum(place, len(values) - 1)]
    return found
