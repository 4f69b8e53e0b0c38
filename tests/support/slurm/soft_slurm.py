"""A Slurm with a soft limit whose replies are made up: jobs wait in it as a test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import (
    ControllerLoad,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    QueuedJob,
    QueueState,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)

START = 1_700_000_000
HOUR = 3600


def changed(job: QueuedJob, change: JobChange) -> QueuedJob:
    """The job as Slurm makes it of the change."""
    if change.time_limit is not None:
        job = replace(job, request=replace(job.request, requested_time=change.time_limit))
    if change.time_min is not None:
        job = replace(job, time_min=change.time_min or None)
    return job


class Soft(SchedulerClient):
    """A scheduler with waiting jobs, whose replies are made up."""

    def __init__(self, jobs: Sequence[QueuedJob]) -> None:
        self.jobs = list(jobs)
        self.finished: list[FinishedRecord] = []
        self.ahead: list[Reservation] = []
        self.changes: list[JobChange] = []
        self.parameters = {"time_min_as_soft_limit": ""}
        self.scheduler_type, self.prolog, self.no_limits = "sched/backfill", "", False

    def configuration(self) -> SchedulerConfiguration:
        return SchedulerConfiguration(
            "slurm",
            "c",
            "23.11.10",
            self.scheduler_type,
            self.parameters,
            prolog_slurmctld=self.prolog,
        )

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        return self.finished, Cursor(max(until or 0, cursor.end_time))

    def queue(self) -> Queue:
        return Queue(64, tuple(self.jobs))

    def reservations(self) -> list[Reservation]:
        return self.ahead

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        if self.no_limits:
            raise SchedulerError("sacctmgr failed; check slurmdbd")
        return SiteLimits()

    def update(self, changes: Sequence[JobChange]) -> None:
        self.changes += changes
        for change in changes:
            self.jobs = [
                job if job.request.job_id != change.job_id else changed(job, change)
                for job in self.jobs
            ]

    def load(self) -> ControllerLoad | None:
        return None

    def site_factors(self) -> dict[str, int]:
        return {}

    def qos_priorities(self) -> dict[str, int]:
        return {}


NOTE = "foretime:treq=60,tmin=10,generation=1"
RAISED = "foretime:treq=60,tmin=10,generation=1,own=5"


def waiting(job_id: str, time_min: int | None = 600, **changed: Any) -> QueuedJob:
    """A job of an hour that the hook has noted with ten minutes, unless told otherwise."""
    request = JobRequest(job_id, "ann", "p", 8, HOUR, START, "main")
    waiting = QueuedJob(request, QueueState.PENDING, time_min=time_min, admin_comment=NOTE)
    return replace(waiting, **changed)
