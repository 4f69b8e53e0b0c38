"""How many others a job would pass."""

from __future__ import annotations

from typing import Any

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.places_gained import places_gained

NOW = 1_800_000_000


def _waits(job_id: str, priority: int, ago_s: int = 60, **more: Any) -> QueuedJob:
    request = JobRequest(job_id, "ann", None, 1, 3600, NOW - ago_s, "main")
    values = {"eligible_time": NOW - ago_s} | more
    return QueuedJob(request, QueueState.PENDING, priority=priority, **values)


def test_those_before_it_by_the_sites_own_priorities_that_could_start() -> None:
    jobs = [
        _waits("1", 50),
        _waits("2", 5000),
        _waits("3", 50, ago_s=90),
        _waits("4", 90, held=True),
        _waits("5", 40, eligible_time=NOW + 1),
        _waits("6_[1-4]", 60, tasks=4),
        _waits("7", 10),
    ]
    raised = {"2": 4990}
    places = places_gained(jobs, lambda job: job.priority - raised.get(job.request.job_id, 0), NOW)
    assert places == {"6_[1-4]": 0, "3": 4, "1": 5, "2": 6, "7": 7}
