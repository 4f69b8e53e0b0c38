"""The Slurm hook changes no TimeMin of a user's own, and none of Foretime's has Slurm refuse.

The expected answers are tables (`tests.support.hooks.time_changes`), the same for every state of
Foretime's table, everybody who may ask, and pending and running jobs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sidecar.table.table import (
    Mechanism,
    Mode,
    Table,
    TableRow,
    TableSettings,
    write_table,
)
from foretime_sim.mocks.slurm.hook import LUA_VERSIONS, HookReply, LuaHook, Value

from tests.support.hooks.time_changes import (
    CHANGES,
    HOLDINGS,
    LIMIT_MIN,
    REFUSED,
    Holding,
    with_hook,
    without_foretime,
    words_of,
)

NOW = 2_000
NO_VAL, INFINITE = 4294967294, 4294967295
PARTITIONS = {"main": {"max_time": INFINITE, "flag_default": 1}}
ROOT, SLURM_USER, OWNER = 0, 64030, 1000
PENDING, RUNNING = 0, 1
STATES = ("enforce", "observe", "advise", "off", "disabled", "stale", "none", "damaged", "never")
MODES = {"observe": Mode.OBSERVE, "advise": Mode.ADVISE, "off": Mode.OFF}
TABLE = Table(1, 1_000, 100_000, TableSettings(), rows=(TableRow("user", "alice", 0, 300_000),))


class Site:
    """The hook, with Foretime's table in some state."""

    def __init__(self, folder: Path, lua_version: str, state: str, mechanism: Mechanism) -> None:
        path, off = folder / "table", folder / "off"
        self.hook = LuaHook(lua_version=lua_version, table=path, disable_file=off)
        settings = TableSettings(mode=MODES.get(state, Mode.ENFORCE), mechanism=mechanism)
        if state != "never":
            write_table(path, replace(TABLE, settings=settings))
            self.submit()  # the hook has read a table that is good
        if state == "stale":
            write_table(path, replace(TABLE, settings=settings, valid_until=NOW - 1))
        elif state == "none":
            path.unlink()
        elif state == "damaged":
            path.write_bytes(path.read_bytes()[:-9])
        elif state == "disabled":
            off.touch()

    def submit(self, **fields: Value) -> HookReply:
        job = {"time_limit": LIMIT_MIN, "user_name": "alice", **fields}
        return self.hook.submit(job, PARTITIONS, OWNER, NOW)

    def change(self, holding: Holding, change: str, uid: int, state: int) -> HookReply:
        record = record_of(holding) | {"job_state": state}
        return self.hook.modify(request_of(change), record, PARTITIONS, uid, NOW)


def record_of(holding: Holding) -> dict[str, Value]:
    record: dict[str, Value] = {
        "job_id": 7,
        "time_limit": LIMIT_MIN,
        "time_min": holding.time_min or 0,
        "user_name": "alice",
    }
    return record | ({"admin_comment": holding.note} if holding.note else {})


def request_of(change: str) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for word, value in words_of(change).items():
        if word == "Comment":
            fields["comment"] = value
        else:
            name = {"TimeLimit": "time_limit", "TimeMin": "time_min"}[word]
            fields[name] = INFINITE if value == "UNLIMITED" else int(value)
    return fields


def answer(request: dict[str, Value], time_min: int | None) -> str:
    """What Slurm makes of a pending job's TimeMin, "refused", as it was seen to answer."""
    asked = int(request.get("time_min", NO_VAL))
    after = (time_min or 0) if asked == NO_VAL else asked
    if after > int(request.get("time_limit", LIMIT_MIN)):
        return REFUSED
    return str(after) if after else "-"


@pytest.fixture(params=LUA_VERSIONS)
def lua_version(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


def test_the_tables_are_of_one_mind() -> None:
    """What is refused with the hook is refused without, and the other way round."""
    for holding in HOLDINGS.values():
        for change in CHANGES:
            plain = without_foretime(holding, change)
            assert answer(request_of(change), holding.plain) == plain, change
            assert (with_hook(holding, change) == REFUSED) == (plain == REFUSED), change


@pytest.mark.parametrize("mechanism", [Mechanism.TIME_MIN, Mechanism.REWRITE_LIMIT], ids=str)
@pytest.mark.parametrize("state", STATES)
def test_a_change_comes_to_what_the_tables_say(
    lua_version: str, state: str, mechanism: Mechanism, tmp_path: Path
) -> None:
    site = Site(tmp_path, lua_version, state, mechanism)
    for name, holding in HOLDINGS.items():
        for change in CHANGES:
            for uid in (ROOT, SLURM_USER, OWNER):
                for job_state in (PENDING, RUNNING):
                    reply = site.change(holding, change, uid, job_state)
                    case = (name, change, uid, job_state)
                    assert reply.code == 0, case
                    request = request_of(change)
                    if not holding.is_ours or "time_min" in request:
                        assert reply.changes == {}, case
                    else:
                        assert set(reply.changes) <= {"time_min"}, case
                    after = answer({**request, **reply.changes}, holding.time_min)
                    assert after == with_hook(holding, change), case


def test_each_task_of_an_array_is_judged_by_itself(lua_version: str, tmp_path: Path) -> None:
    """Slurm calls the hook for one after the other with one request, in which its changes stay."""
    site = Site(tmp_path, lua_version, "observe", Mechanism.TIME_MIN)
    tasks = [HOLDINGS[name] for name in ("ours over 4", "user's", "none", "ours", "user's since")]

    def changed(
        first: int, request: dict[str, Value], now: int = NOW
    ) -> list[dict[str, int | str]]:
        found = []
        for number, holding in enumerate(tasks, first):
            record = record_of(holding) | {"job_id": number, "array_job_id": 1}
            reply = site.hook.modify(request, record, PARTITIONS, OWNER, now)
            request = {**request, **reply.changes}
            found.append(reply.changes)
        return found

    asked: dict[str, Value] = {"time_limit": 5}
    put_back = [{"time_min": minutes} for minutes in (4, NO_VAL)]
    expected = [put_back[0], put_back[1], {}, {"time_min": 0}, {"time_min": NO_VAL}]
    assert changed(1, asked) == expected
    assert changed(1, asked) == expected, "asked once more"
    own: dict[str, Value] = {"time_limit": 5, "time_min": 4}
    assert changed(1, own) == [{}] * 5, "a new request, in which the user asks for that time_min"
    assert changed(6, own, NOW + 1) == [{}] * 5


@pytest.mark.parametrize("state", [state for state in STATES if state != "enforce"])
def test_no_submission_is_changed_but_under_enforce(
    lua_version: str, state: str, tmp_path: Path
) -> None:
    """Nor is an AdminComment, which Slurm takes from operators alone."""
    site = Site(tmp_path, lua_version, state, Mechanism.TIME_MIN)
    submissions: list[dict[str, Value]] = [
        {},
        {"time_min": 1},
        {"time_min": 15},
        {"comment": "foretime:off"},
        {"admin_comment": "theirs"},
        {"admin_comment": "theirs foretime:treq=900,tmin=1"},
    ]
    for fields in submissions:
        reply = site.submit(**fields)
        assert (reply.code, reply.changes) == (0, {}), fields


def test_under_enforce_a_note_of_others_is_taken_out(lua_version: str, tmp_path: Path) -> None:
    site = Site(tmp_path, lua_version, "enforce", Mechanism.TIME_MIN)
    forged = {"admin_comment": "theirs foretime:treq=900,tmin=1", "user_name": "nobody"}
    assert site.submit(**forged).changes == {"admin_comment": "theirs"}
