"""One poll after the other: what is read, learned and published, and when."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Reservation
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode, Table, read_table, write_table

Record = Callable[..., FinishedRecord]
Start = Callable[..., Sidecar]
NOW = 100_000_000
MINUTE = 60


@pytest.fixture
def start(tmp_path: Path, scheduler: Any) -> Iterator[Start]:
    """Start a sidecar on the test's store and table, with sections of settings changed."""

    stores: list[Store] = []

    def start(**sections: dict[str, Any]) -> Sidecar:
        values: dict[str, dict[str, Any]] = {
            "scheduler": {"history_days": 3},
            "accuracy": {"threshold": 2},
        } | sections
        values["table"] = {"path": str(tmp_path / "table")} | sections.get("table", {})
        stores.append(Store(tmp_path / "store"))
        return Sidecar(Settings.model_validate(values), scheduler, stores[-1])

    yield start
    for store in stores:
        store.close()


def _ended(record: Record, ago_s: int, count: int = 3, **changed: Any) -> list[FinishedRecord]:
    first = NOW - ago_s
    return [record(first + n, end_time=first + n, **changed) for n in range(count)]


def test_a_long_absence_is_read_a_day_at_a_time(
    start: Start, scheduler: Any, record: Record
) -> None:
    for days in (3.5, 2.9, 2, 1, 0.1):
        scheduler.finished += _ended(record, int(days * DAY_S))
    sidecar = start()
    result = sidecar.poll(NOW)
    assert result.learned == 12, "history_days = 3, and an overlap of an hour"
    cursors = [cursor.end_time for cursor, _ in scheduler.asked]
    assert cursors[0] == NOW - 3 * DAY_S
    assert all(until - cursor.end_time == DAY_S for cursor, until in scheduler.asked[:-1])
    assert scheduler.asked[-1][1] is None
    scheduler.asked.clear()
    assert sidecar.poll(NOW + MINUTE).learned == 0
    assert len(scheduler.asked) == 1


def test_a_long_absence_keeps_no_look_waiting(
    start: Start, scheduler: Any, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow slurmdbd: each poll stops once a look is due, and the next goes on from there."""
    for days in (2.9, 2, 1, 0.1):
        scheduler.finished += _ended(record, int(days * DAY_S))
    sidecar = start(scheduler={"history_days": 3, "poll_interval_s": 60})
    clock, finished_since = 0.0, scheduler.finished_since

    def slow(*arguments: Any) -> Any:
        nonlocal clock
        clock += 40
        return finished_since(*arguments)

    monkeypatch.setattr("foretime_sidecar.daemon.sidecar.time.monotonic", lambda: clock)
    monkeypatch.setattr(scheduler, "finished_since", slow)
    polls = []
    for later in range(0, 4 * MINUTE, MINUTE):
        began = clock
        polls.append((sidecar.poll(NOW + later).learned, clock - began))
    assert [seconds for _, seconds in polls] == [80, 80, 40, 40]
    learned = [count for count, _ in polls]
    assert (min(learned[:2]) > 0, sum(learned)) == (True, 12), "none twice, and none missed"


def test_what_accounting_learns_of_late_is_not_missed(
    start: Start, scheduler: Any, record: Record
) -> None:
    sidecar = start()
    scheduler.finished = _ended(record, 100)
    assert sidecar.poll(NOW).learned == 3
    scheduler.finished += _ended(record, 3000, count=1)
    assert sidecar.poll(NOW + MINUTE).learned == 1
    assert sidecar.poll(NOW + 2 * MINUTE).learned == 0


def test_an_end_that_lies_ahead_skips_no_other(
    start: Start, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    scheduler.overlap_s = 0
    sidecar = start()
    scheduler.finished = [*_ended(record, 100), record(7, end_time=NOW + 5 * DAY_S, user="bob")]
    assert sidecar.poll(NOW).learned == 3
    assert sidecar.store.cursor() == Cursor(NOW)
    assert {row.name for row in read_table(tmp_path / "table").rows} == {"alice", "physics"}
    scheduler.finished += [record(8, end_time=NOW + 50)]
    assert sidecar.poll(NOW + MINUTE).learned == 1
    assert sidecar.poll(NOW + 5 * DAY_S).learned == 1, "its time has come"


def test_a_cursor_ahead_of_the_clock_comes_back(
    start: Start, scheduler: Any, record: Record
) -> None:
    sidecar = start()
    sidecar.store.add_finished([], Cursor(NOW + 100 * DAY_S))
    scheduler.finished = _ended(record, 100)
    sidecar.poll(NOW)
    assert sidecar.store.cursor() == Cursor(NOW)


def test_old_jobs_are_deleted_once_a_day_and_not_read_again(
    start: Start, scheduler: Any, record: Record
) -> None:
    sidecar = start(store={"retention_days": 1})
    scheduler.finished = _ended(record, 2 * DAY_S) + _ended(record, 100)
    assert sidecar.poll(NOW).learned == 6
    assert sidecar.store.finished_count() == 3
    assert sidecar.poll(NOW + MINUTE).learned == 0
    assert sidecar.poll(NOW + DAY_S + 200).learned == 0
    assert sidecar.store.finished_count() == 0
    assert sidecar.poll(NOW + DAY_S + 300).learned == 0


def test_a_table_is_written_when_something_changed(
    start: Start, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    sidecar = start(table={"publish_interval_s": 300, "valid_for_s": 7200})
    published = {}
    scheduler.finished = _ended(record, 100)
    published["first"] = sidecar.poll(NOW).generation
    scheduler.finished += _ended(record, 50, user="bob", runtime=3000)
    published["too early"] = sidecar.poll(NOW + 240).generation
    published["learned"] = sidecar.poll(NOW + 300).generation
    published["unchanged"] = sidecar.poll(NOW + 600).generation
    scheduler.to_come = [Reservation("maint", NOW + 9000, NOW + 9999)]
    published["a reservation"] = sidecar.poll(NOW + 900).generation
    (tmp_path / "table").unlink()
    published["deleted"] = sidecar.poll(NOW + 1200).generation
    published["half its time left"] = sidecar.poll(NOW + 1200 + 3599).generation
    published["half its time over"] = sidecar.poll(NOW + 1200 + 3600 + 299).generation
    assert published == {
        "first": 1,
        "too early": None,
        "learned": 2,
        "unchanged": None,
        "a reservation": 3,
        "deleted": 4,
        "half its time left": None,
        "half its time over": 5,
    }
    table = read_table(tmp_path / "table")
    assert (table.generation, table.written_at) == (5, NOW + 5099)
    assert table.valid_until == table.written_at + 7200
    assert {row.name for row in table.rows} == {"alice", "bob", "physics"}
    assert [(r.start_time, r.end_time) for r in table.reservations] == [(NOW + 9000, NOW + 9999)]


def test_the_table_never_lapses_while_nothing_happens(
    start: Start, scheduler: Any, tmp_path: Path
) -> None:
    sidecar = start(
        scheduler={"history_days": 1, "poll_interval_s": 70},
        table={"publish_interval_s": 100, "valid_for_s": 340},
    )
    sidecar.poll(NOW)
    for now in range(NOW + 70, NOW + 20_000, 70):
        assert read_table(tmp_path / "table").valid_until >= now
        sidecar.poll(now)


def test_a_new_store_goes_on_above_the_table_in_place(start: Start, tmp_path: Path) -> None:
    first = start()
    for later in range(0, 4 * 30_000, 30_000):
        first.poll(NOW + later)
    first.store.close()
    assert read_table(tmp_path / "table").generation == 4
    (tmp_path / "store").unlink()
    assert start().poll(NOW + 200_000).generation == 5


def test_a_damaged_table_is_replaced_at_the_start(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "table").write_text("foretime-table 1 generation=7\n")
    with caplog.at_level(logging.WARNING, "foretime"):
        assert start().poll(NOW).generation == 1
    assert "the table in place is replaced" in caplog.text
    assert read_table(tmp_path / "table").generation == 1


def test_a_soft_limit_that_goes_away_stops_the_hook(
    start: Start, scheduler: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar = start(hook={"mode": "enforce"}, queue_order={"order": "none"})
    sidecar.poll(NOW)
    assert read_table(tmp_path / "table").settings.mode is Mode.ENFORCE
    scheduler.parameters = {}
    with caplog.at_level(logging.WARNING, "foretime"):
        for later in (300, 600, 900):
            sidecar.poll(NOW + later)
    assert read_table(tmp_path / "table").settings.mode is Mode.OBSERVE
    assert caplog.text.count("the hook is told to observe only") == 1
    assert (sidecar.progress.mode, bool(sidecar.progress.mode_reason)) == ("observe", True)


def test_a_restart_learns_the_same_table(
    start: Start, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    scheduler.finished = _ended(record, 9000, 40, runtime=900) + _ended(
        record, 500, 40, user="bob", runtime=3100
    )
    first = start()
    assert first.poll(NOW).learned == 80
    rows = read_table(tmp_path / "table").rows
    first.store.close()
    scheduler.finished = []
    again = start()
    assert again.poll(NOW + MINUTE).learned == 0
    assert again.progress.finished_jobs == 80
    table = read_table(tmp_path / "table")
    assert (table.generation, table.rows) == (2, rows)
    assert again.store.cursor() == Cursor(scheduler.asked[-1][0].end_time)


def test_questions_need_not_wait_for_the_disk(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sidecar = start()
    free = []

    def write(path: Path, table: Table) -> None:
        def ask() -> None:
            free.append(sidecar.lock.acquire(blocking=False))
            sidecar.lock.release()

        asker = threading.Thread(target=ask)
        asker.start()
        asker.join()
        write_table(path, table)

    monkeypatch.setattr("foretime_sidecar.daemon.table_publication.write_table", write)
    assert sidecar.poll(NOW).generation == 1
    assert free == [True]
    assert read_table(tmp_path / "table").generation == 1
