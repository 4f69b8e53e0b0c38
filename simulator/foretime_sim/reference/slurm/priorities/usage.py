"""What jobs are charged with, when usage decays, and when it is forgotten.

Source: ``_apply_new_usage``, ``_decay_thread`` and ``_next_reset`` of priority_multifactor.c.
"""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime

from foretime_estimators.jobs.errors import InputError

from foretime_sim.sites.slurm.priority import SlurmPriority

DAY_S = 86_400
RESET_PERIODS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")


def charge(ran_s: int, billable: float, decay_factor: float, usage_factor: float | None) -> float:
    """Give what a job is charged for a time that it ran: billing seconds, decayed once.

    Slurm decays new usage by the whole of the time that it covers.
    """
    ran = float(max(ran_s, 0))
    decayed = ran * math.pow(decay_factor, ran) * billable
    return decayed if usage_factor is None else decayed * usage_factor


def decay_factor(half_life_s: int) -> float:
    """Give the part of usage that is left after a second; 1 without decay.

    Slurm takes the first two terms of the power series, so usage halves a little too early.
    """
    return 1 - (0.693 / float(half_life_s)) if half_life_s > 0 else 1.0


class UsageClock:
    """When usage was last worked out, when it will be next, and when it is forgotten.

    Parameters
    ----------
    settings
        Half-life, calculation period and PriorityUsageResetPeriod. Days begin at midnight of UTC;
        Slurm goes by local time.
    now
        Epoch seconds.
    usage_at
        When usage was last worked out; ``None``: now.

    Raises
    ------
    InputError
        If there is no such reset period.
    """

    def __init__(self, settings: SlurmPriority, now: int, usage_at: int | None) -> None:
        self.decay_factor = decay_factor(settings.decay_half_life_s)
        self.last_ran = now if usage_at is None else usage_at
        self.period_s = settings.calc_period_s
        gone = max(now - self.last_ran, 0) // self.period_s + 1
        self.next_tick = self.last_ran + gone * self.period_s
        self._reset_period = settings.usage_reset_period.upper()
        if self._reset_period not in RESET_PERIODS:
            raise InputError(
                f"priority: usage_reset_period is {settings.usage_reset_period!r}: give one of"
                f" {', '.join(RESET_PERIODS)}"
            )
        self.next_reset = next_reset(self._reset_period, now, now)
        self.resets_at_once = self._reset_period == "NOW"

    def resets(self, now: int) -> bool:
        """Say whether usage is to be forgotten now; it then waits for the next time."""
        if self.next_reset is None or now < self.next_reset:
            return False
        self.next_reset = next_reset(self._reset_period, self.next_reset, now)
        return True

    def kept(self, now: int) -> float | None:
        """Give the part of usage that is left now; ``None`` where no time has passed."""
        gone = now - self.last_ran
        if gone <= 0:
            return None
        return max(math.pow(self.decay_factor, float(gone)), sys.float_info.min)


def next_reset(period: str, last: int, now: int) -> int | None:
    """Give the first midnight of the next day, week, month, quarter or year after a reset.

    A day or a week that was missed is not made good (``_next_reset``).

    Examples
    --------
    >>> from foretime_sim.reference.slurm.priorities.usage import next_reset
    >>> next_reset("DAILY", 86_400 + 5, 86_400 + 5), next_reset("NONE", 0, 0)
    (172800, None)
    """
    day = datetime.fromtimestamp(last, UTC).replace(hour=0, minute=0, second=0)
    midnight = int(day.timestamp())
    if period in ("DAILY", "WEEKLY"):
        step = DAY_S if period == "DAILY" else 7 * DAY_S
        days = 1 if period == "DAILY" else 7 - day.isoweekday() % 7
        following = midnight + days * DAY_S
        while following + step < now:
            following += step
        return following
    months = {"MONTHLY": 1, "QUARTERLY": 3, "YEARLY": 12}.get(period)
    if months is None:
        return None
    place = (day.month - 1) // months * months + months
    later = day.replace(year=day.year + place // 12, month=place % 12 + 1, day=1)
    return int(later.timestamp())
