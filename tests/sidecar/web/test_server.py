"""The daemon as a real process on a real socket, asked by real processes of several users."""

from __future__ import annotations

import http.client
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.json import parse_finished
from foretime_sidecar.queue import background_thread
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import parse_listen
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import read_table
from foretime_sidecar.web.connections.listener import Listener
from foretime_sidecar.web.server import Daemon
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy

from tests.support.processes.daemon_process import (
    SERVE,
    ask_as,
    fake_slurm,
    get,
    needs_root,
    wait_for_poll,
    wait_until_it_listens,
    write_settings,
)


def test_sacct_that_finds_nothing_is_an_answer() -> None:
    # As recorded from a live Slurm 22.05.8.
    error = {
        "description": "Nothing found",
        "error_number": 9003,
        "error": "Nothing found with query",
        "source": "slurmdb_jobs_get",
    }
    assert parse_finished({"meta": {}, "errors": [error], "jobs": []}) == []
    with pytest.raises(SchedulerError, match="Unable to parse"):
        parse_finished({"errors": [{"description": "Unable to parse", "error_number": 9000}]})


def history_of(user: str) -> list[FinishedRecord]:
    start = int(time.time()) - 100_000
    return [
        FinishedRecord(
            FinishedJob(
                JobRequest(f"{user}{number}", user, "p", 4, 3600, start + number),
                start + number,
                start + number + 600,
                600,
                Ending.COMPLETED,
            ),
            None,
            "COMPLETED",
        )
        for number in range(60)
    ]


@pytest.fixture
def daemon(folder: Path, repository: Path) -> Iterator[subprocess.Popen[str]]:
    fake_slurm(folder, repository)
    store = Store(folder / "foretime.sqlite")
    store.add_finished([*history_of("nobody"), *history_of("daemon")], Cursor(0))
    store.close()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, "--verbose", "--settings", str(write_settings(folder))],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until_it_listens(folder / "foretime.sock", process)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@needs_root
def test_the_peer_is_who_the_kernel_says(folder: Path, daemon: subprocess.Popen[str]) -> None:
    path = folder / "foretime.sock"
    wait_for_poll(path)
    status, nobody = ask_as(65534, path, "/v1/accuracy")
    assert (status, nobody["user"]) == (200, "nobody")
    assert [row["submissions"] for row in nobody["classes"]] == [60]
    status, other = ask_as(1, path, "/v1/accuracy?user=nobody")
    assert (status, other["error"]["where"]) == (403, "user")
    assert ask_as(1, path, "/v1/accuracy")[1]["user"] == "daemon"
    assert get(path, "/v1/accuracy?user=nobody")[1]["classes"] == nobody["classes"]  # root
    _, forecast = ask_as(65534, path, "/v1/forecast?processors=4&time=60")
    assert forecast["user"] == "nobody"
    assert 600 <= forecast["scheduled_time_s"] < 3600
    assert daemon.poll() is None


def test_it_polls_publishes_and_ends_on_sigterm(
    folder: Path, daemon: subprocess.Popen[str]
) -> None:
    path = folder / "foretime.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    health = wait_for_poll(path)
    assert health["finished_jobs"] > 120
    assert read_table(folder / "foretime.table").generation == 1
    daemon.send_signal(signal.SIGTERM)
    _, said = daemon.communicate(timeout=60)
    assert daemon.returncode == 0
    assert not path.exists()
    assert said.splitlines()[-1] == "INFO ended"
    assert "Traceback" not in said


def test_a_dead_daemons_socket_is_replaced_a_living_ones_is_not(
    folder: Path, daemon: subprocess.Popen[str]
) -> None:
    settings = (folder / "foretime.toml").read_text()
    for name in ("foretime.sqlite", "foretime.table"):
        settings = settings.replace(name, f"other-{name}")
    (folder / "other.toml").write_text(settings)
    second = subprocess.run(
        [sys.executable, "-c", SERVE, "--settings", str(folder / "other.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert second.stderr.startswith(f"foretime: another process listens on {folder}/foretime.sock")
    assert get(folder / "foretime.sock", "/healthz")[0] == 200
    daemon.kill()
    daemon.communicate()
    listener = Listener(ApiSettings(listen=f"unix:{folder}/foretime.sock", socket_mode="0600"))
    assert stat.S_IMODE((folder / "foretime.sock").stat().st_mode) == 0o600
    listener.close()
    assert not (folder / "foretime.sock").exists()


def test_a_successors_socket_is_left_alone(folder: Path) -> None:
    settings = ApiSettings(listen=f"unix:{folder}/foretime.sock")
    first = Listener(settings)
    keep = folder / "keep"  # so that the second can't get the same inode
    (folder / "foretime.sock").rename(keep)
    second = Listener(settings)
    first.close()
    assert (folder / "foretime.sock").exists()
    second.close()
    assert not (folder / "foretime.sock").exists()


def test_a_file_in_the_sockets_place_is_not_removed(folder: Path) -> None:
    precious = folder / "foretime.sock"
    precious.write_text("precious")
    with pytest.raises(InputError, match="no socket; move it"):
        Listener(ApiSettings(listen=f"unix:{precious}"))
    assert precious.read_text() == "precious"


def test_places_that_cannot_be_used(folder: Path) -> None:
    with pytest.raises(StateError, match="check that its folder exists"):
        Listener(ApiSettings(listen=f"unix:{folder}/none/foretime.sock"))
    with pytest.raises(StateError, match="below 108 bytes"):
        Listener(ApiSettings(listen=f"unix:{folder}/{'x' * 120}"))
    taken = Listener(ApiSettings(listen="127.0.0.1:0"))
    taken.socket.listen()
    with pytest.raises(StateError, match="another foretime serve"):
        Listener(ApiSettings(listen=taken.address))
    taken.close()


@pytest.mark.parametrize(
    ("listen", "what"),
    [
        ("unix:foretime.sock", "absolute path"),
        ("0.0.0.0:80", "not a loopback address"),
        ("[::]:80", "not a loopback address"),
        ("example.org:80", "give unix:PATH"),
        ("127.0.0.1", "give unix:PATH"),
        ("127.0.0.1:port", "give unix:PATH"),
        ("127.0.0.1:70000", "at most 65535"),
        ("", "give unix:PATH"),
    ],
)
def test_wrong_places_to_listen_are_refused(listen: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        parse_listen(listen)


def test_a_place_to_listen_is_a_socket_or_a_loopback_address() -> None:
    assert parse_listen("unix:/run/x.sock") == Path("/run/x.sock")
    assert parse_listen("127.0.0.1:8642") == ("127.0.0.1", 8642)
    assert parse_listen("localhost:8642") == ("127.0.0.1", 8642)
    assert parse_listen("[::1]:8642") == ("::1", 8642)


# -- in this process, on the mock Slurm --------------------------------------------------------


class Down:
    """A Slurm that does not answer while ``down`` is set."""

    def __init__(self, slurm: MockSlurm) -> None:
        self.slurm = slurm
        self.down = False

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        if self.down:
            raise SchedulerError(f"{argv[0]} failed; check slurmctld")
        return self.slurm.run(argv, stdin)


def make(folder: Path, grace_s: int = 5, **settings: dict[str, Any]) -> tuple[Daemon, Down]:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, int(time.time()))
    run = Down(slurm)
    sections: dict[str, dict[str, Any]] = {
        "scheduler": {"poll_interval_s": 1, "history_days": 1},
        "store": {"path": f"{folder}/foretime.sqlite"},
        "table": {"path": f"{folder}/foretime.table", "publish_interval_s": 1},
        "api": {"listen": f"unix:{folder}/foretime.sock"},
    }
    for section, values in settings.items():
        sections[section] |= values
    daemon = Daemon(Settings.model_validate(sections), SlurmCommands(run, 0), grace_s=grace_s)
    return daemon, run


def test_a_scheduler_that_fails_is_tried_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    daemon, run = make(folder)
    run.down = True
    daemon.poll_once()
    assert daemon.health.errors == {"scheduler": 2, "state": 0}
    assert "failed; check slurmctld" in daemon.health.last_error
    assert daemon.health.last_error in caplog.text
    assert not (folder / "foretime.table").exists()
    run.down = False
    daemon.poll_once()
    assert daemon.health.last_error == ""
    assert read_table(folder / "foretime.table").generation == 1
    daemon.close()


def test_state_errors_let_the_table_run_out(folder: Path) -> None:
    daemon, run = make(folder)
    daemon.poll_once()
    valid_until = read_table(folder / "foretime.table").valid_until
    daemon.sidecar.store.close()
    run.slurm.submit(Submission("ann", "p", None, 4, 600, 60))
    run.slurm.advance(run.slurm.now + 120)
    daemon.poll_once()
    assert daemon.health.errors["state"] == 1
    assert read_table(folder / "foretime.table").valid_until == valid_until
    # The queue is still looked at, so forecasts go on.
    assert daemon.health.errors["scheduler"] == 0
    daemon._listener.close()


def test_a_table_that_cannot_be_written_does_not_end_the_daemon(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, _ = make(folder)
    with monkeypatch.context() as patch:
        patch.setattr("foretime_sidecar.table.table.LARGEST_TABLE_BYTES", 100)
        daemon.poll_once()
    assert daemon.health.errors == {"scheduler": 0, "state": 1}
    assert "leave out users" in daemon.health.last_error
    daemon.poll_once()
    assert daemon.health.last_error == ""
    assert read_table(folder / "foretime.table").generation == 2
    daemon.close()


def test_over_loopback_nobody_is_known(folder: Path) -> None:
    daemon, _ = make(folder, api={"listen": "127.0.0.1:0"})
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        host, port = daemon.address.split(":")
        deadline = time.monotonic() + 60
        while True:
            connection = http.client.HTTPConnection(host, int(port), timeout=10)
            try:
                connection.request("GET", "/v1/accuracy?user=root")
                reply = connection.getresponse()
                break
            except ConnectionError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            finally:
                connection.close()
        assert reply.status == 403
    finally:
        daemon.end()
        thread.join(30)
    assert not thread.is_alive()


def test_the_first_forecasts_are_made_in_a_hurry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody waits for them; those after are made with all care, but on a busy machine."""
    daemon, _ = make(folder)
    hurries: list[bool] = []

    def work(*, hurried: bool) -> bool:
        hurries.append(hurried)
        return False

    monkeypatch.setattr(daemon.sidecar.waits, "refresh", work)
    for is_busy in (False, False, True):
        monkeypatch.setattr(background_thread, "busy", lambda is_busy=is_busy: is_busy)
        daemon.forecasts.refresh()
    assert hurries == [True, False, True]
    daemon.close()


def test_threads_at_work_share_one_grace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them ends its work in time, and each is waited for at the same time."""
    daemon, _ = make(folder, grace_s=1)
    daemon.sidecar.waits.failures = 1  # or scores of estimators would wait for forecasts
    begun = [threading.Event() for _ in daemon._background]
    leave = threading.Event()
    for thread, began in zip(daemon._background, begun, strict=True):

        def at_work(*, hurried: bool, began: threading.Event = began) -> bool:
            del hurried
            began.set()
            return leave.wait(60) and False

        monkeypatch.setattr(thread._work, "refresh", at_work)
    running = threading.Thread(target=daemon.run)
    running.start()
    try:
        assert len(begun) >= 3
        assert all(each.wait(30) for each in begun)
        told = time.monotonic()
        daemon.end()
        running.join(30)
        took_s = time.monotonic() - told
    finally:
        daemon.end()
        leave.set()
        running.join(30)
    assert took_s < 2  # three would have taken three seconds one after the other
    assert all(thread.has_ended(30) for thread in daemon._background)
    daemon.close()


def test_a_mistake_of_ours_ends_the_daemon_loudly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, _ = make(folder)

    def broken(_: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(daemon.sidecar, "look", broken)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(ZeroDivisionError):
            daemon.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not (folder / "foretime.sock").exists()


def test_a_store_that_cannot_be_opened_frees_the_socket(folder: Path) -> None:
    with pytest.raises(StateError, match="can't open"):
        make(folder, store={"path": f"{folder}/none/foretime.sqlite"})
    assert not (folder / "foretime.sock").exists()
