"""The circuit breaker: judges whether enforce does harm, and remembers it until it is reset.

It changes nothing by itself. While it is open, `foretime_sidecar.safety.hook_supervision` lets the
table carry observe; an administrator resets it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.settings.settings import BreakerSettings
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.decisions import Decisions
from foretime_sidecar.store.finished_waits import FinishedWaits
from foretime_sidecar.store.store import Store
from foretime_sidecar.wording.durations import format_duration

_AGAIN_S = 300


@dataclass(frozen=True, slots=True)
class BreakerFigures:
    """What the breaker judges.

    Attributes
    ----------
    planned_jobs
        Jobs planned with t_sched that ended in the window.
    outliving_percent
        Of them those that ran longer than t_sched; ``None`` with too few jobs.
    head_slip_s
        Largest delay of a head job in the window, or of one that waits, seconds.
    wait_p99_s
        99th percentile of the waits of all jobs that ended in the window; ``None`` with too few.
    """

    planned_jobs: int
    outliving_percent: float | None
    head_slip_s: int
    wait_p99_s: int | None


@dataclass(frozen=True, slots=True)
class Trip:
    """When the breaker opened (epoch seconds), and why."""

    tripped_at: int
    reason: str


class CircuitBreaker:
    """Opens when a figure passes its limit; used with the sidecar's lock held.

    Parameters
    ----------
    limits, store
        The settings, and where it keeps what happened: an open breaker stays open over restarts.
    """

    def __init__(self, limits: BreakerSettings, store: Store) -> None:
        self._limits = limits
        self._events = BreakerEvents(store)
        self._decisions = Decisions(store)
        self._waits = FinishedWaits(store)
        self._looked_at: int | None = None

    def note_heads(self, jobs: Sequence[QueuedJob], now: int) -> None:
        """Record when the jobs at the head of the queue are planned to start.

        Slurm calls the reason of the first job that waits in a slurm_partition Resources, that of
        the others Priority; PBS plans the start of its top jobs alone.
        """
        heads = [
            (
                job.request.array_id or job.request.job_id,
                job.request.submit_time,
                job.start_time,
            )
            for job in jobs
            if job.state is QueueState.PENDING
            and job.start_time is not None
            and job.reason in ("Resources", "")
            and not job.held
        ]
        if heads:
            self._events.note_heads(heads, now)

    def figures(self, now: int) -> BreakerFigures:
        """Work the figures out as of now."""
        since = now - self._limits.window_s
        # What was reset counts no more.
        since = max(since, self._events.reset_at())
        planned, outliving = self._decisions.outliving_since(since)
        waits = self._waits.since(since)
        enough = planned >= self._limits.least_jobs
        return BreakerFigures(
            planned_jobs=planned,
            outliving_percent=100 * outliving / planned if enough else None,
            head_slip_s=max(self._events.head_slip_since(since), 0),
            # The smallest that 99% of the waits do not pass.
            wait_p99_s=max(waits[math.ceil(0.99 * len(waits)) - 1], 0) if enough else None,
        )

    def judge(self, now: int) -> Trip | None:
        """Open the breaker if a figure passes its limit; give why it is open, if it is.

        Raises
        ------
        StateError
            If it can't be stored.
        """
        trip = self.trip()
        if trip is not None or not self._has_limits:
            return trip
        if self._looked_at is not None and 0 <= now - self._looked_at < _AGAIN_S:
            return None
        self._looked_at = now
        reason = self._passed(self.figures(now))
        if not reason:
            return None
        self._events.add(BreakerEvent(now, "tripped", reason))
        return Trip(now, reason)

    @property
    def _has_limits(self) -> bool:
        limits = self._limits
        return bool(
            limits.most_outliving_percent < 100 or limits.most_head_slip_s or limits.most_wait_p99_s
        )

    def _passed(self, figures: BreakerFigures) -> str:
        limits = self._limits
        percent = figures.outliving_percent
        if percent is not None and percent > limits.most_outliving_percent:
            return (
                f"{percent:.1f}% of {figures.planned_jobs} planned jobs outlived their scheduled "
                f"time (breaker.most_outliving_percent = {limits.most_outliving_percent:g})"
            )
        if limits.most_head_slip_s and figures.head_slip_s > limits.most_head_slip_s:
            return (
                f"a head job's start slipped by {format_duration(figures.head_slip_s)} "
                f"(breaker.most_head_slip_s = {limits.most_head_slip_s})"
            )
        wait = figures.wait_p99_s
        if wait is not None and limits.most_wait_p99_s and wait > limits.most_wait_p99_s:
            return (
                f"the 99th percentile of the waits is {format_duration(wait)} "
                f"(breaker.most_wait_p99_s = {limits.most_wait_p99_s})"
            )
        return ""

    def trip(self) -> Trip | None:
        """Give when and why the breaker opened; ``None`` if it is closed."""
        latest = self._events.latest()
        if latest is None or latest.event != "tripped":
            return None
        return Trip(latest.happened_at, latest.reason)

    def reset(self, now: int) -> Trip | None:
        """Close the breaker; give why it was open, ``None`` if it was closed."""
        trip = self.trip()
        if trip is not None:
            # Else a head job that waits on would open it again at the next look.
            self._events.forget_slips()
            self._events.add(BreakerEvent(now, "reset", ""))
            self._looked_at = None
        return trip
