"""The actual runtime, known beforehand: what perfect prediction would bring."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_estimators.estimators.estimator import Memoryless, clamped
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest


class Actual(Memoryless):
    """t_sched = t_act: an oracle, for studies on logs only; no scheduler can have it.

    Parameters
    ----------
    actual_runtimes
        Seconds, by job id.
    """

    oracle = True

    def __init__(self, actual_runtimes: Mapping[str, int]) -> None:
        self._actual_runtimes = actual_runtimes

    def actual_runtime(self, job: JobRequest) -> int:
        """Give the runtime it was told, seconds.

        Raises
        ------
        InputError
            If it was told none for this job.
        """
        try:
            return self._actual_runtimes[job.job_id]
        except KeyError:
            raise InputError(
                f"job {job.job_id}: no actual runtime is known, so it can't be planned with; "
                "estimators `actual` and `blend` work only on a log of finished jobs"
            ) from None

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the actual runtime, seconds, at most the requested time."""
        return clamped(self.actual_runtime(job), job)


class ActualBelow(Actual):
    """The actual runtime of jobs that end within a bound, the request of all others: an oracle.

    Shows how much of perfect knowledge's gain lies in knowing which jobs end at once.

    Parameters
    ----------
    actual_runtimes
        Seconds, by job id.
    bound_s
        Seconds above 0; jobs that run shorter are known.
    """

    def __init__(self, actual_runtimes: Mapping[str, int], bound_s: float) -> None:
        if not bound_s > 0:
            raise InputError(f"actual-below: the bound {bound_s} must be above 0 seconds")
        super().__init__(actual_runtimes)
        self._bound_s = bound_s

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the actual runtime below the bound, else the request; seconds."""
        runtime = self.actual_runtime(job)
        return clamped(runtime, job) if runtime < self._bound_s else job.requested_time
