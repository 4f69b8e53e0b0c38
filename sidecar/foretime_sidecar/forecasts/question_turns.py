"""Turns at what can do one thing at a time: long work lets questions go in between."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class QuestionTurns:
    """A lock whose holder may let those who wait for it go first, and goes on after them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_held = False
        self._waiting = 0
        self._gone = 0  # how often it was held and given up

    def __enter__(self) -> None:
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._is_held)
            self._waiting -= 1
            self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._give_up()

    def _give_up(self) -> None:
        with self._changed:
            self._is_held = False
            self._gone += 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Let others go while native code runs; only for the thread that holds it."""
        self._give_up()
        try:
            yield
        finally:
            self.__enter__()

    def give_way(self) -> None:
        """Let those go first who wait now; only for the thread that holds it."""
        with self._changed:
            if not self._waiting:
                return
            until = self._gone + 1 + self._waiting
        self._give_up()
        with self._changed:
            # Not for ever: whoever comes later waits as everybody does.
            self._changed.wait_for(lambda: not self._is_held and self._gone >= until)
            self._is_held = True
