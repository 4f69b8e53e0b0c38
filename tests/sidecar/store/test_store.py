"""The store: nothing lost, nothing twice, whatever is read again; and its shape through time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store import decisions
from foretime_sidecar.store.migrations import migrations
from foretime_sidecar.store.store import Store
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

Record = Callable[..., FinishedRecord]
STEPS = [step.name for step in migrations.pending(Database(memory=True))]


def test_gives_back_what_was_stored(tmp_path: Path, record: Record) -> None:
    records = [
        record(number, ending=ending, user=None if number % 2 else f"user {number} ü")
        for number, ending in enumerate(Ending)
    ]
    records.append(
        replace(
            record(99),
            job=replace(
                record(99).job, start_time=None, actual_runtime=0, ending=Ending.NEVER_STARTED
            ),
            eligible_time=None,
        )
    )
    store = Store(tmp_path / "store")
    assert store.cursor() is None
    assert store.add_finished(records, Cursor(7)) == records
    store.close()
    again = Store(tmp_path / "store")
    assert list(again.finished_jobs()) == [r.job for r in records]
    assert again.cursor() == Cursor(7)
    assert again.cursor("pbs") is None
    assert again.finished_count() == len(records)
    again.close()


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    Store(tmp_path / "store").close()
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o600


@given(readings=st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=8))
def test_reading_again_repeats_nothing(readings: list[list[int]], record: Record) -> None:
    store = Store(":memory:")
    known: list[int] = []
    for reading in readings:
        new = []
        for number in reading:
            if number not in known and number not in new:
                new.append(number)
        added = store.add_finished([record(number) for number in reading], Cursor(len(known)))
        assert [int(r.job.request.job_id) for r in added] == new
        known += new
    assert [int(job.request.job_id) for job in store.finished_jobs()] == known
    store.close()


def test_a_requeued_job_has_a_record_for_each_run(record: Record) -> None:
    store = Store(":memory:")
    first, second = record(1, ending=Ending.REQUEUED), record(1, end_time=2_000_000)
    assert store.add_finished([first, second], Cursor(1)) == [first, second]
    store.close()


def test_a_batch_is_stored_whole_or_not_at_all(record: Record) -> None:
    store = Store(":memory:")
    bad = record(2, processors=None)
    with pytest.raises(StateError, match="can't store finished jobs"):
        store.add_finished([record(1), bad], Cursor(5))
    assert (store.finished_count(), store.cursor()) == (0, None)
    assert store.add_finished([record(1)], Cursor(5)) == [record(1)]
    store.close()


def test_a_users_latest_jobs_come_first(record: Record) -> None:
    store = Store(":memory:")
    store.add_finished(
        [record(n, user=f"u{n % 3}", project="p" if n % 3 else "q") for n in range(9)], Cursor(1)
    )
    assert [job.request.job_id for job in store.jobs_of("u1", 2)] == ["7", "4"]
    assert store.jobs_of("nobody", 2) == []
    store.close()


def test_decisions_come_and_go_with_their_jobs(record: Record) -> None:
    store = Store(":memory:")
    old, new = record(1, admin_comment="foretime:treq=60,tsched=12"), record(2, admin_comment="x")
    store.add_finished([old, new, record(3)], Cursor(1))
    submitted = old.job.request.submit_time
    assert store.decision("1", submitted) == "foretime:treq=60,tsched=12"
    assert store.decision("1", submitted + 1) is None
    assert store.decision("3", record(3).job.request.submit_time) is None
    assert store.forget_before(new.job.end_time) == 1
    assert store.decision("1", submitted) is None
    assert [job.request.job_id for job in store.finished_jobs()] == ["2", "3"]
    assert store.forget_before(new.job.end_time) == 0
    store.close()


@settings(max_examples=25)  # each opens a file several times
@given(above=st.lists(st.integers(0, 50), min_size=1, max_size=20), restart=st.integers(1, 5))
def test_generations_grow_for_ever(
    above: list[int], restart: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("generations") / "store"
    store = Store(path, "normal")
    latest = 0
    for number, floor in enumerate(above):
        if number % restart == 0:
            store.close()
            store = Store(path, "normal")
        generation = store.begin_generation(number, number + 9, "observe", 3, above=floor)
        assert generation > max(latest, floor)
        begun = store.latest_generation()
        assert begun is not None
        assert (begun.generation, begun.written_at, begun.published) == (generation, number, False)
        latest = generation
    store.mark_published(latest)
    begun = store.latest_generation()
    assert begun is not None
    assert begun.published
    store.close()


def test_since_when_no_table_lets_jobs_be_planned() -> None:
    store = Store(":memory:")
    assert store.unplanned_since(100) == 100, "of earlier jobs nothing is known"
    store.begin_generation(100, 500, "observe", 3)
    assert store.unplanned_since(300) == 100
    store.begin_generation(300, 700, "enforce", 3)
    store.begin_generation(400, 800, "off", 3)
    assert store.unplanned_since(900) == 700, "until then the hook may have planned jobs"
    store.close()


def test_a_copy_made_while_it_is_used_is_whole(tmp_path: Path, record: Record) -> None:
    store = Store(tmp_path / "store")
    store.add_finished([record(number) for number in range(100)], Cursor(5))
    source, copy = sqlite3.connect(tmp_path / "store"), sqlite3.connect(tmp_path / "copy")
    source.backup(copy)  # what `sqlite3 FILE .backup` does
    source.close()
    copy.close()
    store.add_finished([record(100)], Cursor(6))
    store.close()
    restored = Store(tmp_path / "copy")
    assert (restored.finished_count(), restored.cursor()) == (100, Cursor(5))
    assert restored.add_finished([record(99), record(100)], Cursor(6)) == [record(100)]
    restored.close()


# -- its shape through time --------------------------------------------------------------------


def _schema(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    return [(str(name), str(sql)) for name, sql in rows]


@pytest.mark.parametrize("applied", range(len(STEPS) + 1))
def test_every_earlier_version_is_brought_up_to_date(
    applied: int, tmp_path: Path, record: Record
) -> None:
    old = Database(sqlite3.connect(tmp_path / "old"))
    migrations.apply(old, stop_before=STEPS[applied:] or None)
    if applied:
        old.execute(
            "INSERT INTO jobs VALUES (1, '7', 'u', NULL, NULL, NULL, 4, 60, 5, 5, 6, 9, 3,"
            " 'completed', 'COMPLETED')"
        )
        old.execute("INSERT INTO cursors VALUES ('slurm', 9)")
        old.conn.commit()
    assert len(migrations.applied(old)) == applied
    old.close()
    store = Store(tmp_path / "old")
    assert store.finished_count() == (1 if applied else 0)
    assert store.cursor() == (Cursor(9) if applied else None)
    assert store.add_finished([record(1, admin_comment="d")], Cursor(10)) == [
        record(1, admin_comment="d")
    ]
    store.begin_generation(1, 2, "observe", 0)
    store.close()
    Store(tmp_path / "new").close()
    assert _schema(tmp_path / "old") == _schema(tmp_path / "new")


def test_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Store(path).close()
    newer = sqlite3.connect(path)
    newer.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
        "VALUES ('foretime', '9999-from-the-future', 'then')"
    )
    newer.execute("DELETE FROM _sqlite_migrations WHERE name = ?", (STEPS[-1],))
    newer.commit()
    newer.close()
    with pytest.raises(StateError, match=r"store: .*newer Foretime.*9999.*install that version"):
        Store(path)
    untouched = sqlite3.connect(path)
    names = {row[0] for row in untouched.execute("SELECT name FROM _sqlite_migrations")}
    untouched.close()
    assert STEPS[-1] not in names, "a database of a newer version was changed"


def test_every_table_and_column_is_documented(tmp_path: Path, repository: Path) -> None:
    text = (repository / "docs/sidecar.md").read_text()
    store = Store(tmp_path / "store")
    store.close()
    database = Database(sqlite3.connect(tmp_path / "store"))
    for name in database.table_names():
        if name.startswith(("_", "sqlite_")):
            continue
        section = text.partition(f"### {name}\n")[2].partition("\n#")[0]
        assert section, f"docs/sidecar.md has no section on the table {name}"
        for column in database.table(name).columns:
            assert f"| `{column.name}` |" in section, f"{name}.{column.name} is not documented"
    database.close()


@pytest.mark.parametrize("query", [decisions._OUTLIVING, decisions._COMPARED])
def test_decisions_on_jobs_are_looked_up_by_job(tmp_path: Path, query: str) -> None:
    """A daemon asks every few minutes: it must not read all decisions for each job."""
    store = Store(tmp_path / "store")
    plan = [str(row[-1]) for row in store.rows(f"EXPLAIN QUERY PLAN {query}", (0,))]
    store.close()
    assert any("job_decisions_by_job" in step for step in plan)
    assert not any("AUTOMATIC" in step or "SCAN job_decisions" in step for step in plan)
    assert [step for step in plan if step.startswith("SCAN")] == ["SCAN jobs"]
