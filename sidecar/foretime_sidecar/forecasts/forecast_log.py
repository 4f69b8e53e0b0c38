"""Forecasts as they were served, and what came of them.

Of each job the first forecast is kept, and one for each doubling of its wait from ten minutes on;
besides those that somebody asked for, so many at most. A what-if is linked to the job that the same
user submits within the hour, if it is as asked.

What is scored is the wait from when the forecast was made to the start; of a what-if from the
submission of the job. It is in the store until `foretime_sidecar.forecasts.forecast_reliability`
has no more use for it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.waits.wait_scores import pinball_loss

from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.forecasts.forecast_reliability import Reliability, reliability
from foretime_sidecar.queue.queue_events import START, SUBMISSION, Event, Key
from foretime_sidecar.store.served_forecasts import (
    ForecastRow,
    ForecastRows,
    ForecastScore,
)
from foretime_sidecar.store.store import Store

# Doublings of the wait count from here.
_FIRST_LATER_S = 600
# As many that were asked for are kept of one job.
_MOST_ASKED_OF_JOB = 20
_LINKED_WITHIN_S = 3600


@dataclass(frozen=True, slots=True)
class Served:
    """A forecast that was served.

    Attributes
    ----------
    kind
        ``submission``: of a job that had just been submitted; ``later``: of one that had waited;
        ``asked``: that somebody asked for; ``what-if``: of a job that nobody had submitted.
    made_at
        Epoch seconds.
    request
        The job; without an identifier until it is submitted.
    waits
        What was forecast.
    """

    kind: str
    made_at: int
    request: JobRequest
    waits: Waits


class ServedForecasts:
    """Keeps served forecasts in the store, and scores them; forecasts are added from one thread.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    smallest_group
        Figures of fewer users are not given.
    """

    def __init__(self, store: Store, lock: threading.RLock, smallest_group: int) -> None:
        self._smallest_group = smallest_group
        self._store = store
        self._rows = ForecastRows(store)
        self._lock = lock
        # Of jobs that wait: how many doublings of their wait are kept, and how many answers.
        self._kept: dict[Key, int] = {}
        self._asked: dict[Key, int] = {}
        self._asking: dict[str, int] = {}  # who asked what if, and when
        self._open = self._unscored()

    def _unscored(self) -> set[Key]:
        with self._lock:
            return self._rows.open_jobs()

    def reread(self) -> None:
        """Take note that somebody's forecasts were erased."""
        self._asking.clear()
        self._open = self._unscored()

    def keep(self, made_at: int, pending: Iterable[tuple[JobRequest, Waits]]) -> None:
        """Keep what is due of all pending jobs' forecasts of one moment."""
        due, kept = [], {}
        for request, waits in pending:
            key = request.job_id, request.submit_time
            doublings = _doublings(made_at - request.submit_time)
            known = self._kept.get(key)
            kept[key] = doublings
            if known is None or doublings > known:
                first = not doublings and key not in self._open
                due.append(Served("submission" if first else "later", made_at, request, waits))
        self._kept = kept
        self._asked = {key: count for key, count in self._asked.items() if key in kept}
        self.add(due)

    def add(self, served: Iterable[Served]) -> None:
        """Keep forecasts; of those that were asked for of one job only so many."""
        rows = []
        for each in served:
            request, key = each.request, (each.request.job_id, each.request.submit_time)
            if each.kind == "what-if":
                self._asking[request.user or ""] = each.made_at
            else:
                self._open.add(key)
            if each.kind == "asked":
                self._asked[key] = self._asked.get(key, 0) + 1
                if self._asked[key] > _MOST_ASKED_OF_JOB:
                    continue
            job_id, submit_time = (None, None) if each.kind == "what-if" else key
            rows.append(
                ForecastRow(
                    kind=each.kind,
                    made_at=each.made_at,
                    counts_from=each.made_at,
                    job_id=job_id,
                    submit_time=submit_time,
                    user=request.user,
                    project=request.project,
                    queue=request.queue,
                    processors=request.processors,
                    requested_time_s=request.requested_time,
                    starts_now=each.waits.starts_now,
                    likely_wait_s=each.waits.at(0.5),
                    wait_s=each.waits.wait_s,
                )
            )
        if rows:
            with self._lock:
                self._rows.add(rows)

    def waits_for(self, event: Event) -> bool:
        """Say whether an event is what came of a forecast."""
        return event.key in self._open and _outcome(event) is not None

    def reliability(self, now: int, days: int) -> Reliability:
        """Say how well the forecasts of the last days have done; see `Reliability`."""
        return reliability(self._store, now, days, self._smallest_group)

    def learn(self, events: Iterable[Event]) -> None:
        """Link what-ifs to jobs that were submitted, and score those that started."""
        events = list(events)
        self._link([event.request for event in events if event.kind == SUBMISSION])
        scored: list[ForecastScore] = []
        for event in events:
            outcome = _outcome(event)
            if event.key in self._open and outcome is not None:
                self._open.discard(event.key)
                scored += self._scores(event, outcome)
        if scored:
            with self._lock:
                self._rows.score(scored)

    def _link(self, submitted: list[JobRequest]) -> None:
        asked = [
            job
            for job in submitted
            if job.user is not None
            and self._asking.get(job.user, 0) >= job.submit_time - _LINKED_WITHIN_S
        ]
        if asked:
            with self._lock:
                self._rows.link(asked, _LINKED_WITHIN_S)
                self._open |= self._rows.linked_since(min(job.submit_time for job in submitted))

    def _scores(self, event: Event, outcome: str) -> list[ForecastScore]:
        with self._lock:
            kept = self._rows.open_of(event.key)
        scored = []
        for seq, counts_from, wait_s in kept:
            waited_s = max(event.time - counts_from, 0)
            loss = pinball_loss(np.array([float(waited_s)]), np.array([wait_s], dtype=np.float64))
            pinball_s = float(loss[0]) if outcome == "started" else None
            scored.append(
                ForecastScore(outcome, waited_s, bisect_left(wait_s, waited_s), pinball_s, seq)
            )
        return scored


def _doublings(waited_s: int) -> int:
    """Count the doublings of a wait, 0 below ten minutes."""
    return (max(waited_s, 0) // _FIRST_LATER_S).bit_length()


def _outcome(event: Event) -> str | None:
    """Say what an event is to the forecasts of its job; ``None``: nothing new."""
    if event.kind == START:
        return "started"
    if event.ended is not None:
        return "withdrawn" if event.ended.start_time is None else None
    return None
