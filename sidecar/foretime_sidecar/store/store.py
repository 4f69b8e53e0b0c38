"""What the sidecar keeps: finished jobs, how far it has read, tables published, forecasts served.

One SQLite file in WAL mode. A commit survives a SIGKILL at any moment. With ``durability = "full"``
each commit is also synced, so that it survives a power loss; with ``"normal"`` a power loss may
take back the last commits as a whole. As finished jobs and the cursor are committed together, what
is lost then is read from the scheduler's accounting again, and nothing is counted twice.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from sqlite_utils import Database

from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.forgotten_users import ForgottenUsers
from foretime_sidecar.store.migrations import migrations
from foretime_sidecar.store.reading import read_only
from foretime_sidecar.store.site_factors import SELECT, GivenFactors, given_factors

Durability = Literal["full", "normal"]

_INSERT_JOB = """
INSERT INTO jobs (
    job_id, user, project, queue, array_id, processors, requested_time_s, submit_time,
    eligible_time, start_time, end_time, actual_runtime_s, ending, state
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, submit_time) DO NOTHING
"""
_SELECT_JOB = """
SELECT job_id, user, project, processors, requested_time_s, submit_time, queue, array_id,
       start_time, end_time, actual_runtime_s, ending
FROM jobs
"""
_ENDINGS = {ending.value: ending for ending in Ending}


@dataclass(frozen=True, slots=True)
class TableGeneration:
    """One table that was begun.

    Attributes
    ----------
    generation
        Its number; grows with every table, for ever.
    written_at, valid_until
        Epoch seconds.
    mode
        "observe", "advise" or "enforce".
    table_rows
        Rows of accuracy in it.
    published
        Whether the file was renamed into place.
    """

    generation: int
    written_at: int
    valid_until: int
    mode: str
    table_rows: int
    published: bool


class Store:
    """The sidecar's SQLite file; used from one thread at a time.

    Parameters
    ----------
    path
        The file, made if absent (mode 0600); ``":memory:"`` keeps everything in memory.
    durability
        "full" also survives a power loss, "normal" a crash of the process only.

    Attributes
    ----------
    forgotten
        Who had their history erased.

    Raises
    ------
    StateError
        If the file can't be opened, is no database, or was written by a newer Foretime.

    Examples
    --------
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest
    >>> from foretime_sidecar import Store
    >>> from foretime_sidecar.clients.client import Cursor, FinishedRecord
    >>> asked = JobRequest("17", "ann", None, processors=8, requested_time=3600, submit_time=0)
    >>> job = FinishedJob(asked, 60, 660, actual_runtime=600, ending=Ending.COMPLETED)
    >>> store = Store(":memory:")
    >>> _ = store.add_finished([FinishedRecord(job, 0, "COMPLETED")], Cursor(660))
    >>> store.finished_count()
    1
    >>> store.close()
    """

    def __init__(self, path: Path | str, durability: Durability = "full") -> None:
        self.path = str(path)
        with self._clear_errors("open"):
            if self.path != ":memory:":
                Path(self.path).touch(mode=0o600)
            # A thread pool calls it, under a lock of the caller's.
            connection = sqlite3.connect(self.path, timeout=10, check_same_thread=False)
            self._database = Database(connection)
            self.forgotten = ForgottenUsers(connection)
            try:
                self._prepare(durability)
            except BaseException:
                self.close()
                raise

    def _prepare(self, durability: Durability) -> None:
        if self.path != ":memory:":
            self._database.enable_wal()
        self._database.execute(f"PRAGMA synchronous = {durability.upper()}")
        # What is deleted is gone from the file, too.
        self._database.execute("PRAGMA secure_delete = ON")
        self._refuse_newer()  # before anything in it is changed
        migrations.apply(self._database)

    def _refuse_newer(self) -> None:
        with contextlib.closing(Database(memory=True)) as empty:
            known = {step.name for step in migrations.pending(empty)}
        applied = [step.name for step in migrations.applied(self._database)]
        newer = [name for name in applied if name not in known]
        if newer:
            raise StateError(
                f"{self.path}: written by a newer Foretime (step {newer[0]!r}); install that "
                "version again, or move the file away to begin anew"
            )

    @contextlib.contextmanager
    def _clear_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StateError(f"{self.path}: can't {doing}: {error}; {_remedy(error)}") from error

    def close(self) -> None:
        """Close the file; the store can't be used any more."""
        self._database.close()

    # -- finished jobs ---------------------------------------------------------------------------

    def add_finished(
        self, records: Sequence[FinishedRecord], cursor: Cursor, source: str = "slurm"
    ) -> list[FinishedRecord]:
        """Store finished jobs and how far they were read, both or neither; give the new ones.

        Parameters
        ----------
        records
            Jobs as the client gave them; those stored before are dropped, and those that ended
            before their user's history was erased.
        cursor
            Where the next reading begins.
        source
            Names the cursor.

        Raises
        ------
        StateError
            If it can't be stored (disk full, file locked or damaged): then nothing is.
        """
        added = []
        with self._clear_errors("store finished jobs"), self._database.atomic():
            execute = self._database.conn.execute
            for record in records:
                job = record.job
                request = job.request
                if self.forgotten.covers(request.user, job.end_time):
                    continue
                row = (
                    request.job_id,
                    request.user,
                    request.project,
                    request.queue,
                    request.array_id,
                    request.processors,
                    request.requested_time,
                    request.submit_time,
                    record.eligible_time,
                    job.start_time,
                    job.end_time,
                    job.actual_runtime,
                    job.ending.value,
                    record.state,
                )
                if execute(_INSERT_JOB, row).rowcount:
                    added.append(record)
                    if record.admin_comment:
                        execute(
                            "INSERT INTO decisions VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                            (request.job_id, request.submit_time, record.admin_comment),
                        )
            execute(
                "INSERT INTO cursors VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET end_time = excluded.end_time",
                (source, cursor.end_time),
            )
        return added

    def cursor(self, source: str = "slurm") -> Cursor | None:
        """Give how far the finished jobs were read, ``None`` at first."""
        rows = self.rows("SELECT end_time FROM cursors WHERE name = ?", (source,))
        return Cursor(rows[0][0]) if rows else None

    def finished_jobs(self) -> Iterator[FinishedJob]:
        """Give every finished job in the order stored, which is the order learned."""
        with self._clear_errors("read finished jobs"):
            for row in self._database.conn.execute(_SELECT_JOB + "ORDER BY seq"):
                yield _finished_job(row)

    def finished_after(self, seq: int, most: int) -> list[tuple[int, FinishedJob, int | None]]:
        """Give the first jobs stored after one, by their numbers in the order stored.

        With each, when it could first start, if the scheduler told.
        """
        query = (
            _SELECT_JOB.replace("SELECT ", "SELECT seq, eligible_time, ")
            + "WHERE seq > ? ORDER BY seq LIMIT ?"
        )
        rows = self.rows(query, (seq, most))
        return [(row[0], _finished_job(row[2:]), row[1]) for row in rows]

    def times_since(self, end_time: int) -> list[tuple[int, int, int, int]]:
        """Give number, submission, start (-1 if none) and end of all jobs that ended since."""
        return self.rows(
            "SELECT seq, submit_time, ifnull(start_time, -1), end_time FROM jobs "
            "WHERE end_time >= ? ORDER BY seq",
            (end_time,),
        )

    def jobs_of(self, user: str, limit: int) -> list[FinishedJob]:
        """Give a user's latest finished jobs, latest first."""
        rows = self.rows(
            _SELECT_JOB + "WHERE user = ? ORDER BY end_time DESC LIMIT ?", (user, limit)
        )
        return [_finished_job(row) for row in rows]

    def finished_count(self) -> int:
        """Count the finished jobs stored."""
        return int(self.rows("SELECT count(*) FROM jobs")[0][0])

    def forget_before(self, end_time: int) -> int:
        """Delete the jobs that ended before a time, with their decisions; give how many."""
        with self._clear_errors("delete old jobs"), self._database.atomic():
            execute = self._database.conn.execute
            execute(
                "DELETE FROM decisions WHERE (job_id, submit_time) IN "
                "(SELECT job_id, submit_time FROM jobs WHERE end_time < ?)",
                (end_time,),
            )
            execute("DELETE FROM job_decisions WHERE made_at < ?", (end_time,))
            execute("DELETE FROM head_jobs WHERE seen_at < ?", (end_time,))
            execute("DELETE FROM told_users WHERE told_at < ?", (end_time,))
            execute("DELETE FROM plain_starts WHERE seen_at < ?", (end_time,))
            execute("DELETE FROM watched_jobs WHERE asked_at < ?", (end_time,))
            execute(
                "DELETE FROM order_switches WHERE happened_at < ? "
                "AND seq < (SELECT max(seq) FROM order_switches)",
                (end_time,),
            )
            return int(execute("DELETE FROM jobs WHERE end_time < ?", (end_time,)).rowcount)

    def forget_forecasts_before(self, made_at: int) -> None:
        """Delete the forecasts that were served before a time, and bounds of starts.

        Bounds of jobs that still wait stay, unless even they lie before that time: they must not be
        made anew, and later.
        """
        statement = "DELETE FROM served_forecasts WHERE made_at < ?"
        self.write("delete old forecasts", statement, [(made_at,)])
        statement = (
            "DELETE FROM start_bounds "
            "WHERE noted_at < ? AND (outcome IS NOT NULL OR latest_start < ?)"
        )
        self.write("delete old bounds", statement, [(made_at, made_at)])

    # -- tables published ------------------------------------------------------------------------

    def begin_generation(
        self,
        written_at: int,
        valid_until: int,
        mode: str,
        table_rows: int,
        above: int = 0,
    ) -> int:
        """Spend the next generation number: higher than any before, and than ``above``.

        It is committed before the file is written, so that no number is ever used twice, whenever
        the sidecar dies.
        """
        with self._clear_errors("begin a table"), self._database.atomic():
            execute = self._database.conn.execute
            (latest,) = execute("SELECT max(generation) FROM table_generations").fetchone()
            generation = max(latest or 0, above) + 1
            execute(
                "INSERT INTO table_generations VALUES (?, ?, ?, ?, ?, 0)",
                (generation, written_at, valid_until, mode, table_rows),
            )
        return generation

    def mark_published(self, generation: int) -> None:
        """Record that a table's file stands in its place."""
        with self._clear_errors("record a table"), self._database.atomic():
            self._database.conn.execute(
                "UPDATE table_generations SET published = 1 WHERE generation = ?", (generation,)
            )

    def unplanned_since(self, now: int) -> int:
        """Give since when no table lets jobs be planned, epoch seconds; before the first: now.

        Of jobs that were submitted before the first table nothing is known.
        """
        rows = self.rows(
            "SELECT max(CASE mode WHEN 'enforce' THEN valid_until END), min(written_at) "
            "FROM table_generations"
        )
        last_valid, first_written = rows[0]
        return max(last_valid or 0, now if first_written is None else first_written)

    def planned_until(self) -> int:
        """Give until when a table let jobs be planned, epoch seconds; 0 if none ever did."""
        rows = self.rows("SELECT max(valid_until) FROM table_generations WHERE mode = 'enforce'")
        return rows[0][0] or 0

    def latest_generation(self) -> TableGeneration | None:
        """Give the last table begun, ``None`` if there was none."""
        latest = self._table_generations("ORDER BY generation DESC LIMIT 1", ())
        return latest[0] if latest else None

    def tables_since(self, written_at: int) -> list[TableGeneration]:
        """Give the tables that stood in place at a time and after it, valid or not."""
        stood = "SELECT max(generation) FROM table_generations WHERE published AND written_at <= ?"
        return self._table_generations(
            f"WHERE published AND generation >= coalesce(({stood}), 0)", (written_at,)
        )

    def _table_generations(
        self, which: str, parameters: tuple[object, ...]
    ) -> list[TableGeneration]:
        rows = self.rows(
            "SELECT generation, written_at, valid_until, mode, table_rows, published "  # noqa: S608
            f"FROM table_generations {which}",
            parameters,
        )
        return [
            TableGeneration(generation, written_at, valid_until, mode, table_rows, bool(published))
            for generation, written_at, valid_until, mode, table_rows, published in rows
        ]

    # -- site factors ----------------------------------------------------------------------------

    def site_factors(self) -> GivenFactors:
        """Give the site factors that are ours by job: the one that it has is among them."""
        return given_factors(self.rows(SELECT))

    def note_site_factors(
        self, factors: Mapping[str, int], earlier: Mapping[str, int] | None = None
    ) -> None:
        """Write down site factors that are about to be set, and what stood there before ours."""
        before = earlier or {}
        rows = [(job_id, factor, before.get(job_id, 0)) for job_id, factor in factors.items()]
        with self._clear_errors("write down site factors"), self._database.atomic():
            self._database.conn.executemany(
                "INSERT INTO site_factors (job_id, site_factor, earlier) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET earlier = excluded.earlier",
                rows,
            )

    def settle_site_factors(self, factors: Mapping[str, int]) -> None:
        """Write down that these are set, so that jobs have none of ours from before."""
        with self._clear_errors("write down site factors"), self._database.atomic():
            self._database.conn.executemany(
                "DELETE FROM site_factors WHERE job_id = ? AND site_factor != ?", factors.items()
            )

    def forget_site_factors(self, job_ids: Iterable[str]) -> None:
        """Write down that these jobs have no site factor of ours any more."""
        with self._clear_errors("forget site factors"), self._database.atomic():
            self._database.conn.executemany(
                "DELETE FROM site_factors WHERE job_id = ?", [(job_id,) for job_id in job_ids]
            )

    # -- decisions -------------------------------------------------------------------------------

    def decision(self, job_id: str, submit_time: int) -> str | None:
        """Give what the hook recorded with a job, ``None`` if nothing."""
        rows = self.rows(
            "SELECT decision FROM decisions WHERE job_id = ? AND submit_time = ?",
            (job_id, submit_time),
        )
        return str(rows[0][0]) if rows else None

    # -- what the other modules of this room keep in it ------------------------------------------

    def rows(
        self, query: str, parameters: tuple[object, ...] | Mapping[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        """Give the rows that a query finds."""
        with self._clear_errors("read"):
            return self._database.conn.execute(query, parameters).fetchall()

    def rows_apart(
        self, query: str, parameters: tuple[object, ...] | Mapping[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        """Give the rows that a query finds, for which no lock is needed: long readings.

        They are read on a connection of their own; in memory there is only the one.
        """
        if self.path == ":memory:":
            return self.rows(query, parameters)
        with self._clear_errors("read"), read_only(self.path) as connection:
            return connection.execute(query, parameters).fetchall()

    @contextlib.contextmanager
    def transaction(self, doing: str) -> Iterator[Database]:
        """Make several changes, all or none; ``doing`` is what an error says failed."""
        with self._clear_errors(doing), self._database.atomic():
            yield self._database

    def forgotten_at(self, user: str | None) -> int | None:
        """Give up to when a user's history is erased, epoch seconds; ``None``: it is not."""
        with self._clear_errors("read"):
            return self.forgotten.forgotten_at(user)

    def empty_journal(self) -> None:
        """Take what was deleted out of the journal, too, unless somebody reads it just now."""
        with contextlib.suppress(sqlite3.Error):
            self._database.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def write(self, doing: str, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement for each row, all or none; ``doing`` is what an error says failed."""
        with self.transaction(doing) as database:
            database.conn.executemany(statement, rows)


def _finished_job(row: tuple[Any, ...]) -> FinishedJob:
    start_time, end_time, runtime, ending = row[8:]
    return FinishedJob(JobRequest(*row[:8]), start_time, end_time, runtime, _ENDINGS[ending])


def _remedy(error: Exception) -> str:
    text = str(error)
    if "full" in text:
        return "make room on its file system"
    if "locked" in text:
        return "another process holds it: is a second foretime serve running?"
    if "malformed" in text or "not a database" in text:
        return "it is damaged: move it away to begin anew, or restore a copy"
    if "readonly" in text or "unable to open" in text or isinstance(error, OSError):
        return "check that its folder exists and that foretime may write there"
    return "check the file and its file system"
