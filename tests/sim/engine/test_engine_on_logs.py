"""The published figures on the real logs, with the filter behind them; and the three ways to run a
log (whole, stepwise, plain Python) agree on them job for job.

Under the event order of the other simulators, nearly all of the figures come out to the second.
What it took, beside submissions before completions and a pass after each event: a job that ends at
the very second at which it was expected to has freed its processors for the submissions of that
second; jobs that end together do so in the order in which they started; the expiry of an estimate
brings no pass about; and the incremental correction adds its increments to the first prediction,
not to each other. Without these the average wait on KTH differs by 0.03 s with EASY, 0.9 s with
EASY-SJBF, and 350 s with EASY++.
"""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, Candidates, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.scores.metrics import bounded_slowdown
from foretime_sim.workloads.workload import Workload

from tests.support.workloads.real_logs import CTC, CURIE, KTH, LOGS, SDSC_BLUE, SDSC_SP2, Load

pytestmark = pytest.mark.traces


def figures(jobs: Workload, schedule: Schedule) -> tuple[float, float]:
    """Give the average wait, seconds, and AVEbsld, over all jobs."""
    wait = schedule.start_time - jobs.submit_time
    return float(wait.mean()), float(bounded_slowdown(wait, jobs.actual_runtime).mean())


@pytest.mark.parametrize(
    ("log", "backfill", "published"),
    [
        (KTH, Backfill.EASY, 71.75),
        (CTC, Backfill.EASY, 37.17),
        (SDSC_SP2, Backfill.EASY, 70.41),
        (SDSC_BLUE, Backfill.EASY, 30.62),
        (CURIE, Backfill.EASY, 69.93),
        (KTH, Backfill.EASY_SJBF, 49.87),
        (CTC, Backfill.EASY_SJBF, 17.57),
        (SDSC_SP2, Backfill.EASY_SJBF, 56.77),
        (SDSC_BLUE, Backfill.EASY_SJBF, 13.15),
        (CURIE, Backfill.EASY_SJBF, 11.68),
    ],
)
def test_actual_runtimes_give_the_published_figures(
    load: Load, log: str, backfill: Backfilling, published: float
) -> None:
    jobs = load(log)
    schedule = simulate(jobs, Policy(backfill=backfill), jobs.actual_runtime, check=True)
    assert figures(jobs, schedule)[1] == pytest.approx(published, rel=0.003)


@pytest.mark.parametrize(
    ("log", "backfill", "published"),
    [
        (KTH, Backfill.EASY, 92.73),
        (CTC, Backfill.EASY, 48.84),
        (SDSC_SP2, Backfill.EASY, 87.76),
        (SDSC_BLUE, Backfill.EASY, 37.41),
        (CURIE, Backfill.EASY, 228.5),
        (KTH, Backfill.EASY_SJBF, 69.44),
        (SDSC_BLUE, Backfill.EASY_SJBF, 19.83),
    ],
)
def test_requested_times_give_the_published_figures(
    load: Load, log: str, backfill: Backfilling, published: float
) -> None:
    jobs = load(log)
    schedule = simulate(jobs, Policy(backfill=backfill), check=True)
    assert figures(jobs, schedule)[1] == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize(
    ("order", "backfill", "actual", "wait_s", "avebsld"),
    [
        (Order.FCFS, Backfill.NONE, False, 353_949.93, 6_818.32),
        (Order.FCFS, Backfill.EASY, False, 6_839.77, 92.62),
        (Order.FCFS, Backfill.EASY_SJBF, False, 5_906.52, 69.44),
        (Order.FCFS, Backfill.EASY, True, 6_330.33, 71.75),
        (Order.FCFS, Backfill.EASY_SJBF, True, 5_438.23, 49.87),
    ],
)
def test_kth_agrees_with_another_simulator_to_the_second(
    load: Load, order: Order, backfill: Backfilling, actual: bool, wait_s: float, avebsld: float
) -> None:
    jobs = load(KTH)
    policy = Policy(order=order, backfill=backfill, event_order=EventOrder.PER_EVENT)
    schedule = simulate(jobs, policy, jobs.actual_runtime if actual else None, check=True)
    assert figures(jobs, schedule) == pytest.approx((wait_s, avebsld), abs=0.005)


@pytest.mark.parametrize(
    ("order", "wait_s", "avebsld"),
    [
        (Order.WFP, 5_174.36, 53.92),
        (Order.SJF, 4_618.54, 42.69),
        (Order.LJF, 8_348.86, 110.83),
    ],
)
def test_kth_in_other_orders_agrees_with_another_simulator(
    load: Load, order: Order, wait_s: float, avebsld: float
) -> None:
    """From one other simulator; 0.02, 0.13 and 0.69 s apart."""
    jobs = load(KTH)
    schedule = simulate(jobs, Policy(order=order, event_order=EventOrder.PER_EVENT), check=True)
    assert figures(jobs, schedule) == pytest.approx((wait_s, avebsld), rel=0.0005)


@pytest.mark.parametrize(
    ("log", "backfill", "wait_s", "avebsld"),
    [
        (CTC, Backfill.EASY, 14_272.6, 49.57),
        (SDSC_SP2, Backfill.EASY, 20_494.7, 87.83),
        (SDSC_BLUE, Backfill.EASY, 7_691.06, 36.53),
        (SDSC_BLUE, Backfill.EASY_SJBF, 5_821.9, 19.83),
        (CURIE, Backfill.EASY, None, 202.1),
    ],
)
def test_per_event_gives_the_published_figures_on_the_other_logs(
    load: Load, log: str, backfill: Backfilling, wait_s: float | None, avebsld: float
) -> None:
    """Within 1%, where the default event order is up to 13% away (Curie)."""
    jobs = load(log)
    policy = Policy(backfill=backfill, event_order=EventOrder.PER_EVENT)
    mean_wait_s, mean_slowdown = figures(jobs, simulate(jobs, policy, check=True))
    assert mean_slowdown == pytest.approx(avebsld, rel=0.01)
    if wait_s is not None:
        assert mean_wait_s == pytest.approx(wait_s, rel=0.01)


class LastTwoRoundedDown(LastTwo):
    """As the simulator of the published figure rounds."""

    def predict_one(self, job: JobRequest, now: int) -> int:
        recent = [runtime for runtime, _ in self.recent(job.user)]
        return max(1, min(job.requested_time, sum(recent) // 2 if len(recent) == 2 else 2**40))


def learning(jobs: Workload, policy: Policy, estimator: LastTwo) -> Schedule:
    """Drive the engine by submissions; predictions know what has finished by then."""
    requests = [jobs.job_request(job) for job in range(len(jobs))]
    engine = Engine(jobs.machine_processors, policy, now=requests[0].submit_time)
    for request, actual_runtime in zip(requests, jobs.actual_runtime.tolist(), strict=True):
        now = request.submit_time
        for index in engine.advance(now).finished.tolist():
            done = engine.job(index)
            assert done.start_time is not None
            assert done.end_time is not None
            runtime = done.end_time - done.start_time
            estimator.learn_one(
                FinishedJob(
                    requests[index], done.start_time, done.end_time, runtime, Ending.COMPLETED
                )
            )
        scheduled = estimator.predict_one(request, now)
        engine.submit(now, request.processors, actual_runtime, request.requested_time, scheduled)
    engine.finish()
    return engine.schedule()


def test_easy_plus_plus_gives_its_published_figures_stepwise(load: Load) -> None:
    """EASY++: mean of the last two, incremental correction, shortest candidates first."""
    policy = Policy(
        backfill=Backfill.EASY_SJBF,
        correction=Correction.INCREMENTAL,
        event_order=EventOrder.PER_EVENT,
    )
    jobs = load(KTH)
    schedule = learning(jobs, policy, LastTwoRoundedDown())
    assert figures(jobs, schedule) == pytest.approx((6_234.16, 63.40), abs=0.005)
    # Predictions rounded up instead, as ours are, move it by as much as ties do.
    assert figures(jobs, learning(jobs, policy, LastTwo()))[1] == pytest.approx(63.40, rel=0.01)


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.counters == other.counters


def underestimates(jobs: Workload) -> np.ndarray:
    """Scheduled times that many jobs outlive."""
    return (jobs.actual_runtime + jobs.requested_time) // 4


@pytest.mark.parametrize("event_order", EventOrder)
@pytest.mark.parametrize(
    ("backfill", "correction", "which"),
    [
        (Easy(Candidates.SJBF, guard=Guard(3_600)), Correction.SLURM, slice(None)),
        (Backfill.CONSERVATIVE, Correction.INCREMENTAL, slice(20_000, 30_000)),
    ],
)
def test_stepwise_is_the_whole_run(
    load: Load,
    backfill: Backfilling,
    correction: Correction,
    which: slice,
    event_order: EventOrder,
) -> None:
    whole = load(SDSC_SP2)
    jobs = whole.take(np.arange(len(whole))[which])
    scheduled = underestimates(jobs)
    policy = Policy(backfill=backfill, correction=correction, event_order=event_order)
    engine = Engine(jobs.machine_processors, policy, now=int(jobs.submit_time[0]))
    columns = (jobs.submit_time, jobs.processors, jobs.actual_runtime, jobs.requested_time)
    rows = zip(*(column.tolist() for column in (*columns, scheduled)), strict=True)
    for submit, processors, actual, requested, planned in rows:
        engine.advance(submit)
        engine.submit(submit, processors, actual, requested, planned)
    engine.finish()
    assert_same(engine.schedule(), simulate(jobs, policy, scheduled))


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize(
    "policy",
    [
        Policy(order=Order.FCFS),
        Policy(event_order=EventOrder.PER_EVENT, correction=Correction.INCREMENTAL),
        Policy(backfill=Easy(guard=Guard(0)), order=Order.WFP, correction=Correction.SLURM),
        Policy(order=Order.SJF, correction=Correction.DOUBLING),
        Policy(backfill=Easy(Candidates.SJBF, guard=Guard(7_200)), correction=Correction.PBS),
        Policy(order=Order.XF, correction=Correction.INCREMENTAL),
    ],
    ids=lambda policy: f"{policy.order}-{policy.correction}-{policy.event_order}",
)
def test_native_core_is_the_reference_on_a_slice(load: Load, log: str, policy: Policy) -> None:
    whole = load(log)
    middle = len(whole) // 2
    jobs = whole.take(np.arange(middle, middle + 1_500))
    scheduled = underestimates(jobs)
    native = simulate(jobs, policy, scheduled, check=True)
    assert_same(native, reference.simulate(jobs, policy, scheduled))
