"""A machine whose jobs choose their sizes when they come to the head of the queue.

After A. B. Downey, "Using queue time predictions for processor allocation", Technical Report
CSD-97-929, University of California at Berkeley, 1997 (reference [5] of Downey 1997): what do
greedy choices do to everybody? The queue is strictly first come, first served; a job at its head
chooses once, then waits until so many processors are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import LONGEST_S

from foretime_sim.engine.stepwise import Engine
from foretime_sim.models.speedup import Speedup
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy


@dataclass(frozen=True, slots=True)
class MalleableJobs:
    """Jobs that run on any size, in submission order.

    Attributes
    ----------
    submit_time
        Seconds, shape (jobs,).
    sequential_s
        Run time on one processor, seconds.
    speedups
        Of each job.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.models.speedup import Speedup
    >>> from foretime_sim.self_tuning.malleable import MalleableJobs
    >>> speedup = Speedup(parallelism=16, variation=0)
    >>> jobs = MalleableJobs(np.array([0]), np.array([3600.0]), (speedup,))
    >>> jobs.runtimes(0, np.array([1, 4, 16, 64])).tolist()
    [3600, 900, 225, 225]
    """

    submit_time: Int64Array
    sequential_s: Float64Array
    speedups: tuple[Speedup, ...]

    def __len__(self) -> int:
        return len(self.submit_time)

    def runtimes(self, job: int, processors: Int64Array) -> Int64Array:
        """Give a job's run time on sizes, whole seconds, at least 1."""
        exact = self.speedups[job].runtime_s(float(self.sequential_s[job]), processors)
        return np.maximum(np.rint(exact), 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class HeadState:
    """What a job at the head of the queue sees.

    Attributes
    ----------
    time
        Seconds.
    machine_processors, free
        Size of the machine, and free processors.
    running
        Indices of the running jobs; all others before it have ended.
    held, age
        Of the running jobs: processors, and seconds that they have run.
    queued
        How many jobs wait behind it.
    """

    time: int
    machine_processors: int
    free: int
    running: Int64Array
    held: Int64Array
    age: Int64Array
    queued: int


SizeRule: TypeAlias = Callable[[int, HeadState], int]
"""Chooses a job's number of processors, given its index and what it sees."""


@dataclass(frozen=True, slots=True)
class MalleableSchedule:
    """When each job started and ended, and on how many processors; shape (jobs,)."""

    start_time: Int64Array
    end_time: Int64Array
    processors: Int64Array


def draw_malleable_jobs(
    jobs: int, machine_processors: int, load: float, seed: int, longest_s: float = 86_400.0
) -> MalleableJobs:
    """Draw a workload after Downey's: uniform-log work and parallelism, uniform variation.

    Arrivals are a Poisson process at the rate at which the jobs' sequential work is ``load`` of
    what the machine could do.

    Parameters
    ----------
    jobs
        How many.
    machine_processors
        Size of the machine; A is between 1 and that.
    load
        Offered load in sequential work.
    seed
        What decides the draws.
    longest_s
        Longest run time on A processors' worth of speedup, seconds; the shortest is 6 s.
    """
    rng = np.random.default_rng(seed)
    parallelism = np.exp(rng.uniform(0.0, np.log(machine_processors), jobs))
    variation = rng.uniform(0.0, 2.0, jobs)
    sequential = np.exp(rng.uniform(np.log(6.0), np.log(longest_s), jobs)) * parallelism
    gap = sequential.mean() / (machine_processors * load)
    submit = np.rint(np.cumsum(rng.exponential(gap, jobs))).astype(np.int64)
    speedups = tuple(
        Speedup(float(a), float(sigma)) for a, sigma in zip(parallelism, variation, strict=True)
    )
    return MalleableJobs(submit, sequential, speedups)


def schedule_malleable(
    jobs: MalleableJobs, machine_processors: int, rule: SizeRule
) -> MalleableSchedule:
    """Run jobs whose sizes a rule chooses at the head of the queue; the engine starts them."""
    engine = Engine(machine_processors, Policy(backfill=Backfill.NONE))
    chosen = np.zeros(len(jobs), dtype=np.int64)
    start = np.zeros(len(jobs), dtype=np.int64)
    now = 0
    for job in range(len(jobs)):
        now = max(now, int(jobs.submit_time[job]))
        engine.advance(now)
        engine.settle()
        running = engine.running()  # the engine's indices are the jobs': it has them one by one
        views = [engine.job(index) for index in running.tolist()]
        waiting = int(np.searchsorted(jobs.submit_time, now, side="right")) - job - 1
        state = HeadState(
            now,
            machine_processors,
            engine.free_processors,
            running,
            np.array([view.processors for view in views], dtype=np.int64),
            np.array([now - (view.start_time or 0) for view in views], dtype=np.int64),
            waiting,
        )
        chosen[job] = rule(job, state)
        runtime = int(jobs.runtimes(job, chosen[job : job + 1])[0])
        index = engine.submit(now, int(chosen[job]), runtime, LONGEST_S)
        engine.settle()
        while engine.job(index).start_time is None:
            engine.advance(engine.next_event_time or now)
            engine.settle()
        now = engine.job(index).start_time or now
        start[job] = now
    end = start + np.array(
        [int(jobs.runtimes(job, chosen[job : job + 1])[0]) for job in range(len(jobs))]
    )
    return MalleableSchedule(start, end, chosen)
