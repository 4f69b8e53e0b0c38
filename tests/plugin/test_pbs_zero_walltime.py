"""No soft_walltime below 1 s: pbs_sched divides by it, and would die while such a job runs.

The stand-in for PBS raises where pbs_sched would die, so each run here is a check of that, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table.table import Mode
from foretime_sim.mocks.pbs.hook import PbsReply, PbsSite, refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hooks.hooked_pbs import NOW, SOFT, TABLE, Scheduler, words

# What the server rounds to 0 s.
ZEROS = (0, "0", "00", "00:00:00", "0.4", "0:00:00.499")


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    return Scheduler(tmp_path)


def with_queue_default(scheduler: Scheduler, walltime: int | str) -> None:
    queue = {"queue_type": "Execution", "resources_default": {"walltime": walltime}}
    scheduler.hook.use_site(PbsSite(queues={"workq": queue}))


def taken_away(reply: PbsReply, reason: str = "walltime") -> bool:
    logged = words(reply)
    assert (logged["decision"], logged["reason"], logged["t_sched"]) == ("cleared", reason, "-")
    return reply.changes == {SOFT: None}


@pytest.mark.parametrize("walltime", ZEROS)
def test_a_walltime_of_0_takes_soft_walltime_away(
    scheduler: Scheduler, walltime: int | str
) -> None:
    """An ordinary user's qalter, of a job in any state, with and without table, configuration."""
    asked = {"Resource_List": {"walltime": walltime}}
    for _ in range(2):
        for state in "QHWBRSU":
            assert taken_away(scheduler.modify(asked, job_state=state)), state
        array: dict[str, Any] = {"id": "7[].pbs", "array": 1, "job_state": "B"}
        assert taken_away(scheduler.modify(asked, requestor="root", **array))
        assert scheduler.modify(asked, **scheduler.planned(None)).changes == {}
        scheduler.table.unlink(missing_ok=True)
        scheduler.config.write_text("nonsense")


def test_a_walltime_of_1_second_is_soft_walltime(scheduler: Scheduler) -> None:
    for walltime in (1, "0.5", "00:00:01.4"):
        reply = scheduler.modify({"Resource_List": {"walltime": walltime}})
        assert reply.changes == {SOFT: 1}, walltime


@pytest.mark.parametrize("walltime", ZEROS)
def test_a_job_submitted_with_a_walltime_of_0_is_left_alone(
    scheduler: Scheduler, walltime: int | str
) -> None:
    reply = scheduler.queue(Resource_List={"walltime": walltime})
    assert (reply.changes, words(reply)["reason"]) == ({}, "no-limit")
    # Another server's word, also where all there is is a queue's default.
    moved: dict[str, Any] = {"id": "7.pbs", "hop_count": 2, "Job_Owner": "alice@there"}
    listed = {"walltime": walltime, "soft_walltime": 60}
    assert scheduler.queue(**moved, Resource_List=listed).changes == {SOFT: None}
    with_queue_default(scheduler, walltime)
    assert scheduler.queue(Resource_List={}).changes == {}
    assert scheduler.queue(**moved, Resource_List={"soft_walltime": 60}).changes == {SOFT: None}


def test_at_the_start_soft_walltime_is_not_lowered_to_0(scheduler: Scheduler) -> None:
    """A job that qmove took from one queue's default to another's, which is 0."""
    moved = scheduler.planned(walltime=0)
    assert taken_away(scheduler.run(now=1_500, **moved))
    with_queue_default(scheduler, "0.4")
    assert taken_away(scheduler.run(now=1_500, **scheduler.planned(walltime=None)))
    scheduler.table.unlink()
    assert taken_away(scheduler.run(**moved))
    assert scheduler.modify({"Job_Name": "x"}, **moved).changes == {SOFT: None}


def test_a_soft_walltime_of_0_that_a_manager_set_is_taken_away(scheduler: Scheduler) -> None:
    """At the start of the job, or when it is modified; while it runs, unset is no raise for PBS."""
    zero = scheduler.planned(0)
    assert scheduler.modify({"Resource_List": {"soft_walltime": 60}}, **zero).changes == {}
    assert scheduler.run(**zero).changes == {SOFT: 10_800}, "it is old enough to be judged anew"
    for _ in range(2):
        for job in (zero, {**zero, "id": "7[3].pbs", "array_id": "7[].pbs", "array_index": 3}):
            assert taken_away(scheduler.run(now=1_500, **job), "too-short")
        for asked in ({"Resource_List": {"walltime": 600}}, {"Job_Name": "x"}):
            for state in "QR":
                changed = scheduler.modify(asked, **zero, job_state=state)
                assert taken_away(changed, "too-short")
        scheduler.write(TABLE, mode=Mode.OBSERVE)
    scheduler.config.write_text("nonsense")
    assert scheduler.run(**zero).changes == {SOFT: None}


def test_who_asks_for_no_soft_walltime_gets_none(scheduler: Scheduler) -> None:
    """qalter -l soft_walltime=, as uninstall does it, also of jobs that are to be left alone."""
    asked = {"Resource_List": {"soft_walltime": ""}}
    for job in ({}, scheduler.planned(0, walltime=0), {"Variable_List": {"FORETIME": "off"}}):
        assert scheduler.modify(asked, "root", **job).changes == {}
    asked["Resource_List"]["walltime"] = "0"
    assert scheduler.modify(asked, "root").changes == {}


def test_a_walltime_that_is_taken_away_leaves_the_default(scheduler: Scheduler) -> None:
    """qalter -l walltime=: the queue's default comes back, or there is no limit."""
    asked = {"Resource_List": {"walltime": ""}}
    assert taken_away(scheduler.modify(asked), "no-limit")
    for default, soft in (("5:00:00", {}), (3_600, {SOFT: 3_600}), ("0.4", {SOFT: None})):
        with_queue_default(scheduler, default)
        for state in "QR":
            assert scheduler.modify(asked, job_state=state).changes == soft, default


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    event=st.sampled_from(["queuejob", "modifyjob", "runjob"]),
    walltime=st.sampled_from([None, *ZEROS, 1, "0.5", 600, 36_000]),
    soft=st.sampled_from([None, 0, 1, 600, 40_000]),
    asked=st.dictionaries(
        st.sampled_from(["walltime", "soft_walltime", "min_walltime"]),
        st.sampled_from(["", *ZEROS, 1, 600]),
    ),
    default=st.sampled_from(["", 0, "0.4", 1, 600]),
    state=st.sampled_from("QHBRS"),
    now=st.sampled_from([1_500, NOW]),
    owner=st.sampled_from(["alice", "bob"]),
)
def test_whatever_comes_it_is_never_below_1_second(
    scheduler: Scheduler,
    event: str,
    walltime: int | str | None,
    soft: int | None,
    asked: dict[str, Any],
    default: int | str,
    state: str,
    now: int,
    owner: str,
) -> None:
    with_queue_default(scheduler, default)
    job = {
        **scheduler.planned(soft, walltime=walltime),
        "Job_Owner": f"{owner}@login",
        "job_state": state,
    }
    if event == "modifyjob":
        reply = scheduler.hook.modifyjob({"Resource_List": asked}, job, "alice", now)
        after = {**job["Resource_List"], **asked}
    else:
        reply = (
            scheduler.hook.runjob(job, now)
            if event == "runjob"
            else scheduler.hook.queuejob(job, owner, now)
        )
        after = job["Resource_List"]
    assert reply.accepted
    if SOFT not in reply.changes:
        return
    after = {**after, "soft_walltime": reply.changes[SOFT]}
    present = {name: value for name, value in after.items() if value not in (None, "")}
    assert refusal(present) is None


def test_at_the_start_a_job_without_walltime_has_no_soft_walltime(scheduler: Scheduler) -> None:
    """Where qmove took a queue's default from it; with and without a table."""
    moved = {"Resource_List": {"soft_walltime": 600, "select": "1:ncpus=4"}}
    for _ in range(2):
        assert taken_away(scheduler.run(now=1_500, **moved), "no-limit")
        scheduler.table.unlink(missing_ok=True)
