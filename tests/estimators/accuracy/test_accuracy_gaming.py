"""Attacks on the production rule, and what each costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracySettings, Scheme
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

Finished = Callable[..., FinishedJob]
HOUR_S = 3_600
REQUEST_S = 48 * HOUR_S
PRODUCTION = AccuracySettings.production()


@pytest.fixture
def model() -> AccuracyModel:
    return AccuracyModel(PRODUCTION)


def wanted(processors: int = 1, requested_time: int = REQUEST_S, user: str = "u") -> JobRequest:
    """The job that the attacker wants planned short."""
    return JobRequest("next", user, "p", processors, requested_time, 2_000_000_000)


def learn(model: AccuracyModel, jobs: list[FinishedJob]) -> int:
    """Learn the jobs; give the processor-seconds that they cost."""
    for job in jobs:
        model.learn_one(job)
    return sum(job.request.processors * job.actual_runtime for job in jobs)


def test_the_plain_rule_is_for_sale(finished: Finished) -> None:
    plain = AccuracyModel(AccuracySettings.tang2010())
    learn(plain, [finished(1) for _ in range(50)])
    assert plain.scheduled_time(wanted()) == 60


@pytest.mark.parametrize("jobs", [50, 5_000])
@pytest.mark.parametrize("processors", [1, 1_000])
def test_sleepers_buy_nothing(
    model: AccuracyModel, finished: Finished, jobs: int, processors: int
) -> None:
    learn(model, [finished(1, processors=processors) for _ in range(jobs)])
    assert model.scheduled_time(wanted(processors)) == REQUEST_S


def test_an_array_of_sleepers_is_one_submission(model: AccuracyModel, finished: Finished) -> None:
    for _ in range(49):
        learn(model, [finished(HOUR_S * 12)])
    learn(model, [finished(HOUR_S * 12, array_id="a") for _ in range(500)])
    assert model.describe(user="u")[0].submissions == 50
    fresh = AccuracyModel(PRODUCTION)
    learn(fresh, [finished(HOUR_S * 12, array_id="a") for _ in range(500)])
    assert fresh.scheduled_time(wanted()) == REQUEST_S
    assert fresh.describe(user="u")[0].submissions == 1


def test_the_price_is_one_job_really_computed(model: AccuracyModel, finished: Finished) -> None:
    """The best attack found: it buys A, for as much processor-time as one job of the size."""
    spent = 0
    while model.scheduled_time(wanted(16)) == REQUEST_S:
        spent += learn(model, [finished(REQUEST_S // 100, processors=16)])
    assert spent >= 16 * REQUEST_S * 0.999
    assert model.scheduled_time(wanted(16)) >= REQUEST_S * PRODUCTION.minimum_adjustment
    # One long job of that size, and it is gone; as much again must be spent.
    learn(model, [finished(REQUEST_S, processors=16, ending=Ending.TIMED_OUT)])
    assert model.scheduled_time(wanted(16)) == REQUEST_S
    again = 0
    while model.scheduled_time(wanted(16)) == REQUEST_S:
        again += learn(model, [finished(REQUEST_S // 100, processors=16)])
    assert again >= 16 * REQUEST_S * 0.999


@pytest.mark.parametrize("ratio", [0.001, 0.05, 0.2, 0.25, 0.4])
@pytest.mark.parametrize("processors", [1, 64])
def test_no_way_of_sleeping_is_cheaper(finished: Finished, ratio: float, processors: int) -> None:
    model = AccuracyModel(replace(PRODUCTION, threshold=1))
    spent = learn(model, [finished(1, processors=64)])  # a wide one, so that wide jobs qualify
    for _ in range(100_000):
        if model.scheduled_time(wanted(64)) < REQUEST_S:
            break
        spent += learn(model, [finished(int(REQUEST_S * ratio), processors=processors)])
    assert spent >= 64 * REQUEST_S * 0.999


def test_narrow_sleepers_do_not_serve_a_wide_job(model: AccuracyModel, finished: Finished) -> None:
    learn(model, [finished(12 * HOUR_S) for _ in range(200)])
    assert model.scheduled_time(wanted(1)) == REQUEST_S // 4
    assert model.scheduled_time(wanted(2)) == REQUEST_S
    assert model.scheduled_time(wanted(1_000)) == REQUEST_S


def test_a_wide_sleeper_raises_the_price_for_all(model: AccuracyModel, finished: Finished) -> None:
    learn(model, [finished(12 * HOUR_S) for _ in range(200)])
    learn(model, [finished(1, processors=1_000)])
    assert model.scheduled_time(wanted(1_000)) == REQUEST_S
    assert model.scheduled_time(wanted(1)) == REQUEST_S


def test_short_requests_do_not_serve_long_ones(model: AccuracyModel, finished: Finished) -> None:
    learn(model, [finished(600, HOUR_S) for _ in range(500)])
    assert model.scheduled_time(wanted(1, HOUR_S)) < HOUR_S
    assert model.scheduled_time(wanted(1)) == REQUEST_S


def test_sleepers_between_long_jobs_change_nothing(
    model: AccuracyModel, finished: Finished
) -> None:
    """Four sleepers to each long job are 80% of the jobs, and next to nothing of the time."""
    for _ in range(100):
        learn(model, [finished(REQUEST_S * 9 // 10, processors=8)])
        learn(model, [finished(1, processors=8) for _ in range(4)])
    assert model.scheduled_time(wanted(8)) >= REQUEST_S * 9 // 10


def test_cancelling_ones_own_jobs_buys_nothing(model: AccuracyModel, finished: Finished) -> None:
    honest = [finished(REQUEST_S * 9 // 10, processors=8) for _ in range(60)]
    learn(model, honest)
    before = model.scheduled_time(wanted(8))
    learn(model, [finished(HOUR_S, processors=8, ending=Ending.CANCELLED) for _ in range(5_000)])
    assert model.scheduled_time(wanted(8)) == before
    late = [finished(REQUEST_S - 60, processors=8, ending=Ending.CANCELLED) for _ in range(60)]
    learn(model, late)
    assert model.scheduled_time(wanted(8)) > before


def test_a_member_can_not_talk_a_project_down(model: AccuracyModel, finished: Finished) -> None:
    """A project's A falls only if one member really computes as much in short jobs as it costs."""
    mates = [finished(REQUEST_S, user="mate", processors=8) for _ in range(60)]
    learn(model, mates)
    learn(model, [finished(1, user="mallory", processors=8) for _ in range(10_000)])
    assert model.scheduled_time(wanted(8, user="mate")) == REQUEST_S
    assert model.scheduled_time(wanted(8, user="mallory")) == REQUEST_S
    spent = 0
    while model.adjustment(wanted(8), Scheme.PROJECT) == 1.0:
        spent += learn(model, [finished(HOUR_S * 12, user="mallory", processors=8)])
    assert spent >= sum(job.request.processors * job.actual_runtime for job in mates)


def test_nor_can_a_member_spoil_it_for_others(model: AccuracyModel, finished: Finished) -> None:
    """One member's long jobs raise the project's A; a mate's own A halves the harm."""
    learn(model, [finished(HOUR_S * 12, user="mate") for _ in range(100)])
    learn(model, [finished(REQUEST_S, user="mallory") for _ in range(100)])
    assert model.adjustment(wanted(user="mate"), Scheme.USER) == 0.25
    assert model.adjustment(wanted(user="mate")) == 0.625


def test_an_honest_user_gets_an_adjustment(model: AccuracyModel, finished: Finished) -> None:
    for number in range(60):
        learn(model, [finished(REQUEST_S * (20 + number % 10) // 100, processors=4)])
    assert model.adjustment(wanted(4)) == pytest.approx(0.29, abs=0.02)


@pytest.mark.parametrize(
    "weakened",
    [replace(PRODUCTION, weigh_by_processor_time=False), replace(PRODUCTION, imagined_job=False)],
)
def test_weights_and_the_imagined_job_are_needed(
    finished: Finished, weakened: AccuracySettings
) -> None:
    model = AccuracyModel(weakened)
    learn(model, [finished(60, processors=1_000) for _ in range(50)])
    assert model.scheduled_time(wanted(1_000)) < REQUEST_S


def test_the_limit_to_the_largest_job_is_needed(finished: Finished) -> None:
    model = AccuracyModel(replace(PRODUCTION, within_largest_job=False))
    learn(model, [finished(12 * HOUR_S) for _ in range(200)])
    assert model.scheduled_time(wanted(1_000)) < REQUEST_S
