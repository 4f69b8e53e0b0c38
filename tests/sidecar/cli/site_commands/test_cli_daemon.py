"""`foretime serve` and `foretime config` as commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.site_commands.config import config_app
from foretime_sidecar.cli.site_commands.serve import serve
from foretime_sidecar.settings.settings_file import parse_settings, to_markdown, to_toml
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.site_file import format_site
from foretime_sim.sites.slurm.site import SlurmSite
from typer.testing import CliRunner, Result

app = typer.Typer()
app.command("serve")(serve)
app.add_typer(config_app, name="config")


# The daemon is over, and its thread still runs a queue forward.
RUNS_ON = """
import threading, time
import numpy as np
from foretime_sidecar.cli.site_commands import serve as command
from foretime_sim import Policy, Snapshot, forward_runs
from foretime_sim.engine.stepwise import Engine

class Daemon:
    def __init__(self, settings):
        engine = Engine(100, Policy())
        for _ in range(2_000):
            engine.submit(0, 60, 600, 3600)
        engine.advance(1)
        self.what = (Snapshot.of(engine), Policy(), np.full((20_000, 2_000), 600))

    def run(self):
        threading.Thread(target=forward_runs, args=self.what, daemon=True).start()
        time.sleep(0.2)

command.Daemon, command.site_settings = Daemon, lambda _: None
command.serve()
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_config_shows_every_default() -> None:
    assert run("config", "show").output == to_toml()
    assert run("config", "show", "--markdown").output == to_markdown()


def test_config_shows_a_file(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text('[forecast]\norder = "xf"\n')
    shown = run("config", "show", str(path)).output
    assert parse_settings(shown).forecast.order == "xf"
    assert isinstance(run("config", "show", "--markdown", str(path)).exception, InputError)


def test_the_daemon_ends_well_though_a_thread_runs_on_in_native_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUNS_ON], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[forecast]\norder = "expansion-factor"\n', "foretime.toml:2: forecast.order"),
        ("[forecast]\nodrer = 1\n", "did you mean 'forecast.order'?"),
        ('[api]\nlisten = "0.0.0.0:1"\n', "not a loopback address"),
        ('[forecast]\nsite_file = "/no/site"\n', "foretime.toml:2: forecast.site_file: /no/site: "),
    ],
)
def test_config_check_names_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text(text)
    result = run("config", "check", str(path))
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


def test_config_check_says_of_a_good_file_that_it_is(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text(to_toml())
    assert run("config", "check", str(path)).output == f"{path}: good\n"
    path.write_text("[table]\n")
    said = run("config", "check", str(path)).output
    assert said == f"{path}: good; it sets nothing: every setting is at its default\n"


OF_PBS = '[scheduler]\nkind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"\n'


def test_config_check_reads_the_site_file(tmp_path: Path) -> None:
    path, site = tmp_path / "foretime.toml", tmp_path / "site.toml"
    path.write_text(f'[forecast]\nsite_file = "{site}"\n')
    site.write_text(format_site(SlurmSite(Machine.flat(8))))
    assert run("config", "check", str(path)).output == f"{path}: good\n"
    path.write_text(path.read_text() + OF_PBS)
    assert "foretime.toml:2: forecast.site_file" in str(run("config", "check", str(path)).exception)


def test_config_check_names_what_changes_nothing_under_pbs(tmp_path: Path) -> None:
    path = tmp_path / "foretime.toml"
    path.write_text(f"{OF_PBS}[beside]\nmost_late_s = 60\nenabled = true\n")
    said = run("config", "check", str(path)).output.splitlines()
    assert said[0] == f"{path}: good"
    assert [line.split(" changes")[0] for line in said[1:]] == [f"{path}:6: beside.most_late_s"]


@pytest.mark.parametrize("command", [["serve"], ["config", "show"], ["config", "check"]])
def test_every_help_has_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"Example: foretime {' '.join(command)}" in result.output
