"""The likely outcome by hand and by its probabilities; the share that outlives what is said."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from foretime_estimators.estimators.calibrated_runtime import CalibratedRuntime, CalibrationSettings
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.outcome_classes import OutcomeClasses, OutcomeSettings
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob

Finished = Callable[..., FinishedJob]


def of_three_outcomes(finished: Finished, level: float) -> OutcomeClasses:
    """Of four jobs one fails at once, two take about 1000 s, one runs to its limit."""
    estimator = OutcomeClasses(OutcomeSettings(level=level, half_life_jobs=1e9, enough_jobs=1e-9))
    for number in range(400):
        took = (20, 500, 2_000, 7_200)[number % 4]
        ending = Ending.TIMED_OUT if took == 7_200 else Ending.COMPLETED
        estimator.learn_one(finished(took, 7_200, ending=ending, end_time=number))
    return estimator


@pytest.mark.parametrize(
    ("level", "seconds"), [(0.2, 20), (0.3, 1_000), (0.5, 1_000), (0.7, 1_000), (0.8, 7_200)]
)
def test_the_level_chooses_the_outcome(finished: Finished, level: float, seconds: int) -> None:
    estimator = of_three_outcomes(finished, level)
    request = finished(1, 7_200).request
    assert estimator.probabilities(request) == pytest.approx((0.25, 0.5, 0.25), abs=1e-6)
    assert estimator.predict_one(request, 500) == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize("level", [0.2, 0.45, 0.8])
def test_no_outcome_costs_less(finished: Finished, level: float) -> None:
    estimator = of_three_outcomes(finished, level)
    told = estimator.predict_one(finished(1, 7_200).request, 500)  # whole seconds, rounded up

    def cost(said: float) -> float:
        total = 0.0
        for took, probability in ((20, 0.25), (1_000, 0.5), (7_200, 0.25)):
            off = math.log(took / said)
            total += probability * (off * level if off > 0 else off * (level - 1))
        return total

    assert all(cost(told) <= cost(other) + 0.02 for other in (20, 1_000, 7_200))


def test_another_request_scales_what_lies_between_but_not_what_fails(finished: Finished) -> None:
    short = of_three_outcomes(finished, 0.2)
    assert short.predict_one(finished(1, 14_400).request, 500) == pytest.approx(20, abs=1)
    between = of_three_outcomes(finished, 0.5)
    assert between.predict_one(finished(1, 14_400).request, 500) == pytest.approx(2_000, abs=2)


def test_wrong_outcome_settings_and_states_are_refused(finished: Finished) -> None:
    for wrong in ({"level": 0.0}, {"at_once_s": 0}, {"at_limit": 1.5}, {"window_s": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            OutcomeSettings(**wrong)
    with pytest.raises(StateError, match="other settings"):
        OutcomeClasses().restore(OutcomeClasses(OutcomeSettings(level=0.3)).state())


def share_outlived(
    finished: Finished, goal: float, jobs: int, draw: Callable[[int], int], requested: int
) -> float:
    """Ask about and end one job after the other; how many outlive what was said."""
    estimator = CalibratedRuntime(LastTwo(), CalibrationSettings(goal))
    outlived = 0
    for number in range(jobs):
        job = finished(draw(number), requested, end_time=number)
        outlived += job.actual_runtime > estimator.predict_one(job.request, number)
        estimator.learn_one(job)
    return outlived / jobs


@pytest.mark.parametrize("goal", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("kind", ["steady", "drifting", "jumping"])
def test_the_share_outlived_is_the_goal_whatever_the_jobs_do(
    finished: Finished, goal: float, kind: str
) -> None:
    """Gibbs and Candes 2021, proposition 4.1: within (bound + rate) / (rate * jobs) of the goal."""
    random_draw = random.Random(2)

    def draw(number: int) -> int:
        spread = math.exp(random_draw.gauss(0, 0.7))
        growth = {"steady": 1.0, "drifting": math.exp(number / 1_000), "jumping": 1.0}[kind]
        if kind == "jumping" and number % 400 < 200:
            growth = 8.0
        return max(1, int(300 * growth * spread))

    found = share_outlived(finished, goal, 2_000, draw, 10**9)
    assert found == pytest.approx(goal, abs=(4.6 + 0.2) / (0.2 * 2_000))


def test_a_user_has_a_factor_of_their_own_and_newcomers_that_of_all(finished: Finished) -> None:
    estimator = CalibratedRuntime(LastTwo(), CalibrationSettings(0.1))
    draw = random.Random(4)
    for number in range(400):
        estimator.learn_one(finished(1_000, 10**6, user="steady", end_time=number))
        wild = int(1_000 * math.exp(draw.gauss(0, 1.5)))
        estimator.learn_one(finished(wild, 10**6, user="wild", end_time=number))
    assert estimator.factor("steady") < 1.2 < 2 < estimator.factor("wild")
    assert estimator.factor("new") == estimator.factor(None)


def test_no_factor_leaves_the_request(finished: Finished) -> None:
    estimator = CalibratedRuntime(LastTwo(), CalibrationSettings(0.05))
    for number in range(50):
        estimator.learn_one(finished(10**number if number < 5 else 900, 1_000, end_time=number))
    assert 1 <= estimator.predict_one(finished(1, 1_000).request, 99) <= 1_000
    cancelled = CalibratedRuntime(LastTwo(), CalibrationSettings(0.05))
    cancelled.learn_one(finished(900, 1_000, ending=Ending.CANCELLED))
    assert cancelled.factor("u") == 1.0


def test_wrong_calibration_settings_and_states_are_refused() -> None:
    for wrong in ({"goal": 1.0}, {"rate": 0.0}, {"bound": 0.0}, {"window_s": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            CalibrationSettings(**wrong)
    with pytest.raises(StateError, match="other settings"):
        parse_estimator("calibrated:0.1").restore(parse_estimator("calibrated:0.2").state())
