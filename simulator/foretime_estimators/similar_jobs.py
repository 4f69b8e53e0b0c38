"""How much of their requests jobs took, from those most like a job to all there were.

A finished job is remembered under every kind that it is of: its user's jobs with the same request
and size, its user's jobs, its project's, those of its queue, request and size class, all. What is
expected of a new job is a mixture over its kinds, from fine to coarse: a kind of aged weight c
takes the share c / (c + enough) of what the finer ones left open, and the rest after the coarsest
stands for R = 1, the request as it is. So a thin history falls back on a wider one by itself, where
Tang 2010 (section V) has a threshold; ageing is what its section VI asks for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from foretime_estimators.endings import MICRO
from foretime_estimators.jobs import JobRequest
from foretime_estimators.similar_jobs_settings import Ageing

Kind: TypeAlias = tuple[str | int, ...]
"""What jobs have in common: the name of the kind, then values of those fields."""
Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]

_LEFT_OPEN = 0.01
"""Share below which coarser kinds are not looked at any more."""


def kinds_of(job: JobRequest) -> list[Kind]:
    """Give the kinds of a job, from fine to coarse; those that need a name it lacks are left out.

    Classes of requested time and of size double from one to the next.
    """
    user, project, request, size = job.user, job.project, job.requested_time, job.processors
    request_class, size_class = request.bit_length(), size.bit_length()
    kinds: list[Kind] = []
    if user is not None:
        if job.executable is not None:
            kinds.append(("executable", user, job.executable, request, size))
        kinds += [
            ("user-request-size", user, request, size),
            ("user-request", user, request),
            ("user-class", user, request_class),
            ("user", user),
        ]
    if project is not None:
        kinds += [("project-request", project, request), ("project", project)]
    if job.queue is not None:
        kinds.append(("queue-classes", job.queue, request_class, size_class))
    kinds += [("classes", request_class, size_class), ("all",)]
    return kinds


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
        self._remembered_jobs = remembered_jobs
        self._window_s = window_s
        # By kind, latest used last: 2 * R in millionths, plus 1 where that is a lower bound only.
        self._codes: OrderedDict[Kind, deque[int]] = OrderedDict()
        self._latest_end: dict[Kind, int] = {}
        age = np.arange(remembered_jobs, dtype=np.float64)[::-1]  # the newest stands last
        self._weights = [np.exp2(-age / ageing.half_life_jobs) for ageing in ageings]
        # Total weight of the newest 1, 2, 3, ... jobs.
        self._totals = [weights[::-1].cumsum().tolist() for weights in self._weights]
        self._enough = [ageing.enough_jobs for ageing in ageings]

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
        for kind in kinds_of(job):
            codes = self._codes.get(kind)
            if codes is None:
                codes = self._codes[kind] = deque(maxlen=self._remembered_jobs)
            else:
                self._codes.move_to_end(kind)
            codes.append(code)
            self._latest_end[kind] = end_time
        while self._latest_end[oldest := next(iter(self._codes))] < end_time - self._window_s:
            del self._codes[oldest], self._latest_end[oldest]

    def expected(self, job: JobRequest, ageing: int) -> Expected | None:
        """Say what is expected of a job under one of the ageings; ``None`` before any ended."""
        weights, totals, enough = self._weights[ageing], self._totals[ageing], self._enough[ageing]
        left_open = 1.0
        codes: list[int] = []
        parts: list[Float64Array] = []
        for kind in kinds_of(job):
            known = self._codes.get(kind)
            if known is None:
                continue
            each = left_open / (totals[len(known) - 1] + enough)
            codes += known
            parts.append(weights[-len(known) :] * each)
            left_open = each * enough
            if left_open < _LEFT_OPEN:
                break
        if not codes:
            return None
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
        return [
            [list(kind), self._latest_end[kind], list(codes)] for kind, codes in self._codes.items()
        ]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take over what `state` gave, replacing all that was remembered."""
        self._codes = OrderedDict(
            (tuple(kind), deque(codes, maxlen=self._remembered_jobs)) for kind, _, codes in state
        )
        self._latest_end = {tuple(kind): end_time for kind, end_time, _ in state}


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
