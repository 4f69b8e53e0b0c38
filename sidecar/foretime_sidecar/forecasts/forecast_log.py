"""Forecasts as they were served, and what came of them.

Of each job the first forecast is kept, and one for each doubling of its wait from ten minutes on;
besides those that somebody asked for, so many at most. A what-if is linked to the job that the same
user submits within the hour, if it is as asked.

What is scored is the wait from when the forecast was made to the start; of a what-if from the
submission of the job. It is in the store until `foretime_sidecar.forecasts.forecast_reliability`
has no more use for it.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.waits.wait_scores import pinball_loss

from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.forecasts.forecast_reliability import Reliability, reliability
from foretime_sidecar.queue.queue_events import START, SUBMISSION, Event, Key
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


_INSERT = """
INSERT INTO served_forecasts (
    kind, made_at, counts_from, job_id, submit_time, user, project, queue, processors,
    requested_time_s, starts_now, likely_wait_s, wait_s
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LINK = """
UPDATE served_forecasts SET job_id = ?, submit_time = ?, counts_from = ?
WHERE seq = (
    SELECT seq FROM served_forecasts
    WHERE kind = 'what-if' AND job_id IS NULL AND user = ? AND processors = ?
        AND requested_time_s = ? AND ifnull(queue, ?) IS ? AND ifnull(project, ?) IS ?
        AND made_at BETWEEN ? AND ?
    ORDER BY made_at DESC LIMIT 1
)
"""
_WAITING = "SELECT DISTINCT job_id, submit_time FROM served_forecasts "
_SCORE = """
UPDATE served_forecasts
SET outcome = ?, waited_s = ?, held_from = ?, pinball_s = ?, wait_s = NULL WHERE seq = ?
"""


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
        self._lock = lock
        # Of jobs that wait: how many doublings of their wait are kept, and how many answers.
        self._kept: dict[Key, int] = {}
        self._asked: dict[Key, int] = {}
        self._asking: dict[str, int] = {}  # who asked what if, and when
        self._open = self._unscored()

    def _unscored(self) -> set[Key]:
        return self._keys("WHERE outcome IS NULL AND job_id IS NOT NULL", ())

    def reread(self) -> None:
        """Take note that somebody's forecasts were erased."""
        self._asking.clear()
        self._open = self._unscored()

    def _keys(self, where: str, parameters: tuple[object, ...]) -> set[Key]:
        with self._lock:
            return set(self._store.rows(_WAITING + where, parameters))

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
        rows: list[tuple[Any, ...]] = []
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
            rows.append(
                (
                    each.kind,
                    each.made_at,
                    each.made_at,
                    *((None, None) if each.kind == "what-if" else key),
                    request.user,
                    request.project,
                    request.queue,
                    request.processors,
                    request.requested_time,
                    each.waits.starts_now,
                    each.waits.at(0.5),
                    json.dumps(each.waits.wait_s),
                )
            )
        with self._lock:
            # Of whom it was erased while it was on its way here.
            forgotten_at = self._store.forgotten_at
            self._write(_INSERT, [row for row in rows if row[1] > (forgotten_at(row[5]) or -1)])

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
        scored: list[tuple[object, ...]] = []
        for event in events:
            outcome = _outcome(event)
            if event.key in self._open and outcome is not None:
                self._open.discard(event.key)
                scored += self._scores(event, outcome)
        self._write(_SCORE, scored)

    def _link(self, submitted: list[JobRequest]) -> None:
        links = [
            (
                *(job.job_id, job.submit_time, job.submit_time),
                *(job.user, job.processors, job.requested_time),
                *(job.queue, job.queue, job.project, job.project),
                *(job.submit_time - _LINKED_WITHIN_S, job.submit_time),
            )
            for job in submitted
            if job.user is not None
            and self._asking.get(job.user, 0) >= job.submit_time - _LINKED_WITHIN_S
        ]
        if links:
            self._write(_LINK, links)
            oldest = min(job.submit_time for job in submitted)
            self._open |= self._keys(
                "WHERE kind = 'what-if' AND outcome IS NULL AND submit_time >= ?", (oldest,)
            )

    def _scores(self, event: Event, outcome: str) -> list[tuple[object, ...]]:
        with self._lock:
            rows = self._store.rows(
                "SELECT seq, counts_from, wait_s FROM served_forecasts "
                "WHERE job_id = ? AND submit_time = ? AND outcome IS NULL",
                event.key,
            )
        scored: list[tuple[object, ...]] = []
        for seq, counts_from, text in rows:
            wait_s, waited_s = json.loads(text), max(event.time - counts_from, 0)
            loss = pinball_loss(np.array([float(waited_s)]), np.array([wait_s], dtype=np.float64))
            pinball = float(loss[0]) if outcome == "started" else None
            scored.append((outcome, waited_s, bisect_left(wait_s, waited_s), pinball, seq))
        return scored

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            with self._lock:
                self._store.write("keep forecasts", statement, rows)


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
