"""Each finished job counted by how long it ran: by hand, and beside the plain mean."""

from __future__ import annotations

import math

import pytest
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.weighted_runtime import WeightedRuntime
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

HOUR = 3600


def _job(number: int, user: str = "ann", requested: int = 10 * HOUR) -> JobRequest:
    return JobRequest(f"{number}", user, "p", 4, requested, 60 * number)


def _done(number: int, runtime: int, ending: Ending = Ending.COMPLETED) -> FinishedJob:
    job = _job(number)
    return FinishedJob(job, job.submit_time, job.submit_time + runtime, runtime, ending)


def test_by_hand() -> None:
    """Two jobs of half and of a tenth of their request; the weights are 2^(-1/8) and 1."""
    estimator = WeightedRuntime()
    for number, share in enumerate((0.5, 0.1)):
        estimator.learn_one(_done(number, round(share * 10 * HOUR)))
    old = 2 ** (-1 / 8)
    weight, share, square = 1 + old, 0.1 + 0.5 * old, 0.01 + 0.25 * old
    # Of 8 kinds, as no queue is named: each takes weight / (weight + 8) of what is left.
    left = (8 / (weight + 8)) ** 8
    taken = (1 - left) / weight
    mean = taken * share + left
    first = math.ceil((taken * square + left) / mean * 10 * HOUR)
    told = estimator.predict_roles(_job(9), 0)
    assert told == (first, math.ceil(mean * 10 * HOUR), 10 * HOUR)
    assert estimator.predict_one(_job(9), 0) == told.backfill


@pytest.mark.parametrize("ending", [Ending.COMPLETED, Ending.FAILED, Ending.CANCELLED])
def test_jobs_of_a_second_make_no_long_job_look_short(ending: Ending) -> None:
    """Eight hours of ten, then eight jobs of a second."""
    weighted, mean = WeightedRuntime(), ExpectedRuntime()
    for estimator in (weighted, mean):
        for number in range(20):
            estimator.learn_one(_done(number, 8 * HOUR))
        before = estimator.predict_roles(_job(20), 0).queue
        for number in range(20, 28):
            estimator.learn_one(_done(number, 1, ending))
        after = estimator.predict_roles(_job(28), 0).queue
        if estimator is weighted:
            assert after > 0.97 * before
        else:
            assert after < 0.2 * before


def test_to_halve_it_as_much_time_must_be_held() -> None:
    estimator = WeightedRuntime()
    for number in range(100):
        estimator.learn_one(_done(number, 8 * HOUR if number % 2 else HOUR))
    assert estimator.predict_roles(_job(100), 0).queue > 6.5 * HOUR
    for number in range(100, 200):
        estimator.learn_one(_done(number, 8 * HOUR if number % 9 == 0 else HOUR))
    assert 3 * HOUR < estimator.predict_roles(_job(200), 0).queue < 5.5 * HOUR


def test_it_takes_over_no_state_of_the_plain_mean() -> None:
    with pytest.raises(StateError, match="saved by another estimator"):
        WeightedRuntime().restore(ExpectedRuntime().state())
