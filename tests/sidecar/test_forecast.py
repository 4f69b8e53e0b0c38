"""Forecasts: a queue worked out by hand, and the mock Slurm's own future."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.forecast import ExpectedStart, Snapshot, expected_start
from foretime_sidecar.settings import ForecastSettings, Settings
from foretime_sim.mock_slurm import MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Backfill, Correction, Order, Policy

NOW = 1000
# t_sched of the jobs below, by job id.
SCHEDULED = {"A": 900, "B": 500, "C": 300, "D": 1000, "new": 200}


def request(job_id: str, processors: int, requested_time: int, submit_time: int) -> JobRequest:
    return JobRequest(job_id, "ann", "physics", processors, requested_time, submit_time)


# Ten processors. A ends at 1300 and B at 1400, though the scheduler believes 1600 and 4500.
A = QueuedJob(request("A", 6, 1200, 300), QueueState.RUNNING, start_time=400)
B = QueuedJob(request("B", 4, 3600, 800), QueueState.RUNNING, start_time=900)
C = QueuedJob(request("C", 8, 600, 950), QueueState.PENDING)
D = QueuedJob(request("D", 2, 4000, 960), QueueState.PENDING)
NEW = request("new", 4, 600, NOW)


def ask(
    *jobs: QueuedJob, new: JobRequest = NEW, now: int = NOW, soft: bool = False, **settings: object
) -> ExpectedStart:
    return expected_start(
        Snapshot(NOW, Queue(10, jobs), soft),
        new,
        now,
        lambda job: SCHEDULED[job.job_id],
        ForecastSettings.model_validate(settings),
        enforced=soft,
    )


def test_easy_by_hand() -> None:
    # At 1300 six are free. C (8) waits for B, planned to 4500, and leaves two: D takes them. The
    # new job, planned to end at 1900, is before 4500 and starts.
    expected = ask(A, B, C, D)
    assert (expected.start_time, expected.wait_s) == (1300, 300)
    assert (expected.running_jobs, expected.pending_jobs, expected.left_out) == (2, 2, {})


def test_without_backfilling_by_hand() -> None:
    # C and D fill the machine at 1400; C ends at 1700.
    assert ask(A, B, C, D, backfill="none").start_time == 1700


def test_shortest_first_by_hand() -> None:
    # The new job asks for less (600) than C (700): it is first, and starts when A ends.
    assert ask(A, B, replace(C, request=request("C", 8, 700, 950)), order="sjf").start_time == 1300


def test_soft_limit_plans_with_time_min_by_hand() -> None:
    # B is planned to end at 1400 (time_min 500), so C's reservation is there. The new job, planned
    # with 200 s from 1300, would end at 1500 and take what C needs: C and D go first, until 1700.
    soft_b, soft_c = replace(B, time_min=500), replace(C, time_min=300)
    assert ask(replace(A, time_min=900), soft_b, soft_c, D, soft=True).start_time == 1700


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (replace(C, held=True), "held"),
        (replace(C, dependent=True), "dependent"),
        (replace(C, reservation="maint"), "in a reservation"),
        (replace(C, reason="AssocGrpCpuLimit"), "at a limit"),
        (
            replace(C, reason="ReqNodeNotAvail, May be reserved for other job"),
            "waiting for nodes that are not available",
        ),
        (replace(C, reason="PartitionDown"), "waiting for nodes that are not available"),
        (replace(C, request=request("C", 11, 600, 950)), "too wide for the machine"),
        (replace(A, state=QueueState.SUSPENDED), "suspended"),
    ],
)
def test_what_is_left_out_is_said(job: QueuedJob, why: str) -> None:
    expected = ask(replace(job, tasks=3))
    assert expected.left_out == {why: 3}
    assert expected.start_time == NOW


def test_each_task_of_an_array_is_a_job() -> None:
    # Three tasks of 8 one after another: 300 s each.
    expected = ask(replace(C, tasks=3), backfill="none")
    assert (expected.pending_jobs, expected.start_time) == (3, NOW + 900)


def test_a_job_told_to_begin_later_joins_then() -> None:
    assert ask(replace(C, eligible_time=NOW + 50), new=replace(NEW, processors=8)).wait_s == 0


@pytest.mark.parametrize(("soft", "end"), [(False, 2000), (True, 1500)])
def test_a_job_that_outlived_its_scheduled_time(soft: bool, end: int) -> None:
    # Planned with 100 s, running for 1000 of 2000: to its limit, or half of what is left.
    old = QueuedJob(request("old", 10, 2000, 0), QueueState.RUNNING, start_time=0, time_min=100)
    expected = expected_start(
        Snapshot(NOW, Queue(10, (old,)), soft), NEW, NOW, lambda _: 100, ForecastSettings()
    )
    assert expected.start_time == end


def test_suspended_time_does_not_count_as_running() -> None:
    assert (
        ask(
            replace(A, suspended_time=50), backfill="none", new=replace(NEW, processors=10)
        ).start_time
        == 1350
    )


def test_a_lowered_limit_is_read_back() -> None:
    # The hook lowered the limit to 10 min; the prolog will restore 60. A judges the 60.
    seen: list[int] = []

    def scheduled_time(job: JobRequest) -> int:
        seen.append(job.requested_time)
        return 600

    lowered = replace(C, admin_comment="foretime:treq=60,tsched=10")
    expected_start(
        Snapshot(NOW, Queue(10, (lowered,))), NEW, NOW, scheduled_time, ForecastSettings()
    )
    assert 3600 in seen


def test_the_snapshot_has_an_age() -> None:
    expected = ask(A, B, C, D, now=NOW + 40)
    assert (expected.snapshot_age_s, expected.start_time, expected.wait_s) == (40, 1300, 260)


def test_a_machine_too_small() -> None:
    with pytest.raises(InputError, match="processors = 11: only 10 processors are up"):
        ask(A, new=request("new", 11, 60, NOW))


def test_nodes_that_drain_still_run_their_jobs() -> None:
    wide = QueuedJob(request("A", 14, 1200, 300), QueueState.RUNNING, start_time=400)
    assert ask(wide).machine_processors == 14


def test_a_queue_too_long_to_run_forward() -> None:
    expected = ask(replace(C, tasks=50), most_jobs=49)
    assert expected.start_time is None
    assert expected.wait_s is None
    assert "50 jobs" in expected.assumptions[0]


def test_orders_have_the_engines_names() -> None:
    field = ForecastSettings.model_fields["order"].annotation
    offered = set(getattr(field, "__args__", ()))
    assert offered == {order.value for order in Order} - {"priority"}
    backfills = getattr(ForecastSettings.model_fields["backfill"].annotation, "__args__", ())
    assert set(backfills) == {backfill.value for backfill in Backfill}


def scheduled_time(job: JobRequest) -> int:
    return max(job.requested_time // 3 // 60 * 60, 60)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "xf", "wfp"])
@pytest.mark.parametrize("backfill", ["none", "easy", "easy-sjbf", "planning", "first-fit"])
def test_it_is_what_the_mock_slurm_then_does(order: str, backfill: str, soft: bool) -> None:
    """With runtimes equal to t_sched and nobody else submitting, the forecast is exact."""
    rng = random.Random(f"{order} {backfill} {soft}")
    correction = Correction.SLURM if soft else Correction.REQUESTED
    policy = Policy(Order(order), Backfill(backfill), correction)
    for _ in range(3):
        start = 1_700_000_000
        slurm = MockSlurm(
            SlurmSetup(32, soft_limit_parameter=soft), policy, hook=None, start_time=start
        )

        def submission(processors: int) -> Submission:
            limit = rng.randint(3, 120) * 60
            runtime = scheduled_time(JobRequest("", None, None, 1, limit, 0))
            return Submission(
                "ann",
                "physics",
                None,
                processors,
                limit,
                runtime,
                time_min=runtime if soft else None,
            )

        clock = start
        for _ in range(60):
            clock += rng.randint(1, 240)
            slurm.advance(clock)
            slurm.submit(submission(rng.choice([1, 2, 4, 8, 16, 32])))
        clock += 7
        slurm.advance(clock)
        client = SlurmCommands(slurm.run)
        snapshot = Snapshot(clock, client.queue(), client.configuration().time_min_as_soft_limit)
        assert len(snapshot.queue.jobs) > 5
        mine = submission(12)
        expected = expected_start(
            snapshot,
            JobRequest("new", "ann", "physics", 12, mine.requested_time, clock),
            clock,
            scheduled_time,
            Settings.model_validate({"forecast": {"order": order, "backfill": backfill}}).forecast,
            enforced=soft,
        )
        job_id = slurm.submit(mine)
        slurm.finish()
        assert expected.start_time == slurm.schedule().start_time[job_id - 1]
