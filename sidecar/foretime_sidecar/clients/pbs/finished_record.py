"""A job that ended on PBS, as the sidecar learns it: from its accounting or from qstat."""

from __future__ import annotations

from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.logs.pbs_records import EndedJob

from foretime_sidecar.clients.client import FinishedRecord


def finished_record(job: EndedJob, decision: str = "") -> FinishedRecord | None:
    """Give a job that ended as the sidecar learns it; ``None`` without a walltime."""
    if not job.requested_time:
        return None
    request = JobRequest(
        job.job_id,
        job.user,
        job.project,
        job.processors or job.allocated_processors or 1,
        job.requested_time,
        job.submit_time,
        job.queue,
        job.array_id,
    )
    finished = FinishedJob(request, job.start_time, job.end_time, job.runtime, job.ending)
    state = "" if job.exit_status is None else str(job.exit_status)
    return FinishedRecord(finished, job.eligible_time, f"Exit_status={state}", decision)
