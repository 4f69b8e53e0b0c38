"""What fair share has charged, from cycle to cycle: pbs_sched's file of usage, watched."""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path
from typing import Self

_EVERY_S = 0.1
_HEADER = 32  # a tag, a version, and when usage was last decayed
_ENTITY = struct.Struct("50s6xd")


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
            used = usage_of(self._path.read_bytes()) if self._path.exists() else {}
            # It is emptied before it is written.
            if used != last and len(used) >= len(last):
                self.seen.append((round(time.time(), 1), used))
                last = used


def usage_of(content: bytes) -> dict[str, float]:
    """Read the file (``write_usage`` of fairshare.cpp); who has used nothing is not in it."""
    whole = (len(content) - _HEADER) // _ENTITY.size * _ENTITY.size
    entities = _ENTITY.iter_unpack(content[_HEADER : _HEADER + whole]) if whole > 0 else ()
    return {name.split(b"\0")[0].decode(): used for name, used in entities}
