"""Who had their history erased, and when: what ended before is not taken up again.

The scheduler's accounting still has it and is read again, a little at each poll and a lot at need.
So a mark stays, which holds no name: a hash with a salt of this store's. Whoever can read the store
can try names against it.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3


class ForgottenUsers:
    """The marks of one store.

    Parameters
    ----------
    connection
        The store's; errors of SQLite's are for the store to explain.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._salt: bytes | None = None
        self._hashes: dict[str, str] = {}
        self._marks: dict[str, int] | None = None

    def forgotten_at(self, user: str | None) -> int | None:
        """Give up to when a user's history is erased, epoch seconds; ``None``: it is not."""
        if user is None:
            return None
        if self._marks is None:
            rows = self._connection.execute("SELECT name_hash, forgotten_at FROM forgotten_users")
            self._marks = dict(rows.fetchall())
        return self._marks.get(self._hash(user)) if self._marks else None

    def covers(self, user: str | None, at: int) -> bool:
        """Say whether what happened to a user's job at a time is erased."""
        until = self.forgotten_at(user)
        return until is not None and at <= until

    def mark(self, user: str, now: int) -> None:
        """Mark a user; in a transaction of the store's, after which `reread` must be called."""
        self._connection.execute(
            "INSERT INTO forgotten_users VALUES (?, ?) ON CONFLICT (name_hash) DO UPDATE SET "
            "forgotten_at = max(forgotten_at, excluded.forgotten_at)",
            (self._hash(user), now),
        )

    def reread(self) -> None:
        """Take note that the marks may have changed."""
        self._marks = None
        self._hashes.clear()

    def _hash(self, user: str) -> str:
        found = self._hashes.get(user)
        if found is None:
            if self._salt is None:
                (text,) = self._connection.execute("SELECT salt FROM forgetting_salt").fetchone()
                self._salt = bytes.fromhex(text)
            name = user.encode("utf-8", "surrogatepass")
            found = self._hashes[user] = hmac.digest(self._salt, name, hashlib.sha256).hex()
        return found
