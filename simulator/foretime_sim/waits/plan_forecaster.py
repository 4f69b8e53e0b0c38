"""Forecasts from one plan: the queue run forward once, each job for as long as an estimator says.

With the estimator ``requested`` this is what ``squeue --start`` and its like show, where every job
runs to its limit. With ``actual`` it knows every runtime, and nothing of later arrivals: how far
better runtimes alone can take a forecast.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.engine.forward import start_times_of
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment


class PlanForecaster:
    """Says one number for a job: its start in a run in which all jobs take what is estimated.

    A job is estimated at its submission. One that has outlived its estimate is taken to run to its
    request. The simulated scheduler plans with what the snapshot says, as the real one does.

    Parameters
    ----------
    name
        What tables call it.
    estimator
        A fresh one; it learns from the jobs that finish.
    """

    def __init__(self, name: str, estimator: RuntimeEstimator) -> None:
        self.name = name
        self._estimator = estimator
        self._estimated: dict[str, int] = {}

    @property
    def oracle(self) -> bool:
        """Whether the estimator is told the future."""
        return self._estimator.oracle

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait, by the plan."""
        runtimes = self._runtimes(moment)[None, :]
        starts = start_times_of(moment.asked, moment.snapshot, moment.policy, runtimes, threads=1)
        return _certain(starts[0] - moment.now)

    def _runtimes(self, moment: Moment) -> Int64Array:
        estimated = np.array([self._estimate(job, moment.now) for job in moment.requests], np.int64)
        requested = np.array([job.requested_time for job in moment.requests], np.int64)
        return np.where(estimated > moment.ages(), estimated, requested)

    def _estimate(self, job: JobRequest, now: int) -> int:
        known = self._estimated.get(job.job_id)
        return self._estimator.predict_one(job, now) if known is None else known

    def submitted(self, job: JobRequest) -> None:
        """Estimate the job, and keep that until it has finished."""
        self._estimated[job.job_id] = self._estimator.predict_one(job, job.submit_time)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Nothing is learned from a start."""

    def finished(self, job: FinishedJob) -> None:
        """Let the estimator learn."""
        self._estimated.pop(job.request.job_id, None)
        self._estimator.learn_one(job)


def _certain(wait_s: Int64Array) -> WaitForecasts:
    """Give forecasts that are sure of one wait each."""
    quantiles: Float64Array = np.repeat(wait_s.astype(np.float64)[:, None], len(LEVELS), axis=1)
    return WaitForecasts(quantiles, (wait_s == 0).astype(np.float64))
