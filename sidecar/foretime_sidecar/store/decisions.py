"""The audit's rows: what each job was planned with instead of its own limit, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TypeAlias

from foretime_sidecar.store.store import Store

_COLUMNS = """
made_at, job_id, submit_time, user, project, queue, processors, action, requested_time_s,
scheduled_time_s, reason, generation
"""
_LATEST_OF_JOBS = f"""
SELECT {_COLUMNS} FROM job_decisions WHERE seq IN (
    SELECT max(seq) FROM job_decisions WHERE made_at >= ? GROUP BY job_id, submit_time
)
"""  # noqa: S608 - constants
# By the latest word on each job, as of when it last was in the queue.
_OUTLIVING = """
SELECT count(*), coalesce(sum(jobs.actual_runtime_s > latest.scheduled_time_s), 0)
FROM jobs JOIN job_decisions AS latest ON latest.seq = (
    SELECT max(seq) FROM job_decisions WHERE job_id = coalesce(jobs.array_id, jobs.job_id)
    AND submit_time = jobs.submit_time
)
WHERE latest.action IN ('planned', 'changed') AND jobs.end_time >= ?
    AND jobs.start_time IS NOT NULL
"""
# Of each job seen since then the latest word.
_COUNTED = """
SELECT action, reason, count(*), max(made_at) FROM job_decisions WHERE seq IN (
    SELECT max(seq) FROM job_decisions WHERE made_at >= ? GROUP BY job_id, submit_time
) GROUP BY action, reason ORDER BY count(*) DESC, action, reason
"""
_USERS = "SELECT count(DISTINCT user) FROM job_decisions WHERE made_at >= ?"
_COMPARED = """
SELECT first.action = 'planned', jobs.user, jobs.processors,
       jobs.start_time - max(coalesce(jobs.eligible_time, 0), jobs.submit_time),
       jobs.actual_runtime_s > first.scheduled_time_s
FROM jobs JOIN job_decisions AS first ON first.seq = (
    SELECT min(seq) FROM job_decisions WHERE job_id = coalesce(jobs.array_id, jobs.job_id)
    AND submit_time = jobs.submit_time
)
WHERE jobs.start_time IS NOT NULL AND jobs.submit_time >= ? AND first.scheduled_time_s IS NOT NULL
    AND (first.action = 'planned' OR (first.action = 'observed' AND first.reason <> 'observe'))
"""

ComparedJob: TypeAlias = tuple[bool, str | None, int, int, bool]
"""Whether it was planned, its user, processors, wait in seconds, whether it outlived t_sched."""


@dataclass(frozen=True, slots=True)
class DecidedJobs:
    """Jobs of which the latest word is the same.

    Attributes
    ----------
    action, reason
        As of `Decision`.
    jobs
        How many; an array is one.
    latest
        When the last of these words was noted, epoch seconds.
    """

    action: str
    reason: str
    jobs: int
    latest: int


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the audit.

    Attributes
    ----------
    made_at
        When it was seen, epoch seconds.
    job_id, submit_time
        Of the job, or of the whole array.
    user, project, queue
        The job's, ``None`` if unknown; the queue is Slurm's partition.
    processors
        Asked for.
    action
        What was done.
    requested_time_s
        The old: what the user asked for.
    scheduled_time_s
        The new: what the job is, or would be, planned with; ``None`` if it is left alone.
    reason
        Why, in one of the words of docs/administration.md.
    generation
        Number of the table at the job's submission, ``None`` if there was none.
    """

    made_at: int
    job_id: str
    submit_time: int
    user: str | None
    project: str | None
    queue: str | None
    processors: int
    action: str
    requested_time_s: int
    scheduled_time_s: int | None
    reason: str
    generation: int | None


_NAMES = tuple(field.name for field in fields(Decision))
_ADD = (
    f"INSERT INTO job_decisions ({', '.join(_NAMES)}) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * len(_NAMES))})"
)
_values_of = attrgetter(*_NAMES)


class Decisions:
    """The rows of one store, used with the store's lock held; `StateError` if that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, decisions: Iterable[Decision]) -> None:
        """Add lines, all or none."""
        with self._store.transaction("record what was decided") as database:
            database.conn.executemany(_ADD, map(_values_of, decisions))

    def latest_of_jobs(self, since: int) -> list[Decision]:
        """Give the last line on each job that has one since a time."""
        return [Decision(*row) for row in self._store.rows(_LATEST_OF_JOBS, (since,))]

    def find(
        self, *, job_ids: tuple[str, ...], user: str | None, since: int | None, limit: int
    ) -> list[Decision]:
        """Give the latest lines, oldest first.

        Parameters
        ----------
        job_ids
            On these jobs alone, if any is named; ``12`` also names ``12.pbs01``.
        user
            On this user's jobs alone.
        since
            Seen at this time or later, epoch seconds.
        limit
            At most so many.
        """
        conditions: list[str] = []
        values: list[object] = []
        if job_ids:
            # What follows the full stop is before "/", the next character.
            named = "job_id = ? OR (job_id > ? || '.' AND job_id < ? || '/')"
            conditions.append(f"({' OR '.join([named] * len(job_ids))})")
            values += [job_id for job_id in job_ids for _ in range(3)]
        if user is not None:
            conditions.append("user = ?")
            values.append(user)
        if since is not None:
            conditions.append("made_at >= ?")
            values.append(since)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"SELECT {_COLUMNS} FROM job_decisions {where} "  # noqa: S608 - constants
        rows = self._store.rows(query + "ORDER BY seq DESC LIMIT ?", (*values, limit))
        return [Decision(*row) for row in reversed(rows)]

    def outliving_since(self, end_time: int) -> tuple[int, int]:
        """Count the planned jobs that ended since a time, and those that outlived t_sched."""
        planned, outliving = self._store.rows(_OUTLIVING, (end_time,))[0]
        return planned, outliving

    def counted_since(self, made_at: int) -> tuple[tuple[DecidedJobs, ...], int]:
        """Count jobs by the latest word on each since a time, and their users."""
        rows = self._store.rows(_COUNTED, (made_at,))
        (users,) = self._store.rows(_USERS, (made_at,))[0]
        return tuple(DecidedJobs(*row) for row in rows), users

    def compared_since(self, submit_time: int) -> list[ComparedJob]:
        """Give the started jobs that were planned, and those kept out of a partial enforce.

        They were submitted at that time or later, and go by the first word on each.
        """
        return self._store.rows(_COMPARED, (submit_time,))
