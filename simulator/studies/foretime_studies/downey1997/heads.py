"""Jobs at the head of an FCFS queue, and what Downey's predictors say of their waits.

Downey 1997, section 5: a log's arrivals, sizes and runtimes are scheduled strictly first come,
first served; when a job comes to the head of the queue and has to wait there, its wait is predicted
from the state of the machine. Jobs that start as they come to the head are not predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes, Overdue, RunningLives
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey import (
    SMALL_NEED,
    benefactors,
    exact_median_wait,
    mean_wait,
    median_wait,
)
from foretime_sim.workloads.workload import Workload

FCFS = Policy(backfill=Backfill.NONE)

ModelOf: TypeAlias = Callable[[int, int], Lifetimes | None]
"""Gives the lifetimes of a job, by its index, as known at a time; ``None``: the past repeats."""


@dataclass(frozen=True, slots=True)
class HeadMoment:
    """A job that comes to the head of the queue, and has to wait there."""

    job: int
    time: int  # when it comes to the head, seconds
    needed: int  # n', processors beyond those that are free
    running: Int64Array  # indices of the running jobs
    wait_s: int  # how long it waits at the head: what is predicted


@dataclass(frozen=True, slots=True)
class Heads:
    """A log's FCFS schedule, and the jobs that waited at the head."""

    workload: Workload
    # start_time, end_time: shape (jobs,), seconds
    start_time: Int64Array
    end_time: Int64Array
    moments: tuple[HeadMoment, ...]  # in order of time

    @property
    def needed(self) -> Int64Array:
        """Processors that each moment lacks, n'."""
        return np.array([moment.needed for moment in self.moments], dtype=np.int64)

    @property
    def wait_s(self) -> Int64Array:
        """Wait at the head of each moment, seconds."""
        return np.array([moment.wait_s for moment in self.moments], dtype=np.int64)

    @property
    def time(self) -> Int64Array:
        """When each moment was, seconds."""
        return np.array([moment.time for moment in self.moments], dtype=np.int64)

    def benefactors(self) -> Int64Array:
        """Count the running jobs that satisfy each moment's need alone."""
        processors = self.workload.processors
        return np.array(
            [len(benefactors(each.needed, processors[each.running])) for each in self.moments],
            dtype=np.int64,
        )


def heads_of(workload: Workload) -> Heads:
    """Schedule a log first come, first served, and find who waited at the head.

    A job comes to the head when it is submitted, or when the job before it starts if that is later.
    """
    schedule = simulate(workload, FCFS)
    start, end = schedule.start_time, schedule.end_time
    before = np.concatenate([start[:1], start[:-1]])
    at_head = np.maximum(workload.submit_time, before)
    moments = []
    running = np.zeros(0, dtype=np.int64)
    for job in np.flatnonzero(start > at_head).tolist():
        time = int(at_head[job])
        last = int(running[-1]) + 1 if len(running) else 0
        running = np.concatenate([running, np.arange(last, job, dtype=np.int64)])
        running = running[end[running] > time]
        free = workload.machine_processors - int(workload.processors[running].sum())
        needed = int(workload.processors[job]) - free
        moments.append(HeadMoment(job, time, needed, running, int(start[job]) - time))
    return Heads(workload, start, end, tuple(moments))


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted waits at the head, seconds, NaN where there is no answer; shape (moments,)."""

    # by_a, by_b, combined: predictors A, B and their combination
    by_a: Float64Array
    by_b: Float64Array
    combined: Float64Array
    overdue: float  # share of the running jobs that had outlived their models


def lives_at(
    heads: Heads, moment: HeadMoment, model_of: ModelOf, overdue: Overdue = Overdue.PAST_REPEATS
) -> RunningLives:
    """Give the conditional lifetimes of what runs at a moment."""
    models = [model_of(job, moment.time) for job in moment.running.tolist()]
    return RunningLives(models, moment.time - heads.start_time[moment.running], overdue)


def predict(
    heads: Heads,
    model_of: ModelOf,
    moments: Sequence[HeadMoment] | None = None,
    *,
    overdue: Overdue = Overdue.PAST_REPEATS,
    small_need: float = SMALL_NEED,
) -> Predicted:
    """Ask the predictors at every moment, or at those given."""
    asked = heads.moments if moments is None else moments
    found = np.full((3, len(asked)), np.nan)
    outlived, running = 0, 0
    for place, moment in enumerate(asked):
        lives = lives_at(heads, moment, model_of, overdue)
        held = heads.workload.processors[moment.running]
        by_a = median_wait(moment.needed, held, lives)
        by_b = mean_wait(moment.needed, held, lives)
        use_a = moment.needed < small_need and not np.isnan(by_a)
        found[:, place] = by_a, by_b, by_a if use_a else by_b
        outlived += int(lives.overdue.sum())
        running += len(held)
    return Predicted(found[0], found[1], found[2], outlived / max(running, 1))


def predict_exactly(heads: Heads, model_of: ModelOf, moments: Sequence[HeadMoment]) -> Float64Array:
    """Give the exact median wait at moments, of which predictor A takes single benefactors only."""
    return np.array(
        [
            exact_median_wait(
                moment.needed,
                heads.workload.processors[moment.running],
                lives_at(heads, moment, model_of),
            )
            for moment in moments
        ]
    )


def correlation(
    predicted: Float64Array,
    actual: Int64Array | Float64Array,
    *,
    log: bool = False,  # of the logarithms; what is below a second counts as one
) -> float:
    """Give Pearson's coefficient over the answers; NaN for fewer than three."""
    answered = ~np.isnan(predicted)
    x, y = predicted[answered], actual[answered].astype(np.float64)
    if log:
        x, y = np.log(np.maximum(x, 1.0)), np.log(np.maximum(y, 1.0))
    if len(x) < 3 or x.std() == 0 or y.std() == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
