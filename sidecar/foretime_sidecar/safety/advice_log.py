"""Who was told what their jobs use, as a memory for a hook that may lose its own.

The hook keeps no file. It tells a user whose job could be planned shorter, unless it or the table
knows of a telling within the last 24 hours. So the sidecar works out from the jobs that it sees
whom the hook has told by now, by the same rule, and writes them into the table (TABLE.md).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.tables_in_force import TablesInForce
from foretime_sidecar.store.finished_waits import FinishedWaits
from foretime_sidecar.store.store import Store
from foretime_sidecar.store.told_users import ToldTimes
from foretime_sidecar.table.table import Advice, Mode

_WAITS_OF_S = 28 * DAY_S
_FEWEST_WAITS = 20  # of fewer jobs a median says nothing
_MOST_WAITS = 200_000
_WAITS_AGAIN_S = 3600


class ToldUsers:
    """Keeps who was told; used with the sidecar's lock held."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._times = ToldTimes(store)
        self._finished = FinishedWaits(store)
        self._told: dict[str, int] | None = None
        self._until: int | None = None
        self._waits: tuple[tuple[int, int], ...] = ()
        self._waits_at: int | None = None

    def note(
        self, jobs: Sequence[QueuedJob], finished: Iterable[JobRequest], learner: Learner, now: int
    ) -> None:
        """Work out who was told by now.

        Parameters
        ----------
        jobs
            The queue as it is.
        finished
            Jobs that ended since the last look: they may have come and gone.
        learner
            Tells which of them could be planned shorter.
        now
            When the queue was looked at, epoch seconds.

        Raises
        ------
        StateError
            If it can't be stored; nobody is told then that a new state of the hook can't know of.
        """
        told = self._remembered(now)
        requests = [
            request
            for request in (*finished, *(job.request for job in jobs))
            if now - request.submit_time < DAY_S
        ]
        tables = TablesInForce(self._store, [request.submit_time for request in requests])
        new: dict[str, int] = {}
        for request in sorted(requests, key=lambda request: request.submit_time):
            user, at = request.user, request.submit_time
            if user is None or at - told.get(user, -DAY_S) < DAY_S:
                continue
            # Under another mode, or without a table, the hook told nobody.
            if tables.in_force_at(at).mode != Mode.ADVISE:
                continue
            if learner.scheduled_time(request) < request.requested_time:
                told[user] = new[user] = at
        if new:
            self._times.set(new)
        self._until = now

    def reread(self) -> None:
        """Take note that the store has changed."""
        self._told = None

    def _remembered(self, now: int) -> dict[str, int]:
        if self._told is None:
            self._told = self._times.all()
        # A day more than the table needs: jobs are judged as of their submission.
        self._told = {user: at for user, at in self._told.items() if now - at < 2 * DAY_S}
        return self._told

    def advice(self, learner: Learner, now: int) -> Advice:
        """Give what the table tells the hook."""
        if self._until is None:
            return Advice()
        if self._waits_at is None or not 0 <= now - self._waits_at < _WAITS_AGAIN_S:
            self._waits, self._waits_at = self._median_waits(learner, now), now
        told = [(user, at) for user, at in self._remembered(now).items() if now - at < DAY_S]
        return Advice(self._until, tuple(sorted(told)), self._waits)

    def _median_waits(self, learner: Learner, now: int) -> tuple[tuple[int, int], ...]:
        """Median wait, seconds, of the jobs that ended of late, by class of requested time."""
        rows = self._finished.with_requests_since(now - _WAITS_OF_S, _MOST_WAITS)
        waits: dict[int, list[int]] = {}
        for requested_time, wait in rows:
            time_class = learner.class_of_requested_time(requested_time)
            waits.setdefault(time_class, []).append(max(wait, 0))
        return tuple(
            (time_class, int(statistics.median(found)))
            for time_class, found in sorted(waits.items())
            if len(found) >= _FEWEST_WAITS
        )
