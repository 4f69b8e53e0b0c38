"""Runs with an estimator in the loop: against other ways to the same schedule, and by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.estimator import (
    RoleEstimator,
    RolePrediction,
    RuntimeEstimator,
    StartObserver,
    clamped,
)
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    job_requests,
    simulate_with_estimator,
)
from foretime_sim.engine.finished_history import finished_before, placed_before
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

JOBS = lublin2003.generate(400, processors=64, load=0.9)
NAMES = [entry.example for entry in ESTIMATORS]
SOON = replace(AccuracySettings.tang2010(), threshold=3)
"""Accuracy rules that predict something from few jobs."""
IDS = ("default", "per-event", "sjf-sjbf-slurm")
POLICIES = [
    Policy(),
    Policy(event_order=EventOrder.PER_EVENT, correction=Correction.INCREMENTAL),
    Policy(
        order=Order.SJF, backfill=Easy(Candidates.SJBF, guard=Guard(0)), correction=Correction.SLURM
    ),
]


class InTheLoop:
    """Any estimator, of which nothing is known but the protocol; notes what it was told."""

    oracle = False

    def __init__(self, estimator: RuntimeEstimator) -> None:
        self.estimator = estimator
        self.learned: list[FinishedJob] = []

    def predict_one(self, job: JobRequest, now: int) -> int:
        return self.estimator.predict_one(job, now)

    def learn_one(self, job: FinishedJob) -> None:
        self.learned.append(job)
        self.estimator.learn_one(job)

    def state(self) -> dict[str, Any]:
        return self.estimator.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.estimator.restore(state)


class RolesInTheLoop(InTheLoop):
    """The same of an estimator with a time for each role."""

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        assert isinstance(self.estimator, RoleEstimator)
        return self.estimator.predict_roles(job, now)


class StartsInTheLoop(InTheLoop):
    """Notes every start and end that it was told of."""

    def __init__(self, estimator: RuntimeEstimator) -> None:
        super().__init__(estimator)
        self.told: list[tuple[int, str, str]] = []
        self.running: set[str] = set()

    def start_one(self, job: JobRequest, start_time: int) -> None:
        self.told.append((start_time, "start", job.job_id))
        self.running.add(job.job_id)
        if isinstance(self.estimator, StartObserver):
            self.estimator.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        super().learn_one(job)
        self.told.append((job.end_time, "end", job.request.job_id))
        self.running.remove(job.request.job_id)

    def predict_one(self, job: JobRequest, now: int) -> int:
        assert all(time <= now for time, _, _ in self.told[-1:])
        return super().predict_one(job, now)


class RolesAndStartsInTheLoop(RolesInTheLoop, StartsInTheLoop):
    """Both."""


class LearnedRuntimes:
    """Plans every job with the sum of all runtimes learned so far, so that each one shows."""

    oracle = False

    def __init__(self) -> None:
        self.total = 0

    def predict_one(self, job: JobRequest, now: int) -> int:
        return clamped(self.total, job)

    def learn_one(self, job: FinishedJob) -> None:
        self.total += job.actual_runtime

    def state(self) -> dict[str, Any]:
        return {"total": self.total}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.total = state["total"]


def fresh(name: str, jobs: Workload = JOBS) -> RuntimeEstimator:
    return estimator_of(name, jobs, settings=SOON)


def run(name: str, policy: Policy, jobs: Workload = JOBS, **options: Any) -> EstimatedSchedule:
    return simulate_with_estimator(jobs, policy, fresh(name, jobs), check=True, **options)


def assert_same(one: EstimatedSchedule, other: EstimatedSchedule) -> None:
    np.testing.assert_array_equal(one.scheduled_time, other.scheduled_time)
    for field in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
    assert one.counters == other.counters


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_gives_the_schedule_of_its_predictions(name: str, policy: Policy) -> None:
    """What an estimator predicts on the way, given beforehand, gives the same schedule."""
    estimated = run(name, policy)
    again = simulate(JOBS, policy, estimated.role_times)
    assert_same(estimated, EstimatedSchedule(again, estimated.scheduled_time))


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_fast_path_is_the_loop(name: str, policy: Policy) -> None:
    estimator = fresh(name)
    wrapper = {
        (False, False): InTheLoop,
        (True, False): RolesInTheLoop,
        (False, True): StartsInTheLoop,
        (True, True): RolesAndStartsInTheLoop,
    }[isinstance(estimator, RoleEstimator), isinstance(estimator, StartObserver)]
    in_the_loop = wrapper(estimator)
    assert_same(run(name, policy), simulate_with_estimator(JOBS, policy, in_the_loop))
    assert len(in_the_loop.learned) > 300


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("name", ["last-two", "combined", "recent-maximum"])
def test_predictions_know_what_had_finished_and_nothing_else(name: str, policy: Policy) -> None:
    """From the finished schedule alone: learn all that ended by each submission, then predict."""
    estimated = run(name, policy)
    requests = job_requests(JOBS)
    estimator = fresh(name)
    first = policy.event_order is EventOrder.PER_TIMESTEP
    by_end = sorted(range(len(JOBS)), key=lambda job: int(estimated.end_time[job]))
    expected, learned = [], 0
    for request in requests:
        now = request.submit_time
        while (end := int(estimated.end_time[by_end[learned]])) < now + first:
            job = by_end[learned]
            start = int(estimated.start_time[job])
            timed_out = end - start >= requests[job].requested_time
            ending = Ending.TIMED_OUT if timed_out else JOBS.ending(job) or Ending.COMPLETED
            estimator.learn_one(FinishedJob(requests[job], start, end, end - start, ending))
            learned += 1
        expected.append(estimator.predict_one(request, now))
    assert estimated.scheduled_time.tolist() == expected
    assert any(t < r.requested_time for t, r in zip(expected, requests, strict=True))


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("name", ["last-two", "user"])
def test_the_future_changes_nothing(name: str, policy: Policy) -> None:
    whole = run(name, policy)
    for jobs in (1, 150, 399):
        cut = run(name, policy, JOBS.head(jobs))
        np.testing.assert_array_equal(cut.scheduled_time, whole.scheduled_time[:jobs])
    moment = int(JOBS.submit_time[200])
    unfinished = whole.end_time > moment
    # Jobs that end later end later still: no prediction up to that moment may know.
    longer = np.where(unfinished, JOBS.requested_time, JOBS.actual_runtime)
    otherwise = run(name, policy, replace(JOBS, actual_runtime=longer))
    before = JOBS.submit_time <= moment
    np.testing.assert_array_equal(otherwise.scheduled_time[before], whole.scheduled_time[before])
    assert (otherwise.scheduled_time != whole.scheduled_time).any()


def by_hand(*jobs: tuple[int, int, int], ids: tuple[int, ...] | None = None) -> Workload:
    """Jobs of (submission, runtime, request) of one user on one processor."""
    submit, runtime, request = np.array(jobs, dtype=np.int64).reshape(-1, 3).T.copy()
    count = len(jobs)
    return Workload(
        name="by hand",
        machine_processors=1,
        unix_start_time=None,
        job_id=np.array(ids or range(1, count + 1), dtype=np.int64)[:count],
        submit_time=submit,
        processors=np.ones(count, dtype=np.int64),
        actual_runtime=runtime,
        requested_time=request,
        users=Labels(np.zeros(count, dtype=np.int32), ("alice",)),
    )


def test_an_estimator_knows_only_what_has_ended_at_a_submission() -> None:
    jobs = by_hand((0, 10, 100), (0, 20, 100), (30, 50, 100), (31, 5, 100))
    assert run("last-two", Policy(), jobs).scheduled_time.tolist() == [100, 100, 15, 15]
    # Where submissions come first, the second job, which ends at 30, is not known to the third.
    policy = Policy(event_order=EventOrder.PER_EVENT)
    assert run("last-two", policy, jobs).scheduled_time.tolist() == [100, 100, 100, 15]


def test_what_is_learned_of_a_job() -> None:
    jobs = by_hand((0, 10, 100), (5, 90, 40), (1_000, 1, 1))
    estimator = InTheLoop(LastTwo())
    simulate_with_estimator(jobs, Policy(), estimator)
    first, second, _ = job_requests(jobs)
    assert estimator.learned == [
        FinishedJob(first, 0, 10, 10, Ending.COMPLETED),
        FinishedJob(second, 10, 50, 40, Ending.TIMED_OUT),
    ]
    assert first == JobRequest("1", "alice", None, 1, 100, 0)


def test_oracles_tell_jobs_of_one_number_apart() -> None:
    jobs = by_hand((0, 10, 100), (5, 90, 100), (9, 7, 100), ids=(8, 8, 8))
    assert run("actual", Policy(), jobs).scheduled_time.tolist() == [10, 90, 7]
    assert [request.job_id for request in job_requests(jobs)] == ["8", "8#2", "8#3"]


@pytest.mark.parametrize("name", NAMES)
def test_no_jobs_and_one(name: str) -> None:
    assert len(run(name, Policy(), by_hand())) == 0
    one = run(name, Policy(), by_hand((7, 3, 10)))
    assert one.start_time.tolist() == [7]
    assert one.end_time.tolist() == [10]


def test_history_is_learned_first_as_far_as_it_had_ended() -> None:
    past = by_hand((0, 30, 100), (50, 40, 100), (60, 50, 100))
    jobs = by_hand((100, 10, 100), (200, 10, 100), (300, 10, 100))
    # The third ended at 110, after the first submission.
    assert [job.end_time for job in finished_before(past, jobs)] == [30, 90]
    known = run("last-two", Policy(), jobs, history=past, learn=False)
    assert known.scheduled_time.tolist() == [35, 35, 35]
    learning = run("last-two", Policy(), jobs, history=past)
    assert learning.scheduled_time.tolist() == [35, 25, 10]


def test_a_history_is_put_on_the_logs_clock() -> None:
    past = replace(by_hand((0, 30, 100)), unix_start_time=1_000)
    jobs = replace(by_hand((0, 10, 100)), unix_start_time=5_000)
    assert [job.start_time for job in finished_before(past, jobs)] == [-4_000]
    with pytest.raises(InputError, match="none of its jobs had ended"):
        finished_before(jobs, past)
    undated = by_hand((500, 10, 100))
    assert [job.end_time for job in finished_before(placed_before(past, undated), undated)] == [500]


def test_without_learning_nothing_is_learned() -> None:
    jobs = by_hand((0, 10, 100), (50, 10, 100))
    estimator = InTheLoop(LearnedRuntimes())
    estimated = simulate_with_estimator(jobs, Policy(), estimator, learn=False)
    assert estimator.learned == []
    assert estimated.scheduled_time.tolist() == [1, 1]
    assert simulate_with_estimator(jobs, Policy(), LearnedRuntimes()).scheduled_time.tolist() == [
        1,
        10,
    ]


def test_progress_is_told_as_it_goes() -> None:
    told: list[int] = []
    run("last-two", Policy(), progress=told.append)
    assert told == list(range(4, 401, 4))


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_starts_and_ends_are_told_in_order_before_the_next_submission(policy: Policy) -> None:
    observer = StartsInTheLoop(LastTwo())
    estimated = simulate_with_estimator(JOBS, policy, observer)
    assert_same(run("last-two", policy), estimated)
    assert [time for time, _, _ in observer.told] == sorted(time for time, _, _ in observer.told)
    last = int(JOBS.submit_time[-1])
    on_time = last if policy.event_order is EventOrder.PER_TIMESTEP else last - 1
    for kind, times in (("start", estimated.start_time), ("end", estimated.end_time)):
        told = {job: time for time, what, job in observer.told if what == kind}
        happened = dict(zip(map(str, JOBS.job_id.tolist()), times.tolist(), strict=True))
        by_then = {job: time for job, time in happened.items() if time < on_time}
        assert by_then.items() <= told.items() <= happened.items()


@pytest.mark.parametrize("removed", [True, False], ids=["removed", "nonsense"])
@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_predictions_do_not_know_what_is_still_to_come(policy: Policy, removed: bool) -> None:
    """What is submitted after the 200th job goes, or is nonsense; what has not ended goes on."""
    users = Labels(np.arange(400, dtype=np.int32) % 7, tuple("abcdefg"))
    jobs = replace(JOBS, users=users)
    estimator = "regression:squared-squared-constant"
    estimated = run(estimator, policy, jobs)
    later = np.arange(400) >= 200
    now = int(jobs.submit_time[199])
    goes_on = np.maximum(jobs.actual_runtime, jobs.requested_time)
    changed = replace(
        jobs,
        processors=np.where(later, 64, jobs.processors),
        requested_time=np.where(later, 10**7, jobs.requested_time),
        actual_runtime=np.where(estimated.end_time > now, goes_on, jobs.actual_runtime),
    )
    again = run(estimator, policy, changed.head(200) if removed else changed)
    said = estimated.scheduled_time[:200].tolist()
    assert again.scheduled_time[:200].tolist() == said
    assert len(set(said[100:])) > 50
    assert again.scheduled_time[200:].tolist() != estimated.scheduled_time[200:].tolist()
