"""A thread of the daemon's that works on what the polls have seen: gently, and apart from them."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

import psutil

logger = logging.getLogger("foretime")

# Whatever else the service node does goes first, this process's own polls and answers, too.
_NICENESS = 10


class BackgroundWork(Protocol):
    """What such a thread does.

    Attributes
    ----------
    failures, last_failure
        How often it has failed, and why the last time; "" if it went through.
    """

    failures: int
    last_failure: str

    def refresh(self, *, hurried: bool = False) -> bool:
        """Work on the latest look for a while; say whether there may be more to do.

        ``hurried``: as little as will do, as the machine has other work.
        """
        ...

    def save(self) -> None:
        """Save what was learned; what fails is logged."""
        ...


class BackgroundThread:
    """Works after each look, with a bounded share of one processor.

    What goes wrong is logged and counted, and tried again with the next look: whoever polls, mends
    limits or answers never notices.

    Parameters
    ----------
    name
        What it works on, for the log, such as "forecasts of waits".
    work
        What it does.
    cpu_percent
        How much of a processor it may use.
    then
        Called whenever it has worked; takes no time.
    """

    def __init__(
        self,
        name: str,
        work: BackgroundWork,
        cpu_percent: float,
        then: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._then = then
        self._share = cpu_percent / 100
        self._looked = threading.Event()
        self._ending = threading.Event()
        self._at_work = threading.Lock()
        self._has_worked = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Tell it that there is a new look; takes no time."""
        self._looked.set()

    def end(self) -> None:
        """Tell it to end; takes no time."""
        self._ending.set()
        self._looked.set()

    def has_ended(self, patience_s: float) -> bool:
        """Say whether it has ended, within a time."""
        if self._thread.is_alive():
            self._thread.join(max(patience_s, 0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # as foretime.service does
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            self._looked.wait()
            self._looked.clear()
            if self._ending.is_set():
                self._work.save()
                return
            began, used = time.monotonic(), time.thread_time()
            if self.refresh():
                self._looked.set()
            used_s, took_s = time.thread_time() - used, time.monotonic() - began
            self._ending.wait(max(used_s / self._share - took_s, 0))

    def refresh(self) -> bool:
        """Work once, and say whether there may be more to do; what fails is logged.

        If the thread is at work, this waits for it: the latest look has been worked on afterwards.
        """
        with self._at_work:
            try:
                # At first somebody waits for what it makes, with whatever care.
                more = self._work.refresh(hurried=busy() or not self._has_worked)
                self._has_worked = True
                self._work.last_failure = ""
            except Exception as error:
                self._work.failures += 1
                self._work.last_failure = f"{type(error).__name__}: {error}"
                logger.exception("%s were not refreshed; tried again at the next look", self._name)
                return False
        if self._then is not None:
            self._then()
        return more


def busy() -> bool:
    """Say whether this machine has more to do than processors to do it with."""
    return psutil.getloadavg()[0] > (psutil.cpu_count() or 1)
