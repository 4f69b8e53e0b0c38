"""The log of dynP's decisions: which order the queue has stood in since when, and why."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from foretime_sidecar.store.store import Store

_SELECT = (
    "SELECT happened_at, queue_order, instead_of, case_of_table_1, waiting_jobs, evidence "
    "FROM order_switches "
)


@dataclass(frozen=True, slots=True)
class OrderSwitch:
    """One line of the log.

    Attributes
    ----------
    happened_at
        Epoch seconds.
    order
        What the queue stands in from here on.
    instead_of
        The order before; ``None`` where dynP began.
    case
        Of table 1 (Streit 2002); ``None`` where it does not apply.
    waiting_jobs
        Jobs that it was decided by.
    qualities
        Of the schedule in each order, by name, lower is better; ``None`` where nobody starts soon
        enough to count.
    quality
        Which it is, as in ``queue_order.quality``.
    """

    happened_at: int
    order: str
    instead_of: str | None
    case: str | None
    waiting_jobs: int
    qualities: Mapping[str, float | None]
    quality: str


class OrderSwitches:
    """The log, in the store; `StateError` if that can't be read or written.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock

    def latest(self) -> OrderSwitch | None:
        """Give the last line, ``None`` if there is none."""
        found = self._read("ORDER BY seq DESC LIMIT 1", ())
        return found[0] if found else None

    def since(self, happened_at: int, limit: int) -> list[OrderSwitch]:
        """Give the latest so many lines since a time, oldest first."""
        where = "WHERE happened_at >= ? ORDER BY seq DESC LIMIT ?"
        return self._read(where, (happened_at, limit))[::-1]

    def counts(self) -> dict[str, int]:
        """Count the switches to each order that are in the log, by name."""
        with self._lock:
            return dict(
                self._store.rows(
                    "SELECT queue_order, count(*) FROM order_switches "
                    "WHERE instead_of IS NOT NULL GROUP BY queue_order"
                )
            )

    def add(self, switch: OrderSwitch) -> OrderSwitch:
        """Add a line, and give it."""
        evidence = {"qualities": switch.qualities, "quality": switch.quality}
        row = {
            "happened_at": switch.happened_at,
            "queue_order": switch.order,
            "instead_of": switch.instead_of,
            "case_of_table_1": switch.case,
            "waiting_jobs": switch.waiting_jobs,
            "evidence": json.dumps(evidence),
        }
        with self._lock, self._store.transaction("log the queue's order") as database:
            database.table("order_switches").insert(row)
        return switch

    def _read(self, where: str, parameters: tuple[object, ...]) -> list[OrderSwitch]:
        with self._lock:
            rows = self._store.rows(_SELECT + where, parameters)
        return [OrderSwitch(*row[:5], **json.loads(row[5])) for row in rows]
