"""Forecasts of pending jobs come true on a live cluster, and are scored by what Slurm did."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_board import JobForecast
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

from tests.slurm.harness.slurm_cluster import SlurmCluster

# Alice asks for five minutes, and her jobs have taken half a minute.
ASKED_S, USED_S = 300, 30
WHOLE_MACHINE = ("-t", "5", "-N", "4", "-n", "16")
# Slurm starts the next job some seconds after one has ended, more on a busy machine.
SLACK_S = 20


def past_jobs(now: int) -> Iterator[FinishedRecord]:
    for number in range(60):
        end = now - 4000 + 60 * number
        request = JobRequest(f"{9_000_000 + number}", "alice", None, 16, ASKED_S, end - 60, "main")
        job = FinishedJob(request, end - USED_S, end, USED_S, Ending.COMPLETED)
        yield FinishedRecord(job, request.submit_time, "COMPLETED")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """With alice's jobs."""
    store = Store(tmp_path / "store")
    now = int(time.time())
    store.add_finished(list(past_jobs(now)), Cursor(now))
    yield store
    store.close()


def started_at(slurm: SlurmCluster, job_id: str) -> int:
    """Epoch seconds of a job's start, as Slurm says."""
    text = slurm.job(job_id)["StartTime"]
    if text.isdigit():
        return int(text)
    return int(datetime.datetime.fromisoformat(text).timestamp())


def test_forecasts_of_pending_jobs_come_true(
    slurm: SlurmCluster, store: Store, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {
            "table": {"path": str(tmp_path / "table")},
            "hook": {"disable_file": str(tmp_path / "off")},
        }
    )
    client = SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1))
    sidecar = Sidecar(settings, client, store, forecasts=True)
    forecasting = sidecar.forecasting
    assert forecasting is not None
    script = f"sleep {USED_S}"
    running = slurm.sbatch(*WHOLE_MACHINE, script=script)
    slurm.wait_for_state(running, "RUNNING")
    next_one, last = (slurm.sbatch(*WHOLE_MACHINE, script=script) for _ in range(2))
    held = slurm.sbatch(*WHOLE_MACHINE, "--hold")

    first: dict[str, tuple[int, JobForecast]] = {}
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        sidecar.look(int(time.time()))
        forecasting.refresh()
        board = forecasting.board
        assert board is not None
        for job_id, row in board.tasks.items():
            first.setdefault(job_id, (board.made_at, row))
        if last in board.running:
            break
        time.sleep(2)

    assert set(first) == {next_one, last, held}
    begun = started_at(slurm, running)
    for turn, job_id in enumerate((next_one, last), start=1):
        made_at, row = first[job_id]
        assert row.waits is not None
        start = started_at(slurm, job_id)
        # By what alice's jobs take, not by what they ask for.
        assert abs(made_at + row.waits.at(0.5) - (begun + turn * USED_S)) <= turn * SLACK_S
        assert abs(made_at + row.waits.at(0.5) - start) <= turn * SLACK_S
        assert start <= made_at + row.waits.at(0.95) + turn * SLACK_S
    kept_back = first[held][1]
    assert (kept_back.kept_back, kept_back.waits is None) == ("held", False)

    rows = store.rows(
        "SELECT job_id, made_at + waited_s, outcome FROM served_forecasts WHERE kind = 'submission'"
    )
    assert {job_id: start for job_id, start, outcome in rows if outcome == "started"} == {
        job_id: started_at(slurm, job_id) for job_id in (next_one, last)
    }
