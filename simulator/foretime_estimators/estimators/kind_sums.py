"""Aged sums by kind of jobs, and their mean over the kinds of one job, from fine to coarse.

What `foretime_estimators.estimators.job_kinds` remembers job by job is here a few numbers a kind,
whatever the history's length: each further job of a kind lets the sums fade by one step. Means are
all that can be had of them, at a microsecond a kind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from foretime_estimators.estimators.job_kinds import LEFT_OPEN, Ageing, Kind, kinds_of
from foretime_estimators.jobs.jobs import JobRequest


class KindSums:
    """Sums of some figures over the finished jobs of each kind.

    Parameters
    ----------
    figures
        How many there are of each job.
    ageing
        How history is weighed.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    """

    def __init__(self, figures: int, ageing: Ageing, window_s: int) -> None:
        self._figures = figures
        self._fading = 2.0 ** (-1.0 / ageing.half_life_jobs)
        self._enough = ageing.enough_jobs
        self._window_s = window_s
        # By kind, latest used last: latest end, weight, sums.
        self._known: OrderedDict[Kind, tuple[int, list[float]]] = OrderedDict()

    def __len__(self) -> int:
        """Count the kinds remembered."""
        return len(self._known)

    def add(self, job: JobRequest, figures: Sequence[float], end_time: int) -> None:
        """Take a finished job's figures in under each of its kinds; call in order of end times."""
        fading = self._fading
        for kind in kinds_of(job):
            known = self._known.pop(kind, None)
            sums = [1.0, *figures]
            if known is not None:
                sums = [new + fading * old for new, old in zip(sums, known[1], strict=True)]
            self._known[kind] = end_time, sums
        oldest = end_time - self._window_s
        while (first := next(iter(self._known.items())))[1][0] < oldest:
            del self._known[first[0]]

    def mean(self, job: JobRequest, otherwise: Sequence[float]) -> list[float] | None:
        """Give the mean of each figure over the job's kinds; ``None`` before any job has ended.

        A kind of aged weight c takes the share c / (c + enough) of what finer ones left open.

        Parameters
        ----------
        job
            As submitted.
        otherwise
            What takes the place of each figure for the share that all kinds leave open.
        """
        left_open = 1.0
        means = [0.0] * self._figures
        for kind in kinds_of(job):
            known = self._known.get(kind)
            if known is None:
                continue
            weight, *sums = known[1]
            each = left_open / (weight + self._enough)
            means = [mean + each * total for mean, total in zip(means, sums, strict=True)]
            left_open = each * self._enough
            if left_open < LEFT_OPEN:
                break
        if left_open == 1.0:
            return None
        return [mean + left_open * other for mean, other in zip(means, otherwise, strict=True)]

    def state(self) -> list[list[object]]:
        """Give kinds, their latest ends and their sums, as JSON can hold them."""
        return [[list(kind), end, list(sums)] for kind, (end, sums) in self._known.items()]

    def restore(self, state: Sequence[tuple[Sequence[str | int], int, Sequence[float]]]) -> None:
        """Take over what `state` gave, replacing all that was known."""
        self._known = OrderedDict(
            (tuple(kind), (end_time, list(sums))) for kind, end_time, sums in state
        )
