"""The mock PBS against plain runs of the engine, its refusals, and through the real hook file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.estimators.recent_maximum import RecentMaximum
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.runtime_features import FEATURES
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.table.table import Mode, Table, TableRow, TableSettings, write_table
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.mocks.estimator_hook import EstimatorHook
from foretime_sim.mocks.pbs.hook import PbsHook, PbsReply
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import FOREVER_S, PbsSetup, PbsSubmission
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import FAMILIES
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.mocks.lived_workload import lived
from tests.support.workloads.small_workloads import workloads

PROCESSORS = 8
START = 1_200_000_000
JOB = PbsSubmission(
    user="ann",
    account="physics",
    queue="batch",
    processors=4,
    requested_time=3600,
    actual_runtime=1800,
)
SOFT = "Resource_List.soft_walltime"


def reply(soft: int | str | None = "unchanged", *, accepted: bool = True, **more: Any) -> PbsReply:
    changes = {} if soft == "unchanged" else {SOFT: soft}
    return PbsReply(accepted, more.pop("message", ""), {**changes, **more}, [])


@dataclass
class Scripted:
    """A hook that answers what a test tells it to, and keeps what it was shown."""

    answers: dict[str, PbsReply] = field(default_factory=dict)
    seen: list[tuple[Any, ...]] = field(default_factory=list)

    def _answer(self, event: str, *shown: Any) -> PbsReply:
        self.seen.append((event, *shown))
        return self.answers.get(event, reply())

    def queuejob(self, job: Mapping[str, Any], requestor: str, now: float) -> PbsReply:
        return self._answer("queuejob", dict(job), requestor, now)

    def modifyjob(
        self, request: Mapping[str, Any], job: Mapping[str, Any], requestor: str, now: float
    ) -> PbsReply:
        return self._answer("modifyjob", dict(request), dict(job), requestor, now)

    def runjob(self, job: Mapping[str, Any], now: float) -> PbsReply:
        return self._answer("runjob", dict(job), now)


def pbs_of(policy: Policy | None = None, hook: Any = None, **setup: Any) -> MockPbs:
    policy = policy or Policy(correction=Correction.PBS)
    return MockPbs(PbsSetup(PROCESSORS, **setup), policy, hook, START)


def shown(pbs: MockPbs) -> dict[str, Any]:
    jobs: dict[str, Any] = json.loads(pbs.run(["qstat", "-t", "-f", "-F", "json"])).get("Jobs", {})
    return jobs


# Against the engine -------------------------------------------------------------------------------


def mocked(workload: Workload, policy: Policy, looks: list[int], hook: Any = None) -> Schedule:
    """Submit a workload job by job, with the client looking in at some moments on the way."""
    pbs = MockPbs(PbsSetup(workload.machine_processors), policy, hook, START)
    ids: list[str] = []

    def submit(processors: int, requested: int, actual: int) -> None:
        ids.append(pbs.submit(PbsSubmission(None, None, None, processors, requested, actual)))

    schedule = lived(pbs, PbsCommands(pbs.run, None, overlap_s=0), submit, workload, looks)
    assert ids == [f"{number}.pbs" for number in range(1, len(workload) + 1)]
    return schedule


@settings(max_examples=80)
@given(
    workload=workloads(PROCESSORS),
    looks=st.lists(st.integers(0, 400), max_size=5),
    order=st.sampled_from([order for order in Order if order is not Order.PRIORITY]),
    backfill=st.sampled_from(list(FAMILIES.values())),
    guard_s=st.sampled_from([None, 0, 100]),
    event_order=st.sampled_from(EventOrder),
    with_hook=st.booleans(),
)
def test_without_changes_it_is_a_plain_run(
    workload: Workload,
    looks: list[int],
    order: Order,
    backfill: Backfilling,
    guard_s: int | None,
    event_order: EventOrder,
    with_hook: bool,
) -> None:
    policy = Policy(order=order, backfill=backfill, event_order=event_order)
    if backfill.head_only:
        policy = policy.guarded(parse_guard(guard_s))
    hook = Scripted() if with_hook else None
    one, other = mocked(workload, policy, looks, hook), simulate(workload, policy)
    np.testing.assert_array_equal(one.start_time, other.start_time)
    np.testing.assert_array_equal(one.end_time, other.end_time)
    np.testing.assert_array_equal(one.started_by, other.started_by)
    assert one.guard_activations == other.guard_activations
    if hook is not None:
        runs = [(job["id"], now) for event, job, now, *_ in hook.seen if event == "runjob"]
        starts = {f"{job + 1}.pbs": int(t) + START for job, t in enumerate(one.start_time)}
        assert dict(runs) == starts, "each job is shown to the hook once, as it starts"
        assert len(runs) == len(workload)


class HalfOfIt(Scripted):
    """Plans every job with half of its walltime, and at least a second."""

    def queuejob(self, job: Mapping[str, Any], requestor: str, now: float) -> PbsReply:
        return reply(max(job["Resource_List"]["walltime"] // 2, 1))


@given(
    workload=workloads(PROCESSORS),
    backfill=st.sampled_from(list(FAMILIES.values())),
)
def test_what_the_hook_sets_at_submission_is_what_the_engine_plans_with(
    workload: Workload, backfill: Backfilling
) -> None:
    policy = Policy(backfill=backfill, correction=Correction.PBS)
    half = np.maximum(workload.requested_time // 2, 1)
    one, other = mocked(workload, policy, [], HalfOfIt()), simulate(workload, policy, half)
    np.testing.assert_array_equal(one.start_time, other.start_time)
    np.testing.assert_array_equal(one.end_time, other.end_time)


# soft_walltime -----------------------------------------------------------------------------------


def test_a_job_that_outlives_it_is_planned_with_multiples_of_it() -> None:
    # The head job needs all of the machine; a job of 400 s fits in front of it only once the
    # running one, planned with 500 s, has outlived that and is planned with 1000 s.
    hook = Scripted({"queuejob": reply(500)})
    pbs = pbs_of(hook=hook)
    pbs.submit(replace(JOB, requested_time=3600, actual_runtime=3000))
    hook.answers = {}
    pbs.advance(START + 100)
    pbs.submit(replace(JOB, processors=8))
    pbs.advance(START + 200)
    pbs.submit(replace(JOB, requested_time=400, actual_runtime=10))
    pbs.advance(START + 499)
    running = shown(pbs)["1.pbs"]
    assert running["estimated"]["soft_walltime"] == "00:08:20"
    assert running["Resource_List"]["soft_walltime"] == "00:08:20"
    assert shown(pbs)["3.pbs"]["job_state"] == "Q", "it would not end before 500"
    pbs.advance(START + 501)
    assert shown(pbs)["1.pbs"]["estimated"]["soft_walltime"] == "00:16:40"
    assert shown(pbs)["3.pbs"]["job_state"] == "R"
    pbs.advance(START + 2999)
    assert shown(pbs)["1.pbs"]["estimated"]["soft_walltime"] == "00:50:00"
    pbs.finish()
    ran = pbs.schedule().end_time - pbs.schedule().start_time
    assert ran.tolist() == [3000, 1800, 10], "nothing is killed at soft_walltime"


def test_the_estimate_never_exceeds_the_walltime() -> None:
    hook = Scripted({"queuejob": reply(2000)})
    pbs = pbs_of(hook=hook)
    pbs.submit(replace(JOB, actual_runtime=9999))
    pbs.advance(START + 2500)
    assert shown(pbs)["1.pbs"]["estimated"]["soft_walltime"] == "01:00:00"
    pbs.finish()
    assert pbs.schedule().end_time.tolist() == [START + 3600]


def test_walltime_defaults_come_after_the_hook() -> None:
    hook = Scripted()
    pbs = pbs_of(hook=hook, default_walltime_s={"batch": 600, "": 1200})
    pbs.submit(replace(JOB, requested_time=None))
    assert "walltime" not in hook.seen[0][1]["Resource_List"]
    assert shown(pbs)["1.pbs"]["Resource_List"]["walltime"] == "00:10:00"
    pbs.submit(replace(JOB, requested_time=None, queue="other"))
    assert shown(pbs)["2.pbs"]["Resource_List"]["walltime"] == "00:20:00"
    hook.answers = {"queuejob": reply(1201)}
    with pytest.raises(SchedulerError, match="Illegal attribute or resource value"):
        pbs.submit(replace(JOB, requested_time=None))
    bare = pbs_of()
    bare.submit(replace(JOB, requested_time=None))
    bare.finish()
    assert bare.scheduled_times().tolist() == [FOREVER_S]


def test_what_pbs_refuses_at_submission() -> None:
    careless = Scripted({"queuejob": reply(3601)})
    with pytest.raises(SchedulerError, match="Illegal attribute or resource value"):
        pbs_of(hook=careless).submit(JOB)
    careless.answers = {"queuejob": reply(600)}
    shrinking = replace(JOB, resources={"min_walltime": 60})
    with pytest.raises(SchedulerError, match="with Shrink to Fit jobs"):
        pbs_of(hook=careless).submit(shrinking)
    with pytest.raises(
        SchedulerError, match=r"insufficient permission  Resource_List.soft_walltime"
    ):
        pbs_of().submit(replace(JOB, resources={"soft_walltime": 60}))
    with pytest.raises(SchedulerError, match="9 processors of 8"):
        pbs_of().submit(replace(JOB, processors=9))
    careless.answers = {"queuejob": reply(accepted=False, message="hook error")}
    with pytest.raises(SchedulerError, match="qsub: hook error"):
        pbs_of(hook=careless).submit(JOB)
    careless.answers = {"queuejob": reply(Priority=3)}
    with pytest.raises(InputError, match="the hook set Priority"):
        pbs_of(hook=careless).submit(JOB)


def test_what_the_hook_sets_as_a_job_starts_is_planned_with_from_then_on() -> None:
    hook = Scripted({"runjob": reply(600)})
    pbs = pbs_of(hook=hook)
    pbs.submit(replace(JOB, requested_time=3600, actual_runtime=3000))
    pbs.submit(replace(JOB, processors=8))
    pbs.advance(START + 1)
    assert shown(pbs)["1.pbs"]["estimated"]["soft_walltime"] == "00:10:00"
    assert pbs.scheduled_times().tolist() == [3600, 3600]
    assert pbs.running_times().tolist() == [600, 3600]
    hook.answers = {"runjob": reply(3601)}
    with pytest.raises(SchedulerError, match="what PBS refuses"):
        pbs.finish()


def test_a_change_goes_through_the_hook_or_is_refused_as_by_pbs() -> None:
    hook = Scripted({"queuejob": reply(1800)})
    pbs = pbs_of(hook=hook)
    pbs.submit(JOB)
    pbs.submit(JOB)
    pbs.submit(JOB)
    pbs.advance(START + 10)
    with pytest.raises(SchedulerError, match=r"Unauthorized Request  1\.pbs"):
        pbs.alter("1.pbs", {"walltime": 4000}, requestor="ann")
    with pytest.raises(SchedulerError, match=r"permission  Resource_List.soft_walltime 3\.pbs"):
        pbs.alter("3.pbs", {"soft_walltime": 100}, requestor="ann")
    hook.answers["modifyjob"] = reply(1801)
    with pytest.raises(SchedulerError, match=r"Unauthorized Request  1\.pbs"):
        pbs.alter("1.pbs", {"walltime": 3000}, requestor="ann")
    del hook.answers["modifyjob"]
    pbs.alter("1.pbs", {"walltime": 3000}, requestor="ann")
    # Below soft_walltime PBS refuses, unless the hook lowers that, too.
    with pytest.raises(SchedulerError, match="Illegal attribute"):
        pbs.alter("3.pbs", {"walltime": 1000}, requestor="ann")
    hook.answers["modifyjob"] = reply(1000)
    pbs.alter("3.pbs", {"walltime": 1000}, requestor="ann")
    assert shown(pbs)["3.pbs"]["Resource_List"]["walltime"] == "00:16:40"
    hook.answers["modifyjob"] = reply(None)
    pbs.alter("3", {"walltime": 5000}, requestor="ann")
    assert "soft_walltime" not in shown(pbs)["3.pbs"]["Resource_List"]
    hook.answers["modifyjob"] = reply(accepted=False, message="no")
    with pytest.raises(SchedulerError, match=r"qalter: no 3\.pbs"):
        pbs.alter("3.pbs", {"walltime": 900})
    hook.answers.clear()
    with pytest.raises(SchedulerError, match="Unknown resource ncpus"):
        pbs.alter("3.pbs", {"ncpus": 1})
    for name in ("9.pbs", "1_3", "x"):
        with pytest.raises(SchedulerError, match=f"Unknown Job Id {name}"):
            pbs.alter(name, {"walltime": 900})
    pbs.finish()
    with pytest.raises(SchedulerError, match=r"Job has finished 1\.pbs"):
        pbs.alter("1.pbs", {"walltime": 900})
    with pytest.raises(SchedulerError, match="waiting jobs only"):
        pbs.delete("1.pbs")


def test_pbs_sched_dies_of_a_job_that_runs_with_a_soft_walltime_of_0() -> None:
    """pbs_server takes it, from a manager and from a hook."""
    pbs = pbs_of()
    pbs.submit(JOB)
    pbs.submit(replace(JOB, processors=8))
    pbs.run(["qalter", "-l", "soft_walltime=0", "2.pbs"])
    assert shown(pbs)["2.pbs"]["Resource_List"]["soft_walltime"] == "00:00:00"
    pbs.advance(START + 10)
    with pytest.raises(InputError, match=r"job 1\.pbs runs with a soft_walltime of 0 s"):
        pbs.run(["qalter", "-l", "soft_walltime=00:00:00", "1.pbs"])
    with pytest.raises(InputError, match=r"job 2\.pbs runs with a soft_walltime of 0 s"):
        pbs.finish()
    careless = Scripted({"runjob": reply("0.4")})
    mended = Scripted({"queuejob": reply(0), "runjob": reply(None)})
    for hook in (careless, mended):
        pbs = pbs_of(hook=hook)
        pbs.submit(JOB)
        if hook is mended:
            pbs.finish()
        else:
            with pytest.raises(InputError, match=r"job 1\.pbs runs with"):
                pbs.finish()


def test_a_walltime_of_0_is_taken_and_its_job_killed() -> None:
    pbs = pbs_of()
    pbs.submit(replace(JOB, requested_time=0))
    pbs.submit(JOB)
    pbs.submit(replace(JOB, processors=8))
    pbs.alter("3.pbs", {"walltime": 0}, requestor="ann")
    pbs.advance(START + 10)
    pbs.alter("2.pbs", {"walltime": 0}, requestor="ann")
    assert shown(pbs)["2.pbs"]["Resource_List"]["walltime"] == "00:00:00"
    pbs.finish()
    history = json.loads(pbs.run(["qstat", "-x", "-t", "-f", "-F", "json"]))["Jobs"]
    assert {job["Exit_status"] for job in history.values()} == {-29}


def test_what_is_taken_away() -> None:
    hook = Scripted({"queuejob": reply(1800)})
    pbs = pbs_of(hook=hook, default_walltime_s={"batch": 600})
    for queue in ("batch", "other"):
        name = pbs.submit(replace(JOB, queue=queue))
        pbs.run(["qalter", "-l", "walltime=", name])
        assert hook.seen[-1][1] == {"Resource_List": {"walltime": ""}}
    left = [shown(pbs)[name]["Resource_List"] for name in ("1.pbs", "2.pbs")]
    # Not even PBS looks whether the default is below soft_walltime.
    assert (left[0]["walltime"], left[0]["soft_walltime"]) == ("00:10:00", "00:30:00")
    assert "walltime" not in left[1]
    pbs.run(["qalter", "-l", "soft_walltime=", "2.pbs"])
    assert "soft_walltime" not in shown(pbs)["2.pbs"]["Resource_List"]


def test_commands_that_it_does_not_know_fail() -> None:
    pbs = pbs_of()
    with pytest.raises(SchedulerError, match="does not know: qstat -Q"):
        pbs.run(["qstat", "-Q"])
    pbs.submit(JOB)
    with pytest.raises(SchedulerError, match="Illegal attribute or resource value"):
        pbs.run(["qalter", "-l", "walltime=long", "1.pbs"])


# Through the real hook file ----------------------------------------------------------------------


def real_hook(folder: Path, adjustment_micro: int = 250_000, **changed: Any) -> PbsHook:
    table, config = folder / "table", folder / "foretime_hook.CF"
    rows = (TableRow("user", "ann", 0, adjustment_micro), TableRow("user", "ann", 1, 500_000))
    written = Table(
        1, START - 100, START + 1_000_000,
        TableSettings(mode=Mode.ENFORCE, requested_time_bounds_s=(3600,)), rows=rows,
    )  # fmt: skip
    write_table(table, replace(written, **changed))
    config.write_text(json.dumps({"table": str(table), "disable_file": None, "deadline_s": 60}))
    return PbsHook(config=config)


def test_the_shipped_hook_is_taken_by_pbs(tmp_path: Path) -> None:
    pbs = pbs_of(hook=real_hook(tmp_path), server_logs_dir=tmp_path / "logs")
    pbs.submit(JOB)
    pbs.submit(replace(JOB, requested_time=7200))
    pbs.submit(replace(JOB, user="bob"))
    pbs.submit(replace(JOB, resources={"min_walltime": 60, "max_walltime": 600}))
    assert pbs.scheduled_times().tolist() == [900, 3600, 3600, 3600]
    assert pbs.adjusted_jobs == 2
    # A user lowers a walltime below soft_walltime: the hook lowers that with it.
    pbs.alter("2.pbs", {"walltime": 1200}, requestor="ann")
    assert shown(pbs)["2.pbs"]["Resource_List"]["soft_walltime"] == "00:20:00"
    pbs.finish()
    assert pbs.hook_errors == 0
    lines = (tmp_path / "logs" / "20080110").read_text().splitlines()
    assert sum("event=queuejob job=-" in line for line in lines) == 4
    assert sum("Job Queued at request of" in line for line in lines) == 4
    assert any("event=modifyjob job=2.pbs" in line and "decision=lowered" in line for line in lines)


def test_under_the_shipped_hook_no_user_brings_pbs_sched_down(tmp_path: Path) -> None:
    """qalter -l walltime=0 left soft_walltime=0, also once the walltime was raised again."""
    pbs = pbs_of(hook=real_hook(tmp_path))
    names = [pbs.submit(replace(JOB, processors=2)) for _ in range(5)]
    pbs.alter(names[0], {"walltime": 0}, requestor="ann")
    pbs.alter(names[1], {"walltime": 0}, requestor="ann")
    pbs.alter(names[1], {"walltime": 3600}, requestor="ann")
    pbs.alter(names[2], {"soft_walltime": 0})
    pbs.advance(START + 10)
    pbs.alter(names[3], {"walltime": 0}, requestor="ann")
    listed = [shown(pbs)[name]["Resource_List"] for name in names[1:4]]
    assert not any("soft_walltime" in resources for resources in listed)
    pbs.finish()
    assert pbs.hook_errors == 0
    ran = pbs.schedule().end_time - pbs.schedule().start_time
    assert ran.tolist() == [1, 1800, 1800, 10, 1800]


def test_the_shipped_hook_judges_a_job_anew_that_waited_long(tmp_path: Path) -> None:
    hook = real_hook(tmp_path)
    pbs = pbs_of(hook=hook)
    pbs.submit(replace(JOB, processors=8, requested_time=3600, actual_runtime=3600))
    pbs.submit(JOB)
    pbs.advance(START + 3599)
    newer = real_hook(tmp_path, 750_000, written_at=START + 1000, generation=2)
    assert newer.script == hook.script
    pbs.advance(START + 3601)
    assert pbs.scheduled_times().tolist() == [900, 900]
    assert pbs.running_times().tolist() == [900, 2700]


# CESNET's rule -----------------------------------------------------------------------------------


def _finished(runtime: int, requested: int, number: int) -> FinishedJob:
    request = JobRequest(str(number), "ann", None, 1, requested, START)
    return FinishedJob(request, START, START + runtime, runtime, Ending.COMPLETED)


def test_cesnets_rule_is_its_formula() -> None:
    """soft = min(W, W * max(last 15 of runtime/W) [* 2 if W > 24 h] + 900 s)."""
    rule = RecentMaximum()

    def soft(walltime: int) -> int:
        return rule.predict_one(JobRequest("x", "ann", None, 1, walltime, START), START)

    assert soft(7200) == 7200, "nothing known"
    rule.learn_one(_finished(3600, 3600, 0))  # R = 1, and the 16th latest in the end
    rule.learn_one(_finished(600, 6000, 1))  # R = 0.1
    assert soft(7200) == 7200
    for number in range(2, 15):
        rule.learn_one(_finished(720, 3600, number))  # R = 0.2
    assert soft(36_000) == 36_000, "the first of all is the 15th latest"
    rule.learn_one(_finished(900, 3600, 15))  # R = 0.25; the first is forgotten
    assert soft(36_000) == 36_000 // 4 + 900 == 9900
    assert soft(1000) == 1000, "250 + 900 s is more than it asked for"
    assert soft(86_400) == 86_400 // 4 + 900
    # Above a day: twice as much.
    assert soft(100_000) == 2 * 25_000 + 900
    assert rule.predict_one(JobRequest("x", "bob", None, 1, 7200, START), START) == 7200


def test_cesnets_rule_can_take_the_hooks_place() -> None:
    hook = EstimatorHook(RecentMaximum())
    policy = Policy(correction=Correction.PBS)
    pbs = MockPbs(PbsSetup(PROCESSORS), policy, hook, START, hook.learn)
    big = replace(JOB, processors=8, requested_time=36_000)
    pbs.submit(replace(big, actual_runtime=3600))  # R = 0.1
    pbs.submit(replace(big, actual_runtime=18_000))  # submitted before anything was known
    pbs.submit(replace(big, actual_runtime=100))
    assert pbs.scheduled_times().tolist() == [36_000] * 3
    pbs.advance(START + 3601)
    # It has waited for an hour: predicted anew, from the first, as it starts.
    assert pbs.running_times().tolist() == [36_000, 3600 + 900, 36_000]
    pbs.submit(replace(big, user="bob"))
    pbs.submit(replace(big, resources={"min_walltime": 60}))
    pbs.submit(big)
    assert pbs.scheduled_times().tolist()[3:] == [36_000, 36_000, 4500]
    pbs.finish()
    # The third by the second's R = 0.5, which had just ended.
    assert pbs.running_times().tolist()[2] == 18_900


def test_an_estimator_in_the_hooks_place_is_told_of_starts() -> None:
    estimator = LearnedRuntime()
    hook = EstimatorHook(estimator)
    pbs = MockPbs(PbsSetup(PROCESSORS), Policy(), hook, START, hook.learn)
    mine = replace(JOB, processors=2, actual_runtime=600, requested_time=3_600)
    pbs.submit(mine)
    pbs.submit(replace(mine, user=None))
    pbs.advance(START + 100)
    asked = JobRequest("x", mine.user, None, 1, 60, START + 100)
    features = dict(zip(FEATURES, estimator.features.of(asked, START + 100), strict=True))
    assert features["running_jobs"] == 1
    assert features["sum_of_running_s"] == 100
    assert features["occupied_processors"] == 2
    pbs.finish()
    assert estimator.features.of(asked, START + 700)[FEATURES.index("running_jobs")] == 0
    assert estimator.regression.examples == 2
