"""The daemon's thread that keeps forecasts: gently, and apart from the polls."""

from __future__ import annotations

import logging
import os
import threading
import time

import psutil

from foretime_sidecar.settings import ForecastSettings
from foretime_sidecar.wait_forecasting import WaitForecasting

logger = logging.getLogger("foretime")

# Whatever else the service node does goes first, this process's own polls and answers, too.
_NICENESS = 10


class ForecastThread:
    """Refreshes forecasts after each look, with a bounded share of one processor.

    What goes wrong is logged and counted, and tried again with the next look: whoever polls, mends
    limits or answers never notices.

    Parameters
    ----------
    forecasting
        What is refreshed.
    settings
        How much of a processor it may use.

    """

    def __init__(self, forecasting: WaitForecasting, settings: ForecastSettings) -> None:
        self._forecasting = forecasting
        self._share = settings.cpu_percent / 100
        self._looked = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forecasts", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Tell it that there is a new look; takes no time."""
        self._looked.set()

    def end(self, grace_s: float) -> bool:
        """Tell it to end, and say whether it has within a time."""
        self._ending.set()
        self._looked.set()
        if self._thread.is_alive():
            self._thread.join(grace_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            self._looked.wait()
            self._looked.clear()
            if self._ending.is_set():
                self._forecasting.save()
                return
            began, used = time.monotonic(), time.thread_time()
            self.refresh()
            used_s, took_s = time.thread_time() - used, time.monotonic() - began
            self._ending.wait(max(used_s / self._share - took_s, 0))

    def refresh(self) -> None:
        """Refresh once; what fails is logged."""
        try:
            self._forecasting.refresh(hurried=busy())
            self._forecasting.last_failure = ""
        except Exception as error:
            self._forecasting.failures += 1
            self._forecasting.last_failure = f"{type(error).__name__}: {error}"
            logger.exception("forecasts of waits were not refreshed; tried again at the next look")


def busy() -> bool:
    """Say whether this machine has more to do than processors to do it with."""
    return psutil.getloadavg()[0] > (psutil.cpu_count() or 1)
