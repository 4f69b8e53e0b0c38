"""How long to pause between two looks at the scheduler: longer while it is busy."""

from __future__ import annotations

import math

from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.settings import SchedulerSettings

# A look and a poll together may take this share of the time at most.
MOST_SHARE = 0.05


class PollRate:
    """Doubles the pause for as long as the scheduler is busy, and halves it again afterwards.

    The pause stays between ``scheduler.poll_interval_s`` and ``longest_poll_interval_s``.

    Parameters
    ----------
    settings
        The bounds, and what busy means.

    Attributes
    ----------
    pause_s
        Seconds until the next look.
    """

    def __init__(self, settings: SchedulerSettings) -> None:
        self._settings = settings
        self.pause_s = settings.poll_interval_s

    def adapt(self, load: ControllerLoad | None, took_s: float) -> int:
        """Give the pause until the next look.

        Parameters
        ----------
        load
            What the scheduler says; ``None`` if it says nothing, which is no sign of load.
        took_s
            Seconds that it took to answer this time.
        """
        settings = self._settings
        shortest = settings.poll_interval_s
        longest = max(settings.longest_poll_interval_s, shortest)
        if load is not None and is_busy(load, settings):
            pause_s = self.pause_s * 2
        else:
            pause_s = self.pause_s // 2
        pause_s = max(pause_s, shortest, math.ceil(took_s / MOST_SHARE))
        self.pause_s = min(pause_s, longest)
        return self.pause_s


def is_busy(load: ControllerLoad, settings: SchedulerSettings) -> bool:
    """Say whether slurmctld serves so many requests, or is so long at it, that ours can wait."""
    return (
        load.server_threads >= settings.busy_server_threads
        or load.scheduling_cycle_s >= settings.busy_cycle_s
    )
