"""Publishing the table: it is written when it would say something else, or is about to run out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.hook_supervision import Oversight
from foretime_sidecar.settings.settings import TableSettings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Advice, Mode, read_table, write_table

logger = logging.getLogger("foretime")


@dataclass(slots=True)
class PublishedTable:
    """What the daemon tells of its table.

    Attributes
    ----------
    generation, written_at, valid_until
        Of the table in place, ``None`` before the first of this process.
    table_rows
        Rows in it.
    mode, mode_reason
        The mode that it carries, and why if it is not the one that was set.
    """

    generation: int | None = None
    written_at: int | None = None
    valid_until: int | None = None
    table_rows: int = 0
    mode: str | None = None
    mode_reason: str = ""


class TablePublication:
    """Writes the table; only the thread that polls asks for it.

    Parameters
    ----------
    settings
        Where it lies, and for how long it holds.
    store, lock
        The sidecar's; its generations are counted there.
    learner
        Gives what has been learned; asked with the lock held.
    oversight
        What is advised of users.
    published
        Told what is in place.

    Attributes
    ----------
    must_write
        Whether the next one is written even if it says the same, as somebody was forgotten; changed
        with the lock held.
    """

    def __init__(
        self,
        settings: TableSettings,
        store: Store,
        lock: threading.RLock,
        learner: Callable[[], Learner],
        oversight: Oversight,
        published: PublishedTable,
    ) -> None:
        self._settings = settings
        self._path = Path(settings.path)
        self._store = store
        self._lock = lock
        self._learner = learner
        self._oversight = oversight
        self._published = published
        self._found_generation = 0
        self._carried: tuple[Mode, Exclusions, Advice] | None = None
        self.must_write = False

    def take_over(self) -> None:
        """Count on from the table that lies there, so that the hooks take the next for newer."""
        if self._path.exists():
            try:
                self._found_generation = read_table(self._path).generation
            except StateError as error:
                logger.warning("the table in place is replaced: %s", error)

    def write(self, now: int, mode: Mode, reason: str, exclusions: Exclusions) -> int | None:
        """Write a table unless the one in place says the same and will last; give its number.

        Only the thread that polls calls it, so nothing is learned between its two locks.

        Parameters
        ----------
        now
            Epoch seconds.
        mode, reason
            What it carries, and why if that is not what was set.
        exclusions
            Which jobs the hook leaves alone.

        Raises
        ------
        StateError
            If it can't be written; the next call tries again.
        """
        published = self._published
        with self._lock:
            learner = self._learner()
            changed = learner.refresh(now)
            advice = self._oversight.advice(mode, learner, now)
            carried = (mode, exclusions, advice)
            valid_for_s, valid_until = self._settings.valid_for_s, published.valid_until
            lasting = valid_until is not None and valid_until - now > valid_for_s // 2
            same = not changed and carried == self._carried and not self.must_write
            if lasting and same and self._path.exists():
                return None
            unplanned_since = None if mode is Mode.ENFORCE else self._store.unplanned_since(now)
            rows = learner.row_count()
            valid_until = now + valid_for_s
            generation = self._store.begin_generation(
                now, valid_until, mode.value, rows, above=self._found_generation
            )
            table = replace(
                learner.table(generation, now, valid_until, mode, exclusions, advice),
                unplanned_since=unplanned_since,
            )
            self.must_write = False
        # It can't change any more, and a slow disk must keep no question waiting.
        try:
            write_table(self._path, table)
        except StateError:
            self.must_write = True
            raise
        with self._lock:
            self._store.mark_published(generation)
            learner.published()
        if reason and reason != published.mode_reason:
            logger.warning("the hook is told to observe only: %s", reason)
        self._carried = carried
        published.generation, published.written_at = generation, now
        published.valid_until, published.table_rows = valid_until, rows
        published.mode, published.mode_reason = mode.value, reason
        return generation
