"""foretime install, uninstall and doctor on a PBS site whose commands are fakes."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.pbs.server import CONFIGURATION, HOOK, SCRIPT, PbsServer, parse_hooks
from foretime_sidecar.install import pbs_install
from foretime_sidecar.install.doctor import pbs as doctor_pbs
from foretime_sidecar.install.doctor.checkup import Diagnosis, Finding, Health, examine, exit_code
from foretime_sidecar.install.doctor.pbs import accounting, dedicated_time, pbs_checks
from foretime_sidecar.install.doctor.table import fresh_table, local_file_system, safe_path
from foretime_sidecar.install.pbs_scheduler import Outcome, PbsScheduler, pbs_home
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import Mode, Table, TableSettings, write_table
from foretime_sim.mocks.plugin_files import plugin_file
from typer.testing import CliRunner

# Stands for qmgr, qstat, qselect and qalter; what it knows is in a JSON file beside it.
FAKE = r"""
import json, os, shlex, sys
path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "state.json")
with open(path) as file:
    state = json.load(file)
command, words = os.path.basename(sys.argv[0]), sys.argv[1:]
state["log"].append([command, *words])

def leave(code, message=""):
    with open(path, "w") as file:
        json.dump(state, file)
    if message:
        print(message, file=sys.stderr if code else sys.stdout)
    sys.exit(code)

if any(part in " ".join([command, *words]) for part in state["fail"]):
    leave(1, "qmgr: Error (15010) returned from server")
if command == "qstat":
    if "-B" in words:
        print(json.dumps({"timestamp": state["time"], "pbs_version": state["version"],
                          "pbs_server": "pbs", "Server": {"pbs": state["server"]}}))
    else:
        print(json.dumps({"timestamp": state["time"], "Queue": state["queues"]}))
    leave(0)
if command == "qselect":
    each = words[0] == "-T"
    assert words[each::2] == ["-s", "-l"] and words[-1] == "soft_walltime.ge.0", words
    for name, job in state["jobs"].items():
        subjob = "[" in name and "[]" not in name
        if job["state"] in words[each + 1] and job["soft"] and subjob <= each:
            print(name)
    leave(0)
if command == "qalter":
    assert words[:2] == ["-l", "soft_walltime="], words
    job = state["jobs"][words[2]]
    if job.get("gone"):
        job["state"] = "E"
    if job.get("stuck") or job.get("gone"):
        leave(153, "qalter: Request invalid for state of job " + words[2])
    job["soft"] = ""
    leave(0)
if not state["manager"]:
    leave(1, "user@host is unauthorized to access hooks data from server host")
hooks = state["hooks"]
directive = words[1]
if directive.startswith("set hook"):
    directive = directive.replace("=", " = ")
verb, kind, *rest = shlex.split(directive)
assert kind == "hook"
if verb == "list":
    if not hooks:
        leave(1, "qmgr obj= svr=default: hook not found")
    for name, hook in hooks.items():
        print("Hook " + name)
        for key, value in hook["attributes"].items():
            print("    %s = %s" % (key, value))
        print()
    leave(0)
name = rest[0]
if verb == "create":
    if name in hooks:
        leave(1, "qmgr obj=%s svr=default: hook error: hook name already registered" % name)
    hooks[name] = {"attributes": {"type": "site", "enabled": "true", "event": '""', "alarm": "30",
                                  "order": "1"}}
elif name not in hooks:
    leave(1, "qmgr obj=%s svr=default: hook not found" % name)
elif verb == "delete":
    del hooks[name]
elif verb == "set":
    key, value = rest[1], rest[3]
    hooks[name]["attributes"][key] = value
elif verb == "import":
    with open(rest[3]) as file:
        hooks[name][rest[1]] = file.read()
elif verb == "export":
    if rest[1] not in hooks[name]:
        leave(1, "qmgr obj=%s svr=default: hook error: no content" % name)
    print(hooks[name][rest[1]], end="")
leave(0)
"""


LINE = 'resources: "ncpus, mem, arch, host, vnode, aoe, eoe"'
PLAIN_CONFIG = f"# backfill_prime: true ALL\n# resources: x\n{LINE}\n"


class FakeServer(PbsServer):
    """The same without a process for each command."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._script = folder / "fake"
        self._code = compile(FAKE, str(self._script), "exec")

    def _spawn(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        if not Path(command[0]).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        said, complained = io.StringIO(), io.StringIO()
        before, code = sys.argv, 0
        sys.argv = command
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
                exec(self._code, {"__file__": str(self._script)})
        except SystemExit as left:
            code = int(str(left.code))
        finally:
            sys.argv = before
        return subprocess.CompletedProcess(command, code, said.getvalue(), complained.getvalue())


class Site:
    """A PBS server's host."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.state_file = self.bin / "state.json"
        script = self.bin / "fake"
        script.write_text(f"#!{sys.executable} -S\n{FAKE}")
        script.chmod(0o755)
        for name in ("qmgr", "qstat", "qselect", "qalter"):
            (self.bin / name).symlink_to(script)
        self.change(
            hooks={},
            jobs={},
            queues={},
            server={},
            manager=True,
            fail=[],
            log=[],
            version="23.06.06",
            time=int(time.time()),
        )
        self.server = FakeServer(self.bin)
        # A table that only root and we could replace, as far as a test can say so.
        self.table = folder / "table"
        now = int(time.time())
        settings = TableSettings(mode=Mode.ENFORCE)
        self.content = Table(1, now - 10, now + 3_600, settings)
        write_table(self.table, self.content)
        self.settings = Settings.model_validate(
            {
                "table": {"path": str(self.table)},
                "scheduler": {"pbs_accounting_dir": "", "pbs_dedicated_time_file": ""},
                "hook": {"disable_file": str(folder / "foretime.off")},
            }
        )

    @property
    def sched_config(self) -> Path:
        return Path(os.environ["PBS_HOME"]) / "sched_priv" / "sched_config"

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.state_file.read_text())
        return state

    def change(self, **changes: Any) -> None:
        before = self.state if self.state_file.exists() else {}
        self.state_file.write_text(json.dumps({**before, **changes}))

    def hook(self, name: str = HOOK) -> dict[str, Any]:
        found: dict[str, Any] = self.state["hooks"][name]
        return found

    def set_hook(self, name: str, **attributes: str) -> None:
        hooks = self.state["hooks"]
        hook = hooks.setdefault(name, {"attributes": {"enabled": "true", "event": "queuejob"}})
        hook["attributes"].update(attributes)
        self.change(hooks=hooks)

    def set_content(self, name: str, kind: str, text: str) -> None:
        hooks = self.state["hooks"]
        hooks[name][kind] = text
        self.change(hooks=hooks)

    def install(self) -> Outcome:
        outcome = pbs_install.install(self.server, self.settings)
        PbsScheduler(pbs_home()).install(outcome)
        return outcome

    def directives(self) -> list[str]:
        return [words[2] for words in self.state["log"] if words[0] == "qmgr"]

    def diagnoses(self) -> dict[str, Finding]:
        checks = pbs_checks(self.settings, self.server, int(time.time()), str(self.bin))
        return {diagnosis.name: diagnosis.finding for diagnosis in examine(checks)}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    home = tmp_path / "home"
    (home / "sched_priv").mkdir(parents=True)
    (home / "sched_priv" / "sched_config").write_text(PLAIN_CONFIG)
    monkeypatch.setenv("PBS_HOME", str(home))
    return Site(tmp_path)


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
    assert "nothing to do" in outcome.notes[0]


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
        pbs_install.uninstall(site.server)
    assert site.directives() == ["list hook", "list hook"]


def test_without_pbs_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"can't run .*qmgr.*--commands-dir"):
        pbs_install.install(PbsServer(str(tmp_path)), Settings())


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
    outcome = pbs_install.uninstall(site.server)
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
    again = pbs_install.uninstall(site.server)
    assert (again.done, "nothing to do" in again.notes[0]) == ([], True)


def test_uninstall_keeps_the_hook_while_a_job_needs_it(site: Site) -> None:
    """Without it a user could not lower the walltime below soft_walltime."""
    site.install()
    jobs = {"1.pbs": {"state": "Q", "soft": "0:10:00", "stuck": True}}
    site.change(jobs=jobs)
    with pytest.raises(SchedulerError, match=r"1 waiting jobs keep .* 1\.pbs .*run this again"):
        pbs_install.uninstall(site.server)
    assert site.hook()["attributes"]["event"] == "modifyjob"
    jobs["1.pbs"]["stuck"] = False
    site.change(jobs=jobs)
    pbs_install.uninstall(site.server)
    assert site.state["hooks"] == {}


def test_what_is_shown_is_what_is_done(site: Site, tmp_path: Path) -> None:
    """The printed script, run by a shell, leaves the server as --yes does."""
    runner = CliRunner()
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[table]\npath = "{site.table}"\n')
    chosen = ["--settings", str(settings)]
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
    shown = json.loads(runner.invoke(app, [command, "pbs", "--json"]).stdout)
    assert all(isinstance(line, str) for line in shown["commands"])
    words = [command, "pbs", "--yes", "--json", "--commands-dir", str(site.bin)]
    assert set(json.loads(runner.invoke(app, words).stdout)) == {"done", "notes"}


# Doctor


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


def test_the_unit_lets_pbs_commands_prove_who_asks(repository: Path) -> None:
    """pbs_iff is setuid; systemd forbids that with any of these, for a unit that has User=."""
    implying = [
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "NoNewPrivileges",
        "PrivateDevices",
        "ProtectClock",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "RestrictAddressFamilies",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "SystemCallArchitectures",
        "SystemCallFilter",
        "SystemCallLog",
        "DynamicUser",
    ]
    units = repository / "contrib" / "systemd"
    unit = (units / "foretime.service").read_text()
    changed = (units / "foretime.service.d" / "pbs.conf").read_text().splitlines()
    given = [name for name in implying if f"\n{name}=" in unit]
    assert len(given) > 10
    assert not [name for name in given if not {f"{name}=", f"{name}=no"} & set(changed)]


def test_a_recorded_listing_of_hooks_with_wrapped_lines_is_read(repository: Path) -> None:
    text = (repository / "tests/assets/pbs/openpbs/qmgr-list-hook.txt").read_text()
    hooks = parse_hooks(text)
    assert list(hooks) == ["pbs_cgroups", "foretime"]
    assert len(hooks["pbs_cgroups"].events) == 11
    assert {"execjob_launch", "execjob_attach", "exechost_startup"} < hooks["pbs_cgroups"].events
    assert (hooks["pbs_cgroups"].number("order"), hooks["pbs_cgroups"].enabled) == (100, False)
    assert hooks["foretime"].events == {"queuejob", "postqueuejob", "modifyjob", "runjob"}


def test_a_listing_of_hooks_is_read() -> None:
    text = (
        'Hook a\n    type = site\n    event = "queuejob,runjob"\n    order = 3\n\n'
        "Hook b\n    enabled = False\n"
    )
    hooks = parse_hooks(text)
    assert (hooks["a"].events, hooks["a"].number("order")) == ({"queuejob", "runjob"}, 3)
    assert (hooks["a"].enabled, hooks["b"].enabled, hooks["b"].events) == (True, False, set())
    assert parse_hooks("") == {}
