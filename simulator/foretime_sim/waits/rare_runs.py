"""How many waits in a row above a bound tell that the past has become useless: a change point.

J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel
machines", PPoPP 2006: a bound on the 0.95 quantile is passed three times in a row by independent
waits with a probability of 0.05**3, so rarely that a change is the better explanation. Waits depend
on each other; the paper has a table, found by simulation, of how long a run must be to be as rare,
by the lag-1 autocorrelation. The table was not at hand: here the number is worked out by
integration for log waits that are a stationary Gaussian AR(1), and may differ from the table's.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import Float64Array

INDEPENDENT_RUN = 3
"""Waits in a row above the bound that are rare if waits are independent."""
LONGEST_RUN = 100
_STEPS = 400
_HIGHEST = 8.0
"""Standard deviations up to which is integrated."""


@lru_cache(maxsize=256)
def rare_run(hundredths: int, level: float = 0.95) -> int:
    """Length of a run above the level's quantile that is as rare as three independent ones.

    Parameters
    ----------
    hundredths
        Lag-1 autocorrelation of the log waits in hundredths; below 0 counts as 0.
    level
        Of the quantile.
    """
    rho = min(max(hundredths, 0), 99) / 100
    rare = (1 - level) ** INDEPENDENT_RUN * (1 + 1e-9)
    place = NormalDist().inv_cdf(level)
    edges = np.linspace(place, _HIGHEST, _STEPS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    width = edges[1] - edges[0]
    spread = np.sqrt(1 - rho * rho)
    # Density of the last value of a run, not normalised: what is left of it is the probability.
    going: Float64Array = _density(middle)
    going *= (1 - level) / (going.sum() * width)
    step = _density((middle[:, np.newaxis] - rho * middle) / spread) / spread * width
    if spread < 4 * width:  # too steep for the grid: keep what a step may lose at most
        step /= np.maximum(step.sum(axis=0), 1)
    for run in range(1, LONGEST_RUN):
        if going.sum() * width <= rare:
            return run
        going = step @ going
    return LONGEST_RUN


def lag_one_autocorrelation(values: Float64Array) -> float:
    """Autocorrelation of neighbours; 0 where the values do not differ."""
    centred = values - values.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0


def _density(values: Float64Array) -> Float64Array:
    density: Float64Array = np.exp(-values * values / 2) / np.sqrt(2 * np.pi)
    return density
