"""Whose waiting jobs the daemon sends news of, and what their users were told last."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_sidecar.store.row_columns import columns_of
from foretime_sidecar.store.store import Store


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """A job that its user has asked for news of.

    Attributes
    ----------
    user, job_id
        Whose, and as they have named it.
    asked_at
        When they asked, epoch seconds.
    likely_start, sure_by
        The likely start and the 95% bound that were told last, epoch seconds; ``None``: none yet.
    soon
        Whether it was told that it starts soon.
    moved_at
        When it was last told that its start has moved, epoch seconds.
    """

    user: str
    job_id: str
    asked_at: int
    likely_start: int | None = None
    sure_by: int | None = None
    soon: bool = False
    moved_at: int = 0


class WatchedJobs:
    """The rows of one store, used with the store's lock held; `StateError` if that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[WatchedJob]:
        """Give those of all users."""
        return self._found("ORDER BY asked_at", ())

    def of(self, user: str) -> list[WatchedJob]:
        """Give those of one user, in the order asked for."""
        return self._found("WHERE user = ? ORDER BY asked_at", (user,))

    def _found(self, which: str, parameters: tuple[str, ...]) -> list[WatchedJob]:
        rows = self._store.rows(
            "SELECT user, job_id, asked_at, likely_start, sure_by, soon, moved_at "  # noqa: S608
            f"FROM watched_jobs {which}",
            parameters,
        )
        return [
            WatchedJob(user, job_id, asked_at, likely, sure_by, bool(soon), moved_at)
            for user, job_id, asked_at, likely, sure_by, soon, moved_at in rows
        ]

    def add(self, user: str, job_id: str, asked_at: int) -> None:
        """Add a job, unless it is there."""
        self._store.write(
            "record who wants news",
            "INSERT INTO watched_jobs (user, job_id, asked_at) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            [(user, job_id, asked_at)],
        )

    def note(self, job: WatchedJob) -> bool:
        """Note what was told of a job; say whether it is still there."""
        with self._store.transaction("record what news were told") as database:
            done = database.conn.execute(
                "UPDATE watched_jobs SET likely_start = :likely_start, sure_by = :sure_by, "
                "soon = :soon, moved_at = :moved_at WHERE user = :user AND job_id = :job_id",
                columns_of(job),
            )
            return done.rowcount > 0

    def remove(self, user: str, job_id: str) -> bool:
        """Remove a job; say whether it was there."""
        with self._store.transaction("record who wants no more news") as database:
            done = database.conn.execute(
                "DELETE FROM watched_jobs WHERE user = ? AND job_id = ?", (user, job_id)
            )
            return done.rowcount > 0

    def clear(self) -> None:
        """Remove all."""
        if self.all():
            self._store.write("forget who wants news", "DELETE FROM watched_jobs WHERE ?", [(1,)])
