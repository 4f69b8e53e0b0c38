"""No job is killed at t_sched: the sidecar mends limits that the scheduler or its prolog left."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs import JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    QueuedJob,
    QueueState,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.clients.slurm_json import parse_queue
from foretime_sidecar.limit_repairs import endangered_by_time_min, unrestored_limits
from foretime_sidecar.settings import Settings
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store
from foretime_sim.mechanism import Mechanism
from foretime_sim.mock_slurm import MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Correction, Policy
from foretime_sim.slurm_hook import Fields, HookReply

START = 1_700_000_000
HOUR = 3600


class Halving:
    """A hook that plans every job with half of what was asked for, as rewrite-limit does."""

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        asked = int(job["time_limit"])
        note = f"foretime:treq={asked},tsched={asked // 2}"
        return HookReply(0, {"time_limit": asked // 2, "admin_comment": note}, [])

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        return HookReply(0, {}, [])


def _sidecar(slurm: MockSlurm, folder: Path) -> Sidecar:
    settings = Settings.model_validate(
        {
            "scheduler": {"history_days": 1},
            "table": {"path": str(folder / "table")},
            "hook": {"mode": "enforce", "mechanism": "rewrite-limit"},
        }
    )
    return Sidecar(settings, SlurmCommands(slurm.run, 0), Store(folder / "store"))


@pytest.mark.parametrize(
    ("prolog_works", "looks", "state"),
    [
        (False, False, "TIMEOUT"),
        (False, True, "COMPLETED"),
        (True, True, "COMPLETED"),
    ],
)
def test_a_look_saves_jobs_from_a_failed_prolog(
    prolog_works: bool, looks: bool, state: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = SlurmSetup(8, Mechanism.REWRITE_LIMIT, prolog_works=prolog_works)
    slurm = MockSlurm(setup, Policy(correction=Correction.SLURM), Halving(), START)
    slurm.submit(Submission("ann", "p", None, 8, HOUR, 3000))
    slurm.submit(Submission("bob", "p", None, 8, HOUR, 3000))
    slurm.advance(START + 60)
    sidecar = _sidecar(slurm, tmp_path)
    for now in range(START + 60, START + 3 * HOUR, 60):
        slurm.advance(now)
        if looks:
            with caplog.at_level(logging.WARNING, "foretime"):
                sidecar.look(now)
            sidecar.poll(now)
    records, _ = SlurmCommands(slurm.run, 0).finished_since(Cursor())
    assert [record.state for record in records] == [state, state]
    repaired = 2 if looks and not prolog_works else 0
    assert caplog.text.count("PrologSlurmctld left 1 running jobs") == repaired
    sidecar.store.close()


@pytest.mark.parametrize(
    ("comment", "limit_min", "state", "expected_min"),
    [
        ("foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
        ("site foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
        ("foretime:treq=60,tsched=30 foretime:treq=99,tsched=30", 30, QueueState.RUNNING, 60),
        ("foretime:treq=60,tsched=30", 45, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30", 60, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30", 30, QueueState.PENDING, None),
        ("foretime:treq=20,tsched=30", 30, QueueState.RUNNING, None),
        ("xforetime:treq=60,tsched=30", 30, QueueState.RUNNING, None),
        ("foretime:treq=60,tsched=30x", 30, QueueState.RUNNING, None),
        ("", 30, QueueState.RUNNING, None),
    ],
)
def test_only_a_limit_that_still_is_t_sched_is_raised(
    comment: str, limit_min: int, state: QueueState, expected_min: int | None
) -> None:
    job = QueuedJob(
        JobRequest("7_1", "ann", "p", 8, limit_min * 60, START), state, admin_comment=comment
    )
    expected = [] if expected_min is None else [JobChange("7_1", time_limit=expected_min * 60)]
    assert unrestored_limits([job]) == expected


class Soft(SchedulerClient):
    """A scheduler with waiting jobs, whose replies are made up."""

    def __init__(self, jobs: Sequence[QueuedJob]) -> None:
        self.jobs = list(jobs)
        self.ahead: list[Reservation] = []
        self.changes: list[JobChange] = []

    def configuration(self) -> SchedulerConfiguration:
        parameters = {"time_min_as_soft_limit": ""}
        return SchedulerConfiguration("slurm", "c", "23.11.10", "sched/backfill", parameters)

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        return [], cursor

    def queue(self) -> Queue:
        return Queue(64, tuple(self.jobs))

    def reservations(self) -> list[Reservation]:
        return self.ahead

    def update(self, changes: Sequence[JobChange]) -> None:
        self.changes += changes
        cleared = {change.job_id for change in changes}
        self.jobs = [
            replace(job, time_min=None) if job.request.job_id in cleared else job
            for job in self.jobs
        ]


def _waiting(job_id: str, time_min: int | None = 600, **changed: Any) -> QueuedJob:
    request = JobRequest(job_id, "ann", "p", 8, HOUR, START)
    return replace(QueuedJob(request, QueueState.PENDING, time_min=time_min), **changed)


def _looking(client: Soft, folder: Path, **hook: str) -> Sidecar:
    settings = Settings.model_validate(
        {
            "scheduler": {"poll_interval_s": 60},
            "table": {"path": str(folder / "table")},
            "hook": {"mode": "enforce"} | hook,
        }
    )
    return Sidecar(settings, client, Store(":memory:"))


JOBS = [
    _waiting("1"),
    _waiting("2", deadline=True),
    _waiting("3", heterogeneous=True),
    _waiting("4", None, deadline=True),
    _waiting("5", HOUR, deadline=True),
    _waiting("6", state=QueueState.RUNNING, deadline=True),
]


@pytest.mark.parametrize(
    ("starts_in_s", "cleared"),
    [
        (None, ["2", "3"]),
        (-60, ["2", "3"]),
        (0, ["2", "3"]),
        (1, ["1", "2", "3"]),
        (HOUR, ["1", "2", "3"]),
        (HOUR + 119, ["1", "2", "3"]),
        (HOUR + 120, ["2", "3"]),
    ],
)
def test_jobs_that_would_run_into_something_lose_time_min(
    starts_in_s: int | None, cleared: list[str], tmp_path: Path
) -> None:
    client = Soft(JOBS)
    if starts_in_s is not None:
        client.ahead = [
            Reservation("far", START + 90 * HOUR, START + 91 * HOUR),
            Reservation(
                "r", START + starts_in_s, START + starts_in_s + HOUR, slurm_partition="other"
            ),
        ]
    sidecar = _looking(client, tmp_path)
    sidecar.look(START)
    assert client.changes == [JobChange(job_id, time_min=0) for job_id in cleared]
    sidecar.look(START + 1)
    again = {change.job_id for change in client.changes[len(cleared) :]}
    assert again <= {"1"}, "what was cleared is not cleared again"


@pytest.mark.parametrize("hook", [{"mode": "observe"}, {"mechanism": "rewrite-limit"}])
def test_time_min_of_users_stays_where_the_hook_gives_none(
    hook: dict[str, str], tmp_path: Path
) -> None:
    client = Soft(JOBS)
    _looking(client, tmp_path, **hook).look(START)
    assert client.changes == []


def test_recorded_jobs_with_a_deadline_or_of_several_parts(repository: Path) -> None:
    reply = json.loads((repository / "tests/assets/slurm/22.05/squeue.json").read_text())
    for job in reply["jobs"]:
        job["time_minimum"] = 1
    jobs = parse_queue(reply)
    cleared = {change.job_id for change in endangered_by_time_min(jobs, [], START, 60)}
    assert {"20", "21", "22"} <= cleared
    assert cleared == {
        job.request.job_id
        for job in jobs
        if job.state is QueueState.PENDING and (job.deadline or job.heterogeneous)
    }
