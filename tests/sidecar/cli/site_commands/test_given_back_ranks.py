"""``foretime watchdog`` and ``foretime disable`` take ranks from jobs of a PBS by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.cli.application import app
from foretime_sidecar.safety.heartbeat import beat
from typer.testing import CliRunner

RANKED = ("107[].pbs01", "103.pbs01", "105.pbs01")  # a begun array; one waits, one is held


@pytest.fixture
def site(tmp_path: Path, repository: Path) -> Path:
    """A PBS's commands and Foretime's settings; `qalter` notes what it is asked for."""
    recorded = repository / "tests/assets/pbs/openpbs"
    queue = json.loads((recorded / "qstat.json").read_text())
    for name in (*RANKED, "101.pbs01"):  # which runs, and can't be changed
        queue["Jobs"][name]["Resource_List"]["ft_rank"] = 980_410_240
    (tmp_path / "qstat.json").write_text(json.dumps(queue))
    for name, body in {
        "qstat": f'test "$1" = -t && cat {tmp_path}/qstat.json || cat {recorded}/qstat-B.json',
        "pbsnodes": f"cat {recorded}/pbsnodes.json",
        "qalter": f'echo "$@" >> {tmp_path}/changed',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "foretime.toml").write_text(
        f'[scheduler]\nkind = "pbs"\ncommands_dir = "{tmp_path}"\nattempts = 1\n'
        f'[table]\npath = "{tmp_path}/table"\n[queue_order]\norder = "start-now"\n'
        f'[hook]\nmode = "enforce"\nmechanism = "pbs-soft-walltime"\n'
        f'disable_file = "{tmp_path}/off"\n'
    )
    return tmp_path


def run(site: Path, *words: str) -> str:
    shown = CliRunner().invoke(app, [*words, "--settings", str(site / "foretime.toml")])
    assert shown.exit_code == 0, shown.exception
    return shown.stdout


def changed(site: Path) -> list[str]:
    return (site / "changed").read_text().splitlines() if (site / "changed").exists() else []


def test_the_watchdog_takes_them_where_the_daemon_is_silent(site: Path) -> None:
    beat(site / "table.alive")
    assert "The daemon is alive" in run(site, "watchdog")
    assert changed(site) == []
    (site / "table.alive").unlink()
    assert "3 pending jobs lost the ft_rank of Foretime's." in run(site, "watchdog")
    assert changed(site) == [f"-l ft_rank=0 {' '.join(RANKED)}"]
    assert json.loads(run(site, "watchdog", "--json"))["site_factors"] == 3


def test_disable_takes_them_at_once(site: Path) -> None:
    assert json.loads(run(site, "disable", "--json"))["cleared"] == list(RANKED)
    assert changed(site) == [f"-l ft_rank=0 {' '.join(RANKED)}"]
    assert (site / "off").exists()


def test_disable_says_what_it_has_done_where_the_scheduler_does_not_answer(site: Path) -> None:
    """The hook plans nobody from now on: an administrator in a hurry has to know."""
    (site / "qstat").write_text("#!/bin/sh\nexit 1\n")
    shown = CliRunner().invoke(app, ["disable", "--settings", str(site / "foretime.toml")])
    assert isinstance(shown.exception, SchedulerError)
    said = str(shown.exception)
    assert said.startswith(f"{site}/off: made; no job is planned, but waiting jobs have not got")
    assert "call foretime disable again" in said
    assert (site / "off").exists()
