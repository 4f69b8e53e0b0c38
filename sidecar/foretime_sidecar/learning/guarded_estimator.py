"""An estimator as the daemon holds it: whatever it does, nothing else breaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.estimator import (
    RoleEstimator,
    RolePrediction,
    RuntimeEstimator,
    StartObserver,
)
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

logger = logging.getLogger("foretime")

_MOST_IN_A_ROW = 10
_NOBODY = "foretime"  # no scheduler has a job of this identifier
Given = TypeVar("Given")


class HeldEstimator:
    """An estimator by its name, fed with what happens to jobs.

    An error of the estimator's costs the job that it came with and is counted. It has learned
    nothing of a job that it failed on, and says nothing of one whose prediction is no whole number
    of seconds from 1 to the requested time.

    Parameters
    ----------
    name
        As in `foretime_estimators.estimators.registry`, and no oracle.
    settings
        For the accuracy schemes; production's if ``None``.

    Attributes
    ----------
    name
        As given.
    failures, last_failure
        How often it has failed since it began, and how the last time; "" if never.

    Raises
    ------
    InputError
        If there is no estimator of that name.
    """

    def __init__(self, name: str, settings: AccuracySettings | None = None) -> None:
        self.name = name
        self._settings = settings
        self.failures = 0
        self.last_failure = ""
        self._failed_in_a_row = {"learn": 0, "predict": 0}
        self._estimator = self._new()
        # To ask a protocol takes longer than to predict.
        self._tells_roles = isinstance(self._estimator, RoleEstimator)
        self._observes_starts = isinstance(self._estimator, StartObserver)

    def _new(self) -> RuntimeEstimator:
        return parse_estimator(self.name, settings=self._settings)

    @property
    def in_order(self) -> bool:
        """Whether it works: it has not failed ten times in a row to learn or to predict."""
        return max(self._failed_in_a_row.values()) < _MOST_IN_A_ROW

    # What happens to jobs, in order of time (see `foretime_sidecar.queue.queue_events.Listener`)

    def submitted(self, job: JobRequest) -> None:
        """Ask one that goes by what is running: what was known then is what it learns from."""
        if self._observes_starts:
            self._predict(job, job.submit_time)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Tell an estimator that goes by what is running, too."""
        if self._observes_starts:
            estimator = cast(StartObserver, self._estimator)
            self._guarded("learn", lambda: estimator.start_one(job, start_time), job)

    def finished(self, job: FinishedJob) -> None:
        """Have it learn."""
        self._guarded("learn", lambda: self._estimator.learn_one(job), job.request)

    # What is asked of it

    def predict(self, job: JobRequest, now: int) -> int | None:
        """Give the scheduled time that it predicts, seconds; ``None`` if it can't.

        Parameters
        ----------
        job
            A job that has not started.
        now
            Epoch seconds.
        """
        # By another name, so that nobody learns from what was known later than at its submission.
        return self._predict(replace(job, job_id=_NOBODY), now)

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction | None:
        """Give what it predicts for each use of a time; otherwise as `predict`."""
        estimator = self._estimator
        if not self._tells_roles:
            time = self.predict(job, now)
            return None if time is None else RolePrediction(time, time, time)

        def predicted() -> RolePrediction:
            found = cast(RoleEstimator, estimator).predict_roles(replace(job, job_id=_NOBODY), now)
            if not all(type(time) is int and 1 <= time <= job.requested_time for time in found):
                raise ValueError(f"{found!r} are no numbers of seconds from 1 to t_req")
            return found

        return self._guarded("predict", predicted, job)

    def _predict(self, job: JobRequest, now: int) -> int | None:
        def predicted() -> int:
            found = self._estimator.predict_one(job, now)
            if type(found) is not int or not 1 <= found <= job.requested_time:
                raise ValueError(f"{found!r} is no number of seconds from 1 to t_req")
            return found

        return self._guarded("predict", predicted, job)

    def _guarded(self, what: str, ask: Callable[[], Given], job: JobRequest) -> Given | None:
        try:
            given = ask()
        except Exception as error:  # noqa: BLE001 - any mistake that an estimator can have
            self.failures += 1
            self._failed_in_a_row[what] += 1
            self.last_failure = (
                f"estimator {self.name} can't {what} a job of {job.requested_time} s on "
                f"{job.processors} processors: {type(error).__name__}: {error}"
            )
            self._failed()
            return None
        self._failed_in_a_row[what] = 0
        return given

    def _failed(self) -> None:
        """Tell of a failure: the 1st, 2nd, 4th, 8th ..."""
        if self.failures & (self.failures - 1) == 0:
            logger.exception("%s (failure %d)", self.last_failure, self.failures)

    # Keeping

    def begin_anew(self) -> None:
        """Forget all that was learned."""
        self._estimator = self._new()
        self._failed_in_a_row = dict.fromkeys(self._failed_in_a_row, 0)

    def state(self) -> dict[str, Any]:
        """Give what was learned, as JSON can hold it.

        Raises
        ------
        StateError
            If the estimator fails on it.
        """
        try:
            return {"estimator": self.name, "state": self._estimator.state()}
        except Exception as error:
            raise StateError(
                f"estimator {self.name} can't tell its state: {type(error).__name__}: {error}"
            ) from error

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; if it can't be used, begin anew.

        Raises
        ------
        ValueError
            If it can't be used; says why.
        """
        self.begin_anew()
        if state.get("estimator") != self.name:
            raise ValueError(f"it is of estimator {state.get('estimator')!r}, not {self.name!r}")
        try:
            self._estimator.restore(state["state"])
        except Exception as error:
            self.begin_anew()
            raise ValueError(f"{type(error).__name__}: {error}") from error
