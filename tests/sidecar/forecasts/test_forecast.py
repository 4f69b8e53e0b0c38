"""Forecasts: a queue worked out by hand, and the mock Slurm's own future."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.forecast_board import NewJobForecast
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.families import FAMILIES, Backfill, family_named
from foretime_sim.policies.order import Order, OrderName
from foretime_sim.policies.policy import Correction, Policy

from tests.support.plans.scheduled_plan import ScheduledPlan

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


def planned(
    look: Look,
    new: JobRequest,
    scheduled_time: Callable[[JobRequest], int],
    *,
    enforced: bool = False,
    **settings: object,
) -> NewJobForecast:
    """Forecast a new job, every job running for its t_sched."""
    forecasting = WaitForecasting(
        ForecastSettings.model_validate({"order": "fcfs"} | settings), ScheduledPlan(scheduled_time)
    )
    forecasting.looked(look)
    assert forecasting.refresh()
    assert forecasting.board is not None
    job = NewJob(new, min(scheduled_time(new), new.requested_time) if enforced else None)
    return forecasting.what_if(forecasting.board, job)


def start_of(forecast: NewJobForecast) -> int:
    """The start that a plan is sure of."""
    assert forecast.waits is not None
    assert len(set(forecast.waits.wait_s)) == 1
    assert forecast.waits.starts_now == (forecast.waits.wait_s[0] <= NOW_S)
    return forecast.board.made_at + forecast.waits.wait_s[0]


def ask(
    *jobs: QueuedJob, new: JobRequest = NEW, soft: bool = False, **settings: object
) -> NewJobForecast:
    look = Look(NOW, Queue(10, jobs), soft)
    return planned(look, new, lambda job: SCHEDULED.get(job.job_id, 60), enforced=soft, **settings)


def test_under_easy_a_new_job_starts_where_it_delays_nobody() -> None:
    # At 1300 six are free. C (8) waits for B, planned to 4500, and leaves two: D takes them. The
    # new job, planned to end at 1900, is before 4500 and starts.
    forecast = ask(A, B, C, D)
    assert start_of(forecast) == 1300
    assert forecast.ahead == 2
    board = forecast.board
    assert [row.request.job_id for row in board.rows] == ["C", "D"]
    assert [row.ahead for row in board.rows] == [0, 1]
    # C waits for B, and D would run into that.
    assert [row.waits and row.waits.at(0.95) for row in board.rows] == [400, 300]
    assert list(board.running) == ["A", "B"]


def test_without_backfilling_a_new_job_starts_last() -> None:
    # C and D fill the machine at 1400; C ends at 1700.
    assert start_of(ask(A, B, C, D, backfill="none")) == 1700


def test_under_sjf_a_shorter_new_job_goes_first() -> None:
    # The new job asks for less (600) than C (700): it is first, and starts when A ends.
    assert start_of(ask(A, B, replace(C, request=request("C", 8, 700, 950)), order="sjf")) == 1300


def test_under_a_soft_limit_jobs_are_planned_with_time_min() -> None:
    # B is planned to end at 1400 (time_min 500), so C's reservation is there. The new job, planned
    # with 200 s from 1300, would end at 1500 and take what C needs: C and D go first, until 1700.
    soft_b, soft_c = replace(B, time_min=500), replace(C, time_min=300)
    assert start_of(ask(replace(A, time_min=900), soft_b, soft_c, D, soft=True)) == 1700


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
    forecast = ask(replace(job, tasks=3))
    assert forecast.board.moment.taken.left_out_by_reason() == {why: 3}
    assert start_of(forecast) == NOW


def test_each_task_of_an_array_is_a_job() -> None:
    # Three tasks of 8 one after another: 300 s each.
    forecast = ask(replace(C, tasks=3), backfill="none")
    assert (forecast.ahead, start_of(forecast)) == (3, NOW + 900)


def test_a_job_told_to_begin_later_joins_then() -> None:
    forecast = ask(replace(C, eligible_time=NOW + 50), new=replace(NEW, processors=8))
    assert start_of(forecast) == NOW


@pytest.mark.parametrize(("soft", "end"), [(False, 2000), (True, 1500)])
def test_a_job_that_outlived_its_scheduled_time(soft: bool, end: int) -> None:
    # Planned with 100 s, running for 1000 of 2000: to its limit, or half of what is left.
    old = QueuedJob(request("old", 10, 2000, 0), QueueState.RUNNING, start_time=0, time_min=100)
    assert start_of(planned(Look(NOW, Queue(10, (old,)), soft), NEW, lambda _: 100)) == end


def test_suspended_time_does_not_count_as_running() -> None:
    late = replace(A, suspended_time=50)
    assert start_of(ask(late, backfill="none", new=replace(NEW, processors=10))) == 1350


def test_a_lowered_limit_is_read_back() -> None:
    # The hook lowered the limit to 10 min; the prolog will restore 60. A judges the 60.
    seen: list[int] = []

    def scheduled_time(job: JobRequest) -> int:
        seen.append(job.requested_time)
        return 600

    lowered = replace(C, admin_comment="foretime:treq=60,tsched=10")
    planned(Look(NOW, Queue(10, (lowered,))), NEW, scheduled_time)
    assert 3600 in seen


def test_a_job_wider_than_the_machine_is_refused() -> None:
    with pytest.raises(InputError, match="processors = 11: only 10 processors are up"):
        ask(A, new=request("new", 11, 60, NOW))


def test_nodes_that_drain_still_run_their_jobs() -> None:
    wide = QueuedJob(request("A", 14, 1200, 300), QueueState.RUNNING, start_time=400)
    assert ask(wide).board.moment.taken.snapshot.machine_processors == 14


def test_orders_have_the_engines_names() -> None:
    field = ForecastSettings.model_fields["order"].annotation
    offered = set(getattr(field, "__args__", ()))
    assert offered == {order.value for order in Order}
    backfills = getattr(ForecastSettings.model_fields["backfill"].annotation, "__args__", ())
    # What has yet to be built into a scheduler, and what forward runs know no promises of.
    no_schedulers = {Backfill.EASY_WSPT.name, Backfill.SLACK.name}
    assert set(backfills) == set(FAMILIES) - no_schedulers


def scheduled_time(job: JobRequest) -> int:
    return max(job.requested_time // 3 // 60 * 60, 60)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("order", get_args(OrderName))
@pytest.mark.parametrize("backfill", ["none", "easy", "easy-sjbf", "planning", "first-fit"])
def test_it_is_what_the_mock_slurm_then_does(order: str, backfill: str, soft: bool) -> None:
    """With runtimes equal to t_sched and nobody else submitting, the forecast is exact."""
    rng = random.Random(f"{order} {backfill} {soft}")
    correction = Correction.SLURM if soft else Correction.REQUESTED
    policy = Policy(Order(order), family_named(backfill), correction)
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
        look = Look(clock, client.queue(), client.configuration().soft_limit)
        assert len(look.queue.jobs) > 5
        mine = submission(12)
        forecast = planned(
            look,
            JobRequest("new", "ann", "physics", 12, mine.requested_time, clock),
            scheduled_time,
            enforced=soft,
            order=order,
            backfill=backfill,
        )
        job_id = slurm.submit(mine)
        slurm.finish()
        assert start_of(forecast) == slurm.schedule().start_time[job_id - 1]
