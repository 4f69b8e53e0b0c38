"""foretime install and uninstall on a PBS site whose commands are fakes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.pbs.server import CONFIGURATION, HOOK, SCRIPT, PbsServer
from foretime_sidecar.install import pbs_install
from foretime_sidecar.install.steps import Outcome, Undo
from foretime_sidecar.settings.settings import Settings
from foretime_sim.mocks.plugin_files import plugin_file
from typer.testing import CliRunner

from tests.support.pbs.faked_pbs_site import LINE, PLAIN_CONFIG, Site

# Install


def test_install_sets_the_hook_up(site: Site) -> None:
    outcome = site.install()
    hook = site.hook()
    assert hook["attributes"] == {
        "type": "site",
        "enabled": "true",
        "event": "queuejob,modifyjob,runjob",
        "alarm": "5",
        "order": "900",
    }
    assert hook[SCRIPT] == plugin_file("pbs/foretime_hook.py").read_text()
    configured = json.loads(hook[CONFIGURATION])
    assert configured["table"] == str(site.table)
    assert configured["disable_file"] == site.settings.hook.disable_file  # not the shipped one
    assert outcome.done[0] == "qmgr -c 'create hook foretime'"
    assert outcome.done[-2] == "qmgr -c 'set hook foretime enabled = true'"


def test_install_again_does_nothing(site: Site) -> None:
    site.install()
    before = site.state["hooks"]
    outcome = site.install()
    assert (outcome.done, site.state["hooks"]) == ([], before)


def test_install_brings_an_older_hook_up_to_date(site: Site) -> None:
    site.install()
    whole = site.state["hooks"]
    site.set_content(HOOK, SCRIPT, "import pbs\n")
    site.set_hook(HOOK, alarm="30", enabled="false")
    assert site.install().done
    assert site.state["hooks"] == whole


def test_install_comes_after_the_sites_own_hooks(site: Site) -> None:
    site.set_hook("site", order="950")
    site.install()
    assert site.hook()["attributes"]["order"] == "1000"


def failures() -> Iterator[tuple[bool, str]]:
    for existing in (False, True):
        for part in (
            "create hook",
            "enabled = false",
            SCRIPT,
            CONFIGURATION,
            "event =",
            "order =",
            "alarm =",
            "enabled = true",
        ):
            if not (existing and part == "create hook"):
                yield existing, part


@pytest.mark.parametrize(("existing", "part"), list(failures()))
def test_a_step_that_fails_leaves_nothing_half_done(
    site: Site, existing: bool, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if existing:
        site.install()
        site.set_content(HOOK, SCRIPT, "import pbs\n")
        site.set_hook(HOOK, alarm="30", event="queuejob")
    before = site.state["hooks"]
    real = site.server.qmgr
    failed: list[str] = []

    def qmgr(directive: str) -> str:
        if part in directive and directive.startswith(("create", "set", "import")) and not failed:
            failed.append(directive)
            site.change(fail=[directive])
            try:
                return real(directive)
            finally:
                site.change(fail=[])
        return real(directive)

    monkeypatch.setattr(site.server, "qmgr", qmgr)
    with pytest.raises(SchedulerError, match="Everything is as it was before"):
        site.install()
    assert failed
    assert site.state["hooks"] == before


def test_an_undo_that_fails_says_what_is_left(site: Site) -> None:
    site.change(fail=["alarm =", "delete hook"])
    with pytest.raises(
        SchedulerError, match="once PBS answers, run qmgr -c 'delete hook foretime'"
    ):
        site.install()
    assert site.hook()["attributes"]["enabled"] == "false"


def test_who_is_no_manager_is_told(site: Site) -> None:
    site.change(manager=False)
    with pytest.raises(SchedulerError, match="be root, or a manager of PBS"):
        site.install()
    with pytest.raises(SchedulerError, match="be root, or a manager of PBS"):
        pbs_install.uninstall(site.server, Outcome())
    assert site.directives() == ["list hook", "list hook"]


def test_without_pbs_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"can't run .*qmgr.*--commands-dir"):
        pbs_install.install(PbsServer(str(tmp_path)), Settings(), Outcome(), Undo())


# Uninstall


def test_uninstall_takes_soft_walltimes_from_waiting_jobs(site: Site) -> None:
    site.install()
    jobs = {
        "1.pbs": {"state": "Q", "soft": "0:10:00"},
        "2[].pbs": {"state": "H", "soft": "0:10:00"},
        "3.pbs": {"state": "W", "soft": "", "stuck": True},
        "4.pbs": {"state": "R", "soft": "0:10:00"},
        "5.pbs": {"state": "Q", "soft": "0:10:00", "gone": True},
        "6[].pbs": {"state": "B", "soft": "0:10:00"},
        "6[1].pbs": {"state": "R", "soft": "0:10:00"},
        "7.pbs": {"state": "R", "soft": "0:10:00", "stuck": True},
    }
    site.change(jobs=jobs, log=[])
    outcome = Outcome()
    pbs_install.uninstall(site.server, outcome)
    assert site.state["hooks"] == {}
    softs = {name: job["soft"] for name, job in site.state["jobs"].items()}
    assert [name for name, soft in softs.items() if soft] == ["5.pbs", "6[1].pbs", "7.pbs"]
    (note,) = outcome.notes
    assert note.startswith("2 running jobs keep their soft_walltime until they end: 6[1].pbs (PBS ")
    assert "7.pbs (qalter: Request invalid for state of job 7.pbs)" in note
    assert site.directives()[1:] == [
        "set hook foretime event = modifyjob",
        "delete hook foretime",
    ]
    assert "qalter -l soft_walltime= 2[].pbs" in outcome.done
    again = Outcome()
    pbs_install.uninstall(site.server, again)
    assert (again.done, "nothing to do" in again.notes[0]) == ([], True)


def test_uninstall_keeps_the_hook_while_a_job_needs_it(site: Site) -> None:
    """Without it a user could not lower the walltime below soft_walltime."""
    site.install()
    jobs = {"1.pbs": {"state": "Q", "soft": "0:10:00", "stuck": True}}
    site.change(jobs=jobs)
    with pytest.raises(SchedulerError, match=r"1 waiting jobs keep .* 1\.pbs .*run this again"):
        pbs_install.uninstall(site.server, Outcome())
    assert site.hook()["attributes"]["event"] == "modifyjob"
    jobs["1.pbs"]["stuck"] = False
    site.change(jobs=jobs)
    pbs_install.uninstall(site.server, Outcome())
    assert site.state["hooks"] == {}


def test_what_is_shown_is_what_is_done(site: Site, tmp_path: Path) -> None:
    """The printed script, run by a shell, leaves the server as --yes does."""
    runner = CliRunner()
    settings = tmp_path / "settings.toml"
    settings.write_text(
        'scheduler.kind = "pbs"\nhook.mechanism = "pbs-soft-walltime"\n'
        f'table.path = "{site.table}"\n'
    )
    chosen = ["--settings", str(settings), "--hook-only"]
    assert (
        runner.invoke(
            app, ["install", "pbs", *chosen, "--yes", "--commands-dir", str(site.bin)]
        ).exit_code
        == 0
    )
    done = site.state["hooks"]
    jobs = {
        "1.pbs": {"state": "Q", "soft": "0:10:00"},
        "2.pbs": {"state": "R", "soft": "0:10:00", "stuck": True},
        "3.pbs": {"state": "R", "soft": "0:10:00"},
    }
    edited = site.sched_config.read_text()
    assert edited.endswith(f'{LINE[:-1]}, soft_walltime"\n')
    site.sched_config.write_text(PLAIN_CONFIG)
    site.change(hooks={}, jobs=jobs)

    def by_hand(*words: str) -> None:
        shown = runner.invoke(app, list(words))
        assert shown.exit_code == 0
        path = f"{site.bin}:{os.environ['PATH']}"
        shell = shutil.which("sh")
        assert shell
        subprocess.run(
            [shell, "-e"],
            input=shown.output,
            text=True,
            cwd=tmp_path,
            env={"PATH": path},
            check=True,
        )

    by_hand("install", "pbs", *chosen)
    assert (site.state["hooks"], site.sched_config.read_text()) == (done, edited)
    by_hand("uninstall", "pbs", *chosen)
    assert (site.state["hooks"], site.sched_config.read_text()) == ({}, PLAIN_CONFIG)
    assert [job["soft"] for job in site.state["jobs"].values()] == ["", "0:10:00", ""]


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_the_json_has_the_commands_and_what_was_done(site: Site, command: str) -> None:
    runner = CliRunner()
    shown = json.loads(runner.invoke(app, [command, "pbs", "--hook-only", "--json"]).stdout)
    assert all(isinstance(line, str) for line in shown["commands"])
    words = [command, "pbs", "--hook-only", "--yes", "--json", "--commands-dir", str(site.bin)]
    assert set(json.loads(runner.invoke(app, words).stdout)) == {"done", "notes"}


def test_settings_for_slurm_are_no_plan_for_pbs(tmp_path: Path) -> None:
    settings = tmp_path / "foretime.toml"
    settings.write_text('[scheduler]\nkind = "slurm"\n')
    refused = CliRunner().invoke(app, ["install", "pbs", "--settings", str(settings)])
    assert "the settings are for Slurm" in str(refused.exception)
