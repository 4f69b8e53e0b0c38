"""QBETS: bounds on waits from past waits alone, with the past cut off where it has changed.

D. Nurmi, J. Brevik and R. Wolski, "QBETS: Queue Bounds Estimation from Time Series", JSSPP 2007,
and, for the bounds (BMBP), J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay
for batch-scheduled parallel machines", PPoPP 2006. The papers were not at hand: `wait_clusters` and
`rare_runs` say what is ours in them; so are how often clusters are formed and autocorrelations
taken, and what a job is told that has waited already.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.waits.binomial_bounds import fewest_observations, lower_rank, upper_rank
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.rare_runs import INDEPENDENT_RUN, lag_one_autocorrelation, rare_run
from foretime_sim.waits.wait_clusters import Cell, cell_of, clusters

CONFIDENCE = 0.95
TRACKED = 0.95
"""The quantile whose bound tells a change: three waits in a row or more above it."""
FEWEST = fewest_observations(TRACKED, CONFIDENCE)
"""Waits that are left after a cut, and from which on a cluster speaks for itself: 59."""
CLUSTERED_EVERY = 1_000
"""Waits of a queue after which its clusters are formed anew."""
_SIGHT = 2_000
"""Latest waits of which the autocorrelation is taken."""


@dataclass(slots=True)
class _Series:
    """Waits of one cluster since its last change.

    Attributes
    ----------
    waits
        Seconds, in the order of starts; ``ordered`` the same by length.
    above
        How many in a row have passed the bound that was given for them.
    rare
        How many in a row are a change, as of ``reviewed`` waits.
    """

    waits: list[int] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)
    above: int = 0
    rare: int = INDEPENDENT_RUN
    reviewed: int = 0

    def bound(self, level: float) -> int | None:
        """Give the bound on a quantile; ``None`` as long as there are too few waits for it."""
        rank = upper_rank(len(self.ordered), level, CONFIDENCE)
        return None if rank is None else self.ordered[rank - 1]

    def add(self, wait: int, bound: int | None) -> bool:
        """Take note of a wait and of the bound that was given for it; tell whether to cut."""
        self.waits.append(wait)
        bisect.insort(self.ordered, wait)
        self.above = self.above + 1 if bound is not None and wait > bound else 0
        if len(self.waits) >= 1.1 * self.reviewed + FEWEST:
            recent = np.log1p(np.array(self.waits[-_SIGHT:], dtype=np.float64))
            self.rare = rare_run(int(100 * lag_one_autocorrelation(recent)), TRACKED)
            self.reviewed = len(self.waits)
        return self.above >= self.rare and len(self.waits) > FEWEST


class _Queue:
    """Waits of one queue, in clusters."""

    def __init__(self) -> None:
        self._history: dict[Cell, list[tuple[int, int]]] = {}  # (number of the start, wait)
        self._series: dict[Cell, _Series] = {}
        self._whole = _Series()
        self._starts = 0

    def series(self, cell: Cell) -> _Series:
        """Give the cluster's waits, or the queue's as long as the cluster has too few."""
        series = self._series.get(cell)
        return self._whole if series is None or len(series.waits) < FEWEST else series

    def add(self, cell: Cell, wait: int, bound: int | None) -> None:
        """Take note of a wait, and of the bound that was given for it."""
        self._starts += 1
        self._history.setdefault(cell, []).append((self._starts, wait))
        if self._whole.add(wait, bound):
            self._whole = _cut(self._whole)
        series = self._series.setdefault(cell, _Series())
        if series.add(wait, bound):
            left = _cut(series)
            cells = [other for other, its in self._series.items() if its is series]
            oldest = self._oldest(cells)
            for other in cells:
                self._series[other] = left
                kept = self._history[other]
                del kept[: bisect.bisect_left(kept, (oldest, 0))]
        if self._starts % CLUSTERED_EVERY == 0:
            self._cluster()

    def _oldest(self, cells: list[Cell]) -> int:
        """Give the number of the first start of the last `FEWEST` of some cells."""
        starts = sorted(start for cell in cells for start, _ in self._history[cell])
        return starts[-FEWEST]

    def _cluster(self) -> None:
        known = {
            cell: (len(starts), float(sum(wait for _, wait in starts)))
            for cell, starts in self._history.items()
            if starts
        }
        self._series = {}
        for cells in clusters(known):
            starts = sorted(start for cell in cells for start in self._history[cell])
            waits = [wait for _, wait in starts]
            together = _Series(waits, sorted(waits))
            for cell in cells:
                self._series[cell] = together


def _cut(series: _Series) -> _Series:
    left = series.waits[-FEWEST:]
    return _Series(left, sorted(left))


class Qbets:
    """QBETS as a forecaster of waits.

    The quantile at a level from 0.5 on is BMBP's upper bound on it at confidence 0.95, at a lower
    level the lower bound; where no wait is as long (or short) as to be one with that confidence,
    the longest seen (or 0). A job that has waited already is told what is left of the waits that
    were longer. There is no answer before the machine has seen 59
    waits; queues and clusters speak for themselves from 59 on.

    Parameters
    ----------
    now_within_s
        A wait up to so many seconds is a start at once.
    """

    name = "qbets"
    oracle = False

    def __init__(self, now_within_s: int = 0) -> None:
        self._now_within_s = now_within_s
        self._queues: dict[str | None, _Queue] = {}
        self._machine = _Queue()
        self._given: dict[str, int | None] = {}

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer jobs will wait: from now, or from when they can start."""
        jobs = [moment.requests[column] for column in moment.asked.tolist()]
        wait_s = np.full((len(jobs), len(LEVELS)), np.nan)
        starts_now = np.full(len(jobs), np.nan)
        waited = moment.waited_s().tolist()
        for row, job in enumerate(jobs):
            series = self._series(job)
            if len(series.waits) >= FEWEST:
                wait_s[row], starts_now[row] = self._quantiles(series.ordered, waited[row])
        return WaitForecasts(wait_s, starts_now).later(moment.to_come_s())

    def submitted(self, job: JobRequest) -> None:
        """Give the job the bound that its wait will be compared with."""
        self._given[job.job_id] = self._series(job).bound(TRACKED)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn a wait."""
        wait, cell = start_time - job.submit_time, cell_of(job)
        bound = self._given.pop(job.job_id, None)
        self._queues.setdefault(job.queue, _Queue()).add(cell, wait, bound)
        self._machine.add(cell, wait, bound)

    def finished(self, job: FinishedJob) -> None:
        """Forget a job that was withdrawn."""
        self._given.pop(job.request.job_id, None)

    def _series(self, job: JobRequest) -> _Series:
        queue = self._queues.get(job.queue)
        if queue is not None:
            series = queue.series(cell_of(job))
            if len(series.waits) >= FEWEST:
                return series
        return self._machine.series(cell_of(job))

    def _quantiles(self, ordered: list[int], elapsed: int) -> tuple[Float64Array, float]:
        """Give the quantiles of what is left of longer waits, and the share of starts at once."""
        if elapsed > 0:
            longer = ordered[bisect.bisect_left(ordered, elapsed) :]
            # Few have waited as long: what the longest had left is all that can be said.
            ordered = longer or ordered[-1:]
        count = len(ordered)
        waits = []
        for level in LEVELS:
            if level < 0.5:
                rank = lower_rank(count, level, CONFIDENCE)
                wait = 0 if rank is None else ordered[rank - 1] - elapsed
            else:
                wait = ordered[(upper_rank(count, level, CONFIDENCE) or count) - 1] - elapsed
            waits.append(max(wait, 0))
        at_once = bisect.bisect_right(ordered, elapsed + self._now_within_s) / count
        return np.maximum.accumulate(np.array(waits, dtype=np.float64)), at_once
