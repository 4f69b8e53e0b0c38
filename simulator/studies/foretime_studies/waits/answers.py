"""Answers that are taken twice: by the study, and by the forecast that is made of them.

Answers are worth a run of hours, what is made of them one of seconds. So the latter is made anew
from answers that are kept, and comes out the same as if they had been given then: answers are
passed on as they are kept.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS
from foretime_sim.waits.calibration.runtime_levels import RuntimeLevels
from foretime_sim.waits.forecast_records import ForecastRecords
from foretime_sim.waits.forecaster import WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment

KEPT = np.float32
"""Nobody needs more digits of a forecast."""


class PassingOn:
    """What passes on to a forecaster what it is told of jobs."""

    def __init__(self, forecaster: WaitForecaster) -> None:
        self.name, self.oracle = forecaster.name, forecaster.oracle
        self._forecaster = forecaster

    def submitted(self, job: JobRequest) -> None:
        """Tell it."""
        self._forecaster.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Tell it."""
        self._forecaster.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Tell it."""
        self._forecaster.finished(job)


class AskedOnce(PassingOn):
    """A forecaster whose last answer a second one takes as it is, so that it is asked once."""

    def __init__(self, forecaster: WaitForecaster) -> None:
        super().__init__(forecaster)
        self.moment: Moment | None = None
        self.answer: WaitForecasts | None = None

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Ask, and keep the answer."""
        answer = self._forecaster.forecast(moment)
        wait_s, starts_now = answer.wait_s.astype(KEPT), answer.starts_now.astype(KEPT)
        self.answer = WaitForecasts(wait_s.astype(np.float64), starts_now.astype(np.float64))
        self.moment = moment
        return self.answer


class NotesRuntimes(PassingOn):
    """A forecaster that is asked, and beside it how long the jobs asked about will run.

    As the daemon forecasts it: with levels calibrated by what came.

    Attributes
    ----------
    calibrated_s, plain_s
        Quantiles at `RUNTIME_LEVELS` of each moment's jobs, seconds; and before calibration.
    """

    def __init__(self, forecaster: WaitForecaster, levels: RuntimeLevels) -> None:
        super().__init__(forecaster)
        self._histories = RuntimeHistories()
        self._levels = levels
        self.calibrated_s: list[Float64Array] = []
        self.plain_s: list[Float64Array] = []

    def finished(self, job: FinishedJob) -> None:
        """Judge what was expected of the job, learn from it, and pass it on."""
        super().finished(job)
        self._levels.judge(job, self._histories)
        self._histories.learn_one(job)

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Note the runtimes, and pass on the question."""
        jobs = [moment.requests[column] for column in moment.asked.tolist()]
        ages = np.zeros(len(jobs), dtype=np.int64)
        levels = self._levels.calibrated(RUNTIME_LEVELS)
        both = self._histories.quantiles(jobs, ages, [*levels, *RUNTIME_LEVELS])
        self.calibrated_s.append(both[:, : len(levels)])
        self.plain_s.append(both[:, len(levels) :])
        return self._forecaster.forecast(moment)


class _ToldNothing:
    """A forecaster that has no need to be told of jobs: its answers are another's."""

    def submitted(self, job: JobRequest) -> None:
        """Do nothing."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Do nothing."""

    def finished(self, job: FinishedJob) -> None:
        """Do nothing."""


class SameAnswer(_ToldNothing):
    """The second one: told nothing, as the first is told everything."""

    def __init__(self, first: AskedOnce) -> None:
        self.name, self.oracle = first.name, first.oracle
        self._first = first

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Give the first one's answer about the same moment."""
        if self._first.answer is None or self._first.moment is not moment:
            raise RuntimeError(f"{self.name} has not been asked about this moment")
        return self._first.answer


class KeptAnswers(_ToldNothing):
    """A forecaster that says again, moment after moment, what one said in a run that is kept."""

    def __init__(
        self,
        records: ForecastRecords,  # of a run through the same log with the same jobs asked about
        method: str,  # whose answers
    ) -> None:
        self.name, self.oracle = method, False
        self._made_at = records.made_at
        self._answers = records.of(method)
        self._next = 0

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Give the next rows, which are of this moment."""
        rows = slice(self._next, self._next + len(moment.asked))
        self._next = rows.stop
        if len(self._made_at) < rows.stop or (self._made_at[rows] != moment.now).any():
            raise RuntimeError(f"{self.name}: the kept run was not asked at {moment.now}")
        return WaitForecasts(self._answers.wait_s[rows], self._answers.starts_now[rows])
