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
    since
        When each of those could first start, or can, seconds, shape (asked,); ``None``: when it
        joined the queue, or joins it, by the snapshot.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_estimators import JobRequest
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.stepwise import Engine
    >>> from foretime_sim.waits.moment import Moment
    >>> engine = Engine(8, Policy())
    >>> for _ in range(2):
    ...     job = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> _ = engine.advance(60)
    >>> jobs = [JobRequest(name, "ann", None, 8, 3600, 0) for name in ("1", "2")]
    >>> moment = Moment(Snapshot.of(engine), Policy(), jobs, asked=np.array([1]))
    >>> moment.waited_s().tolist()
    [60]
    """

    snapshot: Snapshot
    policy: Policy
    requests: Sequence[JobRequest]
    asked: Int64Array
    since: Int64Array | None = None

    def __post_init__(self) -> None:
        jobs, running = len(self.snapshot), len(self.snapshot.running)
        if len(self.requests) != jobs:
            raise InputError(f"{len(self.requests)} requests for a snapshot of {jobs} jobs")
        if len(self.asked) and not running <= self.asked.min() <= self.asked.max() < jobs:
            raise InputError(f"asked: give columns of pending jobs, {running} to {jobs - 1}")
        if self.since is not None and len(self.since) != len(self.asked):
            raise InputError(f"since: {len(self.since)} times for {len(self.asked)} jobs asked")

    @property
    def now(self) -> int:
        """Seconds."""
        return self.snapshot.now

    def waits_from(self) -> Int64Array:
        """Give the time from which the wait of each job asked about counts, seconds.

        That is when it could first start, or can; of one with an open dependency, of which that is
        not known, now.
        """
        pending, rows = self.snapshot.pending, self.asked - len(self.snapshot.running)
        since = pending.joins_at()[rows] if self.since is None else self.since
        if pending.dependencies is not None:
            late = np.isin(rows, pending.dependencies.job)
            since = np.where(late, np.maximum(since, self.now), since)
        return since

    def to_come_s(self) -> Int64Array:
        """Give how long none of the jobs asked about can start yet, seconds, 0 if it can now."""
        return np.maximum(self.waits_from() - self.now, 0)

    def waited_s(self) -> Int64Array:
        """Give how long each job asked about has waited since it could start, seconds."""
        return np.maximum(self.now - self.waits_from(), 0)

    def ages(self) -> Int64Array:
        """Seconds that each job has run, 0 for pending ones; shape (jobs,)."""
        age = np.zeros(len(self.snapshot), dtype=np.int64)
        age[: len(self.snapshot.running)] = self.now - self.snapshot.running.start_time
        return age
