"""The R values of one user or project in one class of requested times, and the A they give."""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import Any, NamedTuple

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.accuracy.order_statistics import OrderStatistics
from foretime_estimators.jobs.endings import MICRO


class Observation(NamedTuple):
    """One finished job as the histories hold it, ordered by when it ended.

    Attributes
    ----------
    end_time, sequence
        Seconds; the order in which it was learned.
    user, project, requested_time_class
        The histories that hold it.
    exact
        Whether ``micro`` is its R; otherwise R would have been above that.
    micro
        R in whole millionths, rounded up, at most 1.
    weight
        As `AccuracyRule.weight` gives it, times the ageing factor at its end.
    processor_seconds, size
        Used, and asked for: processors x actual_runtime and x requested_time.
    array_id
        The array that it counts with, or ``None``.
    """

    end_time: int
    sequence: int
    user: str | None
    project: str | None
    requested_time_class: int
    exact: bool
    micro: int
    weight: int
    processor_seconds: int
    size: int
    array_id: str | None


class AccuracyRule:
    """The settings that turn R values into A, in whole numbers; the percentile is n / d."""

    __slots__ = ("_full", "_parts", "_weighed", "denominator", "floor", "imagined_job",
                 "numerator", "threshold")  # fmt: skip

    def __init__(self, settings: AccuracySettings) -> None:
        share = Fraction(str(settings.percentile))
        self.numerator: int = share.numerator
        self.denominator: int = share.denominator
        least = Fraction(str(settings.minimum_adjustment)) * MICRO
        self.floor: int = -(-least.numerator // least.denominator)
        self.threshold = settings.threshold
        self.imagined_job = settings.imagined_job
        self._weighed = settings.weigh_by_processor_time
        full = Fraction(str(settings.full_weight_accuracy))
        self._full: int = full.numerator
        self._parts: int = full.denominator

    def weight(self, processor_seconds: int, size: int) -> int:
        """Weigh a job that used ``processor_seconds`` of the ``size`` that it asked for."""
        if not self._weighed:
            return 1
        return min(self._parts * processor_seconds, self._full * size)


class AccuracyHistory:
    """R values of one name in one class, with removal for windows.

    A lower bound r (a cancelled job) speaks only against an A below r, so A is the smallest x with
    C(x) >= q (T + B(x)): C(x) the weight of exact R <= x, T of all exact ones, B(x) of the bounds
    above x. With q = n / d that is d C(x) + n (bounds up to x) >= n (T + all bounds): one sorted
    structure in which an exact weight stands d-fold and a bound's n-fold. Bounds only raise A.
    """

    __slots__ = (
        "_adjustment",
        "_arrays",
        "_latest_factor",
        "_sizes",
        "_statistics",
        "_weight",
        "jobs",
        "largest",
        "processor_seconds",
        "submissions",
    )

    def __init__(self) -> None:
        self._statistics = OrderStatistics()
        self._weight = 0  # of exact R values and bounds
        self._latest_factor = 1
        self._arrays: dict[str, int] = {}  # tasks that are in it, by array
        self._sizes: list[tuple[int, int]] = []  # heap of (-size, end_time), with a window only
        self._adjustment: int | None = None  # None when it must be worked out anew
        self.jobs = 0
        self.submissions = 0
        self.processor_seconds = 0
        self.largest = 0

    def add(self, seen: Observation, rule: AccuracyRule, factor: int, *, windowed: bool) -> None:
        """Take an observation in; ``factor`` is the ageing factor at its end."""
        self._adjustment = None
        self.jobs += 1
        self.processor_seconds += seen.processor_seconds
        self.largest = max(self.largest, seen.size)
        self._latest_factor = max(self._latest_factor, factor)
        if windowed:
            heapq.heappush(self._sizes, (-seen.size, seen.end_time))
        self._weight += seen.weight
        times = rule.denominator if seen.exact else rule.numerator
        self._statistics.add(seen.micro, times * seen.weight)
        if not seen.exact:
            return
        if seen.array_id is None:
            self.submissions += 1
        else:
            tasks = self._arrays.get(seen.array_id, 0)
            self._arrays[seen.array_id] = tasks + 1
            self.submissions += tasks == 0

    def remove(self, gone: Observation, rule: AccuracyRule, oldest: int) -> None:
        """Take out an observation; sizes of jobs that ended before ``oldest`` go as well."""
        self._adjustment = None
        self.jobs -= 1
        self.processor_seconds -= gone.processor_seconds
        while self._sizes and self._sizes[0][1] < oldest:
            heapq.heappop(self._sizes)
        self.largest = -self._sizes[0][0] if self._sizes else 0
        self._weight -= gone.weight
        times = rule.denominator if gone.exact else rule.numerator
        self._statistics.remove(gone.micro, times * gone.weight)
        if not gone.exact:
            return
        if gone.array_id is not None:
            self._arrays[gone.array_id] -= 1
            if self._arrays[gone.array_id]:
                return
            del self._arrays[gone.array_id]
        self.submissions -= 1

    def adjustment_micro(self, rule: AccuracyRule) -> int | None:
        """Give A in whole millionths, ``None`` while there are too few submissions."""
        if self.submissions < rule.threshold:
            return None
        if self._adjustment is None:
            weight = self._weight
            if rule.imagined_job:
                weight += rule.weight(self.largest, self.largest) * self._latest_factor
            reached = self._statistics.first_reaching(rule.numerator * weight)
            self._adjustment = max(rule.floor, MICRO if reached is None else reached)
        return self._adjustment

    def used_share_micro(self, rule: AccuracyRule) -> int | None:
        """Give what A would be without the imagined job and the floor, in whole millionths.

        That is the share of their requests that jobs with the percentile of the weight used at
        most; ``None`` while there are too few submissions.
        """
        if self.submissions < rule.threshold:
            return None
        reached = self._statistics.first_reaching(rule.numerator * self._weight)
        return MICRO if reached is None else reached

    def state(self) -> dict[str, Any]:
        """Everything in it, as JSON can hold it."""
        return {
            "entries": [list(entry) for entry in self._statistics],
            "weight": self._weight,
            "latest_factor": self._latest_factor,
            "arrays": dict(self._arrays),
            "sizes": [list(size) for size in self._sizes],
            "jobs": self.jobs,
            "submissions": self.submissions,
            "processor_seconds": self.processor_seconds,
            "largest": self.largest,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AccuracyHistory:
        """Build a history from what `state` gave."""
        history = cls()
        history._statistics = OrderStatistics((value, weight) for value, weight in state["entries"])
        history._weight = state["weight"]
        history._latest_factor = state["latest_factor"]
        history._arrays = dict(state["arrays"])
        history._sizes = [(size, end_time) for size, end_time in state["sizes"]]
        history.jobs = state["jobs"]
        history.submissions = state["submissions"]
        history.processor_seconds = state["processor_seconds"]
        history.largest = state["largest"]
        return history
