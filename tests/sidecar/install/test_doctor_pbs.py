"""foretime doctor on a PBS site whose commands are fakes."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.pbs.server import CONFIGURATION, HOOK, SCRIPT
from foretime_sidecar.install.doctor import pbs as doctor_pbs
from foretime_sidecar.install.doctor.checkup import Diagnosis, Finding, Health, examine, exit_code
from foretime_sidecar.install.doctor.pbs import accounting, dedicated_time
from foretime_sidecar.install.doctor.table import fresh_table, local_file_system, safe_path
from foretime_sidecar.table.table import TableSettings, write_table
from typer.testing import CliRunner

from tests.support.pbs.faked_pbs_site import LINE, PLAIN_CONFIG, Site


def test_a_sound_site_has_no_finding(site: Site) -> None:
    site.set_hook("site", order="10")
    site.set_content("site", SCRIPT, "# not soft_walltime\nimport pbs\n")
    site.install()
    found = site.diagnoses()
    assert {
        name: finding for name, finding in found.items() if finding.health is not Health.OK
    } == {}
    assert found["PBS release"].message == "PBS 23.06.06"


def sick(site: Site, ill: str) -> None:
    config = json.loads(site.hook()[CONFIGURATION])
    if ill == "PBS release":
        site.change(version="19.1.3")
    elif ill == "clock":
        site.change(time=int(time.time()) - 4_000)
    elif ill == "hook":
        site.set_hook(HOOK, enabled="false")
    elif ill == "hook's events":
        site.set_hook(HOOK, event="queuejob")
    elif ill == "hook's alarm":
        site.set_hook(HOOK, alarm="1")
    elif ill == "hook's order":
        site.set_hook("late", order="900", event="modifyjob")
        site.set_content("late", SCRIPT, "import pbs\n")
    elif ill == "hook's script":
        site.set_content(HOOK, SCRIPT, "import pbs\n")
    elif ill == "hook's configuration":
        site.set_content(HOOK, CONFIGURATION, json.dumps({**config, "table": "/other"}))
    elif ill == "disable file":
        off = {**config, "disable_file": str(site.table)}
        site.set_content(HOOK, CONFIGURATION, json.dumps(off))
    elif ill == "other hooks":
        site.set_hook("rival", order="2")
        site.set_content(
            "rival", SCRIPT, "import pbs\npbs.event().job.Resource_List['soft_walltime'] = 5\n"
        )
    elif ill == "default soft_walltime":
        site.change(queues={"workq": {"resources_default": {"soft_walltime": "1:00:00"}}})
    elif ill == "primetime":
        site.sched_config.write_text(f'backfill_prime:\ttrue\tALL\n{LINE[:-1]}, soft_walltime"\n')
    elif ill == "job classes":
        site.sched_config.write_text(PLAIN_CONFIG)
    elif ill == "commands":
        (site.bin / "qselect").unlink()


WARNINGS = {
    "hook's order",
    "hook's script",
    "hook's configuration",
    "disable file",
    "default soft_walltime",
    "job classes",
    "primetime",
}


@pytest.mark.parametrize(
    "ill",
    [
        "commands",
        "PBS release",
        "clock",
        "hook",
        "hook's events",
        "hook's alarm",
        "hook's order",
        "hook's script",
        "hook's configuration",
        "disable file",
        "other hooks",
        "default soft_walltime",
        "job classes",
        "primetime",
    ],
)
def test_each_illness_is_found_and_no_other(site: Site, ill: str) -> None:
    site.install()
    sick(site, ill)
    found = site.diagnoses()
    assert [name for name, finding in found.items() if finding.health is not Health.OK] == [ill]
    assert found[ill].health is (Health.WARNING if ill in WARNINGS else Health.PROBLEM)
    assert found[ill].remedy


def test_a_configuration_that_the_hook_refuses_is_a_problem(site: Site) -> None:
    site.install()
    for text in ("nonsense", "[]", '{"tables": 1}'):
        site.set_content(HOOK, CONFIGURATION, text)
        finding = site.diagnoses()["hook's configuration"]
        assert finding.health is Health.PROBLEM
        assert "every job is left alone" in finding.message


def test_the_daemons_user_must_read_the_accounting_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are for their owner only
        Path(place).chmod(0o755)
        folder = Path(place) / "accounting"
        assert "qstat -x" in accounting("").message
        monkeypatch.setattr(doctor_pbs, "DAEMON_USER", "no-such-user")
        assert accounting(str(folder)).health is Health.WARNING
        name = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        monkeypatch.setattr(doctor_pbs, "DAEMON_USER", name)
        assert "No such file" in accounting(str(folder)).message
        folder.mkdir(mode=0o755)
        assert "has no accounting logs" in accounting(str(folder)).message
        (folder / "20261120").write_text("x")
        for closed in (folder / "20261120", folder):
            closed.chmod(0o755)
            assert accounting(str(folder)).health is Health.OK
            closed.chmod(0)
            finding = accounting(str(folder))
            closed.chmod(0o755)
            assert (finding.health, finding.remedy != "") == (Health.PROBLEM, True)
            assert "Permission denied" in finding.message


def test_the_daemons_user_should_read_dedicated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        file = Path(place) / "dedicated_time"
        assert dedicated_time("").health is dedicated_time(str(file)).health is Health.OK
        file.write_text("x")
        monkeypatch.setattr(doctor_pbs, "DAEMON_USER", "no-such-user")
        assert "must read" in dedicated_time(str(file)).message
        name = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        monkeypatch.setattr(doctor_pbs, "DAEMON_USER", name)
        file.chmod(0o644)
        assert dedicated_time(str(file)).health is Health.OK
        file.chmod(0)
        finding = dedicated_time(str(file))
        assert (finding.health, "Permission denied" in finding.message) == (Health.WARNING, True)


def test_one_cause_is_told_once(site: Site) -> None:
    found = site.diagnoses()
    assert [name for name, finding in found.items() if finding.health is Health.PROBLEM] == ["hook"]
    assert found["hook"].remedy == "foretime install pbs --yes"


def test_a_table_out_of_date_or_damaged_is_found(site: Site) -> None:
    now = int(time.time())
    assert fresh_table(site.table, now).health is Health.OK
    assert fresh_table(site.table, now + 10_000).health is Health.PROBLEM
    assert fresh_table(site.table, now - 10_000).health is Health.PROBLEM
    write_table(site.table, replace(site.content, settings=TableSettings()))
    assert "no job is changed" in fresh_table(site.table, now).message
    site.table.write_text("nonsense")
    (diagnosis,) = examine([("table", lambda: fresh_table(site.table, now))])
    assert diagnosis.finding.health is Health.PROBLEM
    assert "not a Foretime table" in diagnosis.finding.message
    assert "foretime serve" in diagnosis.finding.remedy
    site.table.unlink()
    # One cause is told once.
    (diagnosis,) = examine(
        [
            ("table", lambda: fresh_table(site.table, now)),
            ("table's permissions", lambda: safe_path(site.table)),
        ]
    )
    assert diagnosis.finding.message == f"{site.table}: No such file or directory"
    assert "start the daemon (foretime serve)" in diagnosis.finding.remedy


def test_who_could_replace_the_table_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    table = folder / "table"
    table.write_text("x")
    table.chmod(0o640)
    healthy = safe_path(table).health
    assert healthy in (Health.OK, Health.WARNING)  # what lies above is not ours
    folder.chmod(0o777)
    assert f"everybody can write to {folder}" in safe_path(table).message
    folder.chmod(0o755)
    table.chmod(0o666)
    assert safe_path(table).health is not Health.OK
    assert safe_path(folder / "none").health is Health.PROBLEM


def test_network_file_systems_are_found(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda / ext4 rw 0 0\nhost:/home {tmp_path} nfs4 rw 0 0\nx /proc proc rw\n"
    )
    assert local_file_system(tmp_path / "table", mounts).health is Health.WARNING
    assert local_file_system(Path("/var/table"), mounts).health is Health.OK
    assert local_file_system(Path("/"), tmp_path / "none").health is Health.WARNING


def test_only_a_problem_makes_the_exit_code_1() -> None:
    def told(*healths: Health) -> int:
        return exit_code([Diagnosis("x", Finding(health, "x")) for health in healths])

    assert told() == told(Health.OK, Health.WARNING) == 0
    assert told(Health.OK, Health.PROBLEM, Health.OK) == 1


def test_the_doctor_command_tells_each_finding(site: Site, tmp_path: Path) -> None:
    site.install()
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[scheduler]\nkind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"\n'
        f'[table]\npath = "{site.table}"\n'
    )
    words = ["doctor", "--settings", str(settings), "--commands-dir", str(site.bin)]
    answer = CliRunner().invoke(app, [*words, "--json"])
    found = {entry["check"]: entry for entry in json.loads(answer.output)}
    assert set(found["hook"]) == {"check", "health", "message", "remedy"}
    assert found["hook"]["health"] == "ok"
    site.set_hook(HOOK, enabled="false")
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 1
    assert "the hook is disabled" in " ".join(shown.output.split())
