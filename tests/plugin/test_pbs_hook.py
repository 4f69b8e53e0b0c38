"""What the PBS hook does that the Slurm one does not; plugin/README.md names each trap's test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.table.table import Mode, TableRow
from foretime_sim.mocks.pbs.hook import PbsHook, PbsReply, PbsSite, refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hooks.hooked_pbs import NOW, SOFT, TABLE, Scheduler, words

# Submission


def test_a_walltime_is_read_in_every_form(scheduler: Scheduler) -> None:
    for form in (36_000, "36000", "10:00:00", "600:00", "10:00:00.4", "9:59:59.5"):
        reply = scheduler.queue(Resource_List={"walltime": form})
        assert reply.changes == {SOFT: 10_800}, form


def test_walltime_comes_from_defaults_where_the_request_has_none(scheduler: Scheduler) -> None:
    """Defaults are not applied yet at queuejob; the order is that of PBS."""
    queue: dict[str, Any] = {"queue_type": "Execution", "resources_max": {"walltime": "8:00:00"}}
    server: dict[str, Any] = {"name": "pbs", "default_queue": "workq"}

    def planned() -> dict[str, int | str | None]:
        scheduler.hook.use_site(PbsSite(queues={"workq": queue}, server=server))
        return scheduler.queue(Resource_List={"ncpus": 1}).changes

    server["resources_max"] = {"walltime": "9:00:00"}
    assert planned() == {SOFT: 8_640}  # the queue's maximum
    del queue["resources_max"]
    assert planned() == {SOFT: 9_720}  # the server's
    server["resources_default"] = {"walltime": "5:00:00"}
    assert planned() == {SOFT: 5_400}
    queue["resources_default"] = {"walltime": "2:00:00"}
    assert planned() == {SOFT: 2_160}
    del server["resources_default"], server["resources_max"], queue["resources_default"]
    assert planned() == {}  # no limit at all
    assert words(scheduler.queue(Resource_List={}))["reason"] == "no-limit"


def test_a_routing_queue_has_no_defaults_to_go_by(scheduler: Scheduler) -> None:
    """Where the job ends up, another default may be below a soft_walltime set now."""
    queues = {"route": {"queue_type": "Route", "resources_default": {"walltime": "10:00:00"}}}
    scheduler.hook.use_site(PbsSite(queues=queues))
    assert scheduler.queue(queue="route", Resource_List={}).changes == {}
    assert scheduler.queue(queue="route").changes == {SOFT: 10_800}


@pytest.mark.parametrize("bound", ["min_walltime", "max_walltime"])
def test_shrink_to_fit_jobs_are_left_alone(scheduler: Scheduler, bound: str) -> None:
    listed = {"walltime": 36_000, bound: 3_600}
    reply = scheduler.queue(Resource_List=listed)
    assert (reply.changes, words(reply)["reason"]) == ({}, "shrink-to-fit")
    assert scheduler.run(**scheduler.planned(None, **{bound: 60})).changes == {}
    assert scheduler.modify({"Resource_List": {bound: 3_600}}).changes == {SOFT: None}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    adjustment=st.integers(0, 1_000_000),
    walltime=st.one_of(st.none(), st.integers(0, 5_000_000)),
    default=st.one_of(st.none(), st.integers(1, 100_000)),
    minimum=st.integers(0, 200_000),
    rounding=st.integers(1, 200_000),
    shrink=st.booleans(),
)
def test_what_the_hook_sets_is_never_refused(
    scheduler: Scheduler,
    adjustment: int,
    walltime: int | None,
    default: int | None,
    minimum: int,
    rounding: int,
    shrink: bool,
) -> None:
    """pbs_server would reject the job: soft above walltime, or soft of a shrink-to-fit job."""
    scheduler.write(
        replace(TABLE, rows=(TableRow("user", "alice", 0, adjustment),)),
        minimum_adjustment=0.0,
        minimum_scheduled_time_s=minimum,
        rounding_s=rounding,
    )
    defaults = {} if default is None else {"resources_default": {"walltime": default}}
    scheduler.hook.use_site(PbsSite(queues={"workq": {"queue_type": "Execution", **defaults}}))
    listed = {} if walltime is None else {"walltime": walltime}
    if shrink:
        listed["min_walltime"] = 60
    reply = scheduler.queue(Resource_List=listed)
    assert reply.accepted
    soft = reply.changes.get(SOFT)
    after = {"walltime": default, **listed, "soft_walltime": soft}
    assert refusal({name: value for name, value in after.items() if value is not None}) is None


def test_what_the_server_refuses() -> None:
    assert refusal({"walltime": "0:02:00", "soft_walltime": 240}) is not None
    assert "Shrink to Fit" in str(refusal({"min_walltime": 120, "soft_walltime": 10}))
    assert refusal({"walltime": 120, "soft_walltime": "00:02:00"}) is None
    assert refusal({"soft_walltime": 5}) is None


def test_who_a_job_is_of(scheduler: Scheduler) -> None:
    assert scheduler.queue("bob").changes == {}
    assert scheduler.queue("bob", User_List="alice").changes == {SOFT: 10_800}
    assert scheduler.queue("bob", User_List="carol,alice@PBS").changes == {SOFT: 10_800}
    assert scheduler.queue("bob", User_List="alice,carol@elsewhere").changes == {SOFT: 10_800}
    assert scheduler.queue("bob", User_List="alice@elsewhere,carol").changes == {}
    # It runs as its owner; nobody borrows another's row by a name that counts elsewhere.
    assert scheduler.queue("bob", User_List="alice@elsewhere").changes == {}
    assert scheduler.queue("bob", Account_Name="phys").changes == {SOFT: 18_000}
    assert scheduler.queue("bob", project="phys").changes == {SOFT: 18_000}
    assert scheduler.queue("bob", project="phys", Account_Name="art").changes == {}
    scheduler.write(replace(TABLE, rows=(TableRow("project", "_pbs_project_default", 0, 1),)))
    assert scheduler.queue("bob", project="_pbs_project_default").changes == {}


@pytest.mark.parametrize(
    ("request_", "processors"),
    [
        ({}, 1),
        ({"ncpus": 8}, 8),
        ({"select": "1"}, 1),
        ({"select": "9"}, 9),
        ({"select": "2:ncpus=4"}, 8),
        ({"select": "2:ncpus=5"}, 10),
        ({"select": "ncpus=3:mem=1gb+ncpus=5"}, 8),
        ({"select": "1:ncpus=1+2:mem=4gb:ncpus=4"}, 9),
        ({"nodes": "1:ppn=8"}, 8),
        ({"nodes": "2:ppn=8"}, 16),
        ({"nodes": "node1:ppn=4+node2:ppn=4"}, 8),
        ({"ncpus": 9, "select": "1:ncpus=1"}, 9),
        ({"select": "2:ncpus=4", "place": "scatter:excl"}, 8),
    ],
)
def test_processors_are_counted_from_what_a_job_asks_for(
    scheduler: Scheduler, request_: dict[str, Any], processors: int
) -> None:
    reply = scheduler.queue("small", Resource_List={"walltime": 36_000, **request_})
    assert bool(reply.changes) == (processors <= 8)


def test_a_chunk_has_the_processors_of_its_queues_default(scheduler: Scheduler) -> None:
    queues = {"workq": {"queue_type": "Execution", "default_chunk": {"ncpus": 4}}}
    scheduler.hook.use_site(PbsSite(queues=queues))
    listed = {"walltime": 36_000, "select": "2"}
    assert scheduler.queue("small", Resource_List=listed).changes
    assert not scheduler.queue("small", Resource_List={**listed, "select": "3"}).changes


@pytest.mark.parametrize(
    "variables", [{"FORETIME": "off"}, {"FORETIME": "OFF"}, "A=1,FORETIME=off"]
)
def test_a_job_that_opts_out_is_left_alone(scheduler: Scheduler, variables: Any) -> None:
    assert words(scheduler.queue(Variable_List=variables))["reason"] == "opt-out"
    assert scheduler.modify({"Variable_List": variables}).changes == {SOFT: 36_000}
    assert scheduler.queue(Variable_List={"FORETIME": "on", "A": "off"}).changes


@pytest.mark.parametrize(
    "job",
    [
        {"array_indices_submitted": "0-99"},
        {"interactive": 1},
        {"block": True},
        {"Rerunable": "n"},
        {"Resource_List": {"walltime": 36_000, "mem": "4gb", "place": "exclhost"}},
    ],
)
def test_other_kinds_of_jobs_are_planned_like_any(
    scheduler: Scheduler, job: dict[str, Any]
) -> None:
    assert scheduler.queue(**job).changes == {SOFT: 10_800}


@pytest.mark.parametrize(
    "job", [{"queue": "R12"}, {"queue": "S3"}, {"queue": "M4"}, {"reserve_ID": "R1.pbs"}]
)
def test_jobs_in_a_reservation_are_left_alone(scheduler: Scheduler, job: dict[str, Any]) -> None:
    assert words(scheduler.queue(**job))["reason"] == "reservation-job"


def test_a_manager_is_a_user_like_any_other(scheduler: Scheduler) -> None:
    scheduler.hook.use_site(
        PbsSite(server={"name": "pbs", "default_queue": "workq", "managers": "alice@*"})
    )
    assert scheduler.queue().changes == {SOFT: 10_800}
    # and whoever may set a soft_walltime gets the one that was asked for
    assert scheduler.modify({"Resource_List": {"soft_walltime": 60}}).changes == {}
    assert scheduler.modify({"Resource_List": {"soft_walltime": 60, "walltime": 600}}).changes == {}


def test_another_servers_soft_walltime_is_never_trusted(scheduler: Scheduler) -> None:
    """Jobs from qmove or peer scheduling come with an id, hops and the other server's word."""
    moved = {**scheduler.planned(60), "hop_count": 2}
    listed = {"soft_walltime": 60}
    assert scheduler.queue("root", **{**moved, "Resource_List": listed}).changes == {SOFT: None}
    assert scheduler.queue("root", **moved).changes == {SOFT: 10_800}
    del moved["id"]
    assert scheduler.queue("root", **moved).changes == {SOFT: 10_800}
    assert scheduler.queue("root", **{**moved, "Job_Owner": "bob@there"}).changes == {SOFT: 36_000}
    scheduler.write(TABLE, mode=Mode.OBSERVE)
    assert scheduler.queue("root", **moved).changes == {SOFT: 36_000}
    scheduler.table.unlink()
    assert scheduler.queue("root", **moved).changes == {SOFT: 36_000}
    scheduler.configure(nonsense=1)
    assert scheduler.queue("root", **moved).changes == {SOFT: 36_000}


def test_a_hook_of_the_site_before_ours_has_the_last_word(scheduler: Scheduler) -> None:
    reply = scheduler.queue(Resource_List={"walltime": 36_000, "soft_walltime": 60})
    assert (reply.changes, words(reply)["reason"]) == ({}, "site")


def test_a_job_before_dedicated_time_is_left_alone(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler judges by soft_walltime whether a job ends before it."""
    monkeypatch.setenv("TZ", "UTC")
    home = scheduler.folder / "home"
    times = home / "sched_priv" / "dedicated_time"
    times.parent.mkdir(parents=True)
    scheduler.hook.use_site(PbsSite(home=str(home)))
    assert scheduler.queue().changes
    head = "# what nobody can read\nx\n1/2/3\n"
    times.write_text(head + "01/01/1970 12:46 01/01/1970 14:00  # 45,960 to 50,400\n")
    assert words(scheduler.queue())["reason"] == "dedicated-time"  # until 46,000
    times.write_text(head + "01/01/1970 12:47 01/01/1970 14:00\n")
    assert scheduler.queue().changes
    assert words(scheduler.queue(Execution_Time=20_000))["reason"] == "dedicated-time"
    assert scheduler.modify({"Execution_Time": 20_000}).changes == {SOFT: 36_000}
    times.unlink()
    times.mkdir()
    assert words(scheduler.queue())["reason"] == "dedicated-time"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("backfill_prime: false ALL\nbackfill_prime: False prime\n", False),
        ("# backfill_prime: true ALL\nresources: ncpus\n", False),
        ("  backfill_prime : True ALL\n", True),
        ("backfill_prime: false prime\nbackfill_prime: true non_prime\n", True),
        ("backfill_prime: 1\n", True),
    ],
)
def test_where_primetime_counts_every_job_is_left_alone(
    scheduler: Scheduler, text: str, counts: bool
) -> None:
    """The scheduler judges by soft_walltime whether a job ends before it."""
    home = scheduler.folder / "home"
    config = home / "sched_priv" / "sched_config"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    scheduler.hook.use_site(PbsSite(home=str(home)))
    reply = scheduler.queue()
    expected = ("primetime", {}) if counts else ("-", {SOFT: 10_800})
    assert (words(reply)["reason"], reply.changes) == expected


def test_a_scheduler_configuration_that_can_not_be_read_leaves_jobs_alone(
    scheduler: Scheduler,
) -> None:
    home = scheduler.folder / "home"
    (home / "sched_priv" / "sched_config").mkdir(parents=True)
    scheduler.hook.use_site(PbsSite(home=str(home)))
    assert words(scheduler.queue())["reason"] == "primetime"


def test_a_walltime_in_a_chunk_is_left_to_pbs(scheduler: Scheduler) -> None:
    """Which refuses it: of a t_sched above that walltime it would complain in other words."""
    for select in ("1:ncpus=1:walltime=100", "2:ncpus=1+1:walltime=1:mem=1gb"):
        reply = scheduler.queue(Resource_List={"walltime": 36_000, "select": select})
        assert (reply.changes, words(reply)["reason"]) == ({}, "no-limit")


# Modification


def test_a_user_may_always_lower_the_walltime(scheduler: Scheduler) -> None:
    """The server refuses a walltime below soft_walltime; also without table and configuration."""
    asked = {"Resource_List": {"walltime": "1:00:00"}}
    for _ in range(2):
        reply = scheduler.modify(asked)
        assert reply.changes == {SOFT: 3_600}
        assert refusal({"walltime": 3_600, "soft_walltime": reply.changes[SOFT]}) is None
        scheduler.table.unlink(missing_ok=True)
        scheduler.config.write_text("nonsense")
    assert scheduler.modify({"Resource_List": {"walltime": 10_799}}).changes == {SOFT: 10_799}
    assert scheduler.modify({"Resource_List": {"walltime": 10_800}}).changes == {}
    above = {"Resource_List": {"walltime": "5:00:00"}}
    assert scheduler.modify(above).changes == {}
    assert scheduler.modify(asked, **scheduler.planned(None)).changes == {}


@pytest.mark.parametrize("valid_until", [100_000, NOW - 1], ids=["valid", "out of date"])
@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE, Mode.OFF])
def test_a_soft_walltime_of_others_is_not_touched(
    scheduler: Scheduler, mode: Mode, valid_until: int
) -> None:
    """A manager's or another hook's, of a job submitted since Foretime planned none any more."""
    changes: list[dict[str, Any]] = [
        {"Resource_List": {"walltime": "1:00:00"}},
        {"Resource_List": {"walltime": "1:00:00"}, "Account_Name": "art"},
        {"Resource_List": {"min_walltime": 60}},
        {"Variable_List": {"FORETIME": "off"}},
    ]
    table = replace(TABLE, valid_until=valid_until, unplanned_since=999)
    scheduler.write(table, mode=mode)
    for asked in changes:
        assert scheduler.modify(asked) == PbsReply(accepted=True, message="", changes={}, log=[])
    assert scheduler.run(now=1_500, **scheduler.planned(40_000)).changes == {}
    scheduler.write(replace(table, unplanned_since=1_000), mode=mode)  # it may have been planned
    for asked in changes:
        assert SOFT in scheduler.modify(asked).changes, asked
    assert scheduler.run(now=1_500, **scheduler.planned(40_000)).changes == {SOFT: 36_000}


def test_a_request_without_walltime_is_judged_by_the_existing_jobs(scheduler: Scheduler) -> None:
    assert scheduler.modify({"Account_Name": "art"}).changes == {}
    assert scheduler.modify({"Job_Name": "x"}).log == []
    long = scheduler.planned(walltime="2000000:00:00")
    assert scheduler.modify({"Account_Name": "art"}, **long).changes == {SOFT: 7_200_000_000}
    without = scheduler.planned(walltime=None)
    assert scheduler.modify({"Account_Name": "art"}, **without).changes == {SOFT: None}


@pytest.mark.parametrize("state", ["R", "S", "U", "Q", "H", "B"])
def test_soft_walltime_of_a_running_job_is_never_raised(scheduler: Scheduler, state: str) -> None:
    """PBS refuses a user's request with which any resource of a running job rises."""
    job: dict[str, Any] = {"job_state": state, "Variable_List": {"FORETIME": "off"}}
    still_above = scheduler.modify({"Resource_List": {"walltime": "9:00:00"}}, **job)
    assert still_above.changes == ({} if state in "RSU" else {SOFT: 32_400})
    below = scheduler.modify({"Resource_List": {"walltime": "1:00:00"}}, **job)
    assert below.changes == {SOFT: 3_600}


def test_the_existing_job_is_read_only(scheduler: Scheduler, tmp_path: Path) -> None:
    script = tmp_path / "hook.py"
    script.write_text("import pbs\npbs.event().job_o.Resource_List['soft_walltime'] = 5\n")
    reply = PbsHook(script).modifyjob({}, scheduler.planned(), "alice", NOW)
    assert not reply.accepted
    assert "readonly" in reply.message


# Start


def test_an_old_job_is_judged_anew_when_it_starts(scheduler: Scheduler) -> None:
    """As CESNET does: its prediction is renewed at runjob if older than an hour."""
    old = scheduler.planned(60)
    assert scheduler.run(now=4_599, **old).changes == {}  # written after it, but not old enough
    scheduler.write(replace(TABLE, written_at=1_001))
    assert scheduler.run(now=4_599, **old).changes == {}
    assert scheduler.run(now=4_600, **old).changes == {SOFT: 10_800}
    assert scheduler.run(now=4_600, **scheduler.planned(None)).changes == {SOFT: 10_800}
    assert scheduler.run(now=4_600).changes == {}  # the same again
    scheduler.write(replace(TABLE, written_at=1_000))
    assert scheduler.run(now=4_600, **old).changes == {}  # it was judged by this table
    scheduler.configure(readjust_after_s=10_000)
    scheduler.write(TABLE)
    assert scheduler.run(**old).changes == {}
    assert scheduler.run(now=11_000, **old).changes == {SOFT: 10_800}


def test_a_subjob_is_judged_anew_like_a_job(scheduler: Scheduler) -> None:
    subjob = {**scheduler.planned(60), "id": "7[3].pbs", "array_id": "7[].pbs", "array_index": 3}
    reply = scheduler.run(**subjob)
    assert reply.changes == {SOFT: 10_800}
    assert words(reply)["job"] == "7%5B3%5D.pbs"


def test_at_the_start_a_job_that_must_be_plain_is_planned_with_all_of_it(
    scheduler: Scheduler,
) -> None:
    out = scheduler.run(Variable_List={"FORETIME": "off"})
    assert (out.changes, words(out)["decision"]) == ({SOFT: 36_000}, "cleared")
    assert scheduler.run(euser="bob").changes == {SOFT: 36_000}
    scheduler.write(TABLE, mode=Mode.OBSERVE)
    assert scheduler.run(euser="bob").changes == {}
    scheduler.table.unlink()
    assert scheduler.run().changes == {}


def test_at_the_start_soft_walltime_is_never_above_walltime(scheduler: Scheduler) -> None:
    """Another queue's default may have come in between; it is so without a table."""
    assert scheduler.run(now=1_500, **scheduler.planned(40_000)).changes == {SOFT: 36_000}
    scheduler.table.unlink()
    assert scheduler.run(**scheduler.planned(40_000)).changes == {SOFT: 36_000}


# The line in the log


def test_the_line_says_all_that_was_decided(scheduler: Scheduler) -> None:
    assert words(scheduler.queue()) == {
        "event": "queuejob",
        "job": "-",
        "user": "alice",
        "project": "-",
        "queue": "-",
        "t_req": "36000",
        "t_sched": "10800",
        "decision": "planned",
        "reason": "-",
        "mode": "enforce",
        "generation": "1",
    }
    assert words(scheduler.queue(queue="workq"))["queue"] == "workq"


def test_an_older_pbs_has_fewer_names(scheduler: Scheduler) -> None:
    scheduler.hook.use_site(PbsSite(without=frozenset({"pbs_conf", "QTYPE_ROUTE"})))
    assert scheduler.queue().changes == {SOFT: 10_800}


def test_lines_are_printable_and_of_bounded_length(scheduler: Scheduler) -> None:
    reply = scheduler.queue("é\n" * 2_000, Account_Name="a b\tc")
    assert reply.accepted
    assert len(reply.log[0].text) <= 1_000
    assert reply.log[0].text.isascii()
    assert reply.log[0].text.isprintable()
