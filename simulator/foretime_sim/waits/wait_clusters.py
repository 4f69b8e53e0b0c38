"""Which jobs' waits belong together: QBETS' clustering of jobs by size and requested time.

D. Nurmi, J. Brevik and R. Wolski, "QBETS: Queue Bounds Estimation from Time Series", JSSPP 2007:
jobs of a queue are grouped by what they ask for, and the number of groups is the one that Schwarz'
criterion (BIC) prefers. The paper was not at hand: that waits within a group are modelled as
exponential, the ranges of requested time and the way groups are united are ours.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from typing import TypeAlias

from foretime_estimators.jobs.jobs import JobRequest

SIZES = (4, 16, 64)
"""Largest processor counts of the ranges 1-4, 5-16, 17-64 and 65+, as of Brevik et al. 2006."""
TIMES_S = (3_600, 4 * 3_600, 12 * 3_600)
"""Longest requested times of the ranges; the finest classes that clustering may form."""

Cell: TypeAlias = tuple[int, int]
"""A range of processors and one of requested times."""


def cell_of(job: JobRequest) -> Cell:
    """Give the finest class that a job belongs to."""
    return bisect.bisect_left(SIZES, job.processors), bisect.bisect_left(
        TIMES_S, job.requested_time
    )


def clusters(waits: Mapping[Cell, tuple[int, float]]) -> list[list[Cell]]:
    """Put cells together from the bottom up, as long as the criterion falls.

    A cluster of n waits of mean m has, under an exponential, the log likelihood -n (log m + 1); a
    parameter more costs log(N) / 2, N waits being in all. The two clusters whose union loses the
    least are united until that costs more than the parameter.

    Parameters
    ----------
    waits
        By cell: how many waits, at least one, and their sum in seconds.
    """
    groups = [([cell], count, total) for cell, (count, total) in sorted(waits.items())]
    parameter = math.log(max(sum(count for _, count, _ in groups), 1)) / 2
    while len(groups) > 1:
        loss, first, second = min(
            (_loss(groups[i][1:], groups[j][1:]), i, j)
            for i in range(len(groups))
            for j in range(i + 1, len(groups))
        )
        if loss > parameter:
            break
        (cells, count, total), (others, more, further) = groups[first], groups[second]
        groups[first] = (cells + others, count + more, total + further)
        del groups[second]
    return [sorted(cells) for cells, _, _ in groups]


def _loss(one: tuple[int, float], other: tuple[int, float]) -> float:
    together = (one[0] + other[0], one[1] + other[1])
    return _log_likelihood(*one) + _log_likelihood(*other) - _log_likelihood(*together)


def _log_likelihood(count: int, total: float) -> float:
    # A second more each: waits of 0 s would be infinitely likely.
    return -count * (math.log(total / count + 1) + 1)
