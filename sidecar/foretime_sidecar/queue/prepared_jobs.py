"""What a snapshot needs to know of each job, worked out once for as long as nothing of it changes.

A client gives the same object again for a job of which it is told nothing new: see
`foretime_sidecar.clients.slurm.queue_json.KnownJobs`. So what was worked out of it still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.workloads.node_request import Request, fit_request

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import AskedNodes
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.queue.live_machine import LiveMachine

_NO_NODES: Int64Array = np.empty((0, 4), dtype=np.int64)
_MOST_FITTED = 10_000
_Asked: TypeAlias = tuple[str | None, AskedNodes | None, str | None, int, int]
"""All that decides what a job asks of one machine: see `PreparedJobs._fit`."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedJob:
    """A job of the queue.

    Attributes
    ----------
    job, submitted
        As the scheduler tells of it, and with the t_req of its user.
    left_out
        Why it does not take part; ``None`` if it does.
    request
        What it asks of the machine, if it waits and there is a machine.
    slurm_partition, has
        Of a running job on a machine: the index of its slurm_partition, and rows of node, cpus,
        memory_mib and gpus.
    """

    job: QueuedJob
    submitted: JobRequest
    left_out: str | None
    request: Request | None = None
    slurm_partition: int = 0
    has: Int64Array = field(default_factory=lambda: _NO_NODES)


class PreparedJobs:
    """Those of the last queue, on the last machine."""

    def __init__(self) -> None:
        self._of_what: tuple[LiveMachine | None, bool] = None, False
        self._jobs: dict[int, PreparedJob] = {}  # by identity, which each entry keeps alive
        self._fitted: dict[_Asked, Request | str] = {}

    def of(
        self, jobs: Sequence[QueuedJob], live: LiveMachine | None, *, knows_limits: bool
    ) -> list[PreparedJob]:
        """Give all jobs of a queue; parameters as of `snapshot_of`."""
        if live is not self._of_what[0] or knows_limits != self._of_what[1]:
            self._of_what, self._jobs, self._fitted = (live, knows_limits), {}, {}
        known, kept = self._jobs, {}
        found = []
        for job in jobs:
            prepared = known.get(id(job))
            if prepared is None:
                prepared = self._prepare(job, live, knows_limits=knows_limits)
            kept[id(job)] = prepared
            found.append(prepared)
        self._jobs = kept
        if len(self._fitted) > _MOST_FITTED:
            self._fitted = {}
        return found

    def _prepare(
        self, job: QueuedJob, live: LiveMachine | None, *, knows_limits: bool
    ) -> PreparedJob:
        submitted = as_submitted(job)
        if reason := why_left_out(job, knows_limits=knows_limits):
            return PreparedJob(job, submitted, reason)
        if live is None:
            return PreparedJob(job, submitted, None)
        if job.state is not QueueState.PENDING:
            return PreparedJob(
                job, submitted, None, None, live.partition_of(job), live.nodes_of(job)
            )
        fitted = self._fit(live, job, submitted)
        if isinstance(fitted, str):
            return PreparedJob(job, submitted, fitted)
        return PreparedJob(job, submitted, None, fitted)

    def _fit(self, live: LiveMachine, job: QueuedJob, submitted: JobRequest) -> Request | str:
        """Work out what a job asks of the machine; say why if it could not run on it."""
        if job.reservation is not None:
            reserved = {each.name: each for each in live.reservations}.get(job.reservation)
            if reserved is None:
                return f"in reservation {job.reservation}, which has no nodes to start it on"
            if submitted.requested_time > reserved.duration:
                return f"longer than its reservation {job.reservation}"
        processors, time = submitted.processors, submitted.requested_time
        asked = job.request.queue, job.asked, job.reservation, processors, time
        if asked not in self._fitted:
            try:
                resources = live.resources_of(*asked[:3])
                found = fit_request(live.machine, resources, processors, time, live.reservations)
                self._fitted[asked] = found
            except InputError as error:
                self._fitted[asked] = str(error)
        return self._fitted[asked]


def as_submitted(job: QueuedJob) -> JobRequest:
    """Give the job with the t_req of its user, where the hook has lowered the limit."""
    note = read_note(job.admin_comment)
    if note is None or note.lowered_limit is None:
        return job.request
    requested = max(note.requested_time, job.request.requested_time)
    return replace(job.request, requested_time=requested)


def at_limit(job: QueuedJob) -> bool:
    """Say whether a limit of a QOS or an association keeps a job waiting, by Slurm's reasons."""
    return job.state is QueueState.PENDING and job.reason.startswith(("Assoc", "QOS"))


def why_left_out(job: QueuedJob, *, knows_limits: bool) -> str | None:
    """Say why a job does not take part whatever the machine is; ``None`` if it may."""
    if job.state is QueueState.SUSPENDED:
        return "suspended"
    if job.state is QueueState.RUNNING:
        return None
    if job.held:
        return "held"
    if job.dependent and not job.dependency:
        return "dependent"
    if at_limit(job) and not knows_limits:
        return "at a limit"
    if job.reason.startswith("JobArrayTaskLimit") and job.array_limit is None:
        return "at a limit"
    return None
