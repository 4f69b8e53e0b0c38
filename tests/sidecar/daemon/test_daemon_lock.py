"""A second daemon keeps away from the first one's store and table."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sidecar.daemon.daemon_lock import DaemonLock
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import read_table
from foretime_sidecar.web.server import Daemon

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
FORETIME = "from foretime_sidecar.cli import main; main()"
Start = Callable[..., subprocess.Popen[str]]
_PATIENCE_S = 60


def settings_of(folder: Path, store: str = "store", table: str = "table") -> Settings:
    return Settings.model_validate(
        {"store": {"path": str(folder / store)}, "table": {"path": str(folder / table)}}
    )


# -- as real processes -----------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path: Path, repository: Path) -> Iterator[Start]:
    """Start `foretime serve` on a store and a table, each on a socket of its own."""
    recorded = repository / "tests/assets/slurm/22.05"
    (tmp_path / "commands").mkdir()
    for name, script in {
        "squeue": f"cat {recorded}/squeue.json",
        "sacct": f'[ ! -e "{tmp_path}/hang" ] || exec sleep 600\ncat {recorded}/sacct.json',
        "sinfo": f"cat {recorded}/sinfo.txt",
        "sdiag": f"cat {recorded}/sdiag.txt",
        "scontrol": f"cat {recorded}/scontrol-$2.txt",
        "sacctmgr": "true",
    }.items():
        (tmp_path / "commands" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "commands" / name).chmod(0o755)
    with ExitStack() as processes:
        count = 0

        def start(store: str = "store", table: str = "table") -> subprocess.Popen[str]:
            nonlocal count
            count += 1
            settings = tmp_path / f"{count}.toml"
            settings.write_text(
                f'[scheduler]\ncommands_dir = "{tmp_path}/commands"\npoll_interval_s = 1\n'
                "history_days = 1\nattempts = 1\n"
                f'[store]\npath = "{tmp_path}/{store}"\n'
                f'[table]\npath = "{tmp_path}/{table}"\npublish_interval_s = 1\n'
                f'[api]\nlisten = "unix:{tmp_path}/{count}.sock"\n'
            )
            command = [sys.executable, "-c", FORETIME, "serve", "--settings", str(settings)]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            processes.callback(process.communicate)
            processes.callback(process.kill)
            return process

        yield start


def until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.mark.parametrize(
    ("store", "table", "shared"),
    [("store", "table", "table"), ("store", "other", "store"), ("other", "table", "table")],
)
def test_a_second_daemon_is_told_what_to_do_and_changes_nothing(
    start: Start, tmp_path: Path, store: str, table: str, shared: str
) -> None:
    first = start()
    until(lambda: (tmp_path / "table").exists(), first)
    before = set(tmp_path.iterdir())
    second = start(store=store, table=table)
    _, said = second.communicate(timeout=_PATIENCE_S)
    assert second.returncode == 2
    assert said == (
        f"foretime: {shared}.path = '{tmp_path}/{shared}': another foretime serve (process "
        f"{first.pid}) uses it; stop that one first (systemctl stop foretime), or give this one a "
        "store and a table of its own (store.path, table.path)\n"
    )
    new = {path.name for path in set(tmp_path.iterdir()) - before}
    assert new <= {"2.toml", "store-wal", "store-shm", "other.lock", "table.alive"}
    assert first.poll() is None
    assert answers(tmp_path / "1.sock")
    assert read_table(tmp_path / "table").generation == 1


def test_a_daemon_that_was_killed_leaves_its_place_at_once(start: Start, tmp_path: Path) -> None:
    """Even while a command that it ran still hangs."""
    (tmp_path / "hang").touch()
    first = start()
    hanging: list[int] = []

    def hangs() -> bool:
        with suppress(psutil.NoSuchProcess):  # one that has ended just now
            children = psutil.Process(first.pid).children()
            hanging[:] = [each.pid for each in children if "sleep" in each.cmdline()]
        return bool(hanging)

    until(hangs, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (tmp_path / "hang").unlink()
    try:
        assert any(Path(f"/proc/{pid}").exists() for pid in hanging)
        until(lambda: (tmp_path / "table").exists(), start())
    finally:
        for pid in hanging:
            os.kill(pid, signal.SIGKILL)


def test_two_daemons_with_nothing_in_common(start: Start, tmp_path: Path) -> None:
    first, second = start(), start(store="store-2", table="table-2")
    until(lambda: (tmp_path / "table").exists(), first)
    until(lambda: (tmp_path / "table-2").exists(), second)


# -- in this process -------------------------------------------------------------------------------


def refused(settings: Settings) -> str:
    with pytest.raises(InputError) as caught:
        DaemonLock(settings)
    return str(caught.value)


def test_however_a_path_is_spelled_it_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "folder/linked-store").symlink_to("store")
    lock = DaemonLock(settings_of(tmp_path / "folder"))
    free = tmp_path / "free"
    for store, table, shared in (
        (f"{tmp_path}/folder/../folder/store", str(free), "store"),
        (str(tmp_path / "link/store"), str(free), "store"),
        (str(tmp_path / "link/linked-store"), str(free), "store"),
        (str(free), f"{tmp_path}/link/table", "table"),
        (str(free), f"{tmp_path}/folder//./table", "table"),
    ):
        settings = Settings.model_validate({"store": {"path": store}, "table": {"path": table}})
        assert refused(settings).startswith(f"{shared}.path = ")
        assert f"(process {os.getpid()})" in refused(settings)
    # A table is put in the place of a link, which is another place.
    (tmp_path / "folder/linked-table").symlink_to("table")
    other = settings_of(tmp_path / "folder", "other-store", "linked-table")
    DaemonLock(other).release()
    lock.release()
    DaemonLock(settings_of(tmp_path / "folder")).release()


def test_what_is_refused_in_part_is_not_held(tmp_path: Path) -> None:
    first = DaemonLock(settings_of(tmp_path))
    refused(settings_of(tmp_path, table="free-table"))
    DaemonLock(settings_of(tmp_path, "free-store", "free-table")).release()
    first.release()


def test_a_daemon_that_does_not_start_holds_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    (tmp_path / "store").write_text("no database")
    listening = Settings.model_validate(
        settings.model_dump() | {"api": {"listen": f"unix:{tmp_path}/s"}}
    )
    with pytest.raises(StateError, match="not a database"):
        Daemon(listening)
    DaemonLock(settings).release()


def test_a_store_in_memory_is_nobody_elses(tmp_path: Path) -> None:
    def in_memory(table: str) -> Settings:
        return Settings.model_validate(
            {"store": {"path": ":memory:"}, "table": {"path": str(tmp_path / table)}}
        )

    with_one, with_other = DaemonLock(in_memory("one")), DaemonLock(in_memory("other"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.lock", "other.lock"]
    with_one.release()
    with_other.release()


def test_a_lock_that_is_removed_meanwhile_locks_nobody_out_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    removed: list[int] = []

    def remove_first(descriptor: int, how: int) -> None:
        if not removed:
            removed.append((tmp_path / "table.lock").stat().st_ino)
            (tmp_path / "table.lock").unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    lock = DaemonLock(settings_of(tmp_path))
    assert removed
    assert f"(process {os.getpid()})" in refused(settings_of(tmp_path))
    lock.release()


@pytest.mark.parametrize("why", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_does_not_keep_the_daemon_from_its_work(
    why: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(fcntl, "flock", flock)
    DaemonLock(settings_of(tmp_path)).release()
    assert caplog.text.count("a second foretime serve would not be noticed") == 2


def test_places_that_can_not_be_locked(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="No such file or directory; check that the folder"):
        DaemonLock(settings_of(tmp_path, table="none/table"))
    (tmp_path / "table.lock").symlink_to("elsewhere")
    with pytest.raises(StateError, match=r"table\.lock: .*check"):
        DaemonLock(settings_of(tmp_path))
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "table.lock").unlink()
    os.mkfifo(tmp_path / "table.lock")
    with pytest.raises(StateError, match="is no file; remove it"):
        DaemonLock(settings_of(tmp_path))


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@needs_root
def test_another_users_daemon_is_kept_away_and_told_why() -> None:
    with TemporaryDirectory() as shared:  # pytest's own folders are for their owner only
        Path(shared).chmod(0o777)
        lock = DaemonLock(settings_of(Path(shared)))
        with as_user(65534):
            said = refused(settings_of(Path(shared)))
        lock.release()
    assert said == (
        f"table.path = '{shared}/table': can't open its lock {shared}/table.lock, which belongs to "
        "user 0: Permission denied; run foretime serve as the user of the other files there, or "
        "remove the lock if no foretime serve runs"
    )


@needs_root
def test_root_does_not_lock_the_daemons_own_user_out(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    DaemonLock(settings_of(tmp_path)).release()
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {65534}
