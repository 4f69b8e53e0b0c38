"""Forecasts as they were made, each with what came of it: what scores and calibration read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array, Selection
from foretime_estimators.jobs.errors import InputError

from foretime_sim.waits.forecaster import WaitForecasts


@dataclass(frozen=True, slots=True)
class ForecastRecords:
    """One record for each job asked about at each moment, in the order of time.

    Attributes
    ----------
    methods
        Names of the forecasters.
    job
        Position in the workload, shape (records,).
    made_at
        Seconds on the workload's clock, shape (records,).
    after_s
        Seconds since the job's submission, shape (records,); 0 at the submission.
    waited_s
        What came of it: seconds from the moment to the start, shape (records,).
    wait_s
        Forecast quantiles at `foretime_sim.waits.forecaster.LEVELS`, seconds from the moment,
        shape (methods, records, levels); NaN where there is no answer.
    starts_now
        Forecast probability of a start at the moment, shape (methods, records).
    seconds
        Time that each method took for all its answers, without learning; shape (methods,).
    """

    methods: tuple[str, ...]
    job: Int64Array
    made_at: Int64Array
    after_s: Int64Array
    waited_s: Int64Array
    wait_s: Float64Array
    starts_now: Float64Array
    seconds: Float64Array

    def __len__(self) -> int:
        return len(self.job)

    @property
    def started_now(self) -> BoolArray:
        """Whether the job started at the moment itself, shape (records,)."""
        return np.asarray(self.waited_s == 0)

    def of(self, method: str) -> WaitForecasts:
        """Give one method's forecasts, a row for each record.

        Raises
        ------
        InputError
            If there is no method of that name.
        """
        if method not in self.methods:
            raise InputError(f"no forecasts of {method!r}: there are {', '.join(self.methods)}")
        index = self.methods.index(method)
        return WaitForecasts(self.wait_s[index], self.starts_now[index])

    def take(self, records: Selection) -> ForecastRecords:
        """Give a selection of the records (indices or a boolean mask), order kept."""
        return ForecastRecords(
            self.methods,
            self.job[records],
            self.made_at[records],
            self.after_s[records],
            self.waited_s[records],
            self.wait_s[:, records],
            self.starts_now[:, records],
            self.seconds,
        )
