"""The mock Slurm against plain runs of the engine, and through the sidecar's own client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, JobChange, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.table.table import Mode, Table, TableRow, TableSettings, write_table
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.slurm.hook import Fields, LuaHook
from foretime_sim.mocks.slurm.mock_slurm import NO_VAL, MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import FAMILIES, Easy
from foretime_sim.policies.guard import Guard, parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.mocks.lived_workload import lived
from tests.support.workloads.small_workloads import workloads

PROCESSORS = 8
START = 1_200_000_000
JOB = Submission(
    user="ann",
    account="physics",
    slurm_partition="batch",
    processors=4,
    requested_time=3600,
    actual_runtime=1800,
)


@dataclass
class Reply:
    code: int = 0
    changes: Mapping[str, int | str | float] = field(default_factory=dict)
    log: tuple[str, ...] = ()


@dataclass
class Scripted:
    """A plugin that answers what a test tells it to, and keeps what it was shown."""

    reply: Reply = field(default_factory=Reply)
    seen: list[Any] = field(default_factory=list)

    def submit(self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int) -> Reply:
        self.seen.append((dict(job), dict(partitions), uid, now))
        return self.reply

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> Reply:
        self.seen.append((dict(request), dict(job), uid, now))
        return self.reply


def slurm_of(policy: Policy | None = None, hook: Any = None, **setup: Any) -> MockSlurm:
    return MockSlurm(SlurmSetup(PROCESSORS, **setup), policy or Policy(), hook, START)


# Against the engine -------------------------------------------------------------------------------


def mocked(workload: Workload, policy: Policy, looks: list[int], clock: int = 0) -> Schedule:
    """Submit a workload job by job, with the client looking in at some moments on the way."""
    slurm = MockSlurm(SlurmSetup(workload.machine_processors), policy, None, clock)
    ids: list[int] = []

    def submit(processors: int, requested: int, actual: int) -> None:
        ids.append(slurm.submit(Submission(None, None, None, processors, requested, actual)))

    schedule = lived(slurm, SlurmCommands(slurm.run, overlap_s=0), submit, workload, looks)
    assert ids == list(range(1, len(workload) + 1))
    return schedule


@settings(max_examples=150)
@given(
    workload=workloads(PROCESSORS),
    looks=st.lists(st.integers(0, 400), max_size=5),
    order=st.sampled_from([order for order in Order if order is not Order.PRIORITY]),
    backfill=st.sampled_from(list(FAMILIES.values())),
    guard_s=st.sampled_from([None, 0, 100]),
    event_order=st.sampled_from(EventOrder),
)
def test_without_a_hook_it_is_a_plain_run(
    workload: Workload,
    looks: list[int],
    order: Order,
    backfill: Backfilling,
    guard_s: int | None,
    event_order: EventOrder,
) -> None:
    policy = Policy(order=order, backfill=backfill, event_order=event_order)
    if backfill.head_only:
        policy = policy.guarded(parse_guard(guard_s))
    assert_same(mocked(workload, policy, looks, START), simulate(workload, policy))


def assert_same(one: Schedule, other: Schedule) -> None:
    np.testing.assert_array_equal(one.start_time, other.start_time)
    np.testing.assert_array_equal(one.end_time, other.end_time)
    np.testing.assert_array_equal(one.started_by, other.started_by)
    np.testing.assert_array_equal(one.killed, other.killed)
    assert one.guard_activations == other.guard_activations


@pytest.mark.traces
def test_without_a_hook_a_real_log_is_a_plain_run(trace: Callable[[str], Path]) -> None:
    workload, _ = workload_of_log(read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz")))
    workload = workload.head(2000)
    policy = Policy(backfill=Easy(guard=Guard(3600)), order=Order.WFP)
    looks = list(range(0, int(workload.submit_time[-1]), 86_400))
    assert_same(mocked(workload, policy, looks, START), simulate(workload, policy))


@settings(max_examples=60)
@given(workload=workloads(PROCESSORS), times=st.lists(st.integers(1, 6), min_size=25, max_size=25))
def test_time_min_is_what_is_planned_with(workload: Workload, times: list[int]) -> None:
    policy = Policy(correction=Correction.SLURM)
    slurm = slurm_of(policy)
    for job in range(len(workload)):
        submit = int(workload.submit_time[job]) + START
        if submit > slurm.now:
            slurm.advance(submit)
        slurm.submit(
            replace(
                JOB,
                processors=int(workload.processors[job]),
                requested_time=int(workload.requested_time[job]),
                actual_runtime=int(workload.actual_runtime[job]),
                time_min=times[job] * 60,
            )
        )
    slurm.finish()
    planned = np.minimum(np.array(times[: len(workload)]) * 60, workload.requested_time)
    np.testing.assert_array_equal(slurm.scheduled_times(), planned)
    plain = simulate(workload, policy, planned)
    np.testing.assert_array_equal(slurm.schedule().start_time - START, plain.start_time)
    np.testing.assert_array_equal(slurm.schedule().killed, plain.killed)


# What the client sees -----------------------------------------------------------------------------


def test_a_job_is_told_alike_from_submission_to_accounting() -> None:
    slurm = slurm_of()
    client = SlurmCommands(slurm.run, overlap_s=0)
    first = slurm.submit(replace(JOB, comment="mine", array_id=7))
    second = slurm.submit(replace(JOB, processors=8, user=None, account=None, time_min=600))
    pending = client.queue()
    assert pending.processors == PROCESSORS
    assert [job.state for job in pending.jobs] == [QueueState.PENDING] * 2

    slurm.advance(START + 60)
    running, waiting = client.queue().jobs
    assert (running.state, waiting.state) == (QueueState.RUNNING, QueueState.PENDING)
    request = running.request
    assert (request.job_id, request.user, request.project) == (f"7_{first}", "ann", "physics")
    assert (request.queue, request.processors, request.requested_time) == ("batch", 4, 3600)
    assert (request.submit_time, running.start_time) == (START, START)
    assert request.array_id is not None
    assert (waiting.request.job_id, waiting.request.user) == (str(second), None)
    assert (waiting.time_min, running.time_min) == (600, None)
    assert client.finished_since(Cursor(0))[0] == []
    client.update([JobChange(request.job_id, time_limit=3600)])

    slurm.finish()
    assert slurm.now == START + 3600
    assert client.queue().jobs == ()
    records, cursor = client.finished_since(Cursor(START))
    assert cursor == Cursor(START + 3600)
    one, other = records
    assert (one.state, one.job.ending) == ("COMPLETED", Ending.COMPLETED)
    assert (one.job.start_time, one.job.end_time) == (START, START + 1800)
    assert one.job.actual_runtime == 1800
    assert one.job.request == request
    assert one.eligible_time == START
    assert (other.job.start_time, other.job.actual_runtime) == (START + 1800, 1800)
    assert other.job.request.project is None
    # Each is told once: from the cursor on, and up to a moment.
    assert client.finished_since(Cursor(START + 1801))[0] == [other]
    assert client.finished_since(Cursor(START), START + 3599)[0] == [one]


@pytest.mark.parametrize("ending", list(Ending))
def test_endings_reach_the_accounting(ending: Ending) -> None:
    slurm = slurm_of()
    slurm.submit(replace(JOB, ending=ending))
    slurm.finish()
    records, _ = SlurmCommands(slurm.run).finished_since(Cursor(START))
    expected = Ending.CANCELLED if ending is Ending.NEVER_STARTED else ending
    assert [record.job.ending for record in records] == [expected]


@pytest.mark.parametrize("actual_runtime", [3600, 3601, 100_000])
def test_a_job_at_its_limit_times_out(actual_runtime: int) -> None:
    slurm = slurm_of()
    slurm.submit(replace(JOB, actual_runtime=actual_runtime))
    slurm.finish()
    record = SlurmCommands(slurm.run).finished_since(Cursor(START))[0][0]
    assert record.job.ending is Ending.TIMED_OUT
    assert record.job.accuracy == 1


def test_a_job_whose_accounts_minutes_are_used_up_times_out() -> None:
    site = SlurmSite(
        Machine.flat(PROCESSORS),
        (22, 5),
        priority=SlurmPriority(calc_period_s=60),
        qos={"normal": Qos("normal")},
        associations=(
            Association("root", qos=("normal",)),
            Association("physics", parent="root", limits=Limits(grp_tres_mins={"cpu": 6})),
            Association("physics", user="ann", default=True),
        ),
        enforced=frozenset({"limits"}),
    )
    slurm = slurm_of(Policy(backfill=Slurm(site)), machine=site.machine)
    slurm.submit(replace(JOB, slurm_partition=None))
    slurm.finish()
    record = SlurmCommands(slurm.run).finished_since(Cursor(START))[0][0]
    assert record.job.ending is Ending.TIMED_OUT
    assert record.state == "TIMEOUT"
    # Of four CPUs three minutes are charged at 60, seven at 120.
    assert (record.job.start_time, record.job.end_time) == (START + 3, START + 120)


def test_limits_are_kept_to_the_second_and_told_in_minutes() -> None:
    slurm = slurm_of()
    slurm.submit(replace(JOB, requested_time=90, actual_runtime=1000))
    assert SlurmCommands(slurm.run).queue().jobs[0].request.requested_time == 120
    slurm.finish()
    assert slurm.now == START + 90


def test_the_configuration_is_told_and_unknown_commands_fail() -> None:
    slurm = slurm_of()
    client = SlurmCommands(slurm.run)
    assert client.configuration().soft_limit
    without = SlurmCommands(slurm_of(soft_limit_parameter=False).run)
    assert not without.configuration().soft_limit
    assert client.reservations() == []
    for argv in (["sdiag", "--json"], ["squeue"], ["scontrol", "show", "nodes"]):
        with pytest.raises(SchedulerError, match="does not know"):
            slurm.run(argv)


def test_reservations_are_shown_and_planned_around() -> None:
    ahead = AdvanceReservation(START + 50, 100, 3)
    slurm = slurm_of(reservations=(AdvanceReservation(START - 20, 10, 1), ahead))
    client = SlurmCommands(slurm.run)
    (seen,) = client.reservations()
    assert (seen.start_time, seen.end_time, seen.processors) == (START + 50, START + 150, 3)
    wide = replace(JOB, processors=PROCESSORS, requested_time=60, actual_runtime=60)
    slurm.submit(wide)
    slurm.finish()
    assert slurm.schedule().start_time.tolist() == [START + 150]
    assert client.reservations() == []


# Changes ------------------------------------------------------------------------------------------


def test_the_sidecar_changes_limits() -> None:
    slurm = slurm_of()
    client = SlurmCommands(slurm.run)
    running = str(slurm.submit(replace(JOB, processors=8, actual_runtime=10_000)))
    pending = str(slurm.submit(replace(JOB, actual_runtime=10_000)))
    slurm.advance(START + 60)
    client.update(
        [
            JobChange(running, time_limit=7200),
            JobChange(pending, time_limit=1800, time_min=600),
        ]
    )
    one, other = client.queue().jobs
    assert (one.request.requested_time, one.time_min) == (7200, None)
    assert (other.request.requested_time, other.time_min) == (1800, 600)
    slurm.finish()
    schedule = slurm.schedule()
    np.testing.assert_array_equal(schedule.end_time - schedule.start_time, [7200, 1800])


def test_a_running_job_whose_limit_falls_below_its_runtime_ends() -> None:
    slurm = slurm_of()
    job = str(slurm.submit(replace(JOB, actual_runtime=10_000)))
    slurm.advance(START + 600)
    SlurmCommands(slurm.run).update([JobChange(job, time_limit=300)])
    slurm.finish()
    assert slurm.now == START + 600


def test_site_factors_order_the_queue() -> None:
    slurm = slurm_of(Policy(order=Order.PRIORITY))
    client = SlurmCommands(slurm.run)
    slurm.submit(replace(JOB, processors=8))
    early, late = (str(slurm.submit(replace(JOB, processors=8))) for _ in range(2))
    slurm.advance(START + 60)
    client.update([JobChange(late, site_factor=100), JobChange(early, site_factor=-5)])
    order = [job.request.job_id for job in client.queue().jobs]
    assert order[1:] == [late, early]
    slurm.finish()
    assert slurm.schedule().start_time[2] < slurm.schedule().start_time[1]


def test_changes_can_take_their_time_and_the_queue_goes_on_meanwhile() -> None:
    """Two jobs of the whole machine wait; by the time of the change the first has started."""
    slurm = MockSlurm(SlurmSetup(8, changes_take_s=3), Policy(order=Order.PRIORITY))
    slurm.submit(Submission("ann", None, None, 8, 600, 62))
    slurm.advance(10)
    first, *_, third = (
        str(slurm.submit(Submission("ann", None, None, 8, 600, 60))) for _ in range(3)
    )
    client = SlurmCommands(slurm.run)

    def last() -> str:
        return client.queue().jobs[-1].request.job_id

    slurm.advance(60)
    client.update([JobChange(first, site_factor=5), JobChange(third, site_factor=7)])
    assert slurm.next_event_time == 62
    slurm.advance(62)
    slurm.settle()
    assert (last(), slurm.next_event_time) == (third, 63)
    slurm.advance(64)
    assert last() != third
    slurm.finish()
    starts = slurm.schedule().start_time
    assert starts[[1, 3, 2]].tolist() == [62, 122, 182], "what comes too late is left undone"


def test_a_site_factor_leaves_the_planning_as_it_was() -> None:
    hook = Scripted()
    slurm = slurm_of(hook=hook, mechanism=Mechanism.REWRITE_LIMIT)
    slurm.submit(replace(JOB, processors=7, actual_runtime=3600))
    slurm.submit(replace(JOB, processors=8))
    hook.reply = Reply(0, {"time_limit": 10, "admin_comment": "foretime:treq=120,tsched=10"})
    short = slurm.submit(replace(JOB, processors=1, requested_time=7200))
    SlurmCommands(slurm.run).update([JobChange(str(short), site_factor=5)])
    slurm.finish()
    schedule = slurm.schedule()
    # Planned with 10 minutes it does not delay the wide job; planned with 2 hours it would.
    assert schedule.start_time[short - 1] == START
    assert schedule.end_time[short - 1] == START + 1800


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("update JobId=99 TimeLimit=5", "Invalid job id specified for job 99"),
        ("update JobId=0 TimeLimit=5", "Invalid job id specified for job 0"),
        ("update JobId=x TimeLimit=5", "Invalid job id specified for job x"),
        ("update JobId=1 Nice=5", "not supported: Nice"),
        ("update JobId=1 TimeLimit=5 Nice=5", "not supported: Nice"),
        ("update JobId=1 TimeLimit=soon", "TimeLimit=soon"),
        ("update JobId=1 TimeMin=90", "Requested time limit is invalid"),
        ("update TimeLimit=5", "does not know"),
        ("requeue 1", "does not know"),
    ],
)
def test_changes_that_slurm_refuses_change_nothing(line: str, says: str) -> None:
    slurm = slurm_of()
    slurm.submit(replace(JOB, time_min=600))
    before = SlurmCommands(slurm.run).queue()
    with pytest.raises(SchedulerError, match=says):
        slurm.run(["scontrol"], stdin=f"{line}\nquit\n")
    assert SlurmCommands(slurm.run).queue() == before


def test_an_ended_job_is_not_changed() -> None:
    slurm = slurm_of()
    job = slurm.submit(JOB)
    slurm.finish()
    with pytest.raises(SchedulerError, match="already completing or completed"):
        SlurmCommands(slurm.run).update([JobChange(str(job), time_limit=60)])
    with pytest.raises(SchedulerError, match="already completing or completed"):
        slurm.change_limit(job, 60)


# What users do ------------------------------------------------------------------------------------


def test_users_may_only_lower_a_limit() -> None:
    slurm = slurm_of()
    job = slurm.submit(replace(JOB, actual_runtime=10_000))
    with pytest.raises(SchedulerError, match="Access/permission denied"):
        slurm.change_limit(job, 7200)
    slurm.change_limit(job, 1800)
    with pytest.raises(SchedulerError, match="Access/permission denied"):
        slurm.change_limit(job, 3600)
    slurm.change_limit(job, 2400, uid=0)
    slurm.finish()
    assert slurm.now == START + 2400


def test_no_limit_below_time_min_without_a_hook() -> None:
    slurm = slurm_of()
    job = slurm.submit(replace(JOB, time_min=1200))
    with pytest.raises(SchedulerError, match="below time_min"):
        slurm.change_limit(job, 600)


@pytest.mark.parametrize("lua_version", ["5.1", "5.4"])
def test_the_real_hook_takes_its_own_time_min_out_of_the_way(
    lua_version: str, tmp_path: Path
) -> None:
    rows = (TableRow("user", "ann", 0, 333_333),)
    table = Table(1, START, START + 86_400, TableSettings(mode=Mode.ENFORCE), rows=rows)
    write_table(tmp_path / "table", table)
    slurm = slurm_of(hook=LuaHook(lua_version=lua_version, table=tmp_path / "table"))
    planned = slurm.submit(replace(JOB, actual_runtime=10_000))
    users = slurm.submit(replace(JOB, user="bob", time_min=1200))

    def queued() -> list[tuple[int, int | None]]:
        jobs = SlurmCommands(slurm.run).queue().jobs
        return [(job.request.requested_time, job.time_min) for job in jobs]

    assert queued() == [(3600, 1200), (3600, 1200)]
    slurm.change_limit(planned, 600)
    with pytest.raises(SchedulerError, match="below time_min"):
        slurm.change_limit(users, 600)
    assert queued() == [(600, None), (3600, 1200)]
    slurm.advance(START + 600)
    (record,) = SlurmCommands(slurm.run).finished_since(Cursor(START))[0]
    assert (record.job.request.job_id, record.job.end_time) == (str(planned), START + 600)
    assert slurm.hook_errors == 0


def test_cancelled_jobs_leave_the_queue() -> None:
    slurm = slurm_of()
    running = slurm.submit(replace(JOB, processors=8))
    waiting = slurm.submit(replace(JOB, processors=8))
    slurm.advance(START + 60)
    slurm.cancel(waiting)
    client = SlurmCommands(slurm.run, overlap_s=0)
    assert [job.request.job_id for job in client.queue().jobs] == [str(running)]
    (record,) = client.finished_since(Cursor(START))[0]
    assert record.job.ending is Ending.NEVER_STARTED
    assert record.job.start_time is None
    assert record.job.end_time == START + 60
    with pytest.raises(SchedulerError, match="RUNNING"):
        slurm.cancel(running)
    with pytest.raises(SchedulerError, match="CANCELLED"):
        slurm.cancel(waiting)
    slurm.finish()
    assert len(client.finished_since(Cursor(START))[0]) == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"processors": 9}, "not available: 9 processors of 8"),
        ({"slurm_partition": "short"}, "time limit is invalid"),
    ],
)
def test_what_slurm_rejects_is_no_job(wrong: dict[str, Any], says: str) -> None:
    slurm = slurm_of(max_time_min={"short": 30})
    with pytest.raises(SchedulerError, match=says):
        slurm.submit(replace(JOB, **wrong))
    assert len(slurm) == 0
    assert slurm.submit(replace(JOB, slurm_partition="short", requested_time=1800)) == 1


# The hook in the loop -----------------------------------------------------------------------------


def test_the_hook_is_shown_what_slurm_shows() -> None:
    hook = Scripted()
    slurm = slurm_of(hook=hook, max_time_min={"batch": 1440})
    slurm.submit(replace(JOB, requested_time=90, time_min=60, comment="foretime:off"))
    slurm.submit(replace(JOB, user="bob"))
    slurm.submit(JOB)
    job, partitions, uid, now = hook.seen[0]
    assert (job["time_limit"], job["time_min"], job["min_cpus"]) == (2, 1, 4)
    assert (job["user_name"], job["account"], job["partition"]) == ("ann", "physics", "batch")
    assert (job["comment"], job["user_id"], now) == ("foretime:off", uid, START)
    assert partitions["batch"]["max_time"] == 1440
    assert partitions["main"]["flag_default"] == 1
    assert hook.seen[1][2] != uid
    assert hook.seen[2][2] == uid
    slurm.change_limit(1, 30)
    request, record, _, _ = hook.seen[3]
    assert request == {"time_limit": 1}
    assert (record["time_limit"], record["time_min"], record["user_name"]) == (2, 1, "ann")
    with pytest.raises(SchedulerError, match="below time_min"):
        slurm.change_limit(1, 0)
    slurm.change_limit(2, 60)
    assert hook.seen[-1][1]["time_min"] == NO_VAL


def test_a_job_that_the_hook_rejects_is_no_job() -> None:
    slurm = slurm_of(hook=Scripted(Reply(2028, log=("error oh no", "info fine"))))
    with pytest.raises(SchedulerError, match="rejected the job: 2028"):
        slurm.submit(JOB)
    assert len(slurm) == 0
    assert slurm.hook_errors == 1


@pytest.mark.parametrize(
    ("setup", "runs_s"),
    [
        ({}, 1800),
        ({"soft_limit_parameter": False}, 600),
    ],
)
def test_a_soft_limit_kills_only_without_the_parameter(setup: dict[str, Any], runs_s: int) -> None:
    slurm = slurm_of(hook=Scripted(Reply(0, {"time_min": 10})), **setup)
    slurm.submit(JOB)
    assert slurm.adjusted_jobs == 1
    assert slurm.scheduled_times().tolist() == [600]
    slurm.finish()
    assert slurm.now == START + runs_s


@pytest.mark.parametrize(("works", "runs_s"), [(True, 1800), (False, 600)])
def test_a_rewritten_limit_is_raised_by_the_prolog(works: bool, runs_s: int) -> None:
    hook = Scripted(Reply(0, {"time_limit": 10, "admin_comment": "foretime:treq=60,tsched=10"}))
    slurm = slurm_of(hook=hook, mechanism=Mechanism.REWRITE_LIMIT, prolog_works=works)
    slurm.submit(JOB)
    client = SlurmCommands(slurm.run)
    (pending,) = client.queue().jobs
    assert pending.request.requested_time == 600
    assert pending.admin_comment == "foretime:treq=60,tsched=10"
    slurm.advance(START + 60)
    (running,) = client.queue().jobs
    assert running.request.requested_time == (3600 if works else 600)
    slurm.finish()
    assert slurm.now == START + runs_s
    (record,) = client.finished_since(Cursor(START))[0]
    assert record.admin_comment == "foretime:treq=60,tsched=10"
    assert record.job.ending is (Ending.COMPLETED if works else Ending.TIMED_OUT)
