"""Start no later than, as a forecast: what slack would promise, beside forecast quantiles.

It says one number: by when a job would start at the latest if its queue were planned on requested
times and everybody delayed by no more than his slack (`foretime_sim.engine.start_bounds`).
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.start_bounds import start_bounds
from foretime_sim.policies.order import Order
from foretime_sim.policies.slack import SlackSettings
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment


class StartBoundForecaster:
    """Tells each job its bound when first asked, and stands by it.

    Parameters
    ----------
    slack_factor
        In average waits.
    name
        What tables call it.
    """

    oracle = False

    def __init__(self, slack_factor: float = 3.0, name: str = "no-later-than") -> None:
        self.name = name
        self._slack_factor = slack_factor
        self._told: dict[str, float] = {}
        self._started = self._waited_s = 0

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait at most."""
        bounds, planned = self._bounds(moment)
        for row, column in enumerate(moment.asked.tolist()):
            bounds[row] = self._told.setdefault(moment.requests[column].job_id, bounds[row])
        return _sure(bounds - moment.now, planned - moment.now)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that are not in the queue; nothing is kept of it."""
        bounds, planned = self._bounds(moment)
        return _sure(bounds - moment.now, planned - moment.now)

    def _bounds(self, moment: Moment) -> tuple[Float64Array, Int64Array]:
        average_wait_s = self._waited_s / self._started if self._started else 0.0
        settings = SlackSettings(slack_factor=self._slack_factor, average_wait_s=average_wait_s)
        order = moment.policy.order
        found = start_bounds(
            moment.snapshot, settings, order=order if isinstance(order, Order) else Order.FCFS
        )
        rows = moment.asked - len(moment.snapshot.running)
        latest = np.ma.filled(found.latest_start.astype(np.float64), np.nan)
        return latest[rows], found.planned_start[rows]

    def submitted(self, job: JobRequest) -> None:
        """Nothing is learned from a submission."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn the average wait."""
        self._told.pop(job.job_id, None)
        self._started += 1
        self._waited_s += start_time - job.submit_time

    def finished(self, job: FinishedJob) -> None:
        """Forget a job that was withdrawn."""
        self._told.pop(job.request.job_id, None)


def _sure(wait_s: Float64Array, planned_s: Int64Array) -> WaitForecasts:
    """Give forecasts of one bound each; none where nothing can be promised."""
    quantiles = np.repeat(np.maximum(wait_s, 0.0)[:, None], len(LEVELS), axis=1)
    return WaitForecasts(quantiles, np.where(np.isnan(wait_s), np.nan, planned_s == 0))
