"""Which waiting jobs hold reservations though they are not the first: nobody may delay them.

Those are late whose start without Foretime is known and long ago. Of the others those are taken
for late that have waited for long.
"""

from __future__ import annotations

from typing import Protocol

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.start_plan import holds_reservation


class LateJobs(Protocol):
    """Who knows; `foretime_sidecar.plain_beside.late_jobs.LateJobs`."""

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        """Give by how many seconds a job is later than it may be, 0 if it is not, if known."""
        ...


def is_protected(late: LateJobs | None, after_s: int, job: QueuedJob, now: int) -> bool:
    """Whether a job is; ``after_s`` is how long it waits until it is taken for late, 0: never."""
    late_s = None if late is None else late.late_s(job, now)
    if late_s is None:
        return holds_reservation(job, after_s, now)
    return late_s > 0 and can_start(job, now)
