"""A log lived through without a scheduler: the moment chosen, and what a user is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.cli.application import app
from foretime_sidecar.replays.demonstration import Demonstration, busy_moment
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.site_machine import on_machine_of
from foretime_sim.workloads.workload import Workload
from typer.testing import CliRunner

from tests.support.replay_runs import made_workload

NOW = 1_790_000_000


def crowded(jobs: int) -> Workload:
    """One processor, jobs of an hour; the first half have it alone, then they come every minute."""
    made = made_workload(jobs)
    half = jobs // 2
    times = np.arange(jobs, dtype=np.int64) * 7200
    times[half:] = times[half] + 60 * np.arange(jobs - half)
    hour = np.full(jobs, 3600, dtype=np.int64)
    return replace(
        made,
        machine_processors=1,
        submit_time=times,
        processors=hour // 3600,
        actual_runtime=hour,
        requested_time=hour,
    )


def test_the_busy_moment_is_of_a_long_queue() -> None:
    # From the thirtieth job on 70 are looked at: 20 that do not wait, then 50 more and more.
    log = crowded(100)
    chosen = busy_moment(log, Policy(), 0)
    # At the last submission 49 minutes have gone: the first of them runs, 49 wait. Three quarters
    # of 70 submissions see fewer than the last 18.
    assert chosen == 82
    with pytest.raises(InputError, match="made is too short to be lived through for 5 days"):
        busy_moment(log.head(20), Policy(), 5)


def test_of_the_busy_moments_it_is_the_one_at_which_most_jobs_run() -> None:
    """Two days apart 40 jobs come within minutes: on all processors each, on one, on all again."""
    made = made_workload(120)
    number = np.arange(120, dtype=np.int64)
    wide = number // 40 != 1
    hour = np.full(120, 3600, dtype=np.int64)
    log = replace(
        made,
        machine_processors=8,
        submit_time=number // 40 * 2 * DAY_S + number % 40 * 60,
        processors=np.where(wide, 8, 1),
        actual_runtime=hour,
        requested_time=hour,
    )
    chosen = busy_moment(log, Policy(), 0)
    assert 40 <= chosen < 80


def test_broken_off_it_leaves_no_socket(tmp_path: Path) -> None:
    def stop(lived: int) -> None:
        del lived
        raise KeyboardInterrupt

    workload = made_workload(600, days=20)
    shown = Demonstration(workload, tmp_path, f"unix:{tmp_path / 's'}", 1, lambda: NOW)
    assert (tmp_path / "s").exists()
    with pytest.raises(KeyboardInterrupt):
        shown.rehearse(6 * 3600, stop)
    assert not (tmp_path / "s").exists()


def test_it_is_now_and_others_have_come_before(tmp_path: Path) -> None:
    clock = [float(NOW)]
    workload = made_workload(600, days=20)
    shown = Demonstration(workload, tmp_path, f"unix:{tmp_path / 's'}", 1, lambda: clock[0])
    lived: list[int] = []
    shown.rehearse(6 * 3600, lived.append)
    assert lived == sorted(lived)
    assert 0 < lived[-1] <= DAY_S
    assert shown.now() == NOW
    shown.daemon.poll_once()  # as it does when it begins to serve
    client = TestClient(shown.daemon.app, base_url="http://localhost")
    health = client.get("/healthz").json()
    policy = default_policy("slurm", workload)
    moment = busy_moment(on_machine_of(policy, workload), policy, 1)
    assert 0 < health["finished_jobs"] < moment
    answer = client.get("/v1/forecast?processors=4&time=60").json()
    assert answer["machine_processors"] == workload.machine_processors
    assert answer["likely_wait_s"] >= 0
    for asked, what, remedy in (
        ("partition=nope", "there is no partition nope", "the only one is main"),
        ("qos=gold", "qos = 'gold': there is no such QOS", "there is none here: leave qos out"),
    ):
        error = client.get(f"/v1/forecast?processors=4&time=60&{asked}").json()["error"]
        assert (error["what"], error["remedy"]) == (what, remedy)
    assert client.get("/v1/reliability").json()["days"] == 30
    site = shown.daemon.sidecar.site
    assert site is not None
    assert (site.standing.version, site.standing.why_not) == ("26.05", "")

    # The log goes on: an hour later jobs have come that had not.
    before = shown.submitted
    clock[0] += 3600 * 24
    shown.daemon.poll_once()
    assert shown.submitted > before
    shown.daemon.sidecar.store.close()


def test_its_daemon_runs_since_it_serves(tmp_path: Path) -> None:
    """It has looked on for a day before, by the demonstration's clock."""
    socket = f"unix:{tmp_path / 's'}"
    shown = Demonstration(made_workload(600, days=20), tmp_path, socket, 1, lambda: NOW)
    shown.rehearse(12 * 3600)
    shown.end()  # as soon as it has begun
    shown.serve()
    assert shown.daemon.health.started_at == NOW


def test_commands_with_its_settings_reach_no_real_scheduler(tmp_path: Path) -> None:
    """They are printed for ``foretime status``, and somebody may try others with them."""
    shown = Demonstration(made_workload(300, days=10), tmp_path, f"unix:{tmp_path / 's'}", 0)
    settings = tmp_path / "foretime.toml"
    settings.write_text(to_toml(shown.settings), encoding="utf-8")
    ran = CliRunner().invoke(app, ["disable", "--settings", str(settings)])
    assert ran.exit_code == 0
    assert "made; no job is planned.\n0 waiting jobs got back" in ran.output
    assert (tmp_path / "foretime.off").exists()
    shown.daemon.close()
    ran = CliRunner().invoke(app, ["serve", "--settings", str(settings)])
    assert "only foretime demo has its Slurm within" in str(ran.exception)


def test_doctor_looks_for_no_commands_of_a_demo(tmp_path: Path) -> None:
    shown = Demonstration(made_workload(300, days=10), tmp_path, f"unix:{tmp_path / 's'}", 0)
    settings = tmp_path / "foretime.toml"
    settings.write_text(to_toml(shown.settings), encoding="utf-8")
    ran = CliRunner().invoke(app, ["doctor", "--json", "--settings", str(settings)])
    checks = {check["check"]: check for check in json.loads(ran.output)}
    assert checks["scheduler"]["health"] == "ok"
    assert "foretime demo's own" in checks["scheduler"]["message"]
    assert not {"commands", "Slurm release", "hook reached"} & checks.keys()
    shown.daemon.close()


def test_the_command_refuses_what_can_not_be_shown(tmp_path: Path) -> None:
    for options, why in (
        (["--days", "4000"], "too short to be lived through for 4000 days"),
        ([str(tmp_path / "none.swf")], "there is no such file"),
    ):
        ran = CliRunner().invoke(app, ["demo", "--socket", str(tmp_path / "s"), *options])
        assert why in f"{ran.exception} {' '.join(ran.output.replace('│', '').split())}"
