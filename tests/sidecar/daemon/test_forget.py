"""A user's history, erased: nowhere any more, for good, and all of it or nothing."""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import sqlite3
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.answers.daemon_client import DaemonError, SiteDaemon
from foretime_sidecar.cli.site_commands import forget as forget_command
from foretime_sidecar.clients.client import FinishedRecord
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.forecasts.forecast_log import Served, ServedForecasts
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH
from foretime_sidecar.settings.settings import (
    AccuracySection,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.store.personal_data import COLUMNS, data_of
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Table, read_table, write_table
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sim.waits.forecaster import LEVELS
from typer.testing import CliRunner

Record = Callable[..., FinishedRecord]
START = 1_000_000
NAME = "zaphod-beeblebrox"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        scheduler=SchedulerSettings(history_days=1),
        accuracy=AccuracySection(threshold=2),
        table=TableSettings(path=str(tmp_path / "table"), publish_interval_s=300),
        store=StoreSettings(path=str(tmp_path / "store")),
        api=ApiSettings(operators=["olga"]),
    )


def history(record: Record) -> list[FinishedRecord]:
    """Twenty jobs, every other one of the user's."""
    return [
        record(number, user=NAME if number % 2 else "bob", admin_comment=f"note {number}")
        for number in range(20)
    ]


def also_known(store: Store) -> None:
    """What looks and questions leave in the store, of the user's last job and of bob's."""
    for job_id, user in (("19", NAME), ("18", "bob"), ("77", NAME)):
        store.write(
            "test",
            "INSERT INTO job_decisions VALUES "
            "(NULL, 5, ?, 999530, ?, 'physics', 'main', 4, 'left', 3600, NULL, 'no-row', 1)",
            [(job_id, user)],
        )
        store.write("test", "INSERT INTO head_jobs VALUES (?, 999530, 5, 6, 7)", [(job_id,)])
        store.write(
            "test",
            "INSERT INTO served_forecasts VALUES (NULL, 'asked', 5, 5, ?, 999530, ?, NULL, NULL,"
            " 4, 3600, 0.5, 7, '[1]', NULL, NULL, NULL, NULL)",
            [(job_id, user)],
        )
        store.write(
            "test",
            "INSERT INTO start_bounds VALUES (?, 999530, ?, 5, 6, 7, NULL, NULL)",
            [(job_id, user)],
        )
        store.write(
            "test",
            "INSERT INTO plain_starts VALUES (?, 999530, ?, 4, 5, 5, 6, 7, 1, 6, NULL, 1, '')",
            [(job_id, user)],
        )
    watched = [(NAME, "19", 5), ("bob", "18", 5)]
    store.write(
        "test", "INSERT INTO watched_jobs (user, job_id, asked_at) VALUES (?, ?, ?)", watched
    )
    store.write("test", "INSERT INTO told_users VALUES (?, 5)", [(NAME,), ("bob",)])


@pytest.fixture
def site(settings: Settings, scheduler: Any, record: Record) -> Iterator[Sidecar]:
    """A sidecar that has learned, forecast and published."""
    store = Store(settings.store.path)
    sidecar = Sidecar(settings, scheduler, store, forecasts=True)
    scheduler.finished = history(record)
    sidecar.look(START + 300)
    assert sidecar.poll(START + 300).learned == 20
    also_known(store)
    assert sidecar.forecasting is not None
    assert sidecar.forecasting.refresh()
    yield sidecar
    with contextlib.suppress(StateError):
        store.close()


def cells(path: str) -> dict[str, list[Any]]:
    """Every row of every table, as another process reads them."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def of_bob(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [row for row in rows[name] if "bob" in row] for name in COLUMNS}


def table_of(sidecar: Sidecar) -> Table:
    return read_table(Path(sidecar.settings.table.path))


def names_in(root: object, name: str) -> list[str]:
    """Every text that can be reached from an object and holds a name."""
    left_out = (types.ModuleType, types.FunctionType, types.FrameType, types.CodeType, type)
    seen: set[int] = set()
    todo: list[object] = [root]
    found: list[str] = []
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, left_out):
            continue
        seen.add(id(one))
        if isinstance(one, str) and name in one:
            found.append(one)
        todo += gc.get_referents(one)
    return found


def test_nothing_of_a_user_is_left_in_the_store(site: Sidecar) -> None:
    path = site.settings.store.path
    before = cells(path)
    assert (
        sum(NAME in str(row) for rows in before.values() for row in rows)
        == 10 + 2 + 2 + 2 + 2 + 1 + 1
    )
    erased = site.forget(NAME, START + 301)
    assert erased == {
        "jobs": 10,
        "decisions": 10,
        "job_decisions": 2,
        "head_jobs": 2,
        "served_forecasts": 2,
        "start_bounds": 2,
        "plain_starts": 2,
        "told_users": 1,
        "watched_jobs": 1,
    }
    after = cells(path)
    assert not [row for rows in after.values() for row in rows if NAME in str(row)]
    # Nor in what was deleted but still lies in the files.
    for file in Path(path).parent.glob("store*"):
        assert NAME.encode() not in file.read_bytes(), file
    assert of_bob(after) == of_bob(before)
    assert len(after["decisions"]) == 10
    assert [row[0] for row in after["head_jobs"]] == ["18"]


def test_every_table_that_names_users_is_erased_and_shown(site: Sidecar) -> None:
    with contextlib.closing(sqlite3.connect(site.settings.store.path)) as connection:
        columns = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in cells(site.settings.store.path)
        }
    with_users = {name: found for name, found in columns.items() if "user" in found}
    assert {name: set(found) - {"seq"} for name, found in with_users.items()} == {
        name: set(found) for name, found in COLUMNS.items()
    }
    # A site factor has to be given back, a time_min known as ours; those jobs are in the queue.
    assert {name for name, found in columns.items() if "job_id" in found} - set(COLUMNS) == {
        "decisions",
        "head_jobs",
        "refined_times",
        "site_factors",
    }


def test_what_is_learned_is_as_if_they_had_never_been(
    site: Sidecar, settings: Settings, scheduler: Any, record: Record, tmp_path: Path
) -> None:
    assert NAME in {row.name for row in table_of(site).rows}
    site.forget(NAME, START + 301)
    assert site.progress.finished_jobs == 10
    generation = site.poll(START + 302).generation
    assert generation is not None, "not before the next is due"
    published = table_of(site).rows
    assert NAME not in {row.name for row in published}
    without = settings.model_copy(
        update={
            "store": StoreSettings(path=str(tmp_path / "other")),
            "table": TableSettings(path=str(tmp_path / "other-table")),
        }
    )
    scheduler.finished = [one for one in history(record) if one.job.request.user == "bob"]
    with contextlib.closing(Store(without.store.path)) as store:
        other = Sidecar(without, scheduler, store)
        other.poll(START + 302)
        assert table_of(other).rows == published


def test_nothing_of_a_user_is_left_in_memory(site: Sidecar, scheduler: Any) -> None:
    assert site.forecasting is not None
    scheduler.finished = []
    for part in (site.learner, site.forecasting):
        assert names_in(part, NAME)
    site.forecasting.asked("what-if", START + 300, history_request(), some_waits())
    site.forget(NAME, START + 301)
    site.poll(START + 302)
    site.look(START + 302)
    assert site.forecasting.refresh()
    assert not names_in(site, NAME)
    assert names_in(site, "bob")


def history_request() -> JobRequest:
    return JobRequest("", NAME, None, 4, 3600, START)


def some_waits() -> Waits:
    return Waits((60,) * len(LEVELS), 0.5)


def test_a_forecast_on_its_way_to_the_store_does_not_come_to_it(site: Sidecar) -> None:
    served = ServedForecasts(site.store, site.lock, 5)
    site.forget(NAME, START + 301)
    late = Served("what-if", START + 301, history_request(), some_waits())
    served.add([late])
    assert not data_of(site.store, NAME)["served_forecasts"]
    served.add([Served("what-if", START + 302, history_request(), some_waits())])
    assert len(data_of(site.store, NAME)["served_forecasts"]) == 1


def test_the_accounting_does_not_bring_it_back(
    site: Sidecar, scheduler: Any, record: Record, settings: Settings
) -> None:
    site.forget(NAME, START + 301)
    assert site.poll(START + 302).learned == 0
    # Nor after a restart, and if all is read anew.
    site.store.write("test", "DELETE FROM cursors", [()])
    restarted = Sidecar(settings, scheduler, site.store)
    assert restarted.poll(START + 303).learned == 0
    assert restarted.progress.finished_jobs == 10
    # What they do from now on is history again, and may be erased again.
    scheduler.finished.append(record(40, user=NAME))
    assert restarted.poll(START + 500).learned == 1
    assert restarted.forget(NAME, START + 501)["jobs"] == 1
    assert restarted.poll(START + 502).learned == 0


def test_a_user_erased_in_the_middle_of_a_poll_stays_erased(
    site: Sidecar, scheduler: Any, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = scheduler.finished_since

    def and_forget(*arguments: Any) -> Any:
        found = read(*arguments)
        site.forget(NAME, START + 420)
        return found

    scheduler.finished += [record(number, user=NAME) for number in range(20, 40)]
    monkeypatch.setattr(scheduler, "finished_since", and_forget)
    assert site.poll(START + 420).learned == 0
    assert not names_in(site.learner, NAME)


def test_a_user_erased_while_a_table_is_written_is_in_no_later_one(
    site: Sidecar, scheduler: Any, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def and_forget(path: Path, table: Table) -> None:
        site.forget(NAME, START + 700)
        write_table(path, table)

    with monkeypatch.context() as patch:
        patch.setattr("foretime_sidecar.daemon.table_publication.write_table", and_forget)
        scheduler.finished += [record(number, user="bob", runtime=3500) for number in range(20, 60)]
        assert site.poll(START + 700).generation == 2
    assert site.store.forgotten_at(NAME) == START + 700
    assert NAME in {row.name for row in table_of(site).rows}
    site.poll(START + 701)
    assert NAME not in {row.name for row in table_of(site).rows}


@contextlib.contextmanager
def _locked(sidecar: Sidecar) -> Iterator[None]:
    sidecar.store.rows("PRAGMA busy_timeout = 50")
    with contextlib.closing(sqlite3.connect(sidecar.settings.store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.rollback()


@contextlib.contextmanager
def _full_disk(sidecar: Sidecar) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextlib.contextmanager
def _at_the_last_step(sidecar: Sidecar) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: Any) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr(sidecar.store.forgotten, "mark", fail)
        yield


@pytest.mark.parametrize("fault", [_locked, _full_disk, _at_the_last_step])
def test_an_erasure_that_fails_erases_nothing(
    fault: Callable[[Sidecar], contextlib.AbstractContextManager[None]], site: Sidecar
) -> None:
    path = site.settings.store.path
    before = cells(path)
    with fault(site), pytest.raises(StateError, match=f"can't erase the history of {NAME}"):
        site.forget(NAME, START + 301)
    assert cells(path) == before
    assert site.progress.finished_jobs == 20
    assert site.store.forgotten_at(NAME) is None
    assert site.learner.describe(user=NAME)
    assert site.forget(NAME, START + 302)["jobs"] == 10


def test_a_table_that_can_not_be_written_then_is_written_without_them_later(
    site: Sidecar, tmp_path: Path
) -> None:
    site.forget(NAME, START + 301)
    (tmp_path / "table.new").mkdir()
    with pytest.raises(StateError, match="can't write the table"):
        site.poll(START + 302)
    (tmp_path / "table.new").rmdir()
    assert site.poll(START + 303).generation is not None
    assert NAME not in {row.name for row in table_of(site).rows}


def test_old_forecasts_go_with_the_retention_of_the_store(
    settings: Settings, scheduler: Any, record: Record
) -> None:
    short = StoreSettings(path=settings.store.path, retention_days=1)
    with contextlib.closing(Store(short.path)) as store:
        sidecar = Sidecar(settings.model_copy(update={"store": short}), scheduler, store)
        scheduler.finished = history(record)
        sidecar.poll(START + 300)
        also_known(store)
        scheduler.finished = []
        sidecar.poll(START + 300 + 2 * 86_400)
        rows = cells(short.path)
    for name in (*COLUMNS, "decisions", "head_jobs"):
        assert rows[name] == [], name


# -- who may -------------------------------------------------------------------------------------


class Asked:
    """The daemon, asked by somebody."""

    def __init__(self, site: Sidecar) -> None:
        self.app = create_app(site, Health(START), lambda: START + 301)
        self.client = TestClient(
            self.app, base_url="http://localhost", raise_server_exceptions=False
        )

    def by(self, user: str | None, *, operator: bool = False) -> TestClient:
        identity = None if user is None else Identity("socket", user, 4242)
        self.app.dependency_overrides[caller_of] = lambda: Caller(identity, operator)
        given = self.client.get(TOKEN_PATH).json()
        self.client.headers[TOKEN_HEADER] = given.get("token", "")
        return self.client


def test_people_see_and_erase_their_own_and_operators_anybodys(site: Sidecar) -> None:
    asked = Asked(site)
    for user in (None, "bob"):
        for reply in (
            asked.by(user).get(f"/v1/me?user={NAME}"),
            asked.by(user).post(f"/v1/me/forget?user={NAME}"),
        ):
            assert reply.status_code == 403, reply.text
    assert asked.by(None).get("/v1/me").status_code == 403
    assert asked.by(None).post("/v1/me/forget").status_code == 403
    assert asked.by(NAME).get("/v1/me/forget").status_code == 405
    mine = asked.by(NAME).get("/v1/me").json()
    assert mine == asked.by("olga", operator=True).get(f"/v1/me?user={NAME}").json()
    assert {name: len(rows) for name, rows in mine.items() if isinstance(rows, list)} == {
        "jobs": 10,
        "job_decisions": 2,
        "served_forecasts": 2,
        "start_bounds": 2,
        "plain_starts": 2,
        "told_users": 1,
        "watched_jobs": 1,
        "decisions": 10,
        "learned": 1,
    }
    assert mine["forgotten_at"] is None
    assert "bob" not in json.dumps(mine)
    answer = asked.by(NAME).post("/v1/me/forget").json()
    assert (answer["user"], answer["erased"]["jobs"]) == (NAME, 10)
    after = asked.by(NAME).get("/v1/me").json()
    assert after["forgotten_at"] == START + 301
    assert [after[name] for name in (*COLUMNS, "decisions", "learned")] == [[]] * 9
    assert asked.by("olga", operator=True).post("/v1/me/forget?user=bob").status_code == 200


def test_the_command_asks_before_it_erases(site: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(site)

    def ask(_: SiteDaemon, path: str, question: dict[str, Any], method: str = "GET") -> Any:
        given = {name: value for name, value in question.items() if value is not None}
        return asked.by(NAME).request(method, path, params=given).json()

    monkeypatch.setattr(SiteDaemon, "ask", ask)
    app = typer.Typer()
    app.command()(forget_command.forget)

    def run(*arguments: str, stdin: str | None = None) -> Any:
        return CliRunner().invoke(app, arguments, input=stdin)

    assert len(json.loads(run("--show").output)["jobs"]) == 10
    for answer in ("n\n", ""):  # "": nobody is there who could answer
        with pytest.raises(InputError, match=r"nothing of .* was erased; .*--yes"):
            raise run(NAME, stdin=answer).exception
    assert len(json.loads(run("--show").output)["jobs"]) == 10
    result = run(stdin="n\n")
    assert f"Erase what is stored of {NAME}?" in result.stderr, "whom the daemon takes one for"
    result = run(NAME, "--yes")
    assert result.exit_code == 0, result.output
    assert "\n       10  finished jobs\n" in result.output
    assert "A mark stays" in result.output
    assert json.loads(run("--yes", "--json").output)["erased"]["jobs"] == 0
    result = run("--yes")
    assert result.output.splitlines() == [
        f"Nothing was stored of {NAME}; is that the login name?",
        "A mark stays: what ended until now is not taken from the accounting again.",
    ]


def test_without_a_daemon_nobody_is_asked_whether_to(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(forget_command.forget)
    result = CliRunner().invoke(app, [NAME, "--socket", str(tmp_path / "none")], input="y\n")
    assert isinstance(result.exception, DaemonError)
    assert result.exception.exit_code == 3
    assert "Erase" not in result.output
