"""What a method said of some of Graham's jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.waits.forecaster import WaitForecasts


@dataclass(frozen=True, slots=True)
class Told:
    """What a method said of some jobs.

    Attributes
    ----------
    method
        Its name.
    rows
        Positions of the jobs in the polls, shape (jobs,).
    forecasts
        A row for each of them.
    """

    method: str
    rows: Int64Array
    forecasts: WaitForecasts

    def of(self, rows: Int64Array) -> Told:
        """Give what was said of some of the jobs, in their order."""
        order = np.argsort(self.rows)
        places = order[np.searchsorted(self.rows, rows, sorter=order)]
        kept = WaitForecasts(self.forecasts.wait_s[places], self.forecasts.starts_now[places])
        return Told(self.method, rows, kept)


def together(parts: Iterable[Told]) -> Told:
    """Put what was said at several noons together."""
    told = list(parts)
    return Told(
        told[0].method,
        np.concatenate([part.rows for part in told]),
        WaitForecasts(
            np.concatenate([part.forecasts.wait_s for part in told]),
            np.concatenate([part.forecasts.starts_now for part in told]),
        ),
    )
