"""Policies in Python in the plain Python reference: what they see of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from foretime_sim.workload import Int64Array

_NAMES = {
    "submit_time": "submit",
    "processors": "processors",
    "requested_time": "requested",
    "scheduled_time": "queue_time",
    "backfill_time": "backfill_time",
    "priority": "priority",
    "start_time": "start",
    "end_time": "end",
}


class _Job(Protocol):
    index: int
    expected_end: int

    @property
    def hard_end(self) -> int: ...


class ReferenceJobs:
    """The reference's jobs at one moment, as `foretime_sim.policy_views.JobSource`.

    Parameters
    ----------
    jobs
        All jobs of the run, by index.
    running
        Those that run.
    free_processors, now
        Of the machine; the clock, seconds.
    """

    def __init__(
        self, jobs: Sequence[_Job], running: Iterable[_Job], free_processors: int, now: int
    ) -> None:
        self._jobs = jobs
        self._running = running
        self.free_processors = free_processors
        self._now = now

    def values(self, field: str, jobs: Int64Array) -> Int64Array:
        """Give a field of some jobs."""
        return _array(getattr(self._jobs[job], _NAMES[field]) for job in jobs.tolist())

    def planned_ends(self, jobs: Int64Array, on_requested: bool) -> Int64Array:
        """Give when plans assume running jobs to end, never before now."""
        running = [self._jobs[job] for job in jobs.tolist()]
        ends = [job.hard_end if on_requested else job.expected_end for job in running]
        return _array(max(self._now, end) for end in ends)

    def running(self) -> Int64Array:
        """Give the running jobs, by index."""
        return np.sort(_array(job.index for job in self._running))


def _array(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, dtype=np.int64)
