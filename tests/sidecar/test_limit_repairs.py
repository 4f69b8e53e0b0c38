"""No job is killed at t_sched: the sidecar mends limits that the scheduler or its prolog left."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
from foretime_estimators.jobs import JobRequest
from foretime_sidecar.clients.client import Cursor, JobChange, QueuedJob, QueueState
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.limit_repairs import unrestored_limits
from foretime_sidecar.settings import Settings
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store
from foretime_sim.mock_slurm import Mechanism, MockSlurm, SlurmSetup, Submission
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
        ("site note foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
        ("foretime:treq=9,tsched=30 foretime:treq=60,tsched=30", 30, QueueState.RUNNING, 60),
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
