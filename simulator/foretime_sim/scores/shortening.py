"""How far the scheduler's planned runtimes lay below the requested ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array


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
