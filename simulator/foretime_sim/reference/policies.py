"""Policies in Python in the plain Python reference: asked, and what they see of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.reference.simulated import ReferenceJob, Simulated

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


class AskedPolicies:
    """Asks the policies in Python of one simulation.

    Parameters
    ----------
    simulation
        Whose queue it is; what they see is a `foretime_sim.policies.policy_views.JobSource` of it.
    jobs
        All jobs of the run, by index.
    calls
        Who is asked.
    """

    def __init__(
        self, simulation: Simulated, jobs: Sequence[ReferenceJob], calls: PolicyCalls
    ) -> None:
        self._simulation = simulation
        self._jobs = tuple(jobs)
        self._calls = calls
        # Since somebody was asked last:
        self.started: list[int] = []
        self.finished: list[int] = []

    def in_order(self, pending: list[ReferenceJob]) -> list[ReferenceJob]:
        """Sort the queue by an order in Python."""
        if not pending:
            return []
        queue = _array(job.index for job in pending)
        scores = self._calls.scores(self, queue, self._simulation.now, *self._news())
        score_of = dict(zip(queue.tolist(), scores.tolist(), strict=True))
        return sorted(pending, key=lambda job: (-score_of[job.index], job.index))

    def chosen(self, queue: list[ReferenceJob], on_requested: bool) -> list[ReferenceJob]:
        """Give the jobs that backfilling in Python starts, of a queue with a blocked head job."""
        indices = _array(job.index for job in queue)
        now = self._simulation.now
        chosen = self._calls.backfill(self, indices, now, *self._news(), on_requested)
        return [self._jobs[index] for index in chosen.tolist()]

    def _news(self) -> tuple[Int64Array, Int64Array]:
        news = _array(self.started), _array(self.finished)
        self.started, self.finished = [], []
        return news

    # What policies see

    @property
    def free_processors(self) -> int:
        """How many processors are free."""
        return self._simulation.free

    def values(self, field: str, jobs: Int64Array) -> Int64Array:
        """Give a field of some jobs."""
        return _array(getattr(self._jobs[job], _NAMES[field]) for job in jobs.tolist())

    def planned_ends(self, jobs: Int64Array, on_requested: bool) -> Int64Array:
        """Give when plans assume running jobs to end, never before now."""
        running = [self._jobs[job] for job in jobs.tolist()]
        ends = [job.hard_end if on_requested else job.expected_end for job in running]
        return _array(max(self._simulation.now, end) for end in ends)

    def running(self) -> Int64Array:
        """Give the running jobs, by index."""
        return np.sort(_array(job.index for job in self._simulation.running))


def _array(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, dtype=np.int64)
