"""What is ours of a job's priority, and what raises a job above all others."""

from __future__ import annotations

from typing import Any

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.raising import SeenFactors


def _job(job_id: str, priority: int, array_id: str | None = None, **more: Any) -> QueuedJob:
    request = JobRequest(job_id, "ann", None, 1, 3600, 0, "main", array_id)
    return QueuedJob(request, QueueState.PENDING, priority=priority, **more)


def test_jobs_are_raised_above_all_in_their_order() -> None:
    jobs = [_job("1", 500), _job("2", 20), _job("3", 300)]
    seen = SeenFactors({"1": 0, "2": 0, "3": 0}, {})
    raised = seen.above_all([jobs[1], jobs[2]], jobs)
    assert raised == {"2": 500 + 1002 - 20, "3": 500 + 1001 - 300}
    after = [20 + raised["2"], 300 + raised["3"]]
    assert after[0] > after[1] > 500


def test_who_is_above_already_keeps_its_factor() -> None:
    jobs = [_job("1", 500), _job("2", 1522)]
    seen = SeenFactors({"1": 0, "2": 1502}, {"2": {1502: 0}})
    assert seen.own_priority(jobs[1]) == 20
    assert seen.above_all([jobs[1]], jobs) == {"2": 1502}
    higher = [_job("1", 9000), jobs[1]]
    assert seen.above_all([jobs[1]], higher) == {"2": 9000 + 1001 - 20}


def test_a_fixed_priority_is_not_to_be_passed() -> None:
    """It may be as high as Slurm's numbers go, where no site factor goes."""
    jobs = [_job("1", 4_294_967_294), _job("2", 20)]
    seen = SeenFactors({"2": 0}, {})
    assert not seen.is_weighed(jobs[0])
    assert seen.above_all([jobs[1]], jobs) == {"2": 20 + 1001 - 20}
    weighed = SeenFactors({"1": 0, "2": 0}, {})
    assert weighed.above_all([jobs[1]], jobs) == {"2": 2_000_000_000}


def test_of_an_array_the_first_task_is_raised() -> None:
    array = _job("7", 20, "7", tasks=3, pending_tasks="4-6")
    task = _job("7_3", 20, "7")
    seen = SeenFactors({"7": 0}, {})
    assert seen.is_free(array)
    assert seen.is_free(task)
    assert list(seen.above_all([array, task], [array, task])) == ["7_4", "7_3"]


def test_what_somebody_else_set_is_not_ours() -> None:
    job = _job("1", 500)
    for factors, own, free in (
        ({"1": 7}, 0, False),
        ({"1": 40}, 40, True),
        ({"1": 0}, 0, True),
        ({}, 50, False),
    ):
        seen = SeenFactors(factors, {"1": {40: 0, 50: 0}})
        assert (seen.own_part(job), seen.is_free(job)) == (own, free), factors
