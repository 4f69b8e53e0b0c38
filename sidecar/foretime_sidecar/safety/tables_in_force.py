"""Which table was in place when a job was submitted, and what it let the hook do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter

from foretime_sidecar.store.store import Store


@dataclass(frozen=True, slots=True)
class TableInForce:
    """What the table in place at a job's submission let the hook do; ``mode`` "" if it was over."""

    generation: int | None
    mode: str


class TablesInForce:
    """The tables that were in place at some times.

    Parameters
    ----------
    store
        Where tables are noted; used here only.
    times
        Epoch seconds. `in_force_at` answers for these and for later ones.

    Raises
    ------
    StateError
        If the store can't be read.
    """

    def __init__(self, store: Store, times: Collection[int]) -> None:
        tables = store.tables_since(min(times)) if times else []
        by_time = sorted(tables, key=lambda table: table.written_at)
        self._written_at = [table.written_at for table in by_time]
        # A clock that was set back has a later table written earlier.
        self._latest = list(accumulate(by_time, partial(max, key=attrgetter("generation"))))

    def in_force_at(self, time: int) -> TableInForce:
        """Say what the table in place at a time let the hook do."""
        place = bisect_right(self._written_at, time)
        if not place:
            return TableInForce(None, "")
        found = self._latest[place - 1]
        return TableInForce(found.generation, found.mode if time <= found.valid_until else "")
