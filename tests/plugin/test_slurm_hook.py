from __future__ import annotations

import os
import random
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table import (
    LeftAlone,
    Mechanism,
    Mode,
    Reservation,
    Scheme,
    Table,
    TableRow,
    TableSettings,
    UserTimeMin,
    table_bytes,
    write_table,
)
from foretime_sim.slurm_hook import LUA_VERSIONS, HookReply, LuaHook
from hypothesis import given
from hypothesis import strategies as st

NOW = 2_000
MAIN = {"max_time": 1440, "flag_default": 1, "total_nodes": 10, "total_cpus": 40, "max_share": 1}
PARTITIONS: dict[str, dict[str, Any]] = {
    "main": MAIN,
    "short": {**MAIN, "max_time": 300, "flag_default": 0},
    "long": {**MAIN, "max_time": 4294967295, "flag_default": 0, "qos": "partition-qos"},
}
JOB: dict[str, Any] = {
    "time_limit": 600,
    "user_name": "alice",
    "account": "phys",
    "min_cpus": 4,
    "user_id": 1000,
}
TABLE = Table(
    generation=1,
    written_at=1_000,
    valid_until=100_000,
    settings=TableSettings(mode=Mode.ENFORCE),
    rows=(
        TableRow("user", "alice", 0, 300_000),
        TableRow("user", "bob", 0, 1_000_000),
        TableRow("project", "phys", 0, 500_001),
        TableRow("project", "a|b\nc é#", 0, 100_000),
        TableRow("user", "small", 0, 100_000, 4 * 36_000),
    ),
)


class Site:
    """A hook with a table that a test may change."""

    def __init__(self, folder: Path, lua_version: str) -> None:
        self.path, self.off = folder / "table", folder / "off"
        self.hook = LuaHook(lua_version=lua_version, table=self.path, disable_file=self.off)
        self.generation = 0
        self.write(TABLE)

    def write(self, table: Table, **settings: Any) -> None:
        self.generation += 1
        changed = replace(table.settings, **settings)
        write_table(self.path, replace(table, generation=self.generation, settings=changed))

    def submit(self, now: int = NOW, **fields: Any) -> HookReply:
        job = {name: value for name, value in {**JOB, **fields}.items() if value is not None}
        return self.hook.submit(job, PARTITIONS, 1000, now)

    def modify(self, request: dict[str, Any], uid: int = 1000, **record: Any) -> HookReply:
        return self.hook.modify(request, {**JOB, **record}, PARTITIONS, uid, NOW)


@pytest.fixture(params=LUA_VERSIONS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return Site(tmp_path, request.param)


def test_schemes(site: Site) -> None:
    assert site.submit().changes == {"time_min": 241}  # (0.3 + 0.500001) / 2, rounded up
    assert site.submit(user_name="nobody").changes == {"time_min": 301}
    assert site.submit(account=None, default_account="phys").changes == {"time_min": 241}
    assert site.submit(user_name="nobody", account="a|b\nc é#").changes == {"time_min": 60}
    assert site.submit(user_name="nobody", account=None).changes == {}
    assert site.submit(user_name="bob", account=None).changes == {}
    site.write(TABLE, scheme=Scheme.USER)
    assert site.submit().changes == {"time_min": 180}
    site.write(TABLE, scheme=Scheme.PROJECT)
    assert site.submit().changes == {"time_min": 301}


def test_classes_of_requested_time(site: Site) -> None:
    rows = (TableRow("user", "alice", 0, 500_000), TableRow("user", "alice", 1, 250_000))
    site.write(replace(TABLE, rows=rows), requested_time_bounds_s=(36_000, 72_000))
    assert site.submit().changes == {"time_min": 300}
    assert site.submit(time_limit=601).changes == {"time_min": 151}
    assert site.submit(time_limit=1201).changes == {}


def test_row_is_for_jobs_up_to_its_largest(site: Site) -> None:
    assert site.submit(user_name="small", account=None).changes == {"time_min": 60}
    assert site.submit(user_name="small", account=None, min_cpus=5).changes == {}
    assert site.submit(user_name="small", account=None, max_nodes=5).changes == {}
    assert site.submit(user_name="small", account=None, min_nodes=2, shared=0).changes == {}


def test_observe_changes_nothing_and_says_so_once(site: Site) -> None:
    site.write(TABLE, mode=Mode.OBSERVE)
    first, second = site.submit(), site.submit(now=NOW + 59)
    assert (first.changes, second.changes, second.log) == ({}, {}, [])
    assert first.log == [
        "info foretime: observe: would plan a job of alice with 241 min instead of 600"
    ]
    assert "and 1 more" in site.submit(now=NOW + 60).log[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"time_limit": None},
        {"time_limit": 0},
        {"time_limit": 4294967295},
        {"het_job_offset": 0},
        {"comment": "x foretime:off"},
        {"time_limit": 1441},
        {"time_limit": 1441, "partition": "long,main"},
        {"partition": "unknown"},
        {"reservation": "course"},
        {"script": "#!/bin/sh\n#SBATCH --deadline=now+1hour\n"},
        {"script": "#!/bin/sh\n#SBATCH --dea now+1hour\n"},
        {"user_name": "left"},
        {"account": "left"},
        {"account": "LEFT"},
        {"account": None, "default_account": "Left"},
        {"account": "Upper"},
        {"qos": "left"},
        {"qos": "LEFT"},
        {"qos": "normal,Left"},
        {"qos": "x, upper ,normal"},
        {"qos": "normal,A é"},
        {"default_qos": "left"},
        {"partition": "long"},
        {"begin_time": 90_000},
    ],
)
def test_left_alone(site: Site, fields: dict[str, Any]) -> None:
    site.write(
        replace(
            TABLE,
            left_alone=LeftAlone(
                users=("left",),
                accounts=("left", "UPPER"),
                qos=("left", "Partition-QOS", "UPPER", "a é"),
            ),
            reservations=(Reservation(95_000, 96_000, ("other", "main")),),
            rows=(*TABLE.rows, TableRow("user", "left", 0, 1)),
        )
    )
    assert site.submit().changes == {"time_min": 241}
    assert site.submit(**fields) == HookReply(0, {}, [])


def test_users_are_told_apart_by_case(site: Site) -> None:
    site.write(replace(TABLE, left_alone=LeftAlone(users=("Alice",))))
    assert site.submit(qos="normal,other").changes == {"time_min": 241}


def test_no_usable_table(site: Site) -> None:
    assert site.submit(now=100_000).changes
    assert not site.submit(now=100_001).changes
    site.write(replace(TABLE, written_at=NOW + 3601))
    assert not site.submit().changes
    site.write(TABLE, mode=Mode.OFF)
    assert not site.submit().changes
    site.write(TABLE)
    assert site.submit().changes
    site.off.touch()
    assert not site.submit().changes
    site.off.unlink()
    assert site.submit().changes
    site.path.write_bytes(table_bytes(TABLE).replace(b"foretime-table 1", b"foretime-table 2"))
    assert not site.submit().changes


@pytest.mark.timeout(60)
def test_what_is_no_table_at_all(site: Site) -> None:
    site.path.unlink()
    assert not site.submit().changes
    site.path.mkdir()
    assert not site.submit().changes
    site.path.rmdir()
    os.mkfifo(site.path)  # must not block
    assert not site.submit().changes
    site.path.unlink()
    site.write(TABLE)
    assert site.submit().changes
    os.mkfifo(site.off)
    assert not site.submit().changes
    site.off.unlink()
    site.path.write_bytes(b"")
    assert not site.submit().changes
    with site.path.open("wb") as noise:
        noise.truncate(100_000_000)
    assert not site.submit().changes
    site.path.unlink()
    site.path.symlink_to("/dev/zero")
    assert not site.submit().changes


def test_users_own_time_min(site: Site) -> None:
    assert site.submit(time_min=1).changes == {"time_min": 241}
    assert site.submit(time_min=400).changes == {}
    assert site.submit(time_min=601).changes == {}
    assert site.submit(time_min=1, user_name="bob", account=None).changes == {"time_min": 600}
    site.write(TABLE, user_time_min=UserTimeMin.KEEP)
    assert site.submit(time_min=1).changes == {}
    site.write(TABLE, user_time_min=UserTimeMin.CLEAR)
    assert site.submit(time_min=400).changes == {"time_min": 241}


def test_rewrite_limit(site: Site) -> None:
    site.write(TABLE, mechanism=Mechanism.REWRITE_LIMIT)
    note = "foretime:treq=600,tsched=241"
    assert site.submit().changes == {"admin_comment": note, "time_limit": 241}
    assert site.submit(admin_comment="theirs").changes["admin_comment"] == f"{note} theirs"
    forged = site.submit(admin_comment="a foretime:treq=9,tsched=1 b", user_name="x", account="y")
    assert forged.changes == {"admin_comment": "a b"}
    assert site.submit(time_min=5).changes == {}
    asked = site.modify({"time_limit": 300}, time_limit=241, admin_comment=note)
    assert asked.changes == {}
    assert "600 minutes" in asked.log[0]


def test_modification(site: Site) -> None:
    assert site.modify({"time_limit": 100}, time_min=241).changes == {"time_min": 100}
    assert site.modify({"time_limit": 300}, time_min=241).changes == {}
    assert site.modify({"time_limit": 100, "time_min": 5}, time_min=241).changes == {}
    assert site.modify({"time_limit": 2000}, uid=0, time_min=241).changes == {"time_min": 0}
    assert site.modify({"comment": "foretime:off"}, time_min=241).changes == {"time_min": 0}
    assert site.modify({"name": "x"}, time_min=241).changes == {}
    site.path.unlink()
    assert site.modify({"time_limit": 100}, time_min=241).changes == {"time_min": 100}


@pytest.mark.parametrize("state", ["enforce", "observe", "off", "old", "none", "damaged", "switch"])
def test_modification_is_judged_whatever_the_table(site: Site, state: str) -> None:
    assert site.submit().changes
    if state in ("observe", "off"):
        site.write(TABLE, mode=Mode(state))
    elif state == "old":
        site.write(replace(TABLE, valid_until=NOW - 1))
    elif state == "none":
        site.path.unlink()
    elif state == "damaged":
        site.path.write_bytes(table_bytes(TABLE)[:-9])
    elif state == "switch":
        site.off.touch()
    cleared: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"partition": "short"}, {}),
        ({"partition": "main,short"}, {}),
        ({"partition": "unknown"}, {}),
        ({"reservation": "course"}, {}),
        ({"comment": "foretime:off"}, {}),
        ({"time_limit": 2000}, {}),
        ({"time_limit": 4294967295}, {}),
        ({"begin_time": 3000}, {"het_job_offset": 1}),
        ({"qos": "x"}, {"reservation": "course"}),
    ]
    for request, record in cleared:
        assert site.modify(request, time_min=241, **record).changes == {"time_min": 0}, request
        assert site.modify(request, **record).changes == {}
    kept: list[dict[str, Any]] = [
        {"partition": "long"},
        {"partition": "short", "time_limit": 300},
        {"qos": "x"},
    ]
    for request in kept:
        assert site.modify(request, time_min=241).changes == {}, request


def test_modification_is_judged_by_the_table(site: Site) -> None:
    site.write(
        replace(
            TABLE,
            left_alone=LeftAlone(
                accounts=("left",), slurm_partitions=("short",), qos=("lim", "partition-qos")
            ),
            reservations=(Reservation(95_000, 96_000, ("main",)),),
        )
    )
    cleared: list[dict[str, Any]] = [
        {"account": "LEFT"},
        {"qos": "normal,lim"},
        {"partition": "long"},
        {"partition": "short", "time_limit": 300},
        {"begin_time": 90_000},
    ]
    for request in cleared:
        assert site.modify(request, time_min=241).changes == {"time_min": 0}, request
    assert site.modify({"account": "other"}, time_min=241).changes == {}


def test_users_own_time_min_stays_under_rewrite_limit(site: Site) -> None:
    for valid_until in (100_000, NOW - 1):
        site.write(replace(TABLE, valid_until=valid_until), mechanism=Mechanism.REWRITE_LIMIT)
        assert site.modify({"partition": "short"}, time_min=241).changes == {}


def mutations_of(valid: bytes, previous: bytes) -> list[bytes]:
    choose = random.Random(1)
    found = [valid[:at] for at in range(len(valid))]
    found += [valid[:at] + previous[at:] for at in range(len(valid))]
    for at in range(len(valid)):
        found.append(valid[:at] + bytes((choose.randrange(256),)) + valid[at + 1 :])
    lines = valid.splitlines(keepends=True)
    for _ in range(400):
        start, stop = sorted(choose.sample(range(len(valid)), 2))
        found.append(valid[:start] + valid[stop:])
        found.append(valid[:start] + choose.randbytes(choose.randrange(20)) + valid[start:])
        found.append(valid[:start] + valid[start:stop][::-1] + valid[stop:])
        found.append(valid[:start] + previous[start:stop] + valid[stop:])
        swapped = lines.copy()
        one, other = choose.sample(range(len(lines)), 2)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        found.append(b"".join(swapped))
    return found


def test_mutated_tables_never_change_a_job_wrongly(site: Site) -> None:
    """Whatever happens to the file: the valid generation's value or an untouched job.

    A user's or project's row that can't be seen must not be taken for one that isn't there.
    """
    valid = table_bytes(TABLE)
    other_rows = tuple(replace(row, adjustment_micro=50_000) for row in TABLE.rows)
    strange_rows = (TableRow("user", "nobody", 0, 50_000), TableRow("project", "none", 0, 50_000))
    previous = table_bytes(replace(TABLE, generation=0, rows=other_rows + strange_rows))
    jobs: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({}, {"time_min": 241}),  # both rows
        ({"account": "none"}, {"time_min": 180}),  # the user's alone
        ({"user_name": "nobody"}, {"time_min": 301}),  # the project's alone
        ({"user_name": "nobody", "account": "none"}, {}),  # neither
    ]
    touched = [0] * len(jobs)
    mutations = mutations_of(valid, previous)
    for content in mutations:
        if content == previous:  # splicing at the first byte: a whole, valid table
            continue
        site.path.write_bytes(content)
        site.hook.configure({"table": str(site.path)})  # forgets what was read before
        for number, (fields, planned) in enumerate(jobs):
            changes = site.submit(**fields).changes
            assert changes in ({}, planned), (content, fields)
            touched[number] += bool(changes)
    assert len(mutations) > 3_000
    assert touched.pop() == 0
    assert all(0 < count < len(mutations) for count in touched)


@pytest.fixture(scope="module")
def exact_hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[LuaHook]]:
    path = tmp_path_factory.mktemp("exact") / "table"
    return path, [LuaHook(lua_version=version, table=path) for version in LUA_VERSIONS]


@given(
    user=st.integers(0, 1_000_000),
    project=st.integers(0, 1_000_000),
    minutes=st.integers(1, 60_000_000),
    rounding_s=st.integers(1, 10_000),
    minimum_s=st.integers(0, 100_000),
)
def test_arithmetic_is_exact(
    exact_hooks: tuple[Path, list[LuaHook]],
    user: int,
    project: int,
    minutes: int,
    rounding_s: int,
    minimum_s: int,
) -> None:
    path, hooks = exact_hooks
    settings = TableSettings(
        mode=Mode.ENFORCE, rounding_s=rounding_s, minimum_scheduled_time_s=minimum_s
    )
    rows = (TableRow("user", "alice", 0, user), TableRow("project", "phys", 0, project))
    path.write_bytes(table_bytes(replace(TABLE, settings=settings, rows=rows)))
    adjustment = max(Fraction(ceil(Fraction(user + project, 2)), 1_000_000), Fraction(1, 10))
    seconds = ceil(adjustment * minutes * 60 / rounding_s) * rounding_s
    expected = min(minutes, ceil(Fraction(max(seconds, minimum_s), 60)))
    partitions = {"main": {"flag_default": 1, "max_time": 4294967295}}
    for hook in hooks:
        hook.configure({"table": str(path)})
        reply = hook.submit({**JOB, "time_limit": minutes}, partitions, 1000, NOW)
        assert reply.changes == ({} if expected == minutes else {"time_min": expected})


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=1,
        max_size=40,
        unique=True,
    )
)
def test_every_row_is_found(exact_hooks: tuple[Path, list[LuaHook]], names: list[str]) -> None:
    path, hooks = exact_hooks
    rows = tuple(
        TableRow("user", name, 0, 200_000 + 10_000 * number)
        for number, name in enumerate(names[1:])
    )
    settings = TableSettings(mode=Mode.ENFORCE, minimum_adjustment=0.0)
    path.write_bytes(table_bytes(replace(TABLE, settings=settings, rows=rows)))
    for hook in hooks:
        hook.configure({"table": str(path)})
        for number, name in enumerate(names):
            changes = hook.submit(
                {"time_limit": 600, "user_name": name}, PARTITIONS, 1000, NOW
            ).changes
            assert changes == ({"time_min": 120 + 6 * (number - 1)} if number else {})


def test_site_script_works_with_and_without_the_module(tmp_path: Path) -> None:
    script = tmp_path / "job_submit.lua"
    script.write_text(
        "local loaded, foretime = pcall(require, 'foretime')\n"
        "function slurm_job_submit(job, partitions, uid)\n"
        "  if job.name == 'bad' then slurm.log_user('no') return slurm.ERROR end\n"
        "  job.comment = 'site'\n"
        "  if loaded then foretime.submit(job, partitions, uid) end\n"
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_job_modify() return slurm.SUCCESS end\n"
    )
    path = tmp_path / "table"
    write_table(path, TABLE)
    for version in LUA_VERSIONS:
        with_module = LuaHook(script, lua_version=version, table=path)
        without = LuaHook(script, lua_version=version, foretime=tmp_path / "none.lua")
        refused = {**JOB, "name": "bad"}
        for hook in (with_module, without):
            assert hook.submit(refused, PARTITIONS, 1000, NOW) == HookReply(-1, {}, ["user no"])
        assert without.submit(JOB, PARTITIONS, 1000, NOW).changes == {"comment": "site"}
        both = {"comment": "site", "time_min": 241}
        assert with_module.submit(JOB, PARTITIONS, 1000, NOW).changes == both


def test_ready_made_script_without_the_module(tmp_path: Path) -> None:
    for version in LUA_VERSIONS:
        hook = LuaHook(lua_version=version, foretime=tmp_path / "none.lua")
        assert "jobs are left alone" in hook.loading_log[0]
        assert hook.submit(JOB, PARTITIONS, 1000, NOW) == HookReply(0, {}, [])


def test_an_error_inside_is_logged_and_the_job_goes_through(site: Site) -> None:
    reply = site.hook.submit({**JOB, "partition": "main"}, {"main": {"qos": 5}}, 1000, NOW)
    assert reply.code == 0
    odd = site.hook.submit({"time_limit": "x", "user_name": 5, "comment": 7}, {}, 1000, NOW)
    assert odd.code == 0
    assert odd.changes == {}
