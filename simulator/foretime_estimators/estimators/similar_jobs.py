"""How much of their requests jobs took, from those most like a job to all there were.

The kinds of `foretime_estimators.estimators.job_kinds`, of each the last jobs' R; what all of them
leave open stands for R = 1, the request as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.job_kinds import Ageing, BackOff, KindHistories
from foretime_estimators.jobs.endings import MICRO
from foretime_estimators.jobs.jobs import JobRequest


class Expected:
    """What is expected of a job's R: ascending values in millionths, and the weight of each.

    Parameters
    ----------
    accuracy, weight
        Shape (values,); the weights sum to 1.
    """

    __slots__ = ("_accuracy", "_reached", "_weight")

    def __init__(self, accuracy: Int64Array, weight: Float64Array) -> None:
        self._accuracy = accuracy
        self._weight = weight
        self._reached = weight.cumsum()

    def percentile(self, share: float) -> float:
        """Smallest R that at least ``share`` of the weight does not exceed."""
        wanted = share * self._reached[-1] * (1 - 1e-12)  # rounding must not ask for one more
        return float(self._accuracy[self._reached.searchsorted(wanted)]) / MICRO

    def mean(self) -> float:
        """Mean R."""
        return float(self._weight @ self._accuracy) / MICRO

    def share_below(self, accuracy_micro: int) -> float:
        """Share of the weight at smaller R than the one given, in millionths."""
        below = int(self._accuracy.searchsorted(accuracy_micro))
        return float(self._reached[below - 1]) if below else 0.0


class SimilarJobs:
    """The last finished jobs of each kind.

    Parameters
    ----------
    ageings
        Ways to weigh them.
    remembered_jobs
        How many of each kind are kept.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    """

    def __init__(self, ageings: Sequence[Ageing], remembered_jobs: int, window_s: int) -> None:
        # 2 * R in millionths, plus 1 where that is a lower bound only.
        self._codes: KindHistories[int] = KindHistories(remembered_jobs, window_s)
        self._back_offs = [BackOff(ageing, remembered_jobs) for ageing in ageings]

    def __len__(self) -> int:
        """Count the kinds remembered."""
        return len(self._codes)

    def remember(self, job: JobRequest, accuracy_micro: int, *, exact: bool, end_time: int) -> None:
        """Take a finished job in.

        Parameters
        ----------
        job
            As submitted.
        accuracy_micro
            Its R in millionths, at most 1.
        exact
            Whether that is its R; otherwise R would have been above.
        end_time
            Seconds; call in order of it.
        """
        # Above R = 1 nothing lies: a bound there is that R.
        code = 2 * accuracy_micro + (not exact and accuracy_micro < MICRO)
        self._codes.remember(job, code, end_time)

    def expected(self, job: JobRequest, ageing: int) -> Expected | None:
        """Say what is expected of a job under one of the ageings; ``None`` before any ended."""
        known = [codes for _, codes in self._codes.of(job)]
        if not known:
            return None
        parts, left_open = self._back_offs[ageing].shares([len(codes) for codes in known])
        codes = [code for each in known[: len(parts)] for code in each]
        codes.append(2 * MICRO)  # what is left open: the request as it is
        parts.append(np.array([left_open]))
        code = np.array(codes, dtype=np.int64)
        order = code.argsort(kind="stable")
        code = code[order]
        weight = np.concatenate(parts)[order]
        bounds = np.flatnonzero(code & 1)
        if len(bounds):
            weight = _redistributed(weight, bounds)
        return Expected(code >> 1, weight)

    def state(self) -> list[list[Any]]:
        """Give kinds, their latest ends and their jobs, as JSON can hold them."""
        return self._codes.state()

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take over what `state` gave, replacing all that was remembered."""
        self._codes.restore(state)


def _redistributed(weight: Float64Array, bounds: Int64Array) -> Float64Array:
    """Give the weight of each lower bound to what lies above it, in proportion.

    Efron 1967 (redistribution to the right), the same as Kaplan and Meier's estimate. The request
    as it is (R = 1) always lies above.
    """
    weight = weight.copy()
    for place in bounds.tolist():
        above = weight[place + 1 :]
        above *= 1 + weight[place] / above.sum()
        weight[place] = 0.0
    return weight
