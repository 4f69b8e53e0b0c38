"""What fair share has charged, from cycle to cycle: pbs_sched's file of usage, watched."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from foretime_sidecar.clients.pbs.usage_file import read_usage_file

_EVERY_S = 0.1


class UsageWatch:
    """Looks at the file while it is open, and notes each change.

    Parameters
    ----------
    path
        ``sched_priv/usage``, which pbs_sched writes at the beginning of each cycle.

    Attributes
    ----------
    seen
        Epoch seconds and what each entity has used, of each change.
    """

    def __init__(self, path: Path) -> None:
        self.seen: list[tuple[float, dict[str, float]]] = []
        self._path = path
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        last: dict[str, float] = {}
        while not self._done.wait(_EVERY_S):
            used = dict(read_usage_file(self._path).used)
            # It is emptied before it is written.
            if used != last and len(used) >= len(last):
                self.seen.append((round(time.time(), 1), used))
                last = used
