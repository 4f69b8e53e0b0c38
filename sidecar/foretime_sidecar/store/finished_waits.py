"""How long jobs that have ended had waited, since they could start."""

from __future__ import annotations

from foretime_sidecar.store.store import Store

_WAIT = "start_time - max(coalesce(eligible_time, 0), submit_time)"


class FinishedWaits:
    """Waits of one store's jobs, read with its lock held; `StateError` if that fails.

    Clocks that differ can make one negative.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def since(self, end_time: int) -> list[int]:
        """Give the waits of jobs that ended since a time, seconds, the shortest first."""
        query = (
            f"SELECT {_WAIT} AS wait FROM jobs "  # noqa: S608 - constants
            "WHERE end_time >= ? AND start_time IS NOT NULL ORDER BY wait"
        )
        return [row[0] for row in self._store.rows(query, (end_time,))]

    def latest_end(self) -> int | None:
        """Give when the job that was read last had ended, epoch seconds; ``None`` without any."""
        # The accounting is read in the order of ends, so this needs no look at all rows.
        query = "SELECT end_time FROM jobs ORDER BY seq DESC LIMIT 1"
        rows = self._store.rows(query)
        return rows[0][0] if rows else None

    def with_requests_since(self, end_time: int, most: int) -> list[tuple[int, int]]:
        """Give requested time and wait of the latest so many such jobs, seconds."""
        query = (
            f"SELECT requested_time_s, {_WAIT} FROM jobs "  # noqa: S608 - constants
            "WHERE start_time IS NOT NULL AND end_time >= ? ORDER BY seq DESC LIMIT ?"
        )
        return self._store.rows(query, (end_time, most))

    def mean_between(self, after: int, until: int) -> float | None:
        """Give the mean wait of jobs that ended in a time, seconds; ``None`` without any."""
        query = (
            "SELECT avg(max(start_time - ifnull(eligible_time, submit_time), 0)) FROM jobs "
            "WHERE start_time IS NOT NULL AND end_time > ? AND end_time <= ?"
        )
        ((mean,),) = self._store.rows(query, (after, until))
        return None if mean is None else float(mean)
