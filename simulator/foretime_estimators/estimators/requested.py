"""The request as it is: what schedulers plan with today."""

from __future__ import annotations

from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.jobs import JobRequest


class Requested(Memoryless):
    """t_sched = t_req."""

    oracle = False

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the requested time, seconds."""
        return job.requested_time
