"""The forecaster that the daemon serves: sampled forward runs, calibrated, never without answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_estimators.jobs import FinishedJob, JobRequest
from foretime_sim.waits.calibration import CalibratedForecaster
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.moment import Moment

from foretime_sidecar.forecast_ladder import NOW_S, ForecastLadder


class CalibratedLadder:
    """A `foretime_sidecar.wait_forecasting.ServedForecaster`.

    Parameters
    ----------
    most_jobs
        As for `ForecastLadder`.
    """

    name = "foretime"
    oracle = False

    def __init__(self, most_jobs: int) -> None:
        self._most_jobs = most_jobs
        self.forget()

    def forget(self) -> None:
        """Begin anew, as at a start."""
        self._ladder = ForecastLadder(self._most_jobs)
        self._calibrated = CalibratedForecaster(self._ladder, self.name, now_within_s=NOW_S)

    @property
    def hurried(self) -> bool:
        """Whether less work must do, as the machine has other."""
        return self._ladder.hurried

    @hurried.setter
    def hurried(self, hurried: bool) -> None:
        self._ladder.hurried = hurried

    def basis(self, jobs: int) -> str:
        """Say in words what forecasts of a queue of so many jobs stand on."""
        return self._ladder.basis(jobs)

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        return self._calibrated.forecast(moment)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Forecast jobs that are not in the queue as the moment has it; nothing is kept of it."""
        return self._calibrated.consider(moment)

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._calibrated.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn from a start."""
        self._calibrated.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._calibrated.finished(job)

    def state(self) -> dict[str, Any]:
        """Give what was learned of forecasts, as JSON can hold it; the rest is learned again."""
        return self._calibrated.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; `StateError` if it can't be used."""
        self._calibrated.restore(state)
