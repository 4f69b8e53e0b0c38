"""Runtimes learned job by job: Gaussier 2015's regression on what is known at submission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.estimator import clamped
from foretime_estimators.estimators.regression.online_regression import (
    OnlineRegression,
    RegressionSettings,
)
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS, LOSSES, PredictionLoss
from foretime_estimators.estimators.regression.runtime_features import FEATURES, RuntimeFeatures
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

OPTIONS = ("clipped", "half-life=JOBS")
"""What may stand behind a loss's name: negative predictions are 1 s; recent jobs weigh more."""
MOST_ASKED = 200_000
"""Of how many jobs at most features are remembered until they end."""


class LearnedRuntime:
    """Online regression of the runtime on the 20 features of a job (Gaussier 2015, section 4).

    A job's features are those of the first time that it is asked about, normally at its submission;
    they are remembered until it ends, and then learned from, with the runtime that it had. One that
    nobody asked about is learned with the features that it would have had at its submission by what
    is known when it ends. What an ending tells is as in `foretime_estimators.jobs.endings`: a
    cancelled job's runtime counts as it is, a job ended by its node is not learned.

    A prediction is the model's without its sign (`RegressionSettings.absolute`), cut to whole
    seconds (downwards) and to 1 to the requested time. The paper does not say so, but the simulator
    published with it does, and its figures need it: the E-loss bears no overestimates and hardly
    minds underestimates, so the model is near or below zero for most jobs. Cut to 1 s these would
    all be alike; their sizes still tell short jobs from long ones (docs/learning.md).

    Until a first job has been learned the request stands.

    Parameters
    ----------
    loss
        What it learns to keep low.
    settings
        How it learns.

    Examples
    --------
    >>> from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
    >>> from foretime_estimators.jobs.jobs import JobRequest
    >>> job = JobRequest("1", "ann", None, processors=8, requested_time=3600, submit_time=0)
    >>> LearnedRuntime().predict_one(job, now=0)
    3600
    """

    oracle = False

    def __init__(
        self, loss: PredictionLoss = E_LOSS, settings: RegressionSettings | None = None
    ) -> None:
        self.loss = loss
        self.features = RuntimeFeatures()
        self.regression = OnlineRegression(len(FEATURES), settings)
        self._asked: dict[str, Float64Array] = {}

    @property
    def awaits_ends(self) -> bool:
        """Whether a job that was asked about, or that runs, is still to end."""
        return bool(self._asked) or self.features.any_running

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give what the model says, seconds; the requested time until it has learned a job."""
        features = self.features.of(job, now)
        if job.job_id not in self._asked:
            if len(self._asked) >= MOST_ASKED:
                del self._asked[next(iter(self._asked))]
            self._asked[job.job_id] = features
        if not self.regression.examples:
            return job.requested_time
        predicted = self.regression.predict(features)
        if not math.isfinite(predicted):
            return job.requested_time
        if self.regression.settings.absolute:
            predicted = abs(predicted)
        return clamped(int(predicted), job)

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Take note that a job runs."""
        self.features.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from the job's runtime, then take it into its user's history."""
        request = job.request
        asked = self._asked.pop(request.job_id, None)
        if evidence_of(job) is not Evidence.NONE:
            features = self.features.of(request, request.submit_time) if asked is None else asked
            self.regression.learn(
                features,
                lambda predicted: self.loss.slope(
                    predicted, job.actual_runtime, request.processors
                ),
            )
        self.features.learn_one(job)

    def state(self) -> dict[str, Any]:
        """Give the model, the users' histories and the features of jobs asked about."""
        return {
            "loss": self.loss.name,
            "log_base": self.loss.log_base,
            "regression": self.regression.state(),
            "users": self.features.state(),
            "asked": {job_id: features.tolist() for job_id, features in self._asked.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If it was saved by another estimator, or one with another loss or settings.
        """
        given = (state.get("loss"), state.get("log_base"))
        if given != (self.loss.name, self.loss.log_base):
            raise StateError(
                f"the regression minimises {self.loss.name} with logarithms to base "
                f"{self.loss.log_base}, the saved state is of {given[0]} and {given[1]}: it was "
                "saved by another estimator"
            )
        try:
            asked = {
                job_id: np.array(features, dtype=np.float64)
                for job_id, features in state["asked"].items()
            }
            regression, users = state["regression"], state["users"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"the regression can't be restored ({type(error).__name__}: {error}): the state "
                "was saved by another estimator"
            ) from None
        if any(features.shape != (len(FEATURES),) for features in asked.values()):
            raise StateError(
                f"a job asked about has {len(FEATURES)} features: the state was saved by another "
                "estimator"
            )
        restored = LearnedRuntime(self.loss, self.regression.settings)
        restored.regression.restore(regression)
        restored.features.restore(users)
        self.regression, self.features = restored.regression, restored.features
        self._asked = asked


def learned_runtime(loss: str, options: Sequence[str] = ()) -> LearnedRuntime:
    """Build a fresh one by the name of its loss, and `OPTIONS` as people write them.

    Raises
    ------
    InputError
        If there is no such option, or its number is none.
    """
    settings = RegressionSettings()
    for option in options:
        name, _, value = option.partition("=")
        if option == "clipped":
            settings = replace(settings, absolute=False)
        elif name == "half-life":
            try:
                settings = replace(settings, recent_half_life=float(value))
            except ValueError:
                raise InputError(
                    f"regression option {option!r}: give a number of jobs, such as half-life=1000"
                ) from None
        else:
            raise InputError(
                f"regression option {option!r}: there is none of that name; valid: "
                f"{', '.join(OPTIONS)}"
            )
    return LearnedRuntime(LOSSES[loss], settings)
