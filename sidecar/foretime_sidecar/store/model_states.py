"""What models have learned, in the store: saved now and then, taken over after a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.store import Store

NAMED = "of users: "
"""How names of states begin that tell of users by their names."""

_SAVE = (
    "INSERT INTO model_states VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "saved_at = excluded.saved_at, state = excluded.state"
)


class ModelStates:
    """States of models by their names.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock

    def save(
        self,
        name: str,
        saved_at: int,
        state: dict[str, Any],
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Keep a state in the place of the last; ``saved_at``: epoch seconds.

        One that tells of users by their names is saved as ``NAMED`` and its name: it is erased with
        the history of any of them. ``still_wanted`` is asked with the lock held.

        Raises
        ------
        StateError
            If it can't be stored, or is nothing that JSON can hold.
        """
        try:
            text = json.dumps(state, allow_nan=False)
        except (ValueError, TypeError) as error:
            raise StateError(f"what {name} has learned can't be kept: {error}") from error
        with self._lock:
            if not still_wanted():
                return
            self._store.write("save what a model has learned", _SAVE, [(name, saved_at, text)])

    def saved(self, name: str) -> dict[str, Any] | None:
        """Give the state that was saved last; ``None`` if there is none.

        Raises
        ------
        StateError
            If it can't be read.
        """
        with self._lock:
            rows = self._store.rows("SELECT state FROM model_states WHERE name = ?", (name,))
        if not rows:
            return None
        try:
            state: dict[str, Any] = json.loads(rows[0][0])
        except json.JSONDecodeError as error:
            raise StateError(f"what {name} had learned can't be read: {error}") from error
        return state
