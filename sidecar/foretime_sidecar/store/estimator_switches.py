"""Which estimator jobs were planned by since when, and when another was found to be better."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any, Literal

from foretime_sidecar.store.row_columns import columns_of
from foretime_sidecar.store.store import Store

_SELECT = (
    "SELECT happened_at, event, estimator, instead_of, evidence FROM estimator_switches "
    "WHERE happened_at >= ? ORDER BY seq"
)


@dataclass(frozen=True, slots=True)
class EstimatorSwitch:
    """One line of the log.

    Attributes
    ----------
    happened_at
        Epoch seconds.
    event
        ``in-use``: from here on jobs are planned by it; ``more-accurate``: it predicts better than
        what they are planned by, and that is hardly chance.
    estimator
        Which.
    instead_of
        What jobs were planned by before, or are; ``None`` at the first of all.
    evidence
        The rows of the board of both, by name, as far as they are on it.
    """

    happened_at: int
    event: Literal["in-use", "more-accurate"]
    estimator: str
    instead_of: str | None
    evidence: dict[str, Any]


class EstimatorSwitches:
    """The log, in the store; `StateError` if that can't be read or written.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock

    def all(self, since: int = 0) -> list[EstimatorSwitch]:
        """Give the lines since a time, oldest first."""
        with self._lock:
            rows = self._store.rows(_SELECT, (since,))
        return [
            EstimatorSwitch(at, event, estimator, before, json.loads(evidence))
            for at, event, estimator, before, evidence in rows
        ]

    def add(self, switch: EstimatorSwitch) -> None:
        """Add a line."""
        row = columns_of(switch) | {"evidence": json.dumps(switch.evidence)}
        with self._lock, self._store.transaction("log the estimator in use") as database:
            database.table("estimator_switches").insert(row)
