from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table.table import (
    Longest,
    Mechanism,
    Mode,
    Reservation,
    Table,
    TableRow,
    TableSettings,
    UserTimeMin,
    table_bytes,
    write_table,
)
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, HookReply, LuaHook

NOW = 2_000
INFINITE = 4_294_967_295
MAIN = {"max_time": 1440, "flag_default": 1, "total_nodes": 10, "total_cpus": 40, "max_share": 1}
PARTITIONS: dict[str, dict[str, Any]] = {
    "main": MAIN,
    "short": {**MAIN, "max_time": 300, "flag_default": 0},
    "long": {**MAIN, "max_time": INFINITE, "flag_default": 0, "qos": "partition-qos"},
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


def noted(minutes: int, *, own: int | None = None, generation: int = 1) -> dict[str, Any]:
    """What a job of 600 minutes is given."""
    words = f"foretime:treq=600,tmin={minutes},generation={generation}"
    return {"admin_comment": words + (f",own={own}" if own else ""), "time_min": minutes}


# A job as the hook planned it.
OURS = noted(241)


def test_row_is_for_jobs_up_to_its_largest(site: Site) -> None:
    assert site.submit(user_name="small", account=None).changes == noted(60)
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


@pytest.mark.parametrize("fields", [{"time_limit": 0}, {"partition": "main,unknown"}])
def test_what_slurm_refuses_is_left_to_it(site: Site, fields: dict[str, Any]) -> None:
    assert site.submit().changes == OURS
    assert site.submit(**fields) == HookReply(0, {}, [])


def test_a_max_time_that_only_the_table_has_is_heeded(site: Site) -> None:
    longest = Longest("slurm_partition", "long", 35_999)
    site.write(replace(TABLE, longest=(longest,)))
    assert site.submit(partition="long").changes == {}
    site.write(replace(TABLE, longest=(replace(longest, requested_time=36_000),)))
    assert site.submit(partition="long").changes == noted(241, generation=3)


def test_planned_at_the_look(site: Site) -> None:
    site.write(TABLE, mechanism=Mechanism.TIME_MIN_AT_LOOK)
    told = noted(241, generation=2)["admin_comment"]
    assert site.submit().changes == {"admin_comment": told}
    assert site.submit(time_min=1).changes == {"admin_comment": told + ",own=1"}
    assert site.submit(time_min=300).changes == {}
    soon = replace(TABLE, reservations=(Reservation(NOW + 60, NOW + 120),))
    site.write(soon, mechanism=Mechanism.TIME_MIN_AT_LOOK)
    assert site.submit().changes, "the sidecar looks for reservations"
    assert site.modify({"qos": "x"}, **OURS).changes == {"time_min": 0}
    site.write(soon)
    assert site.submit().changes == {}
    assert site.modify({"time_limit": 100}, **OURS).changes == {"time_min": 0}
    assert site.modify({"comment": "foretime:off"}, **OURS).changes == {"time_min": 0}


def test_a_users_own_time_min_is_raised_kept_or_cleared_as_set(site: Site) -> None:
    assert site.submit(time_min=1).changes == noted(241, own=1)
    assert site.submit(time_min=400).changes == {}
    assert site.submit(time_min=601).changes == {}
    # --time-min=0 and UNLIMITED: above any limit, so Slurm rejects it, and must go on to do so.
    assert site.submit(time_min=INFINITE).changes == {}
    assert site.submit(time_min=1, user_name="bob", account=None).changes == noted(600, own=1)
    site.write(TABLE, user_time_min=UserTimeMin.KEEP)
    assert site.submit(time_min=1).changes == {}
    site.write(TABLE, user_time_min=UserTimeMin.CLEAR)
    assert site.submit(time_min=INFINITE).changes == {}
    assert site.submit(time_min=400).changes == noted(241, own=400, generation=3)
    ours = {
        **noted(241, generation=3),
        "admin_comment": noted(241, generation=3)["admin_comment"] + " theirs",
    }
    assert site.submit(admin_comment="theirs foretime:treq=9,tmin=1").changes == ours


def test_rewrite_limit_lowers_the_limit_and_notes_what_was_asked_for(site: Site) -> None:
    site.write(TABLE, mechanism=Mechanism.REWRITE_LIMIT)
    note = "foretime:treq=600,tsched=241,generation=2"
    assert site.submit().changes == {"admin_comment": note, "time_limit": 241}
    assert site.submit(admin_comment="theirs").changes["admin_comment"] == f"{note} theirs"
    forged = site.submit(admin_comment="a foretime:treq=9,tsched=1 b", user_name="x", account="y")
    assert forged.changes == {"admin_comment": "a b"}
    assert site.submit(time_min=5).changes == {}
    site.write(TABLE, mechanism=Mechanism.REWRITE_LIMIT_AT_LOOK)
    at_look = {"admin_comment": note.replace("generation=2", "generation=3")}
    assert site.submit().changes == at_look, "the limit is the sidecar's to lower"
    assert site.submit(time_min=5).changes == {}
    asked = site.modify({"time_limit": 300}, time_limit=241, admin_comment=note)
    assert asked.changes == {}
    assert "600 minutes" in asked.log[0]


def test_a_modified_job_loses_its_time_min_where_it_no_longer_fits(site: Site) -> None:
    assert site.modify({"time_limit": 100}, **OURS).changes == {"time_min": 0}
    assert site.modify({"time_limit": 300}, **OURS).changes == {}
    assert site.modify({"time_limit": 100, "time_min": 5}, **OURS).changes == {}
    assert site.modify({"time_limit": 2000}, uid=0, **OURS).changes == {"time_min": 0}
    assert site.modify({"comment": "foretime:off"}, **OURS).changes == {"time_min": 0}
    assert site.modify({"name": "x"}, **OURS).changes == {}
    site.path.unlink()
    assert site.modify({"time_limit": 100}, **OURS).changes == {"time_min": 0}


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
        ({"begin_time": 3000}, {"het_job_id": 6, "het_job_offset": 0}),
        ({"begin_time": 3000}, {"het_job_id": 6, "het_job_offset": 1}),
        ({"qos": "x"}, {"reservation": "course"}),
    ]
    for request, record in cleared:
        assert site.modify(request, **OURS, **record).changes == {"time_min": 0}, request
        assert site.modify(request, **record).changes == {}
        assert site.modify(request, time_min=241, **record).changes == {}, "its user's own"
    kept: list[dict[str, Any]] = [
        {"partition": "long"},
        {"partition": "short", "time_limit": 300},
        {"qos": "x"},
    ]
    for request in kept:
        assert site.modify(request, **OURS).changes == {}, request


def test_modification_is_judged_by_the_table(site: Site) -> None:
    site.write(
        replace(
            TABLE,
            left_alone=frozenset(
                {
                    ("account", "left"),
                    ("slurm_partition", "short"),
                    ("qos", "lim"),
                    ("qos", "partition-qos"),
                }
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
        assert site.modify(request, **OURS).changes == {"time_min": 0}, request
    assert site.modify({"account": "other"}, **OURS).changes == {}


def test_users_own_time_min_stays_under_rewrite_limit(site: Site) -> None:
    rewriting = (Mechanism.REWRITE_LIMIT, Mechanism.REWRITE_LIMIT_AT_LOOK)
    for valid_until, mechanism in itertools.product((100_000, NOW - 1), rewriting):
        site.write(replace(TABLE, valid_until=valid_until), mechanism=mechanism)
        assert site.modify({"partition": "short"}, time_min=241).changes == {}


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
        both = {"comment": "site", **noted(241)}
        assert with_module.submit(JOB, PARTITIONS, 1000, NOW).changes == both


def test_without_the_module_the_ready_made_script_leaves_jobs_alone(tmp_path: Path) -> None:
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
