"""A scheduler's queue as the beginning of forward runs: rows worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of

NOW = 1000


def request(job_id: str, processors: int, requested_time: int, submit_time: int) -> JobRequest:
    return JobRequest(job_id, "ann", "physics", processors, requested_time, submit_time)


LATE = QueuedJob(request("late", 4, 3600, 800), QueueState.RUNNING, start_time=900)
EARLY = QueuedJob(request("early", 6, 1200, 300), QueueState.RUNNING, start_time=400)
ARRAY = QueuedJob(request("array", 8, 600, 950), QueueState.PENDING, tasks=3, priority=7)
SINGLE = QueuedJob(request("single", 2, 4000, 960), QueueState.PENDING, time_min=900)


def planned_with(taken: QueueSnapshot) -> list[int]:
    times = taken.snapshot.pending.scheduled_time
    assert isinstance(times, np.ndarray)
    return [int(time) for time in times]


def test_rows_are_running_jobs_by_start_then_pending_tasks() -> None:
    taken = snapshot_of(Queue(10, (LATE, ARRAY, EARLY, SINGLE)), taken_at=NOW)
    assert [job.request.job_id for job in taken.jobs] == [
        "early", "late", "array", "array", "array", "single",
    ]  # fmt: skip
    assert taken.requests == tuple(job.request for job in taken.jobs)
    running, pending = taken.snapshot.running, taken.snapshot.pending
    assert running.start_time.tolist() == [400, 900]
    assert running.processors.tolist() == [6, 4]
    assert pending.submit_time.tolist() == [950, 950, 950, 960]
    assert pending.processors.tolist() == [8, 8, 8, 2]
    assert pending.priorities().tolist() == [7, 7, 7, 0]


def test_time_min_is_planned_with_under_a_soft_limit_only() -> None:
    for soft_limit, planned in ((True, 900), (False, 4000)):
        taken = snapshot_of(Queue(10, (SINGLE,)), taken_at=NOW, soft_limit=soft_limit)
        assert planned_with(taken) == [planned]
        assert taken.snapshot.pending.requested_time.tolist() == [4000]


def test_a_lowered_limit_is_planned_with_and_not_the_requested_time() -> None:
    lowered = replace(SINGLE, admin_comment="foretime:treq=120,tsched=66", time_min=None)
    taken = snapshot_of(Queue(10, (lowered,)), taken_at=NOW)
    assert taken.requests[0].requested_time == 7200
    assert taken.snapshot.pending.requested_time.tolist() == [7200]
    assert planned_with(taken) == [4000]


def test_suspended_time_and_clocks_that_differ() -> None:
    rested = replace(LATE, suspended_time=60)
    ahead = replace(EARLY, start_time=NOW + 5)
    taken = snapshot_of(Queue(10, (rested, ahead)), taken_at=NOW)
    assert taken.snapshot.running.start_time.tolist() == [960, NOW]


@pytest.mark.parametrize(("eligible", "joins"), [(None, 950), (970, 950), (1500, 1500)])
def test_only_an_eligible_time_ahead_counts(eligible: int | None, joins: int) -> None:
    taken = snapshot_of(Queue(10, (replace(ARRAY, tasks=1, eligible_time=eligible),)), taken_at=NOW)
    assert taken.snapshot.pending.joins_at().tolist() == [joins]


def test_what_is_left_out_is_named() -> None:
    held = replace(ARRAY, held=True)
    taken = snapshot_of(Queue(10, (held, SINGLE)), taken_at=NOW)
    assert [(each.job, each.reason) for each in taken.left_out] == [(held, "held")]
    assert taken.left_out_by_reason() == {"held": 3}
    assert len(taken.snapshot) == len(taken.jobs) == 1


def test_on_a_machine_that_is_down_every_job_is_left_out() -> None:
    taken = snapshot_of(Queue(0, (SINGLE,)), taken_at=NOW)
    assert len(taken.snapshot) == 0
    assert taken.left_out_by_reason() == {"too wide for the machine": 1}
