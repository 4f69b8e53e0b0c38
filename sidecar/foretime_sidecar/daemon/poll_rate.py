"""How long to pause between two looks at the scheduler: longer while it is busy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.settings.settings import SchedulerSettings

# Our requests may keep the scheduler busy for this share of the time at most.
MOST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause between two looks.

    Attributes
    ----------
    seconds
        How long it is.
    reason
        Why it is longer than ``scheduler.poll_interval_s``; "" if it is not.
    """

    seconds: int
    reason: str = ""


class PollRate:
    """Doubles the pause for as long as the scheduler is busy, and halves it again afterwards.

    The pause stays between ``scheduler.poll_interval_s`` and ``longest_poll_interval_s``.

    Parameters
    ----------
    settings
        The bounds, and what busy means.

    Attributes
    ----------
    pause
        Until the next look.
    """

    def __init__(self, settings: SchedulerSettings) -> None:
        self._settings = settings
        self.pause = Pause(settings.poll_interval_s)

    def adapt(self, busy: str, answering_s: float) -> Pause:
        """Give the pause until the next look.

        Parameters
        ----------
        busy
            Why the scheduler is busy (`why_busy`); "" if it is not.
        answering_s
            How long it took to answer our requests since this was last asked, seconds.
        """
        settings, seconds = self._settings, self.pause.seconds
        shortest, longest = settings.poll_interval_s, settings.longest_poll_interval_s
        if busy:
            seconds, reason = seconds * 2, busy
        else:
            seconds, reason = seconds // 2, "the scheduler was busy until now"
        sparing_s = sparing_pause_s(answering_s)
        if sparing_s > max(seconds, shortest):
            seconds = sparing_s
            reason = (
                f"the scheduler took {answering_s:.1f} s to answer the last requests, which may "
                f"take {MOST_SHARE:.0%} of its time"
            )
        seconds = min(max(seconds, shortest), max(longest, shortest))
        self.pause = Pause(seconds, reason if seconds > shortest else "")
        return self.pause


def sparing_pause_s(answering_s: float) -> int:
    """Give the pause after which requests that took so long take `MOST_SHARE` of the time."""
    return math.ceil(answering_s / MOST_SHARE)


def why_busy(load: ControllerLoad | None, settings: SchedulerSettings) -> str:
    """Say why slurmctld is so busy that our requests can wait; "" if it is not, or can't tell."""
    if load is None:
        return ""
    if load.server_threads >= settings.busy_server_threads:
        return (
            f"slurmctld serves {load.server_threads} requests at once "
            f"(scheduler.busy_server_threads = {settings.busy_server_threads})"
        )
    if load.scheduling_cycle_s >= settings.busy_cycle_s:
        return (
            f"slurmctld's last scheduling cycle took {load.scheduling_cycle_s:.1f} s "
            f"(scheduler.busy_cycle_s = {settings.busy_cycle_s:g})"
        )
    return ""
