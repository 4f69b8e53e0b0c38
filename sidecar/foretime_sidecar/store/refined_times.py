"""Which time_min of pending jobs are ours besides those that the hook has noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.reading import read_only
from foretime_sidecar.store.store import Store

_SELECT = "SELECT job_id, time_min_s, set_at FROM refined_times ORDER BY set_at"


class RefinedTime(NamedTuple):
    """What a job's time_min was set to, seconds, and when last, epoch seconds."""

    job_id: str
    time_min_s: int
    set_at: int


class RefinedTimes:
    """The rows of one store, used with the store's lock held; `StateError` if that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[RefinedTime]:
        """Give all that was set, the latest last."""
        return [RefinedTime(*row) for row in self._store.rows(_SELECT)]

    def set(self, times: Mapping[str, int], now: int) -> None:
        """Write down what is set by job, seconds."""
        rows = [
            {"job_id": job_id, "time_min_s": time_min_s, "set_at": now}
            for job_id, time_min_s in times.items()
        ]
        with self._store.transaction("write down what is refined") as database:
            database.table("refined_times").upsert_all(rows, pk=("job_id", "time_min_s"))

    def forget(self, job_ids: Iterable[str]) -> None:
        """Forget what was set of jobs."""
        with self._store.transaction("forget what was refined") as database:
            database.conn.executemany(
                "DELETE FROM refined_times WHERE job_id = ?", [(job_id,) for job_id in job_ids]
            )


def refined_times_in(path: Path) -> list[RefinedTime]:
    """Give what a store tells without its daemon, the latest last.

    Raises
    ------
    StateError
        If it can't be read.
    """
    try:
        with read_only(path, timeout_s=1) as connection:
            return [
                RefinedTime(str(job_id), int(time_min_s), set_at)
                for job_id, time_min_s, set_at in connection.execute(_SELECT)
            ]
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StateError(f"{path}: can't read what was refined: {error}") from error
