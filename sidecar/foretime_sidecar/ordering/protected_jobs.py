"""Whom jobs that start at once may not delay, by what is known of their starts without Foretime.

Those are late whose start without Foretime is known and long ago; of the others those are taken for
late that have waited for long. Late jobs hold reservations. The later one is that needs over half
of its slurm_partition, the more others must fit with what they ask for: else its reservation moves
away with each that is let in before it. Once those that would have started have too much work
together for the nodes that they wait for, only late jobs are raised there: else their reservations
wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.machine_parts import MachinePart, MachineParts
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.start_plan import holds_reservation

WHOLLY_LATE_S = 10_800
"""So much later than it may be a job is as late as counts."""


class LateJobs(Protocol):
    """Who knows; `foretime_sidecar.plain_beside.late_jobs.LateJobs`."""

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        """Give by how many seconds a job is later than it may be, 0 if it is not, if known."""
        ...

    def behind_in(
        self, waiting: Iterable[QueuedJob], now: int, machine: MachineParts
    ) -> Collection[MachinePart]:
        """Give the parts where jobs that would have started have too much work together."""
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
    machine
        The parts that jobs wait for.
    """

    def __init__(
        self,
        late: LateJobs | None,
        after_s: int,
        waiting: Iterable[QueuedJob],
        now: int,
        machine: MachineParts,
    ) -> None:
        self._late, self._after_s, self._now, self._machine = late, after_s, now, machine
        able = (job for job in waiting if can_start(job, now))
        behind = () if late is None else late.behind_in(able, now, machine)
        self._behind = frozenset(behind)

    def late_by(self, job: QueuedJob) -> float | None:
        """Give how late a job is that holds a reservation, though it may not be the first, 0 to 1.

        ``None``: it holds none. Who is taken for late, as its start without Foretime is not known,
        counts as just late.
        """
        late_s = None if self._late is None else self._late.late_s(job, self._now)
        if late_s is None:
            return 0.0 if holds_reservation(job, self._after_s, self._now) else None
        if not late_s or not can_start(job, self._now):
            return None
        return min(late_s / WHOLLY_LATE_S, 1.0)

    def let_pass(self, job: QueuedJob) -> bool:
        """Whether a job may be raised as far as others' waits go."""
        if not self._behind or self._behind.isdisjoint(self._machine.also_for(job)):
            return True
        return self.late_by(job) is not None
