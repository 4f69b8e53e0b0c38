"""Learning runs in the native core, against the same driven step by step in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.estimator import RuntimeEstimator
from foretime_estimators.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.last_two import LastTwo
from foretime_sim import lublin2003
from foretime_sim.advance_reservations import AdvanceReservation
from foretime_sim.estimated_run import EstimatedSchedule, simulate_with_estimator
from foretime_sim.learning_core import learns_natively
from foretime_sim.policy import Backfill, Correction, EventOrder, Order, Policy
from foretime_sim.workload import ENDINGS, Labels, Workload
from hypothesis import given, settings
from hypothesis import strategies as st

Make = Callable[[], RuntimeEstimator]
MAKES: dict[str, Make] = {"last-two": LastTwo}
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
    assert learns_natively(native, workload, policy)
    schedule = simulate_with_estimator(workload, policy, native, check=True, **options)
    assert_same(schedule, simulate_with_estimator(workload, policy, InPython(python), **options))
    assert json.dumps(native.state()) == json.dumps(python.state())
    return schedule


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Few users, times that often coincide, and some that are as long as a time may be."""
    processors = draw(st.integers(1, 16))
    jobs = draw(st.integers(0, 40))
    long = draw(st.booleans())
    times = st.integers(0, 60)
    if long:
        times |= st.sampled_from([10**9, LONGEST_S])

    def column(values: st.SearchStrategy[int]) -> Any:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)

    users = draw(st.none() | st.just(column(st.integers(-1, 2)).astype(np.int32)))
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
        users=None if users is None else Labels(users, ("ann", "bob", "eve")),
        endings=None
        if endings is None
        else np.ma.MaskedArray(endings.astype(np.int8), mask=endings == 0),
    )


@pytest.mark.parametrize("name", MAKES)
def test_random_workloads_under_any_policy(
    name: str, any_policy: st.SearchStrategy[Policy]
) -> None:
    @settings(max_examples=150, deadline=None)
    @given(workload=workloads(), policy=any_policy)
    def agrees(workload: Workload, policy: Policy) -> None:
        agree(MAKES[name], workload, policy)

    agrees()


JOBS = lublin2003.generate(1_500, processors=64, load=0.9)
POLICIES = [
    Policy(),
    Policy(backfill=Backfill.EASY_SJBF, correction=Correction.INCREMENTAL),
    Policy(event_order=EventOrder.PER_EVENT, correction=Correction.DOUBLING, guard_s=3_600),
    Policy(order=Order.SJF, correction=Correction.SLURM),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("name", MAKES)
def test_a_busy_machine(name: str, policy: Policy) -> None:
    schedule = agree(MAKES[name], JOBS, policy)
    assert bool((schedule.scheduled_time < JOBS.requested_time).any())


@pytest.mark.parametrize("name", MAKES)
def test_reservations_and_a_history(name: str) -> None:
    history = replace(JOBS.head(400), logged_wait=np.ma.zeros(400, dtype=np.int64))
    later = JOBS.take(np.arange(400, 1_000))
    begin = int(later.submit_time[0])
    reservations = (AdvanceReservation(begin + 3_600, 7_200, 32),)
    agree(MAKES[name], later, Policy(), history=history, reservations=reservations)


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
