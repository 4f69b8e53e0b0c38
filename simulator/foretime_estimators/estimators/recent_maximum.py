"""The highest accuracy of the user's last fifteen jobs, and a quarter of an hour."""

from __future__ import annotations

from fractions import Fraction

from foretime_estimators.estimators.estimator import clamped
from foretime_estimators.estimators.recent_jobs import RecentJobs
from foretime_estimators.jobs.jobs import JobRequest

DOUBLED_ABOVE_S = 24 * 3_600
MARGIN_S = 900


class RecentMaximum(RecentJobs):
    """t_sched = t_req * max(R of the user's last 15 jobs) [* 2 above 24 h] + 900 s.

    The rule that CESNET runs in production on PBS for soft_walltime. A user with fewer than
    fifteen finished jobs is judged by those there are; without any, the request stands.
    """

    def __init__(self) -> None:
        super().__init__(length=15)

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the rule's time, seconds rounded up, at most the requested time."""
        recent = self.recent(job.user)
        if not recent:
            return job.requested_time
        highest = max(Fraction(runtime, request) for runtime, request in recent)
        times = 2 if job.requested_time > DOUBLED_ABOVE_S else 1
        used = job.requested_time * highest.numerator * times
        return clamped(-(-used // highest.denominator) + MARGIN_S, job)
