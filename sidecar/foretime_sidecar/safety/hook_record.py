"""What has become of jobs lately, counted: for administrators and their monitoring.

Counting goes over all jobs of the breaker's window, with the sidecar's lock held. So the figures
are kept for minutes, and whoever asks while the lock is taken for long is told the last ones.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.safety.circuit_breaker import BreakerFigures, CircuitBreaker, Trip
from foretime_sidecar.settings.settings import BreakerSettings
from foretime_sidecar.store.decisions import DecidedJobs, Decisions
from foretime_sidecar.store.finished_waits import FinishedWaits
from foretime_sidecar.store.store import Store

_AGAIN_S = 300
_PATIENCE_S = 0.5
PLANNED = frozenset({"planned", "changed"})
"""Actions after which a job is planned with t_sched."""


@dataclass(frozen=True, slots=True)
class HookFigures:
    """Of the window that the circuit breaker judges.

    Attributes
    ----------
    made_at, since
        When they were counted, and from when on jobs count; epoch seconds.
    judged
        What the breaker judges.
    decided
        Jobs by the latest word on each, the most frequent first.
    users
        Whose jobs these are.
    latest_end
        When the job that was read last had ended, epoch seconds; ``None`` without any.
    """

    made_at: int
    since: int
    judged: BreakerFigures
    decided: tuple[DecidedJobs, ...]
    users: int
    latest_end: int | None

    def jobs(self, actions: frozenset[str]) -> int:
        """Give how many jobs one of some actions is the latest word on."""
        return sum(row.jobs for row in self.decided if row.action in actions)

    @property
    def all_jobs(self) -> int:
        """How many jobs were seen."""
        return sum(row.jobs for row in self.decided)

    def unplanned_percent(self) -> float | None:
        """Give the share of jobs that the hook should have planned and did not; of 0: ``None``."""
        unplanned = self.jobs(frozenset({"unplanned"}))
        should_be = unplanned + self.jobs(PLANNED)
        return 100 * unplanned / should_be if should_be else None

    def latest(self, actions: frozenset[str] | None = None) -> int | None:
        """Give when a job was last noted (epoch seconds), as one of some actions or as any."""
        return max(
            (row.latest for row in self.decided if actions is None or row.action in actions),
            default=None,
        )


class HookRecord:
    """Counts what has become of jobs, and knows whether the breaker is open.

    Parameters
    ----------
    limits, store
        The breaker's settings, and where jobs and decisions are kept.
    lock
        Of the store; waited for only briefly.
    breaker
        Whose figures these are.

    Attributes
    ----------
    trip
        Why the breaker was open at the last asking; ``None`` if it was closed.
    """

    def __init__(
        self,
        limits: BreakerSettings,
        store: Store,
        lock: threading.RLock,
        breaker: CircuitBreaker,
    ) -> None:
        self._window_s = limits.window_s
        self._decisions = Decisions(store)
        self._waits = FinishedWaits(store)
        self._lock = lock
        self._breaker = breaker
        self._figures: HookFigures | None = None
        self.trip: Trip | None = None

    def figures(self, now: int) -> HookFigures | None:
        """Give the figures as of a few minutes ago; ``None`` before the first could be counted."""
        if not self._lock.acquire(timeout=_PATIENCE_S):
            return self._figures
        try:
            self.trip = self._breaker.trip()
            known = self._figures
            if known is None or not 0 <= now - known.made_at < _AGAIN_S:
                self._figures = self._counted(now)
        except StateError:  # whoever uses the store for work tells of it, and is counted
            pass
        finally:
            self._lock.release()
        return self._figures

    def forget(self) -> None:
        """Count anew at the next asking, as somebody's rows were erased."""
        self._figures = None

    def _counted(self, now: int) -> HookFigures:
        since = now - self._window_s
        decided, users = self._decisions.counted_since(since)
        judged = self._breaker.figures(now)
        return HookFigures(now, since, judged, decided, users, self._waits.latest_end())
