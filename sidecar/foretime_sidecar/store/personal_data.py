"""All that the store holds of one user: shown to them, or erased, all of it or nothing."""

from __future__ import annotations

from typing import Any

from foretime_sidecar.store.model_states import NAMED
from foretime_sidecar.store.store import Store

_JOB = ("user", "project", "queue", "processors", "requested_time_s")
COLUMNS = {
    "jobs": (
        *("job_id", "submit_time", *_JOB, "array_id", "eligible_time", "start_time", "end_time"),
        *("actual_runtime_s", "ending", "state"),
    ),
    "job_decisions": (
        *("made_at", "job_id", "submit_time", *_JOB, "action", "scheduled_time_s", "reason"),
        "generation",
    ),
    "served_forecasts": (
        *("kind", "made_at", "counts_from", "job_id", "submit_time", *_JOB, "starts_now"),
        *("likely_wait_s", "wait_s", "outcome", "waited_s", "held_from", "pinball_s"),
    ),
    "start_bounds": (
        *("job_id", "submit_time", "user", "noted_at", "planned_start", "latest_start"),
        *("outcome", "happened_at"),
    ),
    "plain_starts": (
        *("job_id", "submit_time", "user", "processors", "seen_at", "could_start", "start_time"),
        *("end_time", "runtime_s", "plain_start", "start_with_us", "with_us", "record"),
    ),
    "told_users": ("user", "told_at"),
    "watched_jobs": (
        *("user", "job_id", "asked_at", "likely_start", "sure_by", "soon", "moved_at"),
    ),
}
"""Columns of the tables that name users."""
_BY_JOB = ("decisions", "head_jobs")
_OF_THEIRS = (
    "(job_id, submit_time) IN (SELECT job_id, submit_time FROM jobs WHERE user = :user "
    "UNION SELECT job_id, submit_time FROM job_decisions WHERE user = :user "
    "UNION SELECT job_id, submit_time FROM served_forecasts WHERE user = :user)"
)


def data_of(store: Store, user: str) -> dict[str, list[dict[str, Any]]]:
    """Give all rows of a user's, table by table.

    Raises
    ------
    StateError
        If the store can't be read.
    """
    found = {}
    for table, columns in COLUMNS.items():
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE user = ?"  # noqa: S608 - ours
        rows = store.rows_apart(query, (user,))
        found[table] = [dict(zip(columns, row, strict=True)) for row in rows]
    notes = ("job_id", "submit_time", "decision")
    query = f"SELECT {', '.join(notes)} FROM decisions WHERE {_OF_THEIRS}"  # noqa: S608 - ours
    rows = store.rows_apart(query, {"user": user})
    found["decisions"] = [dict(zip(notes, row, strict=True)) for row in rows]
    return found


def erase(store: Store, user: str, now: int) -> dict[str, int]:
    """Delete all rows of a user's and mark them as forgotten; give how many rows, by table.

    Parameters
    ----------
    store
        Used with the sidecar's lock held.
    user
        Whose.
    now
        Epoch seconds; what ended until then is not stored again.

    Raises
    ------
    StateError
        If it can't be done: then nothing is.
    """
    with store.transaction(f"erase the history of {user}") as database:
        # What hangs on the job alone first, while it can be told whose it is.
        conditions = [(table, _OF_THEIRS) for table in _BY_JOB]
        conditions += [(table, "user = :user") for table in COLUMNS]
        erased = {
            table: database.conn.execute(
                f"DELETE FROM {table} WHERE {condition}",  # noqa: S608 - ours
                {"user": user},
            ).rowcount
            for table, condition in conditions
        }
        # What was learned from them all is learned anew.
        database.conn.execute("DELETE FROM model_states WHERE name LIKE ? || '%'", (NAMED,))
        store.forgotten.mark(user, now)
    store.forgotten.reread()
    store.empty_journal()
    return erased
