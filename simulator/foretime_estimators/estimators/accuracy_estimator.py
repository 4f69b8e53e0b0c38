"""The accuracy of a user's and a project's past requests as a runtime estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_estimators.accuracy.accuracy import AccuracyModel, Scheme
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class AccuracyEstimator:
    """t_sched = A * t_req by user, project or both (Tang 2010, section V, eq. 4 and 5).

    Parameters
    ----------
    scheme
        Whose history decides.
    settings
        `AccuracySettings.production` if ``None``.
    """

    oracle = False

    def __init__(self, scheme: Scheme, settings: AccuracySettings | None = None) -> None:
        self.scheme = scheme
        self.model = AccuracyModel(settings)

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give A * t_req, seconds, rounded and bounded as the settings say."""
        self.model.advance(now)
        return self.model.scheduled_time(job, self.scheme)

    def learn_one(self, job: FinishedJob) -> None:
        """Take the job into its user's and project's histories."""
        self.model.learn_one(job)

    def state(self) -> dict[str, Any]:
        """Give the model's state; it serves every scheme."""
        return self.model.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a model's state; see `AccuracyModel.restore`."""
        self.model.restore(state)
