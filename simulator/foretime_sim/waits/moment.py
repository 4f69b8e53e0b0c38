"""A moment at which it is asked when jobs will start: what is known then, nothing from later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.policy import Policy


@dataclass(frozen=True, slots=True)
class Moment:
    """Machine and queue at one moment, and the jobs that are asked about.

    Attributes
    ----------
    snapshot
        Running jobs, then pending ones. A job asked about at its submission is among the pending
        ones already; one that is not yet submitted has been added (`Snapshot.with_job`).
    policy
        What the scheduler does, as far as is known.
    requests
        Every job of the snapshot as its user submitted it, in the order of columns.
    asked
        Columns of the pending jobs that are asked about, shape (asked,).
    """

    snapshot: Snapshot
    policy: Policy
    requests: Sequence[JobRequest]
    asked: Int64Array

    def __post_init__(self) -> None:
        jobs, running = len(self.snapshot), len(self.snapshot.running)
        if len(self.requests) != jobs:
            raise InputError(f"{len(self.requests)} requests for a snapshot of {jobs} jobs")
        if len(self.asked) and not running <= self.asked.min() <= self.asked.max() < jobs:
            raise InputError(f"asked: give columns of pending jobs, {running} to {jobs - 1}")

    @property
    def now(self) -> int:
        """Seconds."""
        return self.snapshot.now

    def ages(self) -> Int64Array:
        """Seconds that each job has run, 0 for pending ones; shape (jobs,)."""
        age = np.zeros(len(self.snapshot), dtype=np.int64)
        age[: len(self.snapshot.running)] = self.now - self.snapshot.running.start_time
        return age
