"""Choosing a triple on other logs, and how logs agree: sections 6.3.2 and 6.3.3 of Gaussier 2015.

AVEbsld is given as an array of shape (logs, triples) throughout.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Float64Array


class Rule(enum.Enum):
    """By what the triples' results on the other logs are put together; the smallest is chosen."""

    SUM = "sum"
    """The sum of AVEbsld (section 6.3.3); logs with large values decide."""
    RATIO = "ratio to EASY"
    """The mean logarithm of AVEbsld over EASY's: each log counts alike."""
    RANK = "rank"
    """The mean rank among the triples."""


def leave_one_out(
    avebsld: Float64Array,  # shape (logs, triples), of at least two logs
    easy: Float64Array,  # shape (logs,): of EASY on requested times
    rule: Rule = Rule.SUM,  # what is minimised; ties go to the triple that stands first
) -> list[int]:
    """Choose a triple for each log by its results on the others (section 6.3.3).

    Returns
    -------
    list
        Column of the chosen triple for each log.
    """
    values = avebsld
    if rule is Rule.RATIO:
        values = np.log(avebsld / easy[:, np.newaxis])
    elif rule is Rule.RANK:
        values = np.array([ranks(row) for row in avebsld])
    total = values.sum(axis=0)
    return [int(np.argmin(total - own)) for own in values]


def ranks(values: Float64Array) -> Float64Array:
    """Give each value's rank, from 1; equal values share the mean of theirs."""
    return np.asarray(pd.Series(values).rank(), dtype=np.float64)


def reduction(base: float, value: float) -> float:
    """Give the share by which AVEbsld is reduced, as table 7 has it in parentheses."""
    return 1 - value / base


def mean_reduction(base: Sequence[float], values: Sequence[float]) -> float:
    """Mean of the reductions on each log."""
    return float(np.mean([reduction(b, v) for b, v in zip(base, values, strict=True)]))


class Agreement(NamedTuple):
    """How two logs agree on triples."""

    # first, second: rows of the logs
    first: int
    second: int
    pearson: float  # of AVEbsld, as in section 6.3.2
    pearson_log: float  # of its logarithm, in which one disastrous triple does not decide
    spearman: float  # of ranks


def agreements(avebsld: Float64Array) -> list[Agreement]:
    """Correlate the triples' results between every couple of logs."""
    logarithm = np.log(avebsld)
    ranked = np.array([ranks(row) for row in avebsld])
    return [
        Agreement(
            a,
            b,
            *(_pearson(values[a], values[b]) for values in (avebsld, logarithm, ranked)),
        )
        for a, b in itertools.combinations(range(len(avebsld)), 2)
    ]


def _pearson(one: Float64Array, other: Float64Array) -> float:
    """Pearson's coefficient; NaN where one of them does not vary."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])
