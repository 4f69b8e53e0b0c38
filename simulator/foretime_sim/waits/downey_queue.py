"""Downey's predictors for a whole queue: each job waits for those before it.

Downey 1997, section 7.1, says that predictor B extends to the jobs in the queue "in a natural way",
and to other policies, and leaves it at that. Here the queue is gone through in its order. What is
free is continuous, as in B: every job, running or placed already, releases its processors as
it becomes likely to have ended. A job is placed when enough is free, and from then on holds
its own. Predictor A takes part where a job is the next to start: with n' counted against what is
free when the job before it starts, a benefactor being a job that ends from then on.

Under backfilling a job may also be placed in a gap: before a job that is placed already, if enough
is free, and stays free at every start within the time that it asked for. So no placed job is
delayed as far as requested times go; families differ in how many jobs they protect, and this is
one rule for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import RunningLives

from foretime_sim.engine.queue_places import places
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.families import NoBackfilling
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey import SMALL_NEED, first_time, median_wait

_OVER = 1e-6
"""Probability to run still below which a job counts as over."""


def queue_order(snapshot: Snapshot, policy: Policy) -> Int64Array:
    """Give the pending jobs by their place in the queue as it stands now.

    An order in Python counts as first come, first served; jobs that come later are last.
    """
    order = policy.order if isinstance(policy.order, Order) else Order.FCFS
    place = places(snapshot, replace(policy, order=order))
    later = np.maximum(snapshot.pending.joins_at() - snapshot.now, 0)
    return np.lexsort((place, later)).astype(np.int64)


class QueuePrediction:
    """Predicted starts of a queue, found job after job.

    Parameters
    ----------
    snapshot
        Running and pending jobs.
    lives
        Conditional lifetimes of the running jobs, then of the pending ones, whose age is 0.
    policy
        Its order, and whether it backfills.
    small_need
        n' below which predictor A is used: 0 for B alone, infinity for A alone, which then has no
        answer where there is no benefactor, nor for what comes after.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        lives: RunningLives,
        policy: Policy,
        small_need: float = SMALL_NEED,
    ) -> None:
        self._lives = lives
        self._machine_processors = snapshot.machine_processors
        self._held = np.concatenate([snapshot.running.processors, snapshot.pending.processors])
        self._requested = snapshot.pending.requested_time
        self._joins = np.maximum(snapshot.pending.joins_at() - snapshot.now, 0).astype(np.float64)
        self._backfills = not isinstance(policy.backfill, NoBackfilling)
        self._order = queue_order(snapshot, policy)
        self._small_need = small_need
        self._running = len(snapshot.running)
        # Jobs that hold processors or will, running ones first: their columns, and their starts.
        self._columns = np.arange(self._running, dtype=np.int64)
        self._starts = np.zeros(self._running)
        self._holders = lives.of(self._columns)
        # Placed jobs by their starts: when, and what is free before and after each.
        self._placed = np.zeros(0)
        self._before = np.zeros(0)
        self._after = np.zeros(0)

    @property
    def head(self) -> int:
        """Row of the first job of the queue, which has at least one."""
        return int(self._order[0])

    def waits(self, wanted: Collection[int]) -> Float64Array:
        """Give the predicted waits, seconds, shape (pending,); NaN where there is no answer.

        To be asked once.

        Parameters
        ----------
        wanted
            Rows of pending jobs. What is behind the last of them is not looked at, and NaN.
        """
        waits = np.full(len(self._order), np.nan)
        left = set(wanted)
        for row in self._order.tolist():
            if not left:
                break
            start = self._start(row)
            if not np.isnan(start):
                waits[row] = start
                self._place(row, start)
            elif not self._backfills:
                break  # nobody passes a job that has no answer
            left.discard(row)
        return waits

    def head_quantiles(self, shares: Sequence[float]) -> Float64Array | None:
        """Give when the first job of the queue will have started with these probabilities.

        Before anything is placed; ``None`` unless predictor A has an answer: B knows a mean only.
        """
        running = np.arange(self._running, dtype=np.int64)
        needed = self._held[self._running + self._order[0]] - self._free_at(0.0)
        lives, held = self._lives.of(running), self._held[running]
        if not 0 < needed < self._small_need or self._joins[self._order[0]] > 0:
            return None
        quantiles = np.array([median_wait(needed, held, lives, share) for share in shares])
        return None if np.isnan(quantiles).any() else np.maximum.accumulate(quantiles)

    def _start(self, row: int) -> float:
        """Find when a job starts, given those that are placed."""
        needs, joins = float(self._held[self._running + row]), float(self._joins[row])
        if self._backfills:
            in_gap = self._start_in_gap(needs, joins, float(self._requested[row]))
            if not np.isnan(in_gap):
                return in_gap
        begin = max(float(self._placed[-1]), joins) if len(self._placed) else joins
        needed = needs - self._free_at(begin)
        if needed <= 0:
            return begin
        if needed < self._small_need:
            by_a = self._median_start(needed, begin)
            if not np.isnan(by_a) or self._small_need == np.inf:
                return by_a
        return self._first_free(begin, needs)

    def _start_in_gap(self, needs: float, joins: float, requested: float) -> float:
        """Find the first gap that a job fits into; NaN if there is none."""
        if not len(self._placed):
            return float("nan")
        begins = np.maximum(np.concatenate([[0.0], self._placed[:-1]]), joins)
        # After which placed start too little is left: the first such from each gap's end on.
        short = np.append(np.flatnonzero(self._after < needs), len(self._placed))
        first_short = short[np.searchsorted(short, np.arange(len(self._placed)))]
        # Whenever it starts in a gap, it runs beyond the end of it, until this at least.
        runs_past = np.searchsorted(self._placed, begins + requested)
        open_gaps = (self._before >= needs) & (self._placed > joins) & (first_short >= runs_past)
        for gap in np.flatnonzero(open_gaps).tolist():
            # What is free grows from the begin to the end of a gap.
            start = self._first_free(float(begins[gap]), needs)
            until = int(np.searchsorted(self._placed, start + requested))
            if start < self._placed[gap] and first_short[gap] >= until:
                return start
        return float("nan")

    def _first_free(self, begin: float, needs: float) -> float:
        """Find when so much is free from a moment on, if nobody else starts from then on."""
        age = begin - self._starts
        holds = self._holders.survival(age[None])[0]
        chosen = np.flatnonzero((age >= 0) & (holds > _OVER))
        holders, age = self._holders.of(chosen), age[chosen]
        held = self._held[self._columns[chosen]]

        def free(later: Float64Array) -> Float64Array:
            taken = holders.survival(age + later[:, None]) @ held
            return np.asarray(self._machine_processors - taken)

        return begin + first_time(free, needs)

    def _free_at(self, time: float) -> float:
        """Give what is free at a moment, given who is placed."""
        age = time - self._starts
        holds = np.where(age < 0, 0.0, self._holders.survival(age[None])[0])
        return float(self._machine_processors - holds @ self._held[self._columns])

    def _median_start(self, needed: float, begin: float) -> float:
        """Predictor A from a moment on: the median time to the first end of a benefactor.

        A job that is not sure to run at that moment is one with that probability.
        """
        chosen = np.flatnonzero(self._held[self._columns] >= needed)
        age = begin - self._starts[chosen]
        holders = self._holders.of(chosen)
        runs = holders.survival(age[None])

        def started(later: Float64Array) -> Float64Array:
            still = holders.survival(age + later[:, None])
            return np.asarray(1 - (1 - (runs - still)).prod(axis=1))

        return begin + first_time(started, 0.5)

    def _place(self, row: int, start: float) -> None:
        column = self._running + row
        held = float(self._held[column])
        if self._backfills:
            free = self._free_at(start)
            own = self._lives.of(np.array([column]))
            taken = held * own.survival(np.maximum(self._placed - start, 0))[:, 0]
            self._after -= np.where(self._placed >= start, taken, 0)
            self._before -= np.where(self._placed > start, taken, 0)
            place = int(np.searchsorted(self._placed, start, side="right"))
            self._placed = _inserted(self._placed, place, start)
            self._before = _inserted(self._before, place, free)
            self._after = _inserted(self._after, place, free - held)
        else:
            # Nothing starts before this any more: what is over by then need not be looked at.
            lasts = self._holders.survival((start - self._starts)[None])[0] > _OVER
            self._columns, self._starts = self._columns[lasts], self._starts[lasts]
            self._placed = np.array([start])
        self._columns = np.append(self._columns, column)
        self._starts = np.append(self._starts, start)
        self._holders = self._lives.of(self._columns)


def _inserted(values: Float64Array, place: int, value: float) -> Float64Array:
    """Do what `numpy.insert` does, in a tenth of its time."""
    return np.concatenate([values[:place], [value], values[place:]])
