"""Whom jobs that start at once may not delay, by what is known of their starts without Foretime.

Those are late whose start without Foretime is known and long ago; of the others those are taken for
late that have waited for long. Late jobs hold reservations. Once all that would have started have
too much work together, only late jobs are raised: else their reservations wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.start_plan import holds_reservation


class LateJobs(Protocol):
    """Who knows; `foretime_sidecar.plain_beside.late_jobs.LateJobs`."""

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        """Give by how many seconds a job is later than it may be, 0 if it is not, if known."""
        ...

    def are_behind(self, waiting: Iterable[QueuedJob], now: int, processors: int) -> bool:
        """Whether jobs that could start, and would have without us, have too much work together."""
        ...


class ProtectedJobs:
    """Whom nobody may delay at one moment.

    Parameters
    ----------
    late
        Who knows when jobs start without Foretime; ``None``: nobody.
    after_s
        How long a job waits until it is taken for late where nobody knows; 0: never.
    waiting
        All that wait.
    now
        Epoch seconds.
    processors
        Of the whole machine.
    """

    def __init__(
        self,
        late: LateJobs | None,
        after_s: int,
        waiting: Iterable[QueuedJob],
        now: int,
        processors: int,
    ) -> None:
        self._late, self._after_s, self._now = late, after_s, now
        able = (job for job in waiting if can_start(job, now))
        self._are_behind = late is not None and late.are_behind(able, now, processors)

    def has(self, job: QueuedJob) -> bool:
        """Whether a job holds a reservation, though it may not be the first."""
        late_s = None if self._late is None else self._late.late_s(job, self._now)
        if late_s is None:
            return holds_reservation(job, self._after_s, self._now)
        return late_s > 0 and can_start(job, self._now)

    def let_pass(self, job: QueuedJob) -> bool:
        """Whether a job may be raised as far as others' waits go."""
        return not self._are_behind or self.has(job)
