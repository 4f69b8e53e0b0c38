"""What Streit 2002 measures of a whole schedule (section 5.1, tables 4 and 5).

What it calls response time is turnaround time elsewhere in Foretime, its width processors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_sim.scores.machine_use import MachineUse
from foretime_sim.scores.metrics import (
    JobTimes,
    bounded_slowdown,
    check_schedule,
    mean_by_processors,
)
from foretime_sim.workloads.workload import Workload

BOUND_S, LONGER_BOUND_S = 60, 300
"""Bounds of the slowdown: of all its figures but 7, and of figure 7."""
RUNTIME_CLASSES = ("<= 5 min", "<= 10 min", "<= 1 h", "<= 12 h", "> 12 h")
"""By actual runtime, "arbitrarily" (section 5.2)."""
_CLASS_BOUNDS_S = (300, 600, 3_600, 43_200)


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one schedule over all of its jobs."""

    # Mean from start to end, seconds: a job killed at its estimate has ended there.
    actual_runtime_s: float
    wait_s: float  # mean, seconds
    art_s: float  # ART: mean response time, from submission to end, seconds
    artww_s: float  # ARTwW: the same weighted by processors (width)
    # sldww_60, sldww_300: SLDwW: mean over processors of max(response, b) / max(runtime, b), for b
    # = 60 s and 300 s
    sldww_60: float
    sldww_300: float
    # UTIL: processor-seconds used / (processors x (last end - first submission)).
    utilization: float
    # LOC: processor-seconds idle while any job waits, over the same (Zhang et al. 2000).
    loss_of_capacity: float
    # SLDwW_60 of the jobs of each of `RUNTIME_CLASSES`; ``None`` where a class has none.
    slowdown_of_class: tuple[float | None, ...]
    jobs_of_class: tuple[int, ...]  # jobs of each of `RUNTIME_CLASSES`
    longest_wait_s: int  # seconds; not in the paper

    @classmethod
    def of(cls, workload: Workload, schedule: JobTimes) -> Self:
        """Measure a schedule of at least one job.

        InputError if it is not a schedule of this workload and its machine.
        """
        check_schedule(workload, schedule)
        wait = schedule.start_time - workload.submit_time
        runtime = schedule.end_time - schedule.start_time
        response = wait + runtime
        slowdown = bounded_slowdown(wait, runtime, BOUND_S)
        code = runtime_class(runtime)
        chosen = [code == number for number in range(len(RUNTIME_CLASSES))]
        since, until = int(workload.submit_time.min()), int(schedule.end_time.max())
        machine = MachineUse.of(workload, schedule.start_time, schedule.end_time)
        return cls(
            actual_runtime_s=float(runtime.mean()),
            wait_s=float(wait.mean()),
            art_s=float(response.mean()),
            artww_s=mean_by_processors(response, workload.processors),
            sldww_60=mean_by_processors(slowdown, workload.processors),
            sldww_300=mean_by_processors(
                bounded_slowdown(wait, runtime, LONGER_BOUND_S), workload.processors
            ),
            # An empty span has nothing to use and nothing to lose.
            utilization=machine.utilization(since, until) or 0.0,
            loss_of_capacity=machine.loss_of_capacity(since, until) or 0.0,
            slowdown_of_class=tuple(_mean(slowdown, workload, jobs) for jobs in chosen),
            jobs_of_class=tuple(int(jobs.sum()) for jobs in chosen),
            longest_wait_s=int(wait.max()),
        )


def runtime_class(runtime: Int64Array) -> Int64Array:
    """Index into `RUNTIME_CLASSES` for each job; each bound belongs to the class below it."""
    return np.searchsorted(np.array(_CLASS_BOUNDS_S), runtime).astype(np.int64)


def _mean(values: Float64Array, workload: Workload, jobs: BoolArray) -> float | None:
    return mean_by_processors(values[jobs], workload.processors[jobs]) if jobs.any() else None
