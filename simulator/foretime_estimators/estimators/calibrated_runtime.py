"""Another estimator's predictions times a factor, so that a given share of jobs outlives them.

The factor's logarithm is moved after each finished job: up by rate * (1 - goal) if the job took
longer than predicted, else down by rate * goal. Whatever the jobs do, even if what they do changes,
the share that outlives its prediction stays within a bound that falls with 1 / jobs of the goal
(adaptive conformal inference: Gibbs and Candes 2021, proposition 4.1; as a quantile tracker:
Angelopoulos, Candes and Tibshirani 2023), but for where the request bounds predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foretime_estimators.estimators.estimator import RuntimeEstimator, StartObserver, clamped
from foretime_estimators.estimators.pending_predictions import AskedJobs
from foretime_estimators.estimators.per_user import UserValues
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Settings of `CalibratedRuntime`.

    Attributes
    ----------
    goal
        Share of jobs that may outlive their prediction, between 0 and 1.
    rate
        How far one job moves its user's factor, in natural logarithms, above 0.
    bound
        The factor stays between exp(-bound) and exp(bound), above 0.
    window_s
        A user of whom no job has ended for so long is forgotten, seconds.
    """

    goal: float = 0.2
    rate: float = 0.2
    bound: float = 4.6
    window_s: int = 180 * DAY_S

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                value = getattr(self, name)
                raise InputError(f"calibration: {name} = {value!r}: it must be {rule}")

        require("goal", 0 < self.goal < 1, "between 0 and 1")
        require("rate", 0 < self.rate < math.inf, "above 0")
        require("bound", 0 < self.bound < math.inf, "above 0")
        require("window_s", self.window_s >= 1, "at least 1 second")


class CalibratedRuntime:
    """One factor for each user, which starts from that over all users' jobs.

    A job that is predicted to run to its limit can't outlive that, and lowers the factors.
    Cancelled jobs move none.

    Parameters
    ----------
    estimator
        A fresh one, whose predictions are to be calibrated.
    settings
        The defaults if ``None``.
    """

    def __init__(
        self, estimator: RuntimeEstimator, settings: CalibrationSettings | None = None
    ) -> None:
        self.settings = settings if settings is not None else CalibrationSettings()
        self._estimator = estimator
        self._all = 0.0
        self._users: UserValues[float] = UserValues(self.settings.window_s)
        self._asked: AskedJobs[int] = AskedJobs()  # before the factor

    @property
    def oracle(self) -> bool:
        """Whether the estimator is one."""
        return self._estimator.oracle

    def factor(self, user: str | None) -> float:
        """Give what the user's next prediction is multiplied by."""
        return math.exp(self._users.get(user, self._all))

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the estimator's time, times the user's factor, seconds rounded up."""
        predicted = self._estimator.predict_one(job, now)
        self._asked.remember(job.job_id, predicted)
        return _scaled(predicted, self._users.get(job.user, self._all), job)

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Tell the estimator, if it observes starts."""
        if isinstance(self._estimator, StartObserver):
            self._estimator.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        """Move the factors by whether the job outlives what they would make of its prediction."""
        request = job.request
        predicted = self._asked.take(request.job_id)
        if evidence_of(job) is Evidence.EXACT:
            if predicted is None:
                predicted = self._estimator.predict_one(request, job.end_time)
            if request.user is not None:
                before = self._users.get(request.user, self._all)
                self._users.put(request.user, self._moved(before, predicted, job), job.end_time)
            self._all = self._moved(self._all, predicted, job)
        self._estimator.learn_one(job)

    def _moved(self, log_factor: float, predicted: int, job: FinishedJob) -> float:
        rules = self.settings
        took = min(job.actual_runtime, job.request.requested_time)
        outlived = took > _scaled(predicted, log_factor, job.request)
        log_factor += rules.rate * ((1 - rules.goal) if outlived else -rules.goal)
        return max(-rules.bound, min(rules.bound, log_factor))

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "calibrated": 1,
            "settings": asdict(self.settings),
            "estimator": self._estimator.state(),
            "all": self._all,
            "users": self._users.state(),
            "asked": self._asked.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another estimator saved it, or it was learned under other settings.
        """
        if state.get("calibrated") != 1 or state["settings"] != asdict(self.settings):
            raise StateError(
                "calibration: the state given was saved by another estimator or learned under other"
                " settings: learn the history anew"
            )
        self._estimator.restore(state["estimator"])
        self._all = state["all"]
        self._users.restore(state["users"])
        self._asked.restore(state["asked"])


def _scaled(predicted: int, log_factor: float, job: JobRequest) -> int:
    return clamped(math.ceil(predicted * math.exp(log_factor)), job)
