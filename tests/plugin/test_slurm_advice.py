"""Under advise users are told what their jobs use, at most once a day, and nothing changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table.table import (
    Advice,
    Mode,
    Table,
    TableRow,
    TableSettings,
    write_table,
)
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, Fields, HookReply, LuaHook
from hypothesis import given, settings
from hypothesis import strategies as st

DAY_S = 86_400
NOW = 1_000_000
PARTITIONS: dict[str, dict[str, Any]] = {"main": {"max_time": 4294967295, "flag_default": 1}}
TABLE = Table(
    generation=1,
    written_at=NOW,
    valid_until=NOW + 100 * DAY_S,
    settings=TableSettings(mode=Mode.ADVISE, requested_time_bounds_s=(3600, 86_400)),
    left_alone=frozenset({("user", "carol")}),
    advice=Advice(told_until=NOW),
    rows=tuple(
        TableRow("user", name, time_class, 50_000)
        for name in ("alice", "bob", "carol")
        for time_class in (1, 2)
    ),
)


class Site:
    """A hook that began at `NOW`."""

    def __init__(self, folder: Path, lua_version: str = "5.1") -> None:
        self.path = folder / "table"
        self.hook = LuaHook(lua_version=lua_version, table=self.path)
        self.write(TABLE)
        self.restart(NOW)

    def write(self, table: Table) -> None:
        write_table(self.path, table)

    def restart(self, now: int) -> None:
        """Lose everything that the hook remembers, as when its script is loaded anew."""
        self.hook.set_clock(now)
        self.hook.configure({"table": str(self.path)})

    def submit(self, now: int, user: str = "alice", minutes: int = 1200) -> HookReply:
        job: dict[str, Any] = {"user_name": user, "time_limit": minutes, "min_cpus": 4}
        return self.hook.submit(job, PARTITIONS, 1000, now)

    def told(self, now: int, user: str = "alice", minutes: int = 1200) -> bool:
        reply = self.submit(now, user, minutes)
        assert reply.changes == {}
        assert reply.code == 0
        assert [line for line in reply.log if line.startswith("error")] == []
        return any(line.startswith("user foretime: ") for line in reply.log)


@pytest.fixture(params=LUA_VERSIONS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return Site(tmp_path, request.param)


def test_a_user_is_told_once_in_24_hours(site: Site) -> None:
    assert site.told(NOW + 1)
    assert not site.told(NOW + 2)
    assert site.told(NOW + 2, user="bob")
    assert not site.told(NOW + DAY_S)
    assert site.told(NOW + 1 + DAY_S)
    assert not site.told(NOW)  # a clock set back


def test_what_a_user_is_told(site: Site) -> None:
    shorter = "A shorter --time fits into more gaps, and so may start sooner."
    said = (
        "user foretime: jobs like this one mostly ended within 02:00:00, and it asks for 20:00:00."
        " {} A job is ended at its --time: leave some to spare. Nothing was changed; this is said"
        " at most once a day."
    )
    assert site.submit(NOW).log == [said.format(shorter)]  # both in one class
    waits = replace(TABLE.advice, median_wait_s=((1, 600), (2, 2 * DAY_S + 61)))
    site.write(replace(TABLE, generation=2, advice=waits))
    gain = (
        "Of late jobs with --time up to 1-00:00:00 waited 00:10:00, those like this one"
        " 2-00:01:01 (medians)."
    )
    (line,) = site.submit(NOW, user="bob", minutes=10_000).log
    assert gain in line
    assert "within 16:40:00, and it asks for 6-22:40:00." in line


@pytest.mark.parametrize(
    ("user", "minutes"),
    [("carol", 1200), ("dave", 1200), ("alice", 5), ("alice", 4294967294)],
    ids=["left alone", "no history", "as short as can be", "no limit"],
)
def test_whoever_would_not_be_planned_is_not_told(tmp_path: Path, user: str, minutes: int) -> None:
    assert not Site(tmp_path).told(NOW, user, minutes)


def test_a_state_that_was_lost_makes_nobody_hear_twice(site: Site) -> None:
    assert site.told(NOW + 10)
    site.restart(NOW + 20)
    assert not site.told(NOW + 30)
    assert not site.told(NOW + 30, user="bob")  # this state can't know whether he was
    told = Advice(told_until=NOW + 19, told=(("alice", NOW + 10),))
    site.write(replace(TABLE, generation=2, advice=told))
    assert not site.told(NOW + 31, user="bob")  # somebody may have been told at NOW + 20
    site.write(replace(TABLE, generation=3, advice=replace(told, told_until=NOW + 20)))
    assert site.told(NOW + 40, user="bob")
    assert not site.told(NOW + 40)
    assert site.told(NOW + 10 + DAY_S)


def test_a_table_without_memory_has_nobody_told(site: Site) -> None:
    site.write(replace(TABLE, generation=2, advice=Advice()))
    assert not site.told(NOW + 1)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ENFORCE, Mode.OFF])
def test_in_other_modes_nobody_is_told(site: Site, mode: Mode) -> None:
    settings = replace(TABLE.settings, mode=mode)
    site.write(replace(TABLE, generation=2, settings=settings))
    reply = site.submit(NOW + 1)
    assert not any(line.startswith("user") for line in reply.log)
    assert bool(reply.changes) is (mode is Mode.ENFORCE)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 40_000), st.booleans()), max_size=20))
def test_never_twice_in_24_hours_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    """The daemon writes a table of who was told at each step; the script may be loaded anew."""
    site, now, times = Site(tmp_path_factory.mktemp("site")), NOW, list[int]()
    for number, (pause, lost) in enumerate(steps, start=2):
        now += pause
        if lost:
            site.restart(now)
        if site.told(now):
            times.append(now)
        told = tuple(("alice", at) for at in times[-1:])
        site.write(replace(TABLE, generation=number, advice=Advice(now, told)))
    assert all(later - earlier >= DAY_S for earlier, later in itertools.pairwise(times))


SITE = """
local seen = {}
function slurm_job_submit(job, parts, uid)
  if job.user_name == "refused" then return 2051 end
  if job.user_name == "broken" then error("site's own fault") end
  if job.user_name == "silent" then return end
  return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
"""


@pytest.mark.parametrize("lua_version", LUA_VERSIONS)
def test_attached_behind_a_sites_own_functions(tmp_path: Path, lua_version: str) -> None:
    path, script = tmp_path / "table", tmp_path / "job_submit.lua"
    line = f'require("foretime").attach {{ table = "{path}" }}\n'
    script.write_text(SITE + line + "return slurm.SUCCESS\n")
    write_table(path, replace(TABLE, settings=replace(TABLE.settings, mode=Mode.ENFORCE)))
    hook = LuaHook(script, lua_version=lua_version)

    def submit(user: str) -> HookReply:
        job: dict[str, Any] = {"user_name": user, "time_limit": 1200, "min_cpus": 4}
        return hook.submit(job, PARTITIONS, 1000, NOW)

    assert submit("alice").changes.get("time_min") == 120
    assert submit("refused") == HookReply(2051, {}, [])
    broken = submit("broken")
    assert broken.changes == {}
    assert "site's own fault" in broken.log[0]
    assert submit("silent").code == 0
    planned: Fields = {"time_min": 120, "admin_comment": "foretime:treq=1200,tmin=120,generation=1"}
    reply = hook.modify({"time_limit": 60}, planned, PARTITIONS, 1000, NOW)
    assert reply.changes == {"time_min": 0}


def test_a_script_without_functions_gets_them(tmp_path: Path) -> None:
    script = tmp_path / "job_submit.lua"
    script.write_text('require("foretime").attach()\n')
    reply = LuaHook(script).submit({"time_limit": 60}, PARTITIONS, 1000, NOW)
    assert (reply.code, reply.changes) == (0, {})
    assert reply.log == ["info foretime: jobs are left alone: table -: no table is configured"]
