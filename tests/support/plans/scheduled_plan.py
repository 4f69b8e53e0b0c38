"""When jobs would start if each ran for its scheduled time: the queue run forward once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.production_forecaster import Basis
from foretime_sim.engine.forward import forward_runs, start_times_of
from foretime_sim.policies.policy import Correction
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.turns import NOBODY_WAITS, Turns


class ScheduledPlan:
    """A `wait_forecasting.ServedForecaster` sure of one wait for each job.

    A running job that has outlived its t_sched is taken to run on as the scheduler corrects it:
    half of what is left to its limit under Slurm's soft limit, to the next multiple of its t_sched
    on PBS, up to the limit otherwise.

    Parameters
    ----------
    scheduled_time
        t_sched of a job, seconds.
    """

    name = "scheduled-plan"
    oracle = False
    is_quick_for_one = True
    knows_limits = False

    def __init__(self, scheduled_time: Callable[[JobRequest], int]) -> None:
        self._scheduled_time = scheduled_time
        self.hurried = False
        self.turns: Turns = NOBODY_WAITS

    def basis(self, jobs: int) -> Basis:
        """Say in words what the forecasts stand on."""
        return Basis((f"all {jobs} jobs run for their scheduled time",), runs_queue=True)

    def starts_at_once(self, moment: Moment) -> bool:
        """Say whether the job asked about starts at once."""
        return bool(self.forecast(moment).starts_now.all())

    def runtimes(
        self, jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]
    ) -> Float64Array:
        """Say of every job that it runs for its scheduled time, or has just ended."""
        runtimes = np.maximum([self._scheduled_time(job) for job in jobs], age)
        return np.repeat(runtimes.astype(np.float64)[:, np.newaxis], len(levels), axis=1)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say how long a job would wait that is not in the queue."""
        return self.forecast(moment)

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait, by the plan."""
        runtimes = self._runtimes(moment)
        if len(moment.asked) == 1:
            column = int(moment.asked[0])
            starts = start_times_of(column, moment.snapshot, moment.policy, runtimes, threads=1)
        else:
            every = forward_runs(moment.snapshot, moment.policy, runtimes, threads=1)
            starts = every[0, moment.asked]
        wait_s = starts - moment.now
        quantiles = np.repeat(wait_s.astype(np.float64)[:, None], len(LEVELS), axis=1)
        return WaitForecasts(quantiles, (wait_s <= NOW_S).astype(np.float64))

    def forget(self) -> None:
        """Nothing was learned."""

    def state(self) -> dict[str, Any]:
        """Learn nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Learn nothing."""

    def _runtimes(self, moment: Moment) -> Int64Array:
        runtimes = []
        for job, age in zip(moment.requests, moment.ages().tolist(), strict=True):
            runtime, limit = self._scheduled_time(job), job.requested_time
            if runtime <= age:
                match moment.policy.correction:
                    case Correction.SLURM:
                        runtime = age + max((limit - age) // 2, 1)
                    case Correction.PBS:
                        runtime *= 1 + age // runtime
                    case _:
                        runtime = limit
            runtimes.append(min(runtime, limit))
        return np.array([runtimes], dtype=np.int64)

    def submitted(self, job: JobRequest) -> None:
        """Learn nothing from a submission."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn nothing from a start."""

    def finished(self, job: FinishedJob) -> None:
        """Learn nothing: the accuracy model does."""
