"""When jobs will end: the wait and the runtime of a job, both uncertain, added up.

A job that waits long need not run long, so the two are taken to be independent.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.waits.forecaster import LEVELS

RUNTIME_LEVELS = tuple((place + 0.5) / 20 for place in range(20))
"""Equally likely parts of a runtime, each by its middle."""
_LEVELS = np.array(LEVELS)
_EDGES = np.concatenate([[0.0], (_LEVELS[1:] + _LEVELS[:-1]) / 2, [1.0]])
_WEIGHTS = np.repeat(np.diff(_EDGES), len(RUNTIME_LEVELS)) / len(RUNTIME_LEVELS)
"""Of each wait with each runtime: what lies nearest to a level of the wait is as probable."""
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
        Seconds at each of `LEVELS`, never falling along a row, and beyond the wait of the same
        level by the shortest runtime at least and the longest at most; shape (jobs, levels).
    """
    found = np.empty((len(wait_s), len(LEVELS)))
    for first in range(0, len(wait_s), _AT_A_TIME):
        some = slice(first, first + _AT_A_TIME)
        found[some] = _ends(wait_s[some], runtime_s[some])
    return found


def _ends(wait_s: Float64Array, runtime_s: Float64Array) -> Float64Array:
    sums = (wait_s[:, :, np.newaxis] + runtime_s[:, np.newaxis, :]).reshape(len(wait_s), -1)
    order = np.argsort(sums, axis=1, kind="stable")
    sums, weights = np.take_along_axis(sums, order, axis=1), _WEIGHTS[order]
    # A sum stands for the middle of its weight.
    reached = np.cumsum(weights, axis=1) - weights / 2
    found = np.empty_like(wait_s)
    rows, last = np.arange(len(sums)), sums.shape[1] - 1
    for place, level in enumerate(LEVELS):
        after = np.clip((reached < level).sum(axis=1), 1, last)
        low, high = sums[rows, after - 1], sums[rows, after]
        begin, end = reached[rows, after - 1], reached[rows, after]
        part = np.clip((level - begin) / np.maximum(end - begin, 1e-12), 0, 1)
        found[:, place] = low + part * (high - low)
    # However few the parts are: no runtime is shorter than the shortest, nor longer.
    return found.clip(wait_s + runtime_s[:, :1], wait_s + runtime_s[:, -1:])
