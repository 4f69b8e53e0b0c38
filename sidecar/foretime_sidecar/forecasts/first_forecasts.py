"""How long a daemon's first forecasts still take, for those who ask meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

# Of the queue itself, once the past is learned: the hurried first run and its calibration.
_LEAST_S, _PER_JOB_S = 2.0, 0.0007
_ROUNDED_S = 10


class FirstForecasts:
    """Forecasts of a queue that are being made: first the past is learned, then they are run.

    Parameters
    ----------
    jobs
        That run or wait.
    clock
        Seconds.

    Attributes
    ----------
    learned
        The share of the past that is learned, 0 to 1.
    """

    def __init__(self, jobs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.jobs = jobs
        self.learned = 0.0
        self._clock = clock
        self._began = self._ran_at = clock()

    def learn(self, share: float) -> None:
        """Take note of how much of the past is learned."""
        self.learned, self._ran_at = share, self._clock()

    def left_s(self) -> int | None:
        """Give how long they still take, in tens of seconds; ``None``: that is not known yet."""
        if self.learned == 0:
            return None
        spent_s, since_s = self._ran_at - self._began, self._clock() - self._ran_at
        left_s = spent_s * (1 - self.learned) / self.learned + _LEAST_S + self.jobs * _PER_JOB_S
        return max(math.ceil((left_s - since_s) / _ROUNDED_S), 1) * _ROUNDED_S
