"""A runtime estimator in the place of the PBS hook, to be compared with it.

It stands for what a site runs that predicts in the hook itself, as CESNET does: the estimator knows
of every job the moment it has ended, and a job that has waited for an hour or longer is predicted
anew as it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_estimators.estimators.estimator import RuntimeEstimator, StartObserver
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

from foretime_sim.mocks.pbs.hook import PbsReply, refusal
from foretime_sim.mocks.pbs.mock_pbs import NOBODY
from foretime_sim.mocks.pbs.pbs_job import PbsJob

REPREDICTED_AFTER_S = 3_600
_ACCEPTED = PbsReply(accepted=True, message="", changes={}, log=[])


class EstimatorHook:
    """Sets soft_walltime to what an estimator predicts; see `mock_pbs.PbsServerHook`.

    Parameters
    ----------
    estimator
        Predicts and learns.
    repredicted_after_s
        Seconds since its submission after which a job is predicted anew when it starts.

    Attributes
    ----------
    estimator
        The estimator.

    Examples
    --------
    >>> from foretime_estimators import parse_estimator
    >>> from foretime_sim import MockPbs, Policy
    >>> from foretime_sim.mocks.estimator_hook import EstimatorHook
    >>> from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
    >>> hook = EstimatorHook(parse_estimator("last-two"))
    >>> pbs = MockPbs(PbsSetup(8), Policy(), hook, on_end=hook.learn)
    >>> for start in (0, 3600, 7200):
    ...     pbs.advance(start)
    ...     job = pbs.submit(PbsSubmission("ann", None, None, 8, 3600, 600))
    >>> pbs.attributes(pbs.index_of(job))["Resource_List"]["soft_walltime"]
    600
    """

    def __init__(
        self, estimator: RuntimeEstimator, repredicted_after_s: int = REPREDICTED_AFTER_S
    ) -> None:
        self.estimator = estimator
        self._repredicted_after_s = repredicted_after_s

    def learn(self, job: PbsJob) -> None:
        """Learn a job that has just ended."""
        submission = job.submission
        request = _request(
            job.name, submission.user, submission.account, submission.processors, job.walltime,
            job.submit_time,
        )  # fmt: skip
        runtime = job.end_time - job.start_time
        self.estimator.learn_one(
            FinishedJob(
                request, job.start_time, job.end_time, runtime, job.ending or Ending.COMPLETED
            )
        )

    def queuejob(self, job: Mapping[str, Any], requestor: str, now: float) -> PbsReply:
        """Predict a job as it is submitted."""
        return self._reply(job, requestor, int(now), int(now))

    def modifyjob(
        self, request: Mapping[str, Any], job: Mapping[str, Any], requestor: str, now: float
    ) -> PbsReply:
        """Leave a change as it is."""
        return _ACCEPTED

    def runjob(self, job: Mapping[str, Any], now: float) -> PbsReply:
        """Predict a job anew that has waited for long, and tell the estimator that it starts."""
        reply = _ACCEPTED
        if now - job["ctime"] >= self._repredicted_after_s:
            reply = self._reply(job, job["euser"], int(now), job["ctime"])
        if isinstance(self.estimator, StartObserver):
            user = None if job["euser"] == NOBODY else job["euser"]
            request = _attributes_request(job, user, job["ctime"])
            if request is not None:
                self.estimator.start_one(request, int(now))
        return reply

    def _reply(self, job: Mapping[str, Any], user: str, now: int, submit_time: int) -> PbsReply:
        if refusal({**job["Resource_List"], "soft_walltime": 1}):
            return _ACCEPTED
        request = _attributes_request(job, user, submit_time)
        if request is None:
            return _ACCEPTED
        predicted = self.estimator.predict_one(request, now)
        changes: dict[str, int | str | None] = {"Resource_List.soft_walltime": predicted}
        return PbsReply(accepted=True, message="", changes=changes, log=[])


def _attributes_request(
    job: Mapping[str, Any], user: str | None, submit_time: int
) -> JobRequest | None:
    """Give a job by its attributes; ``None`` without a walltime. Not yet queued it has no id."""
    resources = job["Resource_List"]
    walltime = resources.get("walltime")
    if walltime is None:
        return None
    processors = int(str(resources["select"]).rpartition("=")[2])
    return _request(
        str(job.get("id", "")),
        user,
        job.get("Account_Name"),
        processors,
        int(walltime),
        submit_time,
    )


def _request(
    job_id: str, user: str | None, project: str | None, processors: int, walltime: int, submit: int
) -> JobRequest:
    return JobRequest(job_id, user, project, processors, walltime, submit)
