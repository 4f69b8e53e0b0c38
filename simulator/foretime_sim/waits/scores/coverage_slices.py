"""Whether bounds hold as often as they say in every slice: by forecast wait, queue and week.

Never by the wait that came: among the jobs that waited longest, every honest bound fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import BoolArray

from foretime_sim.scores.intervals import Interval
from foretime_sim.waits.block_sums import Blocks
from foretime_sim.waits.wait_scores import AT, ForecastOutcomes
from foretime_sim.workloads.labels import Labels

FORECAST_S = (600, 3_600, 4 * 3_600, 12 * 3_600, 24 * 3_600)
"""Between medians that are told as short and as long."""
FORECAST_NAMES = (
    "up to 10 min",
    "10 min to 1 h",
    "1 to 4 h",
    "4 to 12 h",
    "12 to 24 h",
    "over 24 h",
)
FEWEST_ROWS = 100
"""Slices of fewer rows tell nothing of a 95% bound."""


@dataclass(frozen=True, slots=True)
class CoverageSlice:
    """A slice of the rows that are not forecast to start at once.

    Attributes
    ----------
    by, name
        What is sliced, and which slice.
    rows
        How many.
    coverage
        Share of the waits up to the bound.
    interval
        95%: of a bootstrap over weeks, or for a week, whose rows are one block, Wilson's.
    """

    by: str
    name: str
    rows: int
    coverage: float
    interval: Interval | None


def coverage_slices(
    rows: ForecastOutcomes, blocks: Blocks, queues: Labels | None, level: float = 0.95
) -> list[CoverageSlice]:
    """Give every slice of at least `FEWEST_ROWS` rows.

    Parameters
    ----------
    rows
        Of one method.
    blocks, queues
        Of the same rows.
    level
        Whose bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.waits.block_sums import Blocks
    >>> from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
    >>> from foretime_sim.waits.scores.coverage_slices import coverage_slices
    >>> from foretime_sim.waits.wait_scores import ForecastOutcomes
    >>> waits = 2 * np.arange(200)  # all were told that they wait 300 s at most
    >>> told = WaitForecasts(np.full((200, len(LEVELS)), 300.0), np.zeros(200))
    >>> rows = ForecastOutcomes(np.arange(200), np.arange(200), waits, waits == 0, told)
    >>> (found,) = coverage_slices(rows, Blocks.of(None, rows.made_at), None)
    >>> found.name, found.coverage
    ('up to 10 min', 0.755)
    """
    waiting = rows.forecast_to_wait
    held = rows.wait_s <= rows.forecasts.wait_s[:, AT[level]]
    found = []
    for by, name, chosen in _slices(rows, blocks, queues):
        within = waiting & chosen
        count = int(within.sum())
        if count < FEWEST_ROWS:
            continue
        figure = blocks.mean(held, within)
        interval = figure.interval
        if by == "week":
            interval = wilson_interval(int((held & within).sum()), count)
        found.append(CoverageSlice(by, name, count, figure.value, interval))
    return found


def _slices(
    rows: ForecastOutcomes, blocks: Blocks, queues: Labels | None
) -> Iterator[tuple[str, str, BoolArray]]:
    place = np.searchsorted(FORECAST_S, rows.median_s)  # NaN goes last, and is not chosen
    for number, name in enumerate(FORECAST_NAMES):
        yield "forecast wait", name, place == number
    if queues is not None:
        for code, name in enumerate(queues.names):
            yield "queue", name, queues.codes == code
    if blocks.weeks is not None:
        for week in range(blocks.weeks.draws.shape[1]):
            yield "week", f"week {week + 1}", blocks.week == week


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Interval for a probability from independent trials (Wilson 1927)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    half /= 1 + z * z / trials
    return Interval(centre - half, centre + half)
