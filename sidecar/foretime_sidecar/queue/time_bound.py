"""Work that must not keep its caller for longer than a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class TooLongError(Exception):
    """The work has taken too long, or an earlier piece of it still does."""


class TimeBound:
    """Does one piece of work at a time, in a thread, and waits for it up to a bound.

    What takes longer goes on in its thread, as native code can't be stopped, and what it finds is
    dropped; nothing else is begun until then.

    Parameters
    ----------
    limit_s
        Seconds; infinite: the work is done here and now.

    Attributes
    ----------
    limit_s
        As given.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], Result]) -> Result:
        """Do it, and give what it gives or raise what it raises.

        Raises
        ------
        TooLongError
            If it takes longer than the bound, or earlier work still does.
        """
        if math.isinf(self.limit_s):
            return work()
        if self._thread is not None and self._thread.is_alive():
            raise TooLongError("the planning begun at an earlier look still goes on")
        outcome: dict[str, Any] = {}

        def do() -> None:
            try:
                outcome["result"] = work()
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                outcome["error"] = error

        self._thread = threading.Thread(target=do, name="bounded", daemon=True)
        self._thread.start()
        self._thread.join(self.limit_s)
        if self._thread.is_alive():
            raise TooLongError(f"planning takes longer than {self.limit_s:g} s")
        if "error" in outcome:
            raise outcome["error"]
        result: Result = outcome["result"]
        return result
