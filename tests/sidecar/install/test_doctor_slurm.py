"""Each check of a Slurm site by itself: when all is well, when it warns, what is a problem."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.answers.daemon_client import DaemonError, SiteDaemon
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor import daemon as doctor_daemon
from foretime_sidecar.install.doctor import slurm as doctor_slurm
from foretime_sidecar.install.doctor.checkup import Finding, Health, examine
from foretime_sidecar.install.doctor.slurm import slurm_checks
from foretime_sidecar.install.doctor.slurm_facts import SlurmFacts
from foretime_sidecar.install.slurm_script import ready_made
from foretime_sidecar.settings.settings import Settings
from foretime_sim.mocks.plugin_files import plugin_file
from typer.testing import CliRunner

NOW = 1_700_000_000
OK, WARNING, PROBLEM = Health.OK, Health.WARNING, Health.PROBLEM
SOFT = "bf_interval=1,time_min_as_soft_limit"


class FakeController(SlurmController):
    """slurmctld that says what it is told to; ``fault`` is raised instead if set."""

    def __init__(
        self,
        configuration: Mapping[str, str] | None = None,
        *,
        clock: int | None = NOW,
        jobs: tuple[QueuedJob, ...] = (),
        fault: SchedulerError | None = None,
    ) -> None:
        self.asked = 0
        self._configuration = {"SLURM_VERSION": "25.05.4"} | dict(configuration or {})
        self._clock, self._jobs, self._fault = clock, jobs, fault

    def configuration(self) -> Mapping[str, str]:
        self.asked += 1
        if self._fault is not None:
            raise self._fault
        return self._configuration

    def clock(self) -> int:
        if self._clock is None:
            raise ValueError
        return self._clock

    def jobs(self) -> tuple[QueuedJob, ...]:
        return self._jobs


def facts(
    configuration: Mapping[str, str] | None = None,
    *,
    folder: Path = Path("/nowhere"),
    table: str = "/t/foretime.table",
    clock: int | None = NOW,
    jobs: tuple[QueuedJob, ...] = (),
    **hook: Any,
) -> SlurmFacts:
    hook = {"mode": "enforce", "mechanism": "slurm-soft-limit", **hook}
    settings = Settings.model_validate(
        {"hook": hook, "queue_order": {"order": "none"}, "table": {"path": table}}
    )
    controller = FakeController(configuration, clock=clock, jobs=jobs)
    return SlurmFacts(settings, controller, folder / "slurm.conf")


def came_out(finding: Finding, health: Health, words: str) -> None:
    """What is wrong also says what to do about it."""
    assert (finding.health, words in finding.message) == (health, True), finding
    assert bool(finding.remedy) is (health is not OK), finding


def test_a_missing_command_is_a_problem(tmp_path: Path) -> None:
    for name in ("scontrol", "squeue", "sacct", "sinfo"):
        came_out(doctor_slurm.commands(str(tmp_path)), PROBLEM, name)
        (tmp_path / name).touch(0o755)
    came_out(doctor_slurm.commands(str(tmp_path)), OK, "scontrol")


@pytest.mark.parametrize(
    ("version", "hook", "health", "words"),
    [
        ("20.11.9", {}, PROBLEM, "too old"),
        ("22.05.8", {"mechanism": "rewrite-limit"}, OK, "22.05.8"),
        ("22.05.8", {"mode": "observe"}, OK, "22.05.8"),
        ("22.05.8", {}, PROBLEM, "no soft limit"),
        ("23.11.0-rc1", {}, WARNING, "head of the queue"),
        ("25.05.3", {}, WARNING, "head of the queue"),
        ("25.05.4", {}, OK, "25.05.4"),
        ("26.05.5", {}, OK, "26.05.5"),
    ],
)
def test_a_release_too_old_for_the_mechanism_is_a_problem(
    version: str, hook: dict[str, Any], health: Health, words: str
) -> None:
    came_out(doctor_slurm.release(facts({"SLURM_VERSION": version}, **hook)), health, words)


@pytest.mark.parametrize(
    ("clock", "health", "words"),
    [
        (NOW - 60, OK, "60 s"),
        (NOW + 61, WARNING, "61 s"),
        (NOW - 3600, WARNING, "3600 s"),
        (NOW + 3601, PROBLEM, "from the future"),
        (None, WARNING, "does not tell"),
    ],
)
def test_a_clock_that_is_off_is_warned_of(clock: int | None, health: Health, words: str) -> None:
    came_out(doctor_slurm.clock(facts(clock=clock), NOW), health, words)


@pytest.mark.parametrize(
    ("kind", "health"), [("sched/backfill", OK), ("sched/builtin", PROBLEM), ("", PROBLEM)]
)
def test_a_scheduler_other_than_backfill_is_a_problem(kind: str, health: Health) -> None:
    came_out(doctor_slurm.scheduler(facts({"SchedulerType": kind})), health, kind)


@pytest.mark.parametrize(
    ("version", "parameters", "hook", "health", "words"),
    [
        ("25.05.4", SOFT, {}, OK, "is set"),
        ("25.05.4", " Time_Min_As_Soft_Limit ", {}, OK, "is set"),
        ("25.05.4", "bf_interval=1", {}, PROBLEM, "no job is planned"),
        ("25.05.4", "time_min_as_soft_limits", {}, PROBLEM, "no job is planned"),
        ("25.05.4", "", {"mode": "observe"}, WARNING, "lacks"),
        ("22.05.8", "", {}, WARNING, "observe or advise"),
        ("22.05.8", "", {"mechanism": "rewrite-limit"}, OK, "not needed"),
    ],
)
def test_a_missing_soft_limit_is_found(
    version: str, parameters: str, hook: dict[str, Any], health: Health, words: str
) -> None:
    found = facts({"SLURM_VERSION": version, "SchedulerParameters": parameters}, **hook)
    came_out(doctor_slurm.soft_limit(found), health, words)


@pytest.mark.parametrize(
    ("hook", "health", "words"),
    [
        ({}, WARNING, "27 to 42% longer"),
        ({"mechanism": "rewrite-limit"}, OK, "enforce"),
        ({"mode": "observe"}, OK, "observe"),
        ({"mode": "advise"}, OK, "advise"),
    ],
)
def test_enforce_is_told_to_lengthen_waits(
    hook: dict[str, Any], health: Health, words: str
) -> None:
    finding = doctor_slurm.waits(facts(**hook))
    came_out(finding, health, words)
    assert ('queue_order.order = "auto"' in finding.remedy) is (health is WARNING)


@pytest.mark.parametrize(
    ("plugins", "missing", "health", "words"),
    [
        ("lua", "", OK, "JobSubmitPlugins=lua"),
        ("pbs,lua", "", OK, "JobSubmitPlugins=pbs,lua"),
        ("pbs", "", PROBLEM, "lacks lua"),
        ("", "no job_submit_lua.so", PROBLEM, "lacks lua"),
        ("lua", "no job_submit_lua.so", WARNING, "no job_submit_lua.so"),
    ],
)
def test_a_missing_lua_plugin_is_found_with_its_remedy(
    plugins: str, missing: str, health: Health, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_slurm, "missing_package", lambda folders: missing)
    finding = doctor_slurm.lua_plugin(facts({"JobSubmitPlugins": plugins}))
    came_out(finding, health, words)
    if health is PROBLEM:
        assert finding.remedy == (missing or "foretime install slurm --yes")


def test_a_script_that_does_not_call_the_hook_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, off = "/t/foretime.table", "/t/off"
    found = facts(folder=tmp_path, table=table, disable_file=off)
    path = tmp_path / "job_submit.lua"
    came_out(doctor_slurm.script(found), PROBLEM, "does not call the hook")
    path.write_text(f'-- require("foretime").attach {{ "{table}", "{off}" }}\n')
    came_out(doctor_slurm.script(found), PROBLEM, "does not call the hook")
    path.write_text(ready_made(tmp_path, "/t/other.table", off))
    came_out(doctor_slurm.script(found), PROBLEM, "(table.path)")
    path.write_text(ready_made(tmp_path, table, "/t/on"))
    came_out(doctor_slurm.script(found), PROBLEM, "(hook.disable_file)")
    path.write_text(ready_made(tmp_path, table, off))
    came_out(doctor_slurm.script(found), OK, "calls the hook")

    def refuse(library: str, *_: object) -> None:
        assert library == "liblua"
        raise InputError("it does not load; mend it")

    monkeypatch.setattr(doctor_slurm, "plugin_of", lambda folders: Path("job_submit_lua.so"))
    monkeypatch.setattr(doctor_slurm, "lua_library", lambda plugin: "liblua")
    monkeypatch.setattr(doctor_slurm, "check_script", refuse)
    (diagnosis,) = examine([("job_submit.lua", lambda: doctor_slurm.script(found))])
    assert diagnosis.finding == Finding(PROBLEM, "it does not load", "mend it")


def test_a_module_of_another_release_is_warned_of(tmp_path: Path) -> None:
    found, path = facts(folder=tmp_path), tmp_path / "foretime.lua"
    came_out(doctor_slurm.module(found), PROBLEM, "is not there")
    shipped = plugin_file("slurm/foretime.lua").read_bytes()
    path.write_bytes(shipped + b"\n")
    came_out(doctor_slurm.module(found), WARNING, "not this release's")
    path.write_bytes(shipped)
    came_out(doctor_slurm.module(found), OK, "this release's")


@pytest.mark.parametrize("key", ["PrologSlurmctld", "PrologSlurmctld[0]"])
def test_a_prolog_that_cannot_raise_limits_is_a_problem(tmp_path: Path, key: str) -> None:
    path = tmp_path / "prolog_slurmctld"

    def look(value: str, mechanism: str = "rewrite-limit") -> Finding:
        return doctor_slurm.prolog(facts({key: value}, folder=tmp_path, mechanism=mechanism))

    came_out(look("", "slurm-soft-limit"), OK, "not needed")
    came_out(look(""), PROBLEM, "not set: no job is planned")
    came_out(look("/site/prolog"), PROBLEM, "/site/prolog: no job is planned")
    path.write_text("#!/bin/sh\n")
    came_out(look(str(path)), WARNING, "not this release's")
    path.write_bytes(plugin_file("slurm/prolog_slurmctld").read_bytes())
    path.chmod(0o644)
    came_out(look(str(path)), PROBLEM, "can't be run")
    path.chmod(0o755)
    came_out(look(str(path)), OK, str(path))


@pytest.mark.parametrize(
    ("conf_age_s", "script_age_s", "health"),
    [(-1, -5, WARNING), (-5, 0, OK), (0, -5, OK), (5, 5, OK)],
)
def test_a_prolog_that_slurmctld_may_not_have_begun_with(
    tmp_path: Path, conf_age_s: int, script_age_s: int, health: Health
) -> None:
    path, conf = tmp_path / "prolog_slurmctld", tmp_path / "slurm.conf"
    path.write_bytes(plugin_file("slurm/prolog_slurmctld").read_bytes())
    path.chmod(0o755)
    # Nobody can set when a file was changed. Slurm tells its start in whole seconds.
    changed = {path: NOW - script_age_s + 0.9, conf: NOW - conf_age_s + 0.9}

    def look(began: str) -> Finding:
        told = {"PrologSlurmctld": str(path), "BOOT_TIME": began}
        real = Path.stat

        def stat_of(place: Path, **more: Any) -> Any:
            if place in changed:
                return SimpleNamespace(st_ctime=changed[place])
            return real(place, **more)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Path, "stat", stat_of)
            return doctor_slurm.prolog(facts(told, folder=tmp_path, mechanism="rewrite-limit"))

    came_out(look(str(NOW)), health, "has not started since" if health is WARNING else str(path))
    came_out(look("Unknown"), OK, str(path))


class Places:
    """Stands for ``Path.stat`` of the table and its folders, whoever runs the tests."""

    def __init__(
        self, table: Path, table_mode: int, folder_mode: int, owner: int, group: int
    ) -> None:
        self.table, self.owner, self.group = table, owner, group
        self.modes = {table: table_mode, table.parent: folder_mode}

    def stat(self, path: Path) -> SimpleNamespace:
        ours = path in self.modes
        return SimpleNamespace(
            st_mode=self.modes.get(path, 0o755),
            st_uid=self.owner if ours else 0,
            st_gid=self.group if ours else 0,
        )


@pytest.mark.parametrize(
    ("uid", "group", "table_mode", "folder_mode", "health", "words"),
    [
        (0, 5, 0o600, 0o700, OK, "can open"),  # root may anything
        (7, 5, 0o600, 0o700, OK, "can open"),  # its own
        (7, 5, 0o060, 0o070, PROBLEM, "can't get through"),  # and its own bits count alone
        (8, 9, 0o660, 0o750, OK, "can open"),  # by its group
        (8, 9, 0o640, 0o750, WARNING, "not open it for writing"),
        (8, 9, 0o600, 0o750, PROBLEM, "can't read"),
        (8, 9, 0o660, 0o740, PROBLEM, "can't get through"),
        (8, 6, 0o660, 0o750, OK, "can open"),  # by a group that it was added to
        (8, 5, 0o664, 0o755, WARNING, "not open it for writing"),  # as anybody
        (8, 5, 0o660, 0o755, PROBLEM, "can't read"),
        (8, 5, 0o666, 0o750, PROBLEM, "can't get through"),
    ],
)
def test_a_table_that_slurmctld_cannot_read_is_a_problem(
    uid: int,
    group: int,
    table_mode: int,
    folder_mode: int,
    health: Health,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Path("/t/foretime.table")
    places = Places(table, table_mode, folder_mode, owner=7, group=9)
    entry = SimpleNamespace(pw_uid=uid, pw_gid=group)
    monkeypatch.setattr(pwd, "getpwnam", lambda name: {"slurm": entry}[name])
    # A group that it was added to counts like its first one.
    added = [SimpleNamespace(gr_gid=9, gr_mem=["slurm"]), SimpleNamespace(gr_gid=4, gr_mem=[])]
    monkeypatch.setattr(grp, "getgrall", lambda: added if group == 6 else [])
    found = facts({"SlurmUser": "slurm(64030)"}, table=str(table))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", lambda path, **_: places.stat(path))
        patched.setattr(Path, "resolve", lambda path, **_: path)
        finding = doctor_slurm.readable_for_slurmctld(found)
    came_out(finding, health, words)


def test_without_slurms_user_or_a_table_it_says_what_is_missing(tmp_path: Path) -> None:
    user = {"SlurmUser": f"{pwd.getpwuid(os.getuid()).pw_name}({os.getuid()})"}
    missing = facts(user, table=str(tmp_path / "none"))
    came_out(doctor_slurm.readable_for_slurmctld(missing), PROBLEM, "No such file")
    nobody = facts({"SlurmUser": "no-such-user(99999)"})
    came_out(doctor_slurm.readable_for_slurmctld(nobody), WARNING, "'no-such-user'")


def test_a_disable_file_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "off"
    came_out(doctor_slurm.disable_file(path), OK, "does not exist")
    path.symlink_to("nowhere")  # it switches off, too
    came_out(doctor_slurm.disable_file(path), WARNING, "no job is planned")


def test_a_store_that_others_can_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    came_out(doctor_slurm.store(path), PROBLEM, "No such file")
    path.touch(0o600)
    monkeypatch.setattr(doctor_slurm, "local_file_system", lambda *_: Finding(OK, "local"))
    came_out(doctor_slurm.store(path), OK, "0 MiB")
    for bit in (stat.S_IRGRP, stat.S_IWGRP, stat.S_IROTH, stat.S_IWOTH):
        path.chmod(0o600 | bit)
        came_out(doctor_slurm.store(path), WARNING, "others may open")
    path.chmod(0o600)
    remote = Finding(WARNING, f"{path} is on /t (nfs4): if that hangs", "a local disk")
    monkeypatch.setattr(doctor_slurm, "local_file_system", lambda *_: remote)
    came_out(doctor_slurm.store(path), WARNING, "(nfs4)")
    full = SimpleNamespace(free=200 * 2**20 - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: full)
    came_out(doctor_slurm.store(path), WARNING, "199 MiB are free")


Answer = Callable[[dict[str, Any] | DaemonError], list[dict[str, Any]]]


@pytest.fixture
def daemon_says(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Answer for the daemon; gives the questions that it was asked."""

    def answer(reply: dict[str, Any] | DaemonError) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def ask(_: SiteDaemon, path: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
            given = {name: value for name, value in (question or {}).items() if value is not None}
            asked.append({"path": path, **given})
            if isinstance(reply, DaemonError):
                raise reply
            return reply

        monkeypatch.setattr(SiteDaemon, "ask", ask)
        return asked

    return answer


HEALTHY = {
    "last_error": None,
    "mode": "enforce",
    "mode_reason": "",
    "finished_jobs": 12,
    "pause_s": 60,
    "pause_reason": "",
}


@pytest.mark.parametrize(
    ("reply", "health", "words"),
    [
        ({}, OK, "12 finished jobs learned, mode enforce"),
        ({"last_error": "sacct failed"}, WARNING, "sacct failed"),
        ({"mode": "observe", "mode_reason": "the breaker"}, WARNING, "enforce: the breaker"),
        ({"mode": "observe"}, WARNING, "not read these settings"),
        ({"mode": None}, OK, "12 finished"),
        (
            {"pause_s": 120, "pause_reason": "slurmctld serves 70 requests at once"},
            WARNING,
            "every 120 s, not every 60 s: slurmctld serves 70",
        ),
        ({"pause_s": 61}, WARNING, "every 61 s, not every 60 s: it has not read these settings"),
        (DaemonError("no daemon answers; start it"), PROBLEM, "no daemon answers"),
        (DaemonError("it failed"), PROBLEM, "it failed"),
    ],
)
def test_a_daemon_that_is_not_well_is_found(
    reply: dict[str, Any] | DaemonError, health: Health, words: str, daemon_says: Answer
) -> None:
    daemon_says(reply if isinstance(reply, DaemonError) else HEALTHY | reply)
    came_out(doctor_daemon.daemon(facts().settings), health, words)


def decided(planned: int, unplanned: int, left: int = 0) -> dict[str, Any]:
    actions = ["planned"] * planned + ["unplanned"] * unplanned + ["left"] * left
    return {"decisions": [{"job_id": str(at), "action": one} for at, one in enumerate(actions)]}


@pytest.mark.parametrize(
    ("reply", "health", "words"),
    [
        (decided(0, 0, 9), OK, "0 jobs planned"),
        (decided(3, 3), OK, "3 jobs planned"),
        (decided(0, 1), PROBLEM, "none was"),
        (decided(3, 7), WARNING, "such as 3, 4, 5, 6, 7; 3 were"),
        (DaemonError("no daemon answers; start it"), WARNING, "can't be told: no daemon"),
    ],
)
def test_a_hook_that_reaches_no_job_is_found(
    reply: dict[str, Any] | DaemonError, health: Health, words: str, daemon_says: Answer
) -> None:
    asked = daemon_says(reply)
    came_out(doctor_slurm.hook_reached(facts().settings, NOW), health, words)
    assert asked == [{"path": "/v1/decisions", "since": NOW - 86_400, "limit": 10_000}]
    came_out(doctor_slurm.hook_reached(facts(mode="observe").settings, NOW), OK, "mode observe")


def waiting(job_id: str, **more: Any) -> QueuedJob:
    request = JobRequest(job_id, "ann", "p", 1, 3600, NOW - 50, "main")
    return QueuedJob(request, **{"state": QueueState.PENDING, **more})


def test_jobs_with_a_users_own_time_min_are_told_of() -> None:
    ours = waiting("1", time_min=720, admin_comment="foretime:treq=60,tmin=12")
    standing_in = waiting("2", time_min=720, admin_comment="foretime:treq=60,tmin=12,own=20")
    theirs = waiting("3", time_min=1200)
    harmless = (ours, waiting("4"), waiting("5", time_min=3600))
    running = waiting("6", time_min=1200, state=QueueState.RUNNING)
    all_jobs = (*harmless, running, standing_in, theirs)

    def look(jobs: tuple[QueuedJob, ...], parameters: str = SOFT) -> Finding:
        return doctor_slurm.users_time_min(facts({"SchedulerParameters": parameters}, jobs=jobs))

    came_out(look(all_jobs, ""), OK, "no soft limit")
    came_out(look((*harmless, running)), OK, "no waiting job")
    came_out(look(all_jobs), WARNING, "2 waiting jobs: 2, 3;")
    many = tuple(waiting(str(at), time_min=60) for at in range(9))
    came_out(look(many), WARNING, "9 waiting jobs: 0, 1, 2, 3, 4 and more;")


def test_a_slurmctld_that_does_not_answer_is_asked_and_told_of_once(tmp_path: Path) -> None:
    controller = FakeController(fault=SchedulerError("slurmctld does not answer; start it"))
    settings = facts(disable_file=str(tmp_path / "off"), table=str(tmp_path / "table")).settings
    found = examine(slurm_checks(settings, controller, NOW, conf=tmp_path / "slurm.conf"))
    told = [one for one in found if one.finding.message == "slurmctld does not answer"]
    assert [one.name for one in told] == ["Slurm release"]
    assert (told[0].finding.health, told[0].finding.remedy) == (PROBLEM, "start it")
    assert controller.asked == 1


def test_a_slurm_conf_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["doctor", "--conf", str(tmp_path / "none.conf")])
    assert "none.conf: there is no such file; name slurm.conf" in str(refused.exception)
