"""Who was told what their jobs use, and when last."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_sidecar.store.store import Store


class ToldTimes:
    """The rows of one store, used with the store's lock held; `StateError` if that fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> dict[str, int]:
        """Give when each user was last told, epoch seconds."""
        return dict(self._store.rows("SELECT user, told_at FROM told_users"))

    def set(self, told: Mapping[str, int]) -> None:
        """Note when users were told."""
        with self._store.transaction("record who was told") as database:
            rows = [{"user": user, "told_at": told_at} for user, told_at in told.items()]
            database.table("told_users").upsert_all(rows, pk="user")
