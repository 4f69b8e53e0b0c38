"""How often bounds hold day by day, beside what chance alone would give.

Each job counts once a day, with its first answer of that day. Jobs of a day wait for the same
queue, so they are missed together: a bound that holds 95% over all holds less on some days than 95%
of independent jobs would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import DAY_S
from foretime_sim.scores.intervals import RESAMPLES, Interval, percentile_interval
from foretime_sim.waits.wait_scores import AT, ForecastOutcomes

FEWEST_JOBS = 5
"""A day with fewer jobs is not looked at by itself."""
LEVEL = 0.95
_SEED = 7


@dataclass(frozen=True, slots=True)
class ByChance:
    """What days would be if jobs were independent and each bound held with the same probability.

    Attributes
    ----------
    coverage
        Of every day in each draw, shape (draws, days).
    """

    coverage: Float64Array

    def share_from(self, least: float) -> float:
        """Give the share of days that hold at least so often."""
        return float((self.coverage >= least).mean())

    @property
    def worst(self) -> float:
        """Coverage on the worst day, the median of the draws."""
        return float(np.median(self.coverage.min(axis=1)))


@dataclass(frozen=True, slots=True)
class DayCoverage:
    """Days on which jobs were asked about, and how often the 95% bound of these held.

    Of jobs not forecast to start at once.

    Attributes
    ----------
    jobs, held
        Of each day, shape (days,).

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
    >>> from foretime_sim.waits.wait_scores import ForecastOutcomes
    >>> from foretime_studies.waits.day_coverage import DayCoverage
    >>> made_at = np.repeat([0, 90_000], 10)  # ten jobs a day
    >>> waits = np.append(np.full(10, 300), np.full(10, 900))  # all were told 600 s at most
    >>> told = WaitForecasts(np.full((20, len(LEVELS)), 600.0), np.zeros(20))
    >>> rows = ForecastOutcomes(np.arange(20), made_at, waits, waits == 0, told)
    >>> DayCoverage.of(rows).coverage.tolist()
    [1.0, 0.0]
    """

    jobs: Int64Array
    held: Int64Array

    @classmethod
    def of(cls, rows: ForecastOutcomes) -> DayCoverage:
        """Count answers, in the order of time: each job's first one of a day."""
        day = rows.made_at // DAY_S
        _, first = np.unique(np.stack([day, rows.job]), axis=1, return_index=True)
        first = first[rows.forecast_to_wait[first]]
        rows, day = rows.take(first), day[first]
        held = rows.wait_s <= rows.forecasts.wait_s[:, AT[LEVEL]]
        _, number = np.unique(day, return_inverse=True)
        return cls(np.bincount(number), np.bincount(number, held).astype(np.int64))

    def of_enough(self) -> DayCoverage:
        """Give the days of `FEWEST_JOBS` and more."""
        enough = self.jobs >= FEWEST_JOBS
        return DayCoverage(self.jobs[enough], self.held[enough])

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def coverage(self) -> Float64Array:
        """Of each day."""
        return np.asarray(self.held / self.jobs)

    @property
    def overall(self) -> float:
        """Of all jobs; NaN without one."""
        return float(self.held.sum() / self.jobs.sum()) if len(self) else float("nan")

    @property
    def interval(self) -> Interval | None:
        """95% of `overall`, whole days drawn; ``None`` with fewer than six."""
        if len(self) < 6:
            return None
        rng = np.random.default_rng(_SEED)
        draws = rng.multinomial(len(self), np.full(len(self), 1 / len(self)), size=RESAMPLES)
        return percentile_interval((draws @ self.held) / (draws @ self.jobs))

    def share_from(self, least: float) -> float:
        """Give the share of days that hold at least so often."""
        return float((self.coverage >= least).mean())

    @property
    def worst(self) -> float:
        """Coverage on the worst day."""
        return float(self.coverage.min())

    @property
    def beyond_chance(self) -> float:
        """Variance of the days' misses, as a multiple of that of independent jobs."""
        share = self.overall
        expected = share * (1 - share) * self.jobs.sum()
        return float(((self.held - share * self.jobs) ** 2).sum() / expected) if expected else 0.0

    def by_chance(self, share: float = LEVEL) -> ByChance:
        """Draw the same days of independent jobs whose bounds hold with a probability."""
        rng = np.random.default_rng(_SEED)
        draws = rng.binomial(self.jobs, share, size=(RESAMPLES, len(self)))
        return ByChance(draws / self.jobs)
