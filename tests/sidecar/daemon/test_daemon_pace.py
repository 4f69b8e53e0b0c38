"""How often the daemon looks at a slow or busy scheduler, and what it says of that."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.daemon.poll_rate import Pause
from foretime_sidecar.safety.heartbeat import heartbeat_path
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import SiteFile
from foretime_sidecar.web.server import Daemon
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.site_file import format_site
from foretime_sim.sites.slurm.site import SlurmSite
from typer.testing import CliRunner

from tests.support.slurm.mock_site import running


@pytest.fixture
def daemon(tmp_path: Path, scheduler: Any) -> Iterator[Daemon]:
    settings = Settings.model_validate(
        {
            "scheduler": {"history_days": 1},
            "store": {"path": str(tmp_path / "store")},
            "table": {"path": str(tmp_path / "table")},
            "api": {"listen": f"unix:{tmp_path}/s"},
        }
    )
    made = Daemon(settings, scheduler)
    yield made
    made.close()


def test_each_change_is_logged_with_its_cause(
    daemon: Daemon, scheduler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for busy, answered_s in ((None, 0), (ControllerLoad(70), 0), (None, 0), (None, 5), (None, 0)):
        scheduler.busy = busy
        daemon.request_time.controller_s += answered_s
        daemon._set_pause()
    longer = "looks at the scheduler are {} s apart now, not 60: "
    again = "looks at the scheduler are 60 s apart again"
    busy_words = "slurmctld serves 70 requests at once (scheduler.busy_server_threads = 64)"
    slow_words = (
        "the scheduler took 5.0 s to answer the last requests, which may take 5% of its time"
    )
    assert [record.getMessage() for record in caplog.records] == [
        longer.format(120) + busy_words,
        again,
        longer.format(100) + slow_words,
        again,
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}, "without --verbose"


def test_a_scheduler_that_does_not_tell_its_load_is_asked_less(
    daemon: Daemon, scheduler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def silent() -> ControllerLoad:
        raise SchedulerError("sdiag failed; check slurmctld")

    scheduler.load = silent
    daemon._set_pause()
    assert daemon.sidecar.pause.seconds == 120
    assert "does not tell how busy it is: sdiag failed; check slurmctld" in caplog.text


def test_the_pause_and_its_reason_are_told(daemon: Daemon) -> None:
    daemon.poll_once()
    client = TestClient(daemon.app, base_url="http://localhost")
    answer = client.get("/healthz").json()
    assert (answer["pause_s"], answer["pause_reason"]) == (60, "")
    assert "foretime_pause_seconds 60.0" in client.get("/metrics").text
    daemon.sidecar.pause = Pause(120, "slurmctld is busy")
    answer = client.get("/healthz").json()
    assert (answer["pause_s"], answer["pause_reason"]) == (120, "slurmctld is busy")
    assert "foretime_pause_seconds 120.0" in client.get("/metrics").text


def test_status_tells_a_longer_pause_and_its_reason(daemon: Daemon, tmp_path: Path) -> None:
    settings = tmp_path / "foretime.toml"
    settings.write_text(to_toml(daemon.settings))
    with running(daemon):
        until = time.monotonic() + 60
        while not daemon._looked_at and time.monotonic() < until:
            time.sleep(0.02)

        def lines() -> list[str]:
            words = ["status", "--settings", str(settings)]
            return CliRunner().invoke(app, words).output.splitlines()

        assert "looks    every 60 s" in lines()
        daemon.sidecar.pause = Pause(120, "slurmctld serves 70 requests at once")
        assert "looks    every 120 s: slurmctld serves 70 requests at once" in lines()


def test_what_is_not_the_controllers_work_leaves_the_pause_as_it_is(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll of 15 s on a busy machine, in a daemon that reads a year of accounting."""
    clock = time.monotonic()
    monkeypatch.setattr("foretime_sidecar.web.server.time.monotonic", lambda: clock)
    learn = daemon.sidecar._learn

    def slow(*arguments: Any) -> int:
        nonlocal clock
        clock += 15
        daemon.request_time.accounting_s += 10
        return learn(*arguments)

    monkeypatch.setattr(daemon.sidecar, "_learn", slow)
    daemon._set_pause()
    daemon.poll_once()
    daemon._set_pause()
    assert daemon.sidecar.pause == Pause(60)


def test_a_slow_slurmdbd_is_asked_less_and_looks_go_on(
    daemon: Daemon,
    scheduler: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = 1000.0
    monkeypatch.setattr("foretime_sidecar.web.server.time.monotonic", lambda: clock)
    finished_since = scheduler.finished_since
    took_s = 5.0

    def slow(*arguments: Any) -> Any:
        daemon.request_time.accounting_s += took_s
        return finished_since(*arguments)

    scheduler.finished_since = slow
    readings = []
    for _ in range(5):
        asked = len(scheduler.asked)
        daemon.poll_once()
        readings.append(len(scheduler.asked) > asked)
        assert daemon.health.last_error == ""
        clock += 60
    assert readings == [True, False, True, False, True], "5 s of every 100"
    (told,) = caplog.records
    assert told.getMessage() == (
        "finished jobs are read every 100 s now, not at each look: slurmdbd took 5.0 s to tell of "
        "the last ones"
    )
    took_s, clock = 0.1, clock + 60
    daemon.poll_once()
    assert caplog.records[-1].getMessage() == "finished jobs are read at each look again"


def test_the_pause_counts_from_the_end_of_a_look(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent slurmdbd does not come on top: the scheduler has rested while it was waited for."""
    clock = 1000.0
    waits: list[float] = []

    class Ending:
        def is_set(self) -> bool:
            return len(waits) == 2

        def wait(self, seconds: float) -> None:
            waits.append(seconds)

    def poll(now: int, *, reads: bool) -> None:
        nonlocal clock
        clock += (40, 250)[len(waits)]

    monkeypatch.setattr("foretime_sidecar.web.server.time.monotonic", lambda: clock)
    monkeypatch.setattr(daemon, "_ending", Ending())
    monkeypatch.setattr(daemon.sidecar, "poll", poll)
    daemon._poll_until_told()
    assert waits == [20, 0]


def test_the_sign_of_life_says_when_the_next_look_is_due(daemon: Daemon) -> None:
    daemon.sidecar.pause = Pause(90, "slurmctld is busy")
    daemon.poll_once()
    sign = heartbeat_path(daemon.settings.table).stat()
    assert sign.st_atime - sign.st_mtime == pytest.approx(90)
    assert sign.st_size == 0


def test_status_tells_as_what_site_forecasts_are_made_or_why_not(
    daemon: Daemon, tmp_path: Path
) -> None:
    settings, file = tmp_path / "foretime.toml", tmp_path / "site.toml"
    settings.write_text(to_toml(daemon.settings))
    site = daemon.sidecar.site = KeptSite(
        SiteFile(str(file)), 900, monotonic=count(0, 1_000).__next__
    )
    with running(daemon):

        def line() -> str:
            site.refresh()
            shown = CliRunner().invoke(app, ["status", "--settings", str(settings)]).output
            return next(text for text in shown.splitlines() if text.startswith("site "))

        assert line().startswith(f"site     {file}: not read yet; the last reading failed: {file}")
        assert line().endswith("; forecasts go by the settings")
        file.write_text(format_site(SlurmSite(Machine.flat(8))))
        assert line().startswith(f"site     {file}: release 26.05, 1 partition, read 0")
        assert line().endswith(" ago")
        site.note_runs("a run of 9,000 jobs takes 8.0 s")
        assert line().endswith("; forecasts do not go by it: a run of 9,000 jobs takes 8.0 s")


@pytest.mark.parametrize(("ended_s", "next_s"), [(0, 60), (3, 60), (30, 60), (50, 80), (90, 120)])
def test_looks_begin_a_pause_apart_with_half_of_it_between_them(
    daemon: Daemon, ended_s: int, next_s: int
) -> None:
    daemon.sidecar.pause = Pause(60)
    daemon._look_began, daemon._looked_at = 1000.0, 1000.0 + ended_s

    assert daemon._next_look() == 1000.0 + next_s


def test_the_pause_after_a_look_is_the_one_that_it_told(daemon: Daemon) -> None:
    waits: list[float] = []

    class Ending(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0)
            self.set()
            return True

    def set_pause() -> None:
        daemon.sidecar.pause = Pause(next(pauses))

    pauses = iter((60, 600))
    daemon._set_pause = set_pause  # type: ignore[method-assign]
    daemon._ending = Ending()
    daemon._poll_until_told()

    assert len(waits) == 1
    assert 30 <= waits[0] <= 60
    assert daemon.sidecar.pause == Pause(600)
