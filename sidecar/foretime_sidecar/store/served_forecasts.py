"""Forecasts as they were served, with what came of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foretime_estimators.jobs.jobs import JobRequest

from foretime_sidecar.store.row_columns import columns_of
from foretime_sidecar.store.start_bounds import Key
from foretime_sidecar.store.store import Store

_LINK = """
UPDATE served_forecasts SET job_id = ?, submit_time = ?, counts_from = ?
WHERE seq = (
    SELECT seq FROM served_forecasts
    WHERE kind = 'what-if' AND job_id IS NULL AND user = ? AND processors = ?
        AND requested_time_s = ? AND ifnull(queue, ?) IS ? AND ifnull(project, ?) IS ?
        AND made_at BETWEEN ? AND ?
    ORDER BY made_at DESC LIMIT 1
)
"""
_SCORE = """
UPDATE served_forecasts
SET outcome = ?, waited_s = ?, held_from = ?, pinball_s = ?, wait_s = NULL WHERE seq = ?
"""
_SCORED = """
SELECT made_at, user, starts_now, likely_wait_s, waited_s, held_from, pinball_s, outcome
FROM served_forecasts WHERE outcome IS NOT NULL AND made_at >= ? AND made_at <= ?
"""
_WAITING = """
SELECT counts_from, wait_s FROM served_forecasts
WHERE outcome IS NULL AND job_id IS NOT NULL AND made_at >= ? AND made_at <= ?
"""
_KEYS = "SELECT DISTINCT job_id, submit_time FROM served_forecasts "


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """A forecast that was served, of a job or of one that nobody had submitted.

    Attributes
    ----------
    kind
        What it was asked for.
    made_at, counts_from
        Epoch seconds; waits count from the second.
    job_id, submit_time
        The job's; ``None`` until it is submitted.
    user, project, queue, processors, requested_time_s
        What was asked for, and by whom.
    starts_now
        Probability of a start within a minute.
    likely_wait_s, wait_s
        The likely wait, and the bound of each level, seconds.
    """

    kind: str
    made_at: int
    counts_from: int
    job_id: str | None
    submit_time: int | None
    user: str | None
    project: str | None
    queue: str | None
    processors: int
    requested_time_s: int
    starts_now: float
    likely_wait_s: int
    wait_s: Sequence[int]


class OpenForecast(NamedTuple):
    """A forecast that nothing has come of yet: its number, since when it counts, its bounds."""

    seq: int
    counts_from: int
    wait_s: list[int]


class ForecastScore(NamedTuple):
    """What came of the forecast of a number.

    ``held_from`` is the first level whose bound held; ``pinball_s`` is ``None`` without a start.
    """

    outcome: str
    waited_s: int
    held_from: int
    pinball_s: float | None
    seq: int


class ScoredForecast(NamedTuple):
    """A forecast that something has come of; see `ForecastRow` and `ForecastScore`."""

    made_at: int
    user: str | None
    starts_now: float
    likely_wait_s: int
    waited_s: int
    held_from: int
    pinball_s: float | None
    outcome: str


class ForecastRows:
    """The rows of one store; `StateError` if it can't be read or written.

    `scored` and `waiting` read apart from the store's other users, so they need no lock; the others
    are used with it held.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, served: Iterable[ForecastRow]) -> None:
        """Add forecasts, but none of a user who was forgotten since it was made."""
        forgotten_at = self._store.forgotten_at
        rows = [
            columns_of(each) | {"wait_s": json.dumps(each.wait_s)}
            for each in served
            if each.made_at > (forgotten_at(each.user) or -1)
        ]
        with self._store.transaction("keep forecasts") as database:
            database.table("served_forecasts").insert_all(rows)

    def link(self, submitted: Iterable[JobRequest], within_s: int) -> None:
        """Link the latest what-if like each job that its user asked before, within a time."""
        links = [
            (
                *(job.job_id, job.submit_time, job.submit_time),
                *(job.user, job.processors, job.requested_time),
                *(job.queue, job.queue, job.project, job.project),
                *(job.submit_time - within_s, job.submit_time),
            )
            for job in submitted
        ]
        with self._store.transaction("keep forecasts") as database:
            database.conn.executemany(_LINK, links)

    def open_jobs(self) -> set[Key]:
        """Give the jobs with forecasts that nothing has come of yet."""
        return set(self._store.rows(_KEYS + "WHERE outcome IS NULL AND job_id IS NOT NULL"))

    def linked_since(self, submit_time: int) -> set[Key]:
        """Give the jobs submitted since that open what-ifs are linked to."""
        where = "WHERE kind = 'what-if' AND outcome IS NULL AND submit_time >= ?"
        return set(self._store.rows(_KEYS + where, (submit_time,)))

    def open_of(self, key: Key) -> list[OpenForecast]:
        """Give the forecasts of a job that nothing has come of yet."""
        rows = self._store.rows(
            "SELECT seq, counts_from, wait_s FROM served_forecasts "
            "WHERE job_id = ? AND submit_time = ? AND outcome IS NULL",
            key,
        )
        return [OpenForecast(seq, since, json.loads(wait_s)) for seq, since, wait_s in rows]

    def score(self, scores: Iterable[ForecastScore]) -> None:
        """Write down what came of forecasts; their bounds are not needed any more."""
        with self._store.transaction("keep forecasts") as database:
            database.conn.executemany(_SCORE, scores)

    def scored(self, since: int, until: int) -> list[ScoredForecast]:
        """Give those made in a time that something has come of."""
        return [ScoredForecast(*row) for row in self._store.rows_apart(_SCORED, (since, until))]

    def waiting(self, since: int, until: int) -> list[tuple[int, list[int]]]:
        """Give those made in a time whose jobs wait: since when they count, and their bounds."""
        rows = self._store.rows_apart(_WAITING, (since, until))
        return [(counts_from, json.loads(wait_s)) for counts_from, wait_s in rows]
