"""Jobs as the plain scheduler beside takes them, and when it would have started each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from foretime_sidecar.store.store import Store

_COLUMNS = (
    "job_id, submit_time, user, processors, seen_at, could_start, start_time, end_time, runtime_s, "
    "plain_start, start_with_us, with_us, record"
)
_KEEP = (
    f"INSERT OR REPLACE INTO plain_starts ({_COLUMNS}) "  # noqa: S608 - constants
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_KEEP_DAY = "INSERT OR REPLACE INTO plain_days VALUES (?, ?, ?, ?, ?)"
_JUDGED = """
SELECT user, processors, could_start, start_time, plain_start, start_with_us, with_us
FROM plain_starts
WHERE could_start >= ? AND start_time IS NOT NULL AND with_us IS NOT NULL
ORDER BY could_start
"""


class PlainRow(NamedTuple):
    """A job: times in epoch seconds, ``None`` where there is none yet.

    ``plain_start``, ``start_with_us``: in the model without and with Foretime; ``with_us``: whether
    Foretime was at work on its day, ``None`` while it was not judged; ``record``: what the runs
    need, "" once no run does.
    """

    job_id: str
    submit_time: int
    user: str | None
    processors: int
    seen_at: int
    could_start: int | None
    start_time: int | None
    end_time: int | None
    runtime_s: int | None
    plain_start: int | None
    start_with_us: int | None
    with_us: int | None
    record: str


class DayRow(NamedTuple):
    """Where runs can begin: when, nodes and reservations as JSON, and the site as its file."""

    began_at: int
    machine: str
    site: str
    with_us: int
    settled_at: int | None


class JudgedJob(NamedTuple):
    """A job that has started, with when it could, did and would have; see `PlainRow`."""

    user: str | None
    processors: int
    could_start: int
    start_time: int
    plain_start: int | None
    start_with_us: int | None
    with_us: bool


class PlainStarts:
    """The rows of one store; `StateError` if it can't be read or written.

    All but `judged` are used with the store's lock held.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> list[PlainRow]:
        """Give the jobs that runs still need."""
        rows = self._store.rows(
            f"SELECT {_COLUMNS} FROM plain_starts WHERE record <> ''"  # noqa: S608 - constants
        )
        return [PlainRow(*row) for row in rows]

    def days(self) -> list[DayRow]:
        """Give where runs can begin, the earliest first."""
        rows = self._store.rows(
            "SELECT began_at, machine, site, with_us, settled_at FROM plain_days ORDER BY began_at"
        )
        return [DayRow(*row) for row in rows]

    def last_read(self, ended_after: int | None) -> int:
        """Give the number of the last stored job before those that ended after a time.

        ``None``: of the last of all.
        """
        query, values = "SELECT max(seq) FROM jobs", ()
        if ended_after is not None:
            found = self._store.rows("SELECT min(seq) FROM jobs WHERE end_time > ?", (ended_after,))
            if found[0][0] is not None:
                return int(found[0][0]) - 1
        return int(self._store.rows(query, values)[0][0] or 0)

    def keep(self, jobs: Iterable[PlainRow], days: Iterable[DayRow] = ()) -> None:
        """Keep jobs and days as they are now, all or none; not of who was forgotten since."""
        forgotten_at = self._store.forgotten_at
        rows = [job for job in jobs if job.seen_at > (forgotten_at(job.user) or -1)]
        with self._store.transaction("keep the plain scheduler's starts") as database:
            database.conn.executemany(_KEEP, rows)
            database.conn.executemany(_KEEP_DAY, days)

    def note_starts(self, jobs: Iterable[PlainRow]) -> None:
        """Write down when jobs start in the model; what else is known of them stays."""
        self._store.write(
            "note the plain scheduler's starts",
            "UPDATE plain_starts SET plain_start = ?, start_with_us = ?, with_us = ? "
            "WHERE job_id = ? AND submit_time = ?",
            [
                (job.plain_start, job.start_with_us, job.with_us, job.job_id, job.submit_time)
                for job in jobs
            ],
        )

    def forget_before(self, time: int, needed_from: int) -> None:
        """Delete judged jobs that could start before a time, and days that no run begins at."""
        with self._store.transaction("delete old plain starts") as database:
            execute = database.conn.execute
            execute("DELETE FROM plain_starts WHERE record = '' AND seen_at < ?", (time,))
            execute("DELETE FROM plain_days WHERE began_at < ?", (needed_from,))

    def judged(self, since: int) -> list[JudgedJob]:
        """Give the jobs that could start since a time and have; needs no lock."""
        rows = self._store.rows_apart(_JUDGED, (since,))
        return [JudgedJob._make((*row[:-1], bool(row[-1]))) for row in rows]
