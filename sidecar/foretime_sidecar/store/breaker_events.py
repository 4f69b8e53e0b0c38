"""What the circuit breaker keeps: when it opened and was reset, and how head jobs slip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from foretime_sidecar.store.store import Store

_NOTE_HEAD = """
INSERT INTO head_jobs VALUES (:job_id, :submit_time, :seen_at, :planned_start, :planned_start)
ON CONFLICT (job_id, submit_time) DO UPDATE SET
    seen_at = excluded.seen_at, last_planned_start = excluded.last_planned_start
"""


@dataclass(frozen=True, slots=True)
class BreakerEvent:
    """What happened to the breaker: when (epoch seconds), what, and why."""

    happened_at: int
    event: Literal["tripped", "reset"]
    reason: str


class BreakerEvents:
    """The rows of one store, used with the store's lock held; `StateError` if that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, event: BreakerEvent) -> None:
        """Add what has happened."""
        with self._store.transaction("record the circuit breaker") as database:
            database.conn.execute(
                "INSERT INTO breaker_events VALUES (NULL, ?, ?, ?)",
                (event.happened_at, event.event, event.reason),
            )

    def latest(self) -> BreakerEvent | None:
        """Give what happened last, ``None`` if nothing has."""
        rows = self._store.rows(
            "SELECT happened_at, event, reason FROM breaker_events ORDER BY seq DESC LIMIT 1"
        )
        return BreakerEvent(*rows[0]) if rows else None

    def reset_at(self) -> int:
        """Give when it was last reset, epoch seconds; 0 if never."""
        (at,) = self._store.rows(
            "SELECT coalesce(max(happened_at), 0) FROM breaker_events WHERE event = 'reset'"
        )[0]
        return int(at)

    def note_heads(self, heads: Iterable[tuple[str, int, int]], seen_at: int) -> None:
        """Note head jobs, each as (job_id, submit_time, planned start)."""
        rows = [
            {
                "job_id": job_id,
                "submit_time": submitted,
                "seen_at": seen_at,
                "planned_start": planned_start,
            }
            for job_id, submitted, planned_start in heads
        ]
        with self._store.transaction("record the head jobs") as database:
            database.conn.executemany(_NOTE_HEAD, rows)

    def head_slip_since(self, seen_at: int) -> int:
        """Give by how much the start of a head job seen since has slipped at most, seconds."""
        (slip,) = self._store.rows(
            "SELECT coalesce(max(last_planned_start - first_planned_start), 0) "
            "FROM head_jobs WHERE seen_at >= ?",
            (seen_at,),
        )[0]
        return int(slip)

    def forget_slips(self) -> None:
        """Count the slip of head jobs from their last planned starts on."""
        with self._store.transaction("reset the head jobs") as database:
            database.conn.execute("UPDATE head_jobs SET first_planned_start = last_planned_start")
