"""When each job would start no later than, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foretime_sidecar.store.store import Store

_JUDGED = """
SELECT outcome = 'kept', user FROM start_bounds
WHERE noted_at > :since AND noted_at <= :now AND outcome IN ('kept', 'missed')
UNION ALL
SELECT 0, user FROM start_bounds
WHERE noted_at > :since AND noted_at <= :now AND outcome IS NULL AND latest_start < :now
"""
_OF_STARTED = """
SELECT count(*), sum(start_time <= latest_start)
FROM start_bounds JOIN jobs USING (job_id, submit_time) WHERE start_time IS NOT NULL
"""

Key: TypeAlias = tuple[str, int]
"""A job's identifier, and when it was submitted."""
BoundOutcome: TypeAlias = Literal["kept", "missed", "withdrawn"]


@dataclass(frozen=True, slots=True)
class NotedBound:
    """When a job would start no later than.

    Attributes
    ----------
    noted_at
        When it was first seen, epoch seconds.
    planned_start
        As all were planned on their requests then, epoch seconds.
    latest_start
        Epoch seconds.
    """

    noted_at: int
    planned_start: int
    latest_start: int


class StartBounds:
    """The rows of one store; `StateError` if it can't be read or written.

    All but `judged` are used with the store's lock held.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> dict[Key, NotedBound]:
        """Give the bounds of jobs that nothing has come of yet."""
        rows = self._store.rows(
            "SELECT job_id, submit_time, noted_at, planned_start, latest_start FROM start_bounds "
            "WHERE outcome IS NULL"
        )
        return {(row[0], row[1]): NotedBound(*row[2:]) for row in rows}

    def add(self, bounds: Mapping[Key, tuple[str | None, NotedBound]]) -> int:
        """Add jobs' users and bounds, all or none; give how many.

        A bound that is there already stays, and of a user who was forgotten since none is added.
        """
        forgotten_at = self._store.forgotten_at
        rows = [
            (*key, user, bound.noted_at, bound.planned_start, bound.latest_start)
            for key, (user, bound) in bounds.items()
            if bound.noted_at > (forgotten_at(user) or -1)
        ]
        with self._store.transaction("note start bounds") as database:
            database.conn.executemany(
                "INSERT INTO start_bounds VALUES (?, ?, ?, ?, ?, ?, NULL, NULL) "
                "ON CONFLICT DO NOTHING",
                rows,
            )
        return len(rows)

    def judge(self, outcomes: Mapping[Key, tuple[BoundOutcome, int]]) -> None:
        """Write down what came of open bounds, and when (epoch seconds)."""
        with self._store.transaction("judge start bounds") as database:
            database.conn.executemany(
                "UPDATE start_bounds SET outcome = ?, happened_at = ? "
                "WHERE job_id = ? AND submit_time = ? AND outcome IS NULL",
                [(*outcome, *key) for key, outcome in outcomes.items()],
            )

    def judged(self, since: int, now: int) -> Sequence[tuple[bool, str | None]]:
        """Say of each bound noted after a time whether it was kept, and of whose job it was.

        One that a job still waits past is missed. Needs no lock.
        """
        rows = self._store.rows_apart(_JUDGED, {"since": since, "now": now})
        return [(bool(kept), user) for kept, user in rows]

    def of_started(self) -> tuple[int, int]:
        """Count the bounds of jobs that have started, and those that were kept."""
        ((bounds, kept),) = self._store.rows(_OF_STARTED)
        return bounds, kept or 0
