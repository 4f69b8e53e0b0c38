"""The starvation guard in production: while a head job waits too long, nothing is planned short.

It is the guard of the simulator (`foretime_sim.policies.guard.Guard`): when a job is
first seen blocked at the head of its queue, its start is planned on requested times; once it is
blocked for longer than a bound after that, jobs are planned with their own limits until it has
started.
"""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.queue.start_on_requests import start_on_requests


class StarvationGuard:
    """Watches the head job of each slurm_partition.

    Parameters
    ----------
    bound_s
        How long a head job may wait over its plan on requested times, seconds.

    Attributes
    ----------
    waiting_too_long
        The job that waits longer than that, ``None`` if none does.
    """

    def __init__(self, bound_s: int) -> None:
        self._bound_s = bound_s
        self._planned_start: dict[str, int] = {}  # by job id, of those that were the head
        self.waiting_too_long: str | None = None

    def look(self, queue: Queue, now: int) -> None:
        """Take note of the queue as it is at ``now``, epoch seconds."""
        waiting = [job for job in queue.jobs if job.state is QueueState.PENDING]
        ids = {job.request.job_id for job in waiting}
        if self.waiting_too_long not in ids:
            self.waiting_too_long = None
        known = self._planned_start
        self._planned_start = {job_id: known[job_id] for job_id in known.keys() & ids}
        for head in _heads(waiting, now):
            job_id = head.request.job_id
            if job_id not in self._planned_start:
                self._planned_start[job_id] = start_on_requests(head, queue, now)
            if self.waiting_too_long is None:
                overdue_s = now - self._planned_start[job_id]
                self.waiting_too_long = job_id if overdue_s > self._bound_s else None


def _heads(waiting: Sequence[QueuedJob], now: int) -> list[QueuedJob]:
    """Give the first job of each queue that could start but for the machine being full."""
    heads: dict[str | None, QueuedJob] = {}
    for job in waiting:
        if job.held or job.dependent or (job.eligible_time or 0) > now:
            continue
        if job.reason not in ("", "None", "Resources", "Priority"):
            continue  # it waits for something else: a limit, a reservation, its nodes
        head = heads.get(job.request.queue)
        if head is None or job.priority > head.priority:
            heads[job.request.queue] = job
    return list(heads.values())
