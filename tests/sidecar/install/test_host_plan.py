"""What foretime install plans for a host, on made-up ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install import first_settings, host_plan, slurm_host
from foretime_sidecar.install.first_settings import pbs_settings, slurm_settings
from foretime_sidecar.install.host_plan import ENABLED, UNITS, HostPlan, plan_host, undo_host
from foretime_sidecar.install.installed_files import digest
from foretime_sidecar.install.pbs_host import DROP_IN, plan_pbs_rights
from foretime_sidecar.install.slurm_host import plan_slurm_rights
from foretime_sidecar.install.steps import Outcome, all_or_nothing, do_all
from foretime_sidecar.settings.settings_file import parse_settings

from tests.sidecar.install.made_up_host import MadeUpHost

SETTINGS = Path("/etc/foretime/foretime.toml")
PROGRAM = Path("/opt/foretime/bin/foretime")
WITH_SLURMDBD = {
    "SlurmUser": "slurm(64030)",
    "AccountingStorageType": "accounting_storage/slurmdbd",
}


USERADD = (
    "useradd --system --user-group --comment Foretime --home-dir /var/lib/foretime"
    " --no-create-home --shell /usr/sbin/nologin foretime"
)


class Controller(SlurmController):
    """slurmctld and slurmdbd, which know one AdminLevel."""

    level: str | None = None

    def admin_level(self, user: str) -> str | None:
        assert user == "foretime"
        return self.level


@pytest.fixture(autouse=True)
def in_opt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_plan, "own_program", lambda: PROGRAM)
    monkeypatch.setattr("sys.base_prefix", "/usr")


@pytest.fixture
def host(tmp_path: Path) -> MadeUpHost:
    made = MadeUpHost(tmp_path)
    made.begin_systemd()
    for folder in ("etc/systemd/system", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    return made


def slurm_plan(
    host: MadeUpHost, level: str | None = None, configuration: dict[str, str] | None = None
) -> HostPlan:
    text, controller = slurm_settings("/opt/slurm/bin"), Controller()
    controller.level = level
    chosen = WITH_SLURMDBD if configuration is None else configuration
    return plan_host(
        host,
        parse_settings(text),
        SETTINGS,
        text,
        lambda plan: plan_slurm_rights(plan, controller, chosen, "/opt/slurm/bin"),
    )


def shown(plan: HostPlan) -> list[str]:
    return [step.shown.replace(str(plan.host.path("")), "") for step in plan.steps]


def carry_out(plan: HostPlan) -> Outcome:
    outcome = Outcome()
    with all_or_nothing() as undo:
        do_all(plan.steps, outcome, undo)
    return outcome


def test_a_bare_host_gets_all_that_a_site_needs(host: MadeUpHost) -> None:
    plan = slurm_plan(host)
    folder = "install --directory --mode={} --owner={} --group={} {}"
    assert shown(plan) == [
        USERADD,
        folder.format("0755", "root", "root", "/etc/foretime"),
        folder.format("0750", "foretime", "foretime", "/var/lib/foretime"),
        folder.format("0750", "foretime", "foretime", "/var/lib/foretime/table"),
        "wrote /etc/foretime/foretime.installed",
        "wrote /etc/foretime/foretime.toml",
        "usermod --append --groups foretime slurm",
        "/opt/slurm/bin/sacctmgr --immediate add user foretime account=root adminlevel=Operator",
        *(f"wrote /etc/systemd/system/{unit}" for unit in UNITS),
        "systemctl daemon-reload",
        "systemctl enable foretime.service foretime-watchdog.timer",
        "systemctl restart foretime.service foretime-watchdog.timer",
    ]
    carry_out(plan)
    unit = (host.root / "etc/systemd/system/foretime.service").read_text()
    assert f"ExecStart={PROGRAM} serve --settings {SETTINGS}\n" in unit
    assert "/usr/bin/foretime" not in unit
    written = (host.root / "etc/foretime/foretime.toml").read_text()
    assert parse_settings(written).hook.mode == "observe"
    assert re.findall(r"^\w+ = .*", written, flags=re.MULTILINE) == [
        'kind = "slurm"',
        'commands_dir = "/opt/slurm/bin"',
        'mode = "observe"',
    ]


def test_what_is_done_is_planned_no_more(host: MadeUpHost) -> None:
    carry_out(slurm_plan(host))
    before = host.everything()
    assert slurm_plan(host, "Operator").steps == []
    assert host.everything() == before


@pytest.mark.parametrize(
    "fails",
    [
        "useradd",
        "install --directory --mode=0755",
        "install --directory --mode=0750",
        "usermod",
        "/opt/slurm/bin/sacctmgr",
        "systemctl enable",
        "systemctl restart",
    ],
)
def test_a_step_that_fails_has_those_before_undone(host: MadeUpHost, fails: str) -> None:
    before, plan = host.everything(), slurm_plan(host)
    host.fails = (fails,)
    with pytest.raises(SchedulerError, match=r"made to fail. Everything is as it was before\."):
        carry_out(plan)
    assert host.everything() == before
    if fails.startswith("systemctl"):
        assert host.ran.count("systemctl daemon-reload") == 2, "again, as the units are gone"


def test_what_was_done_before_ctrl_c_is_undone(host: MadeUpHost) -> None:
    before, plan = host.everything(), slurm_plan(host)
    host.interrupted = "usermod"
    with pytest.raises(SchedulerError, match=r"^interrupted\. Everything is as it was before\.$"):
        carry_out(plan)
    assert host.everything() == before


def test_an_undo_that_fails_is_told(host: MadeUpHost) -> None:
    plan = slurm_plan(host)
    host.fails = ("usermod", "userdel")
    with pytest.raises(SchedulerError, match="Undoing it failed, too: userdel foretime: made"):
        carry_out(plan)


def test_a_file_that_cannot_be_written_leaves_nothing(host: MadeUpHost) -> None:
    before, plan = host.everything(), slurm_plan(host)
    (host.root / "etc/systemd/system").rmdir()
    (host.root / "etc/systemd/system").touch()
    with pytest.raises(SchedulerError, match="Everything is as it was before"):
        carry_out(plan)
    (host.root / "etc/systemd/system").unlink()
    (host.root / "etc/systemd/system").mkdir()
    assert host.everything() == before


def test_what_a_package_has_brought_is_not_written_again(host: MadeUpHost) -> None:
    packaged = host.root / "usr/lib/systemd/system"
    packaged.mkdir(parents=True)
    for unit in UNITS:
        (packaged / unit).touch()
    host.users["foretime"] = {"foretime"}
    for folder in ("etc/foretime", "var/lib/foretime/table"):
        (host.root / folder).mkdir(parents=True)
    (host.root / "etc/foretime/foretime.toml").write_text("# the site's\n")
    host.users["slurm"].add("foretime")
    assert shown(slurm_plan(host, "Administrator")) == [
        "wrote /etc/foretime/foretime.installed",
        "systemctl enable foretime.service foretime-watchdog.timer",
        "systemctl restart foretime.service foretime-watchdog.timer",
    ]


def test_a_unit_of_the_sites_own_stays_and_ours_is_brought_up_to_date(host: MadeUpHost) -> None:
    carry_out(slurm_plan(host))
    ours, theirs = (host.root / "etc/systemd/system" / unit for unit in UNITS[:2])
    theirs.write_text("[Service]\nExecStart=/bin/true\n")
    record = host.root / "etc/foretime/foretime.installed"
    old = ours.read_bytes() + b"# of an older release\n"
    ours.write_bytes(old)
    record.write_text(record.read_text().replace(_digest_of_unit(record), digest(old)))
    plan = slurm_plan(host, "Operator")
    assert shown(plan)[1:] == [
        f"wrote /etc/systemd/system/{UNITS[0]}",
        "systemctl daemon-reload",
        "systemctl restart foretime.service foretime-watchdog.timer",
    ]
    assert any("is the site's own, and stays" in note for note in plan.notes)


def _digest_of_unit(record: Path) -> str:
    found = re.search(
        r'foretime\.service",\s+"before": null,\s+"written": "(\w+)"', record.read_text()
    )
    assert found
    return found[1]


def test_uninstall_undoes_what_is_safe_and_leaves_user_and_state(host: MadeUpHost) -> None:
    carry_out(slurm_plan(host))
    (host.root / "var/lib/foretime/foretime.sqlite").touch()
    steps, forget = undo_host(host, SETTINGS)
    assert [step.shown.replace(str(host.root), "") for step in steps] == [
        "systemctl disable --now foretime.service foretime-watchdog.timer",
        "/opt/slurm/bin/sacctmgr --immediate delete user foretime",
        "gpasswd --delete slurm foretime",
        *(f"rm /etc/systemd/system/{unit}" for unit in UNITS),
        "systemctl daemon-reload",
    ]
    for step in steps:
        step.do()
    forget()
    assert host.users == {"slurm": {"slurm"}, "foretime": {"foretime"}}
    assert (host.active, host.enabled) == (set(), set())
    left = {str(path.relative_to(host.root)) for path in host.root.rglob("*") if path.is_file()}
    assert left == {"etc/foretime/foretime.toml", "var/lib/foretime/foretime.sqlite"}
    assert undo_host(host, SETTINGS)[0] == []


def test_without_systemd_the_command_to_start_the_daemon_is_said(tmp_path: Path) -> None:
    host = MadeUpHost(tmp_path)
    (tmp_path / "etc").mkdir()
    plan = slurm_plan(host)
    assert not any("systemctl" in line for line in shown(plan))
    assert any(line.endswith("/run/foretime") for line in shown(plan)), "the unit would make it"
    assert any(f"runuser -u foretime -- {PROGRAM} serve" in note for note in plan.notes)


def test_without_slurmdbd_nobody_is_made_an_operator(host: MadeUpHost) -> None:
    plan = slurm_plan(host, configuration={"SlurmUser": "root(0)"})
    assert not any("sacctmgr" in line or "usermod" in line for line in shown(plan))
    assert any("no slurmdbd" in note for note in plan.notes)


def test_a_user_without_the_right_gets_it_and_loses_it_again(host: MadeUpHost) -> None:
    carry_out(slurm_plan(host, "None"))
    change = "/opt/slurm/bin/sacctmgr --immediate modify user foretime set adminlevel="
    assert f"{change}Operator" in host.ran
    assert f"{change}None" in [step.shown for step in undo_host(host, SETTINGS)[0]]


def test_slurmctld_is_restarted_only_if_it_runs_without_the_group(
    host: MadeUpHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out(slurm_plan(host))
    restart = "systemctl restart slurmctld.service  # it learns its groups only when it starts"
    for groups, active, planned in (
        ({1, 995}, True, False),
        ({1}, True, True),
        ({1}, False, False),
    ):
        monkeypatch.setattr(slurm_host, "running_groups", lambda _, found=groups: frozenset(found))
        (host.active.add if active else host.active.discard)("slurmctld.service")
        plan = slurm_plan(host, "Operator")
        assert (restart in shown(plan)) is planned
        assert any("restart slurmctld" in note for note in plan.notes) is (
            groups == {1} and not active
        )


@pytest.mark.parametrize("place", ["/root/venv/bin/foretime", "/home/ann/bin/foretime"])
def test_a_program_in_a_home_is_refused(
    host: MadeUpHost, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_plan, "own_program", lambda: Path(place))
    with pytest.raises(InputError, match=r"install foretime elsewhere, such as in /opt/foretime"):
        slurm_plan(host)


class Server(PbsServer):
    """A PBS server with managers."""

    managers = "manager@*"

    def status(self, *arguments: str) -> dict[str, Any]:
        return {"Server": {"pbs": {"server_host": "pbs01", "managers": self.managers}}}


def test_pbs_gives_the_daemon_what_its_drop_in_names(
    host: MadeUpHost, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda command, path=None: f"/usr/bin/{command}")
    home, server = Path("/var/spool/pbs"), Server()
    for folder in ("server_priv/accounting", "sched_priv"):
        host.path(home / folder).mkdir(parents=True)
    text = pbs_settings("", home)
    assert "pbs_accounting_dir" not in text, "it is the default"

    def rights(plan: HostPlan) -> None:
        plan_pbs_rights(plan, server, parse_settings(text), "", home)

    def plan() -> HostPlan:
        return plan_host(host, parse_settings(text), SETTINGS, text, rights, DROP_IN)

    carry_out(plan())
    page = (repository / "contrib/systemd/foretime.service.d/pbs.conf").read_text()
    named = re.findall(r"^#   (setfacl|qmgr) .*?(\S+)$", page, flags=re.MULTILINE)
    assert {folder for command, folder in named if command == "setfacl"} == {
        place for place, _ in host.entries
    }
    assert "qmgr -c set server managers += foretime@pbs01" in host.ran
    for unit in UNITS[:2]:
        assert (host.root / f"etc/systemd/system/{unit}.d/{DROP_IN}").exists()
    server.managers += ",foretime@pbs01"
    assert plan().steps == []


def test_settings_name_what_is_not_where_a_service_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, services = tmp_path / "ours", tmp_path / "services"
    for folder in (ours, services):
        folder.mkdir()
        for command in ("scontrol", "qmgr"):
            (folder / command).touch(0o755)
    monkeypatch.setenv("PATH", str(ours))
    monkeypatch.setattr(first_settings, "_SERVICE_PATH", str(services))
    assert parse_settings(slurm_settings("")).scheduler.commands_dir == str(ours)
    monkeypatch.setenv("PATH", str(services))
    assert parse_settings(slurm_settings("")).scheduler.commands_dir == ""
    chosen = parse_settings(pbs_settings("/x", Path("/data/pbs")))
    assert chosen.scheduler.commands_dir == "/x"
    assert chosen.scheduler.pbs_accounting_dir == "/data/pbs/server_priv/accounting"
    assert (chosen.hook.mode, chosen.hook.mechanism) == ("observe", "pbs-soft-walltime")


def test_the_user_and_folders_are_those_of_the_packages(host: MadeUpHost, repository: Path) -> None:
    contrib = repository / "contrib/systemd"
    steps = shown(slurm_plan(host))
    (user,) = re.findall(
        r"^u (\w+) - \"(\w+)\" (\S+) (\S+)$",
        (contrib / "foretime.sysusers").read_text(),
        re.MULTILINE,
    )
    name, comment, home, shell = user
    for word in (f"--comment {comment}", f"--home-dir {home}", f"--shell {shell} {name}"):
        assert word in steps[0]
    folders = re.findall(
        r"^d (\S+) +(\d+) (\w+) +(\w+)", (contrib / "foretime.tmpfiles").read_text(), re.MULTILINE
    )
    assert steps[1:4] == [
        f"install --directory --mode={mode} --owner={owner} --group={group} {folder}"
        for folder, mode, owner, group in folders
    ]
    assert set(ENABLED) <= set(UNITS)
