"""Mean of the user's last two runtimes."""

from __future__ import annotations

from foretime_estimators.estimators.estimator import clamped
from foretime_estimators.estimators.recent_jobs import RecentJobs
from foretime_estimators.jobs.jobs import JobRequest


class LastTwo(RecentJobs):
    """Mean runtime of the user's last two finished jobs, rounded up; the request before that.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
    runtime estimates", IEEE TPDS 18(6), 2007 (reference 27 of Tang 2010); AVE_2 in Gaussier 2015.
    """

    def __init__(self) -> None:
        super().__init__(length=2)

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the mean, seconds, at most the requested time."""
        recent = self.recent(job.user)
        if len(recent) < 2:
            return job.requested_time
        return clamped(-(-sum(runtime for runtime, _ in recent) // 2), job)
