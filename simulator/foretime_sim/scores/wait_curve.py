"""How waits are distributed, kept short enough to be drawn."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

WAIT_CURVE_SHARES = np.unique(
    np.concatenate((np.linspace(0, 1, 201), 1 - np.geomspace(1e-5, 1e-1, 101)))
)
"""Shares of the jobs at which a curve has a point; dense at the top, where people complain."""


def wait_curve(wait: Int64Array | Float64Array) -> Float64Array:
    """Give the waits, seconds, that `WAIT_CURVE_SHARES` of the jobs do not exceed; same shape."""
    curve = np.quantile(wait, WAIT_CURVE_SHARES, method="inverted_cdf")
    return np.asarray(curve, dtype=np.float64)
