"""What the hook costs: a reload and a look-up with 100,000 users, and a submission."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table.row_kinds import BackOff, LearnedRow
from foretime_sidecar.table.table import Mode, Scheme, Table, TableRow, TableSettings, write_table
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, LuaHook

JOB: dict[str, Any] = {
    "time_limit": 600,
    "user_name": "user7",
    "account": "p",
    "min_cpus": 4,
    "user_id": 1,
}
PARTITIONS = {"main": {"max_time": 4294967295, "flag_default": 1}}


def plain_table() -> Table:
    rows = tuple(TableRow("user", f"user{n}", 0, 300_000, 10**12) for n in range(100_000))
    return Table(1, 1_000, 9_000, TableSettings(mode=Mode.ENFORCE), rows=rows)


def learned_table() -> Table:
    """Of each user three kinds of jobs, none of which is like the one that is submitted but one."""
    settings = TableSettings(mode=Mode.ENFORCE, scheme=Scheme.LEARNED)
    keys = (("user+request+size", (600, 0)), ("user+class+size", (0, 0)), ("user+class", (0,)))
    rows = tuple(
        LearnedRow(kind, f"user{n}", values, 300_000, 10**12)
        for n in range(100_000)
        for kind, values in keys
    )
    back_off = BackOff((1, 4, 16))
    return Table(1, 1_000, 9_000, settings, back_off=back_off, learned_rows=rows)


@pytest.fixture(scope="module", params=[plain_table, learned_table])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "table"
    write_table(path, request.param())
    return path


@pytest.mark.parametrize("lua_version", LUA_VERSIONS)
def test_reload_and_first_look_up(benchmark: Any, table: Path, lua_version: str) -> None:
    hook = LuaHook(lua_version=lua_version, table=table)

    def reload() -> None:
        hook.configure({"table": str(table)})
        assert hook.submit(JOB, PARTITIONS, 1, 2_000).changes

    benchmark.pedantic(reload, rounds=10)


@pytest.mark.parametrize("lua_version", LUA_VERSIONS)
def test_first_look_up(benchmark: Any, table: Path, lua_version: str) -> None:
    hook = LuaHook(lua_version=lua_version, table=table)
    hook.submit(JOB, PARTITIONS, 1, 2_000)
    users = (f"user{n}" for n in itertools.count(99_999, -1))
    benchmark.pedantic(
        lambda: hook.submit({**JOB, "user_name": next(users)}, PARTITIONS, 1, 2_000), rounds=200
    )


@pytest.mark.parametrize("lua_version", LUA_VERSIONS)
def test_submission(benchmark: Any, table: Path, lua_version: str) -> None:
    hook = LuaHook(lua_version=lua_version, table=table)
    benchmark(hook.submit, JOB, PARTITIONS, 1, 2_000)
