"""Forecasts on live clusters: the daemon beside Slurm, `foretime wait` and the page."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from fastapi.testclient import TestClient
from foretime_sidecar.cli.site_commands.wait import wait
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sidecar.web.server import Daemon
from typer.testing import CliRunner, Result

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.support.slurm.mock_site import running

app = typer.Typer()
app.command("wait")(wait)


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Daemon]:
    """One that has looked at four nodes, taken for five minutes, and a job that waits."""
    slurm.wait_for_state(slurm.sbatch("-t", "5", "-N", "4", "--exclusive"), "RUNNING")
    slurm.sbatch("-t", "3", "-n", "8", user="bob")
    settings = Settings.model_validate(
        {
            "scheduler": {"attempts": 1, "history_days": 1},
            "store": {"path": str(tmp_path / "store")},
            "table": {"path": str(tmp_path / "table")},
            "api": {"listen": f"unix:{tmp_path}/s"},
        }
    )
    client = SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1))
    daemon = Daemon(settings, client)
    daemon.poll_once()
    daemon.forecasts.refresh()
    with running(daemon):
        yield daemon


def ask(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--socket", daemon.address.removeprefix("unix:")])


@pytest.mark.every_release
def test_waits_of_jobs_in_the_queue_and_to_come(slurm: SlurmCluster, daemon: Daemon) -> None:
    first, second = sorted(slurm.jobs(), key=lambda job: int(job["JobId"]))
    assert ask(daemon, first["JobId"]).output.startswith("It started at ")
    answer = json.loads(ask(daemon, second["JobId"], "--json").output)
    # Slurm plans it for the end of the first job's limit; bounds leave room for our own errors.
    assert (answer["state"], answer["user"], answer["processors"]) == ("pending", "bob", 8)
    assert 0 <= answer["likely_wait_s"] <= min(answer["wait_s"]["0.95"], 300)
    script = slurm.jobs_folder / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 4 --time=2\nsleep 1\n")
    result = ask(daemon, str(script))
    assert result.exit_code == 0, result.output
    assert "\nJob      4 processors, time limit 00:02:00.\n" in result.output


def test_watching_a_job_until_slurm_starts_it(
    slurm: SlurmCluster, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(slurm.jobs(), key=lambda job: int(job["JobId"]))

    def make_room() -> None:
        slurm.run(["scancel", first["JobId"]])
        slurm.wait_for_state(second["JobId"], "RUNNING")
        daemon.poll_once()
        daemon.forecasts.refresh()

    monkeypatch.setattr("foretime_sidecar.cli.site_commands.wait.pause", make_room)
    before = int(time.time())
    result = ask(daemon, second["JobId"], "--watch", "--json")
    assert result.exit_code == 0, result.output
    waiting, started = (json.loads(line) for line in result.output.splitlines())
    assert (waiting["state"], started["state"]) == ("pending", "running")
    assert abs(started["started_at"] - before) < 60


def test_the_page_answers_beside_slurm(daemon: Daemon) -> None:
    # The unknown get rounded counts of a queue of fewer than five users.
    known = Caller(Identity.of_peer(Peer(1, os.getuid(), os.getgid())))
    daemon.app.dependency_overrides[caller_of] = lambda: known
    reply = TestClient(daemon.app, base_url="http://localhost").get("/?ntasks=4&time=2")
    assert reply.status_code == 200
    assert "95% sure within" in reply.text or "sure." in reply.text
    assert "<b>1</b> running" in reply.text
    assert "<b>1</b> waiting" in reply.text
    assert "<b>16</b> processors" in reply.text
