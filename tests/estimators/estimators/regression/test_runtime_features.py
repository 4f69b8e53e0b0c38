"""The 20 features: by hand, against all events gone through anew, and nothing of the future."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.estimators.regression.runtime_features import FEATURES, RuntimeFeatures
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, WEEK_S
from hypothesis import given
from hypothesis import strategies as st

NOON_S = DAY_S // 2


def request(
    number: int = 0, user: str | None = "ann", processors: int = 1, submit_time: int = 0
) -> JobRequest:
    return JobRequest(str(number), user, None, processors, 3_600, submit_time)


def ended(
    job: JobRequest, start_time: int | None, runtime: int, ending: Ending = Ending.COMPLETED
) -> FinishedJob:
    begun = job.submit_time if start_time is None else start_time
    return FinishedJob(job, start_time, begun + runtime, runtime, ending)


def named(features: RuntimeFeatures, job: JobRequest, now: int) -> dict[str, float]:
    return dict(zip(FEATURES, features.of(job, now).tolist(), strict=True))


def test_there_are_the_20_of_the_table() -> None:
    assert len(FEATURES) == len(set(FEATURES)) == 20


def test_the_features_of_a_job_are_those_worked_out_by_hand() -> None:
    """Four of Ann's jobs have ended, two run; one of Ben's ran meanwhile."""
    features = RuntimeFeatures()
    for number, (start_time, runtime, processors) in enumerate(
        [(0, 1_000, 8), (100, 3_000, 2), (2_000, 1_400, 4), (2_200, 1_300, 2)]
    ):
        job = request(number, processors=processors)
        features.start_one(job, start_time)
        features.learn_one(ended(job, start_time, runtime))
    features.learn_one(ended(request(9, "ben", 64), 0, 50_000))
    features.start_one(request(10, processors=16), 5_000)
    features.start_one(request(11, processors=3), 6_500)
    features.start_one(request(12, "ben", 64), 6_500)
    now = NOON_S
    assert named(features, request(20, processors=6, submit_time=now), now) == {
        "requested_time_s": 3_600,
        "last_runtime_s": 1_300,
        "second_last_runtime_s": 1_400,
        "third_last_runtime_s": 3_000,
        "mean_of_last_two_s": 1_350,
        "mean_of_last_three_s": 1_900,
        "mean_runtime_s": 1_675,
        "processors": 6,
        "mean_processors": 4,
        "processors_to_mean": 1.5,
        "mean_running_processors": 9.5,
        "running_jobs": 2,
        "longest_running_s": now - 5_000,
        "sum_of_running_s": 2 * now - 11_500,
        "occupied_processors": 19,
        "break_s": now - 3_500,
        "cos_time_of_day": -1.0,
        "sin_time_of_day": pytest.approx(0.0, abs=1e-15),
        "cos_time_of_week": pytest.approx(math.cos(2 * math.pi / 14)),
        "sin_time_of_week": pytest.approx(math.sin(2 * math.pi / 14)),
    }


def test_without_history_what_needs_one_is_zero() -> None:
    for user in ("ann", None):
        features = RuntimeFeatures()
        features.learn_one(ended(request(1, None, 64), 0, 50_000))  # nobody's
        features.start_one(request(2, None, 64), 10)
        seen = named(features, request(3, user, 6), 100)
        assert {name: value for name, value in seen.items() if value} == {
            "requested_time_s": 3_600,
            "processors": 6,
            "cos_time_of_day": 1.0,
            "cos_time_of_week": 1.0,
        }


def test_means_are_over_the_jobs_that_there_are() -> None:
    features = RuntimeFeatures()
    features.learn_one(ended(request(1), 0, 100))
    seen = named(features, request(9), 200)
    assert (seen["mean_of_last_two_s"], seen["mean_of_last_three_s"]) == (100, 100)
    assert (seen["second_last_runtime_s"], seen["third_last_runtime_s"]) == (0, 0)
    features.learn_one(ended(request(2), 0, 200))
    seen = named(features, request(9), 200)
    assert (seen["mean_of_last_two_s"], seen["mean_of_last_three_s"]) == (150, 150)


def test_what_is_no_evidence_is_not_recorded_but_ends_a_job() -> None:
    features = RuntimeFeatures()
    features.start_one(request(1, processors=32), 0)
    features.learn_one(ended(request(1, processors=32), 0, 100, Ending.NODE_FAILED))
    features.learn_one(ended(request(2, processors=32), None, 0, Ending.NEVER_STARTED))
    seen = named(features, request(9), 250)
    assert seen["break_s"] == 150
    assert seen["running_jobs"] == seen["mean_runtime_s"] == seen["mean_processors"] == 0
    features.learn_one(ended(request(3), 0, 40, Ending.CANCELLED))
    assert named(features, request(9), 250)["last_runtime_s"] == 40


def test_a_job_that_starts_later_does_not_run_yet() -> None:
    features = RuntimeFeatures()
    features.start_one(request(1), 100)
    features.learn_one(ended(request(2), 0, 70))
    assert named(features, request(9), 60)["running_jobs"] == 0
    assert named(features, request(9), 60)["break_s"] == 0
    assert named(features, request(9), 100)["running_jobs"] == 1
    features.start_one(request(1), 150)  # requeued, and started again
    assert named(features, request(9), 160)["sum_of_running_s"] == 10


def test_a_start_whose_end_was_lost_is_forgotten() -> None:
    """A request of an hour; the user's next start comes a week after its end, and later."""
    features = RuntimeFeatures()
    features.start_one(request(1, processors=8), 0)
    features.start_one(request(2), WEEK_S + 3_600)
    assert named(features, request(9), WEEK_S + 3_600)["occupied_processors"] == 9
    features.start_one(request(3), WEEK_S + 3_601)
    assert named(features, request(9), WEEK_S + 3_601)["occupied_processors"] == 2


JOBS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "ben", None]),
        st.integers(1, 100),  # processors
        st.integers(0, 2 * WEEK_S),  # submission
        st.integers(0, 5_000),  # wait
        st.integers(0, 50_000),  # runtime
        st.sampled_from([Ending.COMPLETED, Ending.CANCELLED, Ending.PREEMPTED]),
    ),
    max_size=20,
)


def jobs_of(
    drawn: list[tuple[str | None, int, int, int, int, Ending]],
) -> list[FinishedJob]:
    return [
        ended(request(number, user, processors, submit_time), submit_time + wait, runtime, ending)
        for number, (user, processors, submit_time, wait, runtime, ending) in enumerate(drawn)
    ]


def told(jobs: list[FinishedJob], until: int) -> RuntimeFeatures:
    """Tell what happened up to a time, one after the other."""
    features = RuntimeFeatures()
    events = []
    for job in jobs:
        assert job.start_time is not None
        own = 2 if job.start_time == job.end_time else 0
        events.append((job.start_time, 1, int(job.request.job_id)))
        events.append((job.end_time, own, int(job.request.job_id)))
    for time, kind, number in sorted(events):
        if time > until:
            break
        if kind == 1:
            features.start_one(jobs[number].request, time)
        else:
            features.learn_one(jobs[number])
    return features


def from_all(jobs: list[FinishedJob], job: JobRequest, now: int) -> list[float]:
    """Give table 2 word for word, from the whole list of jobs."""
    mine = [other for other in jobs if other.request.user == job.user and job.user is not None]
    ran = sorted(
        (other for other in mine if other.end_time <= now),
        key=lambda other: (
            other.end_time,
            other.start_time == other.end_time,
            int(other.request.job_id),
        ),
    )
    recorded = [other for other in ran if other.ending is not Ending.PREEMPTED][::-1]
    runtimes = [other.actual_runtime for other in recorded]
    current = [
        other
        for other in mine
        if other.start_time is not None and other.start_time <= now < other.end_time
    ]
    so_far = [now - (other.start_time or 0) for other in current]
    resources = [other.request.processors for other in current]

    def mean(values: list[int]) -> float:
        return sum(values) / len(values) if values else 0.0

    requested = mean([other.request.processors for other in recorded])
    day = 2 * math.pi / 86_400 * (job.submit_time % 86_400)
    week = 2 * math.pi / (7 * 86_400) * (job.submit_time % (7 * 86_400))
    return [
        job.requested_time,
        *[*runtimes, 0, 0, 0][:3],
        mean(runtimes[:2]),
        mean(runtimes[:3]),
        mean(runtimes),
        job.processors,
        requested,
        job.processors / requested if requested else 0.0,
        mean(resources),
        len(current),
        max(so_far, default=0),
        sum(so_far),
        sum(resources),
        now - ran[-1].end_time if ran else 0,
        math.cos(day),
        math.sin(day),
        math.cos(week),
        math.sin(week),
    ]


@given(JOBS, st.integers(0, 2 * WEEK_S), st.sampled_from(["ann", "ben", None]))
def test_step_by_step_is_the_same_as_from_all_jobs(
    drawn: list[tuple[str | None, int, int, int, int, Ending]], now: int, user: str | None
) -> None:
    jobs = jobs_of(drawn)
    asked = request(99, user, 7, now)
    assert told(jobs, now).of(asked, now).tolist() == from_all(jobs, asked, now)


@given(JOBS, st.integers(0, 2 * WEEK_S))
def test_a_state_goes_through_json(
    drawn: list[tuple[str | None, int, int, int, int, Ending]], now: int
) -> None:
    jobs = jobs_of(drawn)
    features = told(jobs, now)
    restored = told(jobs[: len(jobs) // 2], 2 * WEEK_S)
    restored.restore(json.loads(json.dumps(features.state())))
    assert restored.state() == features.state()
    for job in jobs:
        features.learn_one(job)
        restored.learn_one(replace(job))
        asked = request(99, job.request.user, 7, now)
        assert np.array_equal(features.of(asked, now), restored.of(asked, now))


@pytest.mark.parametrize("state", [{"ann": 3}, {"ann": {}}, {"ann": {"last_runtimes": ["x"]}}])
def test_another_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(StateError, match="saved by another estimator"):
        RuntimeFeatures().restore(state)
