"""Learning runs in the native core, against the same driven step by step in Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.estimators.estimator import RolePrediction, RuntimeEstimator, StartObserver
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime, ExpectedRuntimeSettings
from foretime_estimators.estimators.job_events import learn_history
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.regression import learned_runtime
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.online_regression import RegressionSettings
from foretime_estimators.estimators.regression.prediction_loss import LOSSES
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    job_requests,
    role_predictor,
    simulate_with_estimator,
)
from foretime_sim.engine.finished_history import finished_before
from foretime_sim.engine.native import estimator_core
from foretime_sim.engine.native.estimator_core import is_native
from foretime_sim.engine.native.learning_core import runs_natively
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import ENDINGS, Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.real_logs import KTH, Load

Make = Callable[[], RuntimeEstimator]
MAKES: dict[str, Make] = {
    "last-two": LastTwo,
    "expected": ExpectedRuntime,
    "expected, soon forgotten": lambda: ExpectedRuntime(
        ExpectedRuntimeSettings(half_life_jobs=1.5, enough_jobs=0.1, window_s=40, shortest_s=3)
    ),
    "regression": LearnedRuntime,
    "other loss, recent jobs": lambda: LearnedRuntime(
        LOSSES["linear-squared-short-wide"],
        RegressionSettings(l2=0.0, recent_half_life=20.0, absolute=False),
    ),
}
LONGEST_S = 2**52


class InPython:
    """An estimator that the native core does not know: the run goes step by step."""

    oracle = False

    def __init__(self, estimator: RuntimeEstimator) -> None:
        self.estimator = estimator

    def predict_one(self, job: JobRequest, now: int) -> int:
        return self.estimator.predict_one(job, now)

    def learn_one(self, job: FinishedJob) -> None:
        self.estimator.learn_one(job)

    def start_one(self, job: JobRequest, start_time: int) -> None:
        if isinstance(self.estimator, StartObserver):
            self.estimator.start_one(job, start_time)

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        return role_predictor(self.estimator)(job, now)

    def state(self) -> dict[str, Any]:
        return self.estimator.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.estimator.restore(state)


def assert_same(native: EstimatedSchedule, python: EstimatedSchedule) -> None:
    np.testing.assert_array_equal(native.scheduled_time, python.scheduled_time)
    for field in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(native, field), getattr(python, field), err_msg=field)
    assert native.counters == python.counters
    assert native.role_times is not None
    assert python.role_times is not None
    for role in ("queue", "backfill", "drain"):
        one, other = getattr(native.role_times, role), getattr(python.role_times, role)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


def agree(make: Make, workload: Workload, policy: Policy, **options: Any) -> EstimatedSchedule:
    """Run both ways, and compare all that they give and leave behind."""
    native, python = make(), make()
    assert runs_natively(workload, policy)
    assert is_native(native)
    schedule = simulate_with_estimator(workload, policy, native, check=True, **options)
    assert_same(schedule, simulate_with_estimator(workload, policy, InPython(python), **options))
    assert json.dumps(native.state()) == json.dumps(python.state())
    return schedule


@st.composite
def workloads(draw: st.DrawFn, longest_s: int) -> Workload:
    """Few users, times that often coincide, and some that are very long."""
    processors = draw(st.integers(1, 16))
    jobs = draw(st.integers(0, 40))
    times = st.integers(0, 60)
    if draw(st.booleans()):
        times |= st.integers(0, longest_s)

    def column(values: st.SearchStrategy[int]) -> Any:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)

    def names(*known: str) -> Labels | None:
        codes = column(st.integers(-1, len(known) - 1)).astype(np.int32)
        return Labels(codes, known) if draw(st.booleans()) else None

    endings = draw(st.none() | st.just(column(st.integers(0, len(ENDINGS) - 1))))
    return Workload(
        name="drawn",
        machine_processors=processors,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.sort(column(st.integers(0, 120) | st.just(10**6))),
        processors=column(st.integers(1, processors)),
        actual_runtime=column(times),
        requested_time=np.maximum(column(times), 1),
        users=names("ann", "bob", "eve"),
        projects=names("physics"),
        queues=names("short", "long"),
        executables=names("cp2k"),
        endings=None
        if endings is None
        else np.ma.MaskedArray(endings.astype(np.int8), mask=endings == 0),
    )


@pytest.mark.parametrize("name", MAKES)
def test_core_and_stepwise_agree_under_any_policy(
    name: str, any_policy: st.SearchStrategy[Policy]
) -> None:
    @settings(max_examples=100, deadline=None)
    @given(data=st.data(), policy=any_policy)
    def agrees(data: st.DataObject, policy: Policy) -> None:
        # By PBS's rule an estimate of a second expires every second, and passes may come as often.
        by_the_second = policy.correction is Correction.PBS or policy.scheduling_interval_s
        longest_s = 300 if by_the_second else 10**9
        agree(MAKES[name], data.draw(workloads(longest_s)), policy)

    agrees()


JOBS = lublin2003.generate(1_500, processors=64, load=0.9)
POLICIES = [
    Policy(),
    Policy(backfill=Backfill.EASY_SJBF, correction=Correction.INCREMENTAL),
    Policy(
        backfill=Easy(guard=Guard(3_600)),
        event_order=EventOrder.PER_EVENT,
        correction=Correction.DOUBLING,
    ),
    Policy(order=Order.SJF, correction=Correction.SLURM),
]
POLICY_IDS = ("default", "sjbf-incremental", "per-event-doubling-guard", "sjf-slurm")


@pytest.mark.parametrize("policy", POLICIES, ids=POLICY_IDS)
@pytest.mark.parametrize("name", MAKES)
def test_core_and_stepwise_agree_on_a_busy_machine(name: str, policy: Policy) -> None:
    schedule = agree(MAKES[name], JOBS, policy)
    assert bool((schedule.scheduled_time < JOBS.requested_time).any())


@pytest.mark.parametrize("name", MAKES)
def test_core_and_stepwise_agree_with_reservations_and_a_history(name: str) -> None:
    history = replace(JOBS.head(400), logged_wait=np.ma.zeros(400, dtype=np.int64))
    later = JOBS.take(np.arange(400, 1_000))
    begin = int(later.submit_time[0])
    reservations = (AdvanceReservation(begin + 3_600, 7_200, 32),)
    agree(MAKES[name], later, Policy(), history=history, reservations=reservations)


def test_what_a_history_leaves_is_begun_with_natively() -> None:
    history = replace(JOBS.head(400), logged_wait=np.ma.zeros(400, dtype=np.int64))
    estimator = LearnedRuntime()
    learn_history(estimator, finished_before(history, JOBS.take(np.arange(400, 1_000))))
    assert estimator.regression.examples > 300
    assert is_native(estimator)


def test_an_estimator_with_jobs_still_to_end_goes_on_step_by_step() -> None:
    """It knows them by names that the workload may give to others."""
    estimator, other = LearnedRuntime(), LearnedRuntime()
    for each in (estimator, InPython(other)):
        simulate_with_estimator(JOBS.head(300), POLICIES[1], each)
        simulate_with_estimator(JOBS, POLICIES[1], each)
    assert estimator.awaits_ends
    assert not is_native(estimator)
    assert json.dumps(estimator.state()) == json.dumps(other.state())


def test_a_state_survives_json_and_is_begun_with() -> None:
    """All had ended by the last submission, an hour after the others: nothing is awaited."""
    submit_time = JOBS.submit_time.copy()
    submit_time[-1] = 10**8
    first = LearnedRuntime()
    simulate_with_estimator(replace(JOBS, submit_time=submit_time), Policy(), first)
    first.learn_one(FinishedJob(job_requests(JOBS)[-1], 10**8, 10**8 + 10, 10, Ending.COMPLETED))
    state = json.loads(json.dumps(first.state()))

    def restored() -> LearnedRuntime:
        estimator = LearnedRuntime()
        estimator.restore(state)
        return estimator

    assert restored().regression.examples == len(JOBS)
    agree(restored, JOBS, POLICIES[1])


@pytest.mark.parametrize("policy", POLICIES, ids=POLICY_IDS)
def test_only_so_many_jobs_are_remembered(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten, and learned by what is known when they end."""
    monkeypatch.setattr(learned_runtime, "MOST_ASKED", 5)
    monkeypatch.setattr(estimator_core, "MOST_ASKED", 5)
    agree(LearnedRuntime, JOBS, policy)


def test_a_prediction_that_is_no_number_is_the_request() -> None:
    state = LearnedRuntime().state()
    state["regression"] |= {
        "examples": 1,
        "normalised_squares": 1.0,
        "weight": [math.inf] * 231,
        "scale": [1.0] * 231,
        "gradient_squares": [1.0] * 231,
    }

    def broken() -> LearnedRuntime:
        estimator = LearnedRuntime()
        estimator.restore(state)
        return estimator

    estimator = broken()
    schedule = simulate_with_estimator(JOBS, Policy(), estimator, check=True)
    np.testing.assert_array_equal(schedule.scheduled_time, JOBS.requested_time)
    with np.errstate(all="ignore"):
        agree(broken, JOBS, Policy())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_longest_times_and_widest_jobs_do_not_overflow(loss: str) -> None:
    """Nothing overflows, and predictions stay within the request."""
    count = 60
    rng = np.random.default_rng(7)
    longest = np.full(count, LONGEST_S)
    workload = Workload(
        name="long",
        machine_processors=2**31 - 1,
        unix_start_time=None,
        job_id=np.arange(count),
        submit_time=np.sort(rng.choice([-LONGEST_S, 0, LONGEST_S], count)),
        processors=rng.choice([1, 2**31 - 1], count),
        actual_runtime=rng.choice([0, 10**9, LONGEST_S], count),
        requested_time=rng.choice([1, 10**9, LONGEST_S], count),
        users=Labels(np.zeros(count, dtype=np.int32), ("ann",)),
    )
    schedule = simulate_with_estimator(
        workload, Policy(backfill=Backfill.FIRST_FIT), LearnedRuntime(LOSSES[loss])
    )
    assert bool((schedule.scheduled_time >= 1).all())
    assert bool((schedule.scheduled_time <= workload.requested_time).all())
    assert bool((schedule.end_time <= 200 * longest).all())


def test_runs_on_threads_of_their_own_are_as_alone() -> None:
    makes = [LearnedRuntime, LastTwo] * 4

    def run(make: Make) -> EstimatedSchedule:
        return simulate_with_estimator(JOBS, Policy(), make())

    with ThreadPoolExecutor(4) as threads:
        for make, schedule in zip(makes, threads.map(run, makes), strict=True):
            assert_same(schedule, run(make))


def test_a_signal_stops_a_run_and_leaves_the_estimator(soon_interrupted: type[Exception]) -> None:
    """The third job's estimate of a second expires every second."""
    workload = Workload(
        name="by the second",
        machine_processors=1,
        unix_start_time=None,
        job_id=np.arange(4),
        submit_time=np.array([0, 0, 10, 30_000_000]),
        processors=np.ones(4, dtype=np.int64),
        actual_runtime=np.array([1, 1, 30_000_000, 1]),
        requested_time=np.array([1, 1, 30_000_000, 1]),
        users=Labels(np.zeros(4, dtype=np.int32), ("ann",)),
    )
    estimator = LastTwo()
    with pytest.raises(soon_interrupted):
        simulate_with_estimator(workload, Policy(correction=Correction.PBS), estimator)
    assert estimator.state() == LastTwo().state()


WHOLE: dict[str, tuple[Make, Correction]] = {
    "paper's choice": (LearnedRuntime, Correction.INCREMENTAL),
    "another loss": (
        lambda: LearnedRuntime(LOSSES["linear-squared-short-wide"]),
        Correction.REQUESTED,
    ),
    "linear, doubling": (
        lambda: LearnedRuntime(LOSSES["linear-linear-small-area"]),
        Correction.DOUBLING,
    ),
    "expected": (ExpectedRuntime, Correction.REQUESTED),
}


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_core_and_stepwise_agree_on_the_whole_of_kth(load: Load, name: str) -> None:
    make, correction = WHOLE[name]
    policy = Policy(
        backfill=Backfill.EASY_SJBF, correction=correction, event_order=EventOrder.PER_EVENT
    )
    agree(make, load(KTH), policy)


@pytest.mark.parametrize("name", MAKES)
def test_progress_is_told_about_a_hundred_times(name: str) -> None:
    told: list[int] = []
    simulate_with_estimator(JOBS, Policy(), MAKES[name](), progress=told.append)
    assert told == list(range(15, 1_501, 15))


def test_what_a_learning_run_of_two_jobs_learns() -> None:
    """By hand: the third job of a user is planned with the mean of the first two, rounded up."""
    workload = Workload(
        name="by hand",
        machine_processors=2,
        unix_start_time=None,
        job_id=np.arange(1, 5),
        submit_time=np.array([0, 0, 100, 100]),
        processors=np.array([1, 1, 1, 1]),
        actual_runtime=np.array([10, 25, 5, 5]),
        requested_time=np.array([50, 50, 50, 12]),
        users=Labels(np.zeros(4, dtype=np.int32), ("ann",)),
        endings=np.ma.MaskedArray(np.zeros(4, dtype=np.int8), mask=False),
    )
    assert ENDINGS[0] is Ending.COMPLETED
    estimator = LastTwo()
    schedule = simulate_with_estimator(workload, Policy(), estimator)
    assert schedule.scheduled_time.tolist() == [50, 50, 18, 12]
    assert estimator.state() == {"length": 2, "recent": {"ann": [[10, 50], [25, 50]]}}
