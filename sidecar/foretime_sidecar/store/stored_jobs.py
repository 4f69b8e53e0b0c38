"""The finished jobs of a store, read in columns beside its daemon."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.reading import read_only

_SELECT = """
SELECT max(submit_time, ifnull(eligible_time, 0)), start_time, end_time, actual_runtime_s,
       processors, requested_time_s, ending, user, project, queue, array_id
FROM jobs WHERE start_time IS NOT NULL AND actual_runtime_s > 0 AND end_time >= ?
ORDER BY 1, seq
"""


class StartedJob(NamedTuple):
    """A job that ran: when it could start, started and ended (epoch seconds), and as what."""

    could_start: int
    start_time: int
    end_time: int
    actual_runtime_s: int
    processors: int
    requested_time_s: int
    ending: str
    user: str | None
    project: str | None
    queue: str | None
    array_id: str | None


def started_jobs_in(path: Path, last_s: int) -> list[StartedJob]:
    """Give the jobs that ran and ended in so many seconds before the last end, by `could_start`.

    Raises
    ------
    StateError
        If the store can't be read.
    """
    try:
        with read_only(path) as connection:
            (last,) = connection.execute("SELECT max(end_time) FROM jobs").fetchone()
            found = connection.execute(_SELECT, ((last or 0) - last_s,))
            return [StartedJob(*row) for row in found]
    except sqlite3.Error as error:
        raise StateError(f"{path}: can't read the daemon's store: {error}") from error
