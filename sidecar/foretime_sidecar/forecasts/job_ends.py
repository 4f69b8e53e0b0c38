"""When jobs will end: the wait and the runtime of a job, both uncertain, added up.

A job that waits long need not run long, so the two are taken to be independent.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.waits.forecaster import LEVELS

RUNTIME_LEVELS = tuple((place + 0.5) / 20 for place in range(20))
"""Equally likely parts of a runtime, each by its middle."""
_WAIT_LEVELS = np.array(RUNTIME_LEVELS)
_AT_A_TIME = 1_000


def ends(wait_s: Float64Array, runtime_s: Float64Array) -> Float64Array:
    """Give the quantiles of the time until jobs end.

    Parameters
    ----------
    wait_s
        Quantiles of the wait at `foretime_sim.waits.forecaster.LEVELS`, seconds, shape
        (jobs, levels).
    runtime_s
        Quantiles of the runtime at `RUNTIME_LEVELS`, seconds, shape (jobs, 20).

    Returns
    -------
    Float64Array
        Seconds at each of `LEVELS`, never falling along a row, and never below the wait of the
        same level; shape (jobs, levels).
    """
    found = np.empty((len(wait_s), len(LEVELS)))
    for first in range(0, len(wait_s), _AT_A_TIME):
        some = slice(first, first + _AT_A_TIME)
        found[some] = _ends(wait_s[some], runtime_s[some])
    return found


def _ends(wait_s: Float64Array, runtime_s: Float64Array) -> Float64Array:
    # The wait at the middle of twenty equally likely parts, too.
    place = np.interp(_WAIT_LEVELS, LEVELS, np.arange(len(LEVELS)))
    before = np.minimum(place.astype(np.int64), len(LEVELS) - 2)
    wait = wait_s[:, before] + (place - before) * (wait_s[:, before + 1] - wait_s[:, before])
    sums = (wait[:, :, np.newaxis] + runtime_s[:, np.newaxis, :]).reshape(len(wait_s), -1)
    quantiles: Float64Array = np.quantile(sums, LEVELS, axis=1).T
    # So that no bound of the end is below that of the start, as its tails have fewer parts.
    return np.maximum(quantiles, wait_s + runtime_s[:, :1])
