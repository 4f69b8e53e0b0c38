"""What a replay found: the comparison, and what the hook and the sidecar did on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from foretime_sim.comparison import Comparison
from foretime_sim.workload import Int64Array


@dataclass(frozen=True, slots=True)
class Shortening:
    """How far t_sched lay below t_req.

    Attributes
    ----------
    jobs
        Jobs looked at.
    shortened_jobs
        Those with t_sched < t_req.
    median_adjustment
        Median A = t_sched / t_req of the shortened jobs, ``None`` without any.
    median_shortened_s
        Median t_req - t_sched of the shortened jobs, seconds, ``None`` without any.
    underestimated_jobs
        Shortened jobs that ran longer than their t_sched.
    """

    jobs: int
    shortened_jobs: int
    median_adjustment: float | None
    median_shortened_s: float | None
    underestimated_jobs: int

    @classmethod
    def of(
        cls, requested_time: Int64Array, scheduled_time: Int64Array, actual_runtime: Int64Array
    ) -> Shortening:
        """Work it out from what jobs asked for, were planned with, and took; shape (jobs,) each."""
        shortened = scheduled_time < requested_time
        requested, scheduled = requested_time[shortened], scheduled_time[shortened]
        count = int(shortened.sum())
        return cls(
            jobs=len(requested_time),
            shortened_jobs=count,
            median_adjustment=float(np.median(scheduled / requested)) if count else None,
            median_shortened_s=float(np.median(requested - scheduled)) if count else None,
            underestimated_jobs=int((actual_runtime[shortened] > scheduled).sum()),
        )


@dataclass(frozen=True, slots=True)
class HookStatistics:
    """What the hook did with the submissions that it saw.

    Attributes
    ----------
    submissions
        Calls of the hook for new jobs.
    adjusted
        Those that it gave a t_sched below t_req.
    left_alone
        Why it left the others as they were, by the reason that the hook gives.
    errors
        Calls that failed; the job went through untouched.
    table_generations
        Accuracy tables that the sidecar published.
    """

    submissions: int
    adjusted: int
    left_alone: Mapping[str, int] = field(default_factory=dict)
    errors: int = 0
    table_generations: int = 0


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """All that the report, JSON and CSV tell of a replay.

    Attributes
    ----------
    workload_name, machine_processors
        Which log, on which machine.
    simulated_jobs
        Jobs run, scored or not, in each run.
    workload_notes
        What the filters did to the log, one sentence each.
    options
        The options in effect as a person would write them, such as ``{"order": "fcfs"}``.
    comparison
        Without and with Foretime.
    shortening
        Of the first repeat's jobs that are scored.
    hook
        Of the first repeat; ``None`` where no hook was in the loop.
    wall_clock_s
        Seconds that the replay took, reading included.
    peak_memory_bytes
        Largest resident size, ``None`` where not measured.
    """

    workload_name: str
    machine_processors: int
    simulated_jobs: int
    workload_notes: tuple[str, ...]
    options: Mapping[str, str]
    comparison: Comparison
    shortening: Shortening
    hook: HookStatistics | None
    wall_clock_s: float
    peak_memory_bytes: int | None = None

    @property
    def jobs_per_s(self) -> float:
        """Jobs simulated (two runs a repeat) per second of wall clock."""
        return 2 * len(self.comparison.repeats) * self.simulated_jobs / self.wall_clock_s
