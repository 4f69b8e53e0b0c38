"""Changes over PBS's library, where the library is not what it should be: qalter makes them.

tests/pbs/test_job_changes.py changes jobs of a live server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from foretime_sidecar.clients.pbs import job_changes
from foretime_sidecar.clients.pbs.job_changes import (
    ConnectedChanges,
    QalterProcesses,
    ResourceChanges,
    pbs_library,
)
from foretime_sidecar.clients.pbs.pbs_conf import pbs_conf
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.schedulers.pbs import pbs_client
from foretime_sidecar.settings.settings import SchedulerSettings

CHANGES = {f"{number}.pbs01": {"soft_walltime": str(60 + number)} for number in range(450)}


class Qalter:
    def __init__(self) -> None:
        self.changed: dict[str, Mapping[str, str]] = {}

    def __call__(self, changes: ResourceChanges) -> list[str]:
        self.changed |= changes
        return ["qalter refused one"]


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Put another script in the place of the one that loads the library."""

    def put(script: str) -> None:
        (tmp_path / "child.py").write_text(f"import json, os, sys, time\n{script}\n")
        monkeypatch.setattr(job_changes, "_CHILD", tmp_path / "child.py")

    return put


@pytest.mark.parametrize("library", ["/nowhere/libpbs.so.0", __file__, "libc.so.6"])
def test_what_is_no_library_of_pbs_is_told_once_and_not_used(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    qalter = Qalter()
    change = ConnectedChanges(Path(library), qalter)
    assert change(CHANGES) == ["qalter refused one"] * 3  # 200 jobs at a time
    assert qalter.changed == CHANGES
    (told,) = caplog.messages
    assert told.startswith(f"{library} is not used to change jobs, but a qalter for each")


def test_a_crash_of_the_library_takes_nothing_down_and_qalter_makes_all_changes(
    child: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    child(
        "print(json.dumps({'job': '0.pbs01', 'error': 'no'}), flush=True)\nos.kill(os.getpid(), 11)"
    )
    qalter = Qalter()
    change = ConnectedChanges(Path("libpbs.so.0"), qalter)
    assert change({"0.pbs01": {"soft_walltime": "60"}}) == ["qalter refused one"]
    assert list(qalter.changed) == ["0.pbs01"]
    assert "exit code -11" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


def test_a_server_that_does_not_answer_is_told_and_asked_again_at_the_next_change(
    child: Callable[[str], None],
) -> None:
    child("time.sleep(1000)")
    qalter = Qalter()
    change = ConnectedChanges(Path("libpbs.so.0"), qalter, timeout_s=1)
    said = ["jobs were not changed within 1 s; check pbs_server"]
    assert change({"0.pbs01": {"soft_walltime": "60"}}) == said
    child("print(json.dumps({'error': 'can not connect'}))")
    said = ["pbs_server does not change jobs: can not connect; check pbs_server"]
    assert change({"0.pbs01": {"soft_walltime": "60"}}) == said
    assert qalter.changed == {}


def test_the_library_is_beside_the_commands_or_where_pbs_conf_says(tmp_path: Path) -> None:
    conf = tmp_path / "pbs.conf"
    conf.write_text(f"# PBS_EXEC=/no\nPBS_EXEC = {tmp_path}\nPBS_SERVER=pbs01\nPBS_HOME=\n")
    where = {"PBS_CONF_FILE": str(conf)}
    assert pbs_library("", where) is None
    (tmp_path / "lib").mkdir()
    library = tmp_path / "lib/libpbs.so.0"
    library.touch()
    assert pbs_library("", where) == library
    assert pbs_library(str(tmp_path / "bin"), {}) == library
    assert pbs_library("", {"PBS_EXEC": str(tmp_path / "elsewhere"), **where}) is None
    assert pbs_library("", {"PBS_CONF_FILE": str(tmp_path / "none")}) is None
    assert [pbs_conf(name, where) for name in ("PBS_SERVER", "PBS_HOME")] == ["pbs01", None]


def test_the_client_uses_the_library_where_there_is_one(tmp_path: Path) -> None:
    scheduler = SchedulerSettings(kind="pbs", commands_dir=str(tmp_path / "bin"))
    changers = [type(pbs_client(scheduler, RequestTime())._change)]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libpbs.so.0").touch()
    changers.append(type(pbs_client(scheduler, RequestTime())._change))
    assert changers == [QalterProcesses, ConnectedChanges]


def test_qalter_changes_what_is_alike_by_one() -> None:
    ran: list[list[str]] = []
    alike = {f"{number}.pbs01": {"soft_walltime": "60"} for number in range(201)}
    change = QalterProcesses(lambda argv: ran.append(list(argv)))
    assert change({**alike, "x": {"walltime": "9", "soft_walltime": ""}}) == []
    assert [len(argv) for argv in ran] == [203, 4, 4]
    assert ran[2] == ["qalter", "-l", "walltime=9,soft_walltime=", "x"]
