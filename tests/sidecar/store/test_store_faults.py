"""A full disk, a lock, a damaged file: a clear error, the old table stays, and then it goes on."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError, StateError
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import (
    AccuracySection,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import read_table

from tests.support.processes.roots_rights import without_roots_rights

Record = Callable[..., FinishedRecord]
Connect = Callable[..., sqlite3.Connection]
START = 1_000_000


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection that a store opens; they wait for a lock only briefly."""
    opened: list[sqlite3.Connection] = []
    connect: Connect = sqlite3.connect

    def recorded(path: str, timeout: float = 5, **options: Any) -> sqlite3.Connection:
        connection = connect(path, timeout=min(timeout, 0.05), **options)
        if path != ":memory:":
            opened.append(connection)
        return connection

    monkeypatch.setattr("foretime_sidecar.store.store.sqlite3.connect", recorded)
    return opened


@pytest.fixture
def running(tmp_path: Path, scheduler: Any, record: Record) -> Iterator[Sidecar]:
    """A sidecar that has published its first table."""
    settings = Settings(
        scheduler=SchedulerSettings(history_days=1),
        accuracy=AccuracySection(threshold=2),
        table=TableSettings(path=str(tmp_path / "table"), publish_interval_s=1),
        store=StoreSettings(path=str(tmp_path / "store")),
    )
    store = Store(tmp_path / "store")
    sidecar = Sidecar(settings, scheduler, store)
    scheduler.finished = [record(number) for number in range(10)]
    assert sidecar.poll(START + 100).learned == 10
    yield sidecar
    with contextlib.suppress(StateError):
        store.close()


@contextlib.contextmanager
def _full(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    yield "database or disk is full; make room"
    connection.execute("PRAGMA max_page_count = 1000000")


@contextlib.contextmanager
def _no_larger_files(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield "disk I/O error; check the file and its file system"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def _locked(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    yield "database is locked; another process holds it"
    other.rollback()
    other.close()


@contextlib.contextmanager
def _read_only(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    connection.execute("PRAGMA query_only = 1")
    yield "readonly database; check that its folder exists and that foretime may write"
    connection.execute("PRAGMA query_only = 0")


@pytest.mark.parametrize("fault", [_full, _no_larger_files, _locked, _read_only])
def test_the_old_table_stays_and_it_goes_on_when_the_fault_is_gone(
    fault: Callable[[sqlite3.Connection, Path], contextlib.AbstractContextManager[str]],
    connections: list[sqlite3.Connection],
    running: Sidecar,
    scheduler: Any,
    record: Record,
    tmp_path: Path,
) -> None:
    table = (tmp_path / "table").read_bytes()
    scheduler.finished += [record(number) for number in range(10, 2000)]
    with fault(connections[0], tmp_path / "store") as said:
        for later in (30_000, 30_060):
            with pytest.raises(StateError, match="store: can't store finished jobs: .*" + said):
                running.poll(START + later)
        assert (tmp_path / "table").read_bytes() == table
        assert running.progress.finished_jobs == 10
    result = running.poll(START + 30_120)
    assert (result.learned, result.generation) == (1990, 2)
    assert read_table(tmp_path / "table").generation == 2
    restarted = Sidecar(running.settings, scheduler, running.store)
    restarted.start(START + 30_180)
    assert restarted.progress.finished_jobs == 2000
    assert restarted.poll(START + 30_180).learned == 0


def test_a_table_that_cannot_be_written_is_written_later(
    running: Sidecar, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    table = (tmp_path / "table").read_bytes()
    (tmp_path / "table.new").mkdir()  # nobody can make a file of that name
    scheduler.finished += [record(number, runtime=1800) for number in range(10, 30)]
    for later in (400, 460):
        with pytest.raises(StateError, match=r"table: can't write the table: .*goes on with"):
            running.poll(START + later)
    assert (tmp_path / "table").read_bytes() == table
    assert running.store.finished_count() == 30, "what was read is not lost"
    (tmp_path / "table.new").rmdir()
    generation = running.poll(START + 520).generation
    assert generation is not None
    assert generation > 2, "numbers of tables that failed are not used again"
    assert read_table(tmp_path / "table").rows != ()


def test_a_silent_scheduler_changes_nothing_and_is_asked_again(
    running: Sidecar, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    table = (tmp_path / "table").read_bytes()
    scheduler.finished += [record(10)]
    scheduler.fault = SchedulerError("no answer")
    with pytest.raises(SchedulerError, match="no answer"):
        running.poll(START + 400)
    assert (tmp_path / "table").read_bytes() == table
    scheduler.fault = None
    assert running.poll(START + 460).learned == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"this is not a database, but long enough to be looked at" * 100, "not a database"),
        (b"SQLite format 3\x00" + bytes(4000), "not a database|malformed"),
    ],
)
def test_a_file_that_is_no_database_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(content)
    with pytest.raises(StateError, match=rf"store: can't open: .*({said}); it is damaged: move it"):
        Store(tmp_path / "store")
    assert (tmp_path / "store").read_bytes() == content


def test_a_damaged_database_is_named(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "store"
    store = Store(path)
    store.add_finished([record(number) for number in range(2000)], Cursor(1))
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    path.write_bytes(content)
    with (
        pytest.raises(StateError, match=r"store: can't .*malformed.*; it is damaged"),
        contextlib.closing(Store(path)) as damaged,
    ):
        list(damaged.finished_jobs())


@pytest.mark.parametrize("place", ["nowhere/store", "."])
def test_a_place_that_cannot_hold_it_is_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"can't open: .*; check that its folder exists"):
        Store(tmp_path / place)


def test_a_file_that_may_not_be_written_is_named(folder: Path) -> None:
    path = folder / "store"
    Store(path).close()
    path.chmod(0o400)
    with (
        without_roots_rights(path),
        pytest.raises(StateError, match="that foretime may write there"),
    ):
        Store(path)
