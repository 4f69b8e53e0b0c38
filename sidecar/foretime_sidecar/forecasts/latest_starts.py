"""Start no later than: a bound for each pending job, noted when it is first seen, and kept.

It is the job's planned start if every job took all of its request, in the queue's order, plus the
slack that the scheduler of Talby and Feitelson (1999) would give it
(`foretime_sim.engine.start_bounds`). A bound that was noted is never made later, whatever comes. No
scheduler in production has promised it, so how many are kept is counted: a bound that a job has
waited past is missed at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.engine.start_bounds import can_be_promised, front_of_queue, start_bounds
from foretime_sim.policies.slack import SlackSettings

from foretime_sidecar.queue.forecast_question import QueueMoment
from foretime_sidecar.queue.queue_events import START, Event, Key
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.finished_waits import FinishedWaits
from foretime_sidecar.store.start_bounds import BoundOutcome, NotedBound, StartBounds
from foretime_sidecar.store.store import Store

AVERAGED_DAYS = 30
MOST_ON_NODES = 1_000
"""The first jobs of a queue on nodes that are planned; time grows with their square and more."""
_AVERAGE_EVERY_S = 3600


@dataclass(frozen=True, slots=True)
class KeptBounds:
    """How many bounds have been kept.

    Attributes
    ----------
    days
        Of those noted in so many days.
    judged
        Bounds whose job has started, or has waited past it.
    users
        Whose jobs they were of.
    kept_share
        Share of them that were kept; ``None`` with too few users.
    """

    days: int
    judged: int
    users: int
    kept_share: float | None


def noted_bounds_of(settings: Settings, store: Store, lock: threading.RLock) -> NotedBounds:
    """Give what notes bounds as the settings say."""
    return NotedBounds(
        store,
        lock,
        settings.forecast.slack_factor,
        settings.api.smallest_group,
        settings.forecast.most_jobs,
    )


class NotedBounds:
    """Notes bounds in the store, and judges them.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    slack_factor
        Slack of a job, in average waits, before its own wait shortens it.
    smallest_group
        Figures of fewer users are not given.
    most_jobs
        A longer queue is not planned: its new jobs get no bound.
    """

    def __init__(
        self,
        store: Store,
        lock: threading.RLock,
        slack_factor: float,
        smallest_group: int,
        most_jobs: int,
    ) -> None:
        self._rows = StartBounds(store)
        self._finished = FinishedWaits(store)
        self._lock = lock
        self._settings = SlackSettings(slack_factor=slack_factor)
        self._smallest_group = smallest_group
        self._most_jobs = most_jobs
        self._average: tuple[int, float | None] | None = None
        # Another thread reads it: it is replaced, never changed.
        self._open: Mapping[Key, NotedBound] = self._read()

    def _read(self) -> dict[Key, NotedBound]:
        with self._lock:
            return self._rows.open()

    def reread(self) -> None:
        """Take note that somebody's rows were erased."""
        self._open = self._read()

    def bound_of(self, job_id: str, submit_time: int) -> NotedBound | None:
        """Give the bound of a job that waits, ``None`` if it has none."""
        return self._open.get((job_id, submit_time))

    def average_wait_s(self, now: int) -> float | None:
        """Give the mean wait of the jobs that ended in the last 30 days, as of an hour ago at most.

        Seconds; ``None`` if there are none.
        """
        known = self._average
        if known is None or not 0 <= now - known[0] < _AVERAGE_EVERY_S or known[1] is None:
            with self._lock:
                mean_s = self._finished.mean_between(now - AVERAGED_DAYS * DAY_S, now)
            known = self._average = now, mean_s
        return known[1]

    def note(self, moment: QueueMoment) -> int:
        """Note a bound for each job of a moment that is seen for the first time; give how many.

        Jobs that are not in the queue yet (held, dependent, at a limit, later ones) get one when
        they are; on nodes those beyond `MOST_ON_NODES` when they are among the first.

        Raises
        ------
        StateError
            If the store can't be read or written: then none is noted.
        """
        snapshot = moment.taken.snapshot
        first = moment.first_pending
        requests = moment.requests
        new = [
            column
            for column in (np.flatnonzero(can_be_promised(snapshot)) + first).tolist()
            if (requests[column].job_id, requests[column].submit_time) not in self._open
        ]
        order = moment.queue_order
        planned, rows_of = snapshot, np.arange(len(snapshot.pending))
        if snapshot.machine is not None and len(snapshot.pending) > MOST_ON_NODES:
            planned, rows_of = front_of_queue(snapshot, order, MOST_ON_NODES)
        place = {int(row) + first: here for here, row in enumerate(rows_of)}
        new = [column for column in new if column in place]
        average_s = self.average_wait_s(snapshot.now) if new else None
        if average_s is None or len(snapshot) > self._most_jobs:
            return 0
        settings = SlackSettings(slack_factor=self._settings.slack_factor, average_wait_s=average_s)
        try:
            bounds = start_bounds(planned, settings, order=order)
        except InputError:  # the queue can't be run forward; forecasts say why
            return 0
        told: dict[Key, tuple[str | None, NotedBound]] = {}
        for column in new:
            request, row = requests[column], place[column]
            key = request.job_id, request.submit_time
            times = int(bounds.planned_start[row]), int(bounds.latest_start[row])
            told.setdefault(key, (request.user, NotedBound(snapshot.now, *times)))
        with self._lock:
            noted = self._rows.add(told)
        self._open = {**self._open, **{key: bound for key, (_, bound) in told.items()}}
        return noted

    def learn(self, events: Iterable[Event]) -> None:
        """Judge the bounds of jobs that started or were withdrawn.

        Raises
        ------
        StateError
            If the store can't be written.
        """
        judged: dict[Key, tuple[BoundOutcome, int]] = {}
        for event in events:
            bound = self._open.get(event.key)
            if bound is None or event.key in judged:
                continue
            if event.kind == START:
                kept = event.time <= bound.latest_start
                judged[event.key] = ("kept" if kept else "missed"), event.time
            elif event.ended is not None:
                # Withdrawn before its bound it tells nothing.
                past = event.time > bound.latest_start
                judged[event.key] = ("missed" if past else "withdrawn"), event.time
        if judged:
            with self._lock:
                self._rows.judge(judged)
            self._open = {key: bound for key, bound in self._open.items() if key not in judged}

    def kept(self, now: int, days: int) -> KeptBounds:
        """Say how many bounds of the last days have been kept.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        rows = self._rows.judged(now - days * DAY_S, now)
        users = {row[1] for row in rows if row[1] is not None}
        if len(users) < self._smallest_group:
            return KeptBounds(days, 0, 0, None)
        return KeptBounds(days, len(rows), len(users), sum(row[0] for row in rows) / len(rows))
