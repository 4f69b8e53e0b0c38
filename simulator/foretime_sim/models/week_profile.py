"""How submissions follow the hours of the week, and the clock that runs faster when they are many.

A point process whose rate follows the week is one of constant rate on a clock that runs as fast as
the rate (time rescaling): gaps are drawn on that clock, and read on the wall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import HOUR_S

from foretime_sim.workloads.site_clock import QUARTER_S, UTC, SiteClock
from foretime_sim.workloads.workload import Workload

WEEK_HOURS = 168
EPOCH_HOUR = 72
"""Hour of the week of the epoch's zero, a Thursday's midnight; Monday's is hour 0."""
PRIOR_JOBS = 1.0
"""Each hour is taken to have had so many jobs more, as many as an average hour brings: a log of a
few days would have hours in which nobody ever comes."""


@dataclass(frozen=True, slots=True)
class WeekProfile:
    """Relative rates of submission by hour of the week.

    Attributes
    ----------
    rates
        Shape (168,), from Monday's midnight, mean 1, all above 0.
    """

    rates: Float64Array

    @classmethod
    def of(cls, workload: Workload, clock: SiteClock = UTC) -> WeekProfile:
        """Measure the hours of the week, as a clock shows them, from the first submission on."""
        submissions = workload.submit_time + workload.epoch_of_zero
        first, last = int(submissions[0]), int(submissions[-1])
        quarters_s = np.arange(first // QUARTER_S, last // QUARTER_S + 1) * QUARTER_S
        seen_s = np.minimum(quarters_s + QUARTER_S, last) - np.maximum(quarters_s, first)
        hours = _hour_of_week(clock.shows(quarters_s) // HOUR_S)
        exposure_s = np.bincount(hours, weights=seen_s, minlength=WEEK_HOURS)
        hours = _hour_of_week(clock.shows(submissions) // HOUR_S)
        jobs = np.bincount(hours, minlength=WEEK_HOURS)
        expected = exposure_s * len(workload) / max(last - first, 1)
        rates = (jobs + PRIOR_JOBS) / (expected + PRIOR_JOBS)
        return cls(np.asarray(rates / rates.mean()))

    @property
    def by_hour_of_day(self) -> Float64Array:
        """Relative rates by hour of the day: shape (24,), mean 1."""
        return np.asarray(self.rates.reshape(7, 24).mean(axis=0))

    @property
    def by_day(self) -> Float64Array:
        """Relative rates from Monday to Sunday: shape (7,), mean 1."""
        return np.asarray(self.rates.reshape(7, 24).mean(axis=1))

    def busy_time(self, epoch_s: npt.ArrayLike) -> Float64Array:
        """Say what the clock of constant rate shows at moments, from a Monday's midnight."""
        clock, busy = self._clocks()
        weeks, rest = np.divmod(np.asarray(epoch_s, dtype=np.float64) - _MONDAY, clock[-1])
        return np.asarray(weeks * clock[-1] + np.interp(rest, clock, busy))

    def epoch_time(self, busy_s: npt.ArrayLike) -> Float64Array:
        """Say when the clock of constant rate shows something: the inverse of `busy_time`."""
        clock, busy = self._clocks()
        weeks, rest = np.divmod(np.asarray(busy_s, dtype=np.float64), clock[-1])
        return np.asarray(weeks * clock[-1] + np.interp(rest, busy, clock) + _MONDAY)

    def _clocks(self) -> tuple[Float64Array, Float64Array]:
        """Give both clocks at every full hour of a week; they agree at its ends."""
        clock = np.arange(WEEK_HOURS + 1, dtype=np.float64) * HOUR_S
        busy = np.concatenate((np.zeros(1), np.cumsum(self.rates))) * HOUR_S
        busy[-1] = clock[-1]
        return clock, busy


_MONDAY = float((WEEK_HOURS - EPOCH_HOUR) * HOUR_S)
"""A Monday's midnight, epoch seconds."""


def _hour_of_week(hours: Int64Array) -> Int64Array:
    """Give the hour of the week of hours since the epoch."""
    return (hours + EPOCH_HOUR) % WEEK_HOURS
