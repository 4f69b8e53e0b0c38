"""Who goes first, learned from jobs that waited at one time: steps by hand, what is learned."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.learned_order import FACTS, LearnedOrder, LearnedOrderSettings
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob

Finished = Callable[..., FinishedJob]
BEGINNING = {name: float(name == "ln_order_time") for name in FACTS}


def waited(finished: Finished, took: int, processors: int, end_time: int) -> FinishedJob:
    """Build a job that waited from 0 to the second before it began."""
    return finished(took, 7_200, processors=processors, end_time=end_time, submit_time=0)


def test_the_first_step_is_the_rate_against_the_longer_job(finished: Finished) -> None:
    """Asked with no history both differ in size alone: 8 processors against 1, that is ln 8."""
    estimator = LearnedOrder(LearnedOrderSettings(rate=0.5))
    wide, narrow = waited(finished, 100, 8, 5_000), waited(finished, 400, 1, 6_000)
    for job in (wide, narrow):
        estimator.predict_one(job.request, 0)
    estimator.learn_one(wide)
    assert estimator.weights == BEGINNING
    estimator.learn_one(narrow)
    # AdaGrad's first step is the rate, in the gradient's direction: the longer job is narrow, so
    # the score is to fall with the size.
    assert estimator.weights == BEGINNING | {"ln_processors": pytest.approx(-0.5)}
    third = waited(finished, 100, 8, 7_000)
    estimator._asked.remember(third.request.job_id, estimator._recent[0].facts)
    estimator.learn_one(third)
    # Apart by the size again, from the narrow job of 400 s: the margin is 0.5 ln 8 by now.
    first, second = 3.75 * math.log(8) / 2, 3.75 * math.log(8) / (1 + 8**0.5)
    expected = -0.5 - 0.5 * second / math.hypot(first, second)
    assert estimator.weights["ln_processors"] == pytest.approx(expected)


def test_a_pair_weighs_at_most_so_much(finished: Finished) -> None:
    """By the second step, which the first one's weight divides."""

    def weight(took: int, settings: LearnedOrderSettings) -> float:
        estimator = LearnedOrder(settings)
        jobs = [waited(finished, 10, 8, 5_000), waited(finished, took, 1, 10_000)]
        for job in jobs:
            estimator.predict_one(job.request, 0)
        for job in jobs:
            estimator.learn_one(job)
        return estimator._gradient_squares[FACTS.index("ln_processors")]

    capped = LearnedOrderSettings(largest_stake=5.0)
    assert weight(100, capped) == weight(7_000, capped) == pytest.approx((2.5 * math.log(8)) ** 2)
    assert weight(100, LearnedOrderSettings()) == pytest.approx((9.9 / 2 * math.log(8)) ** 2)


def test_without_pairs_it_is_smiths_order(finished: Finished) -> None:
    ranked, expected = LearnedOrder(), ExpectedRuntime()
    draw = random.Random(3)
    for number in range(200):
        job = finished(draw.randrange(1, 7_200), 7_200, end_time=10_000 * (number + 1))
        assert ranked.predict_roles(job.request, 0) == expected.predict_roles(job.request, 0)
        for each in (ranked, expected):
            each.learn_one(job)
    assert ranked.weights == BEGINNING


@pytest.mark.parametrize("wide_is_short", [True, False])
def test_what_smiths_ratio_does_not_know_is_learned(
    finished: Finished, wide_is_short: bool
) -> None:
    """Of one class of sizes, 33 to 63 processors, half are short."""
    estimator = LearnedOrder()
    draw = random.Random(1)
    for number in range(400):
        processors = draw.randint(33, 63)
        took = 60 if (processors > 48) is wide_is_short else 3_600
        job = finished(
            took,
            7_200,
            user=f"u{number}",
            project=None,
            processors=processors,
            end_time=10_000 + 60 * number,
            submit_time=60 * number,
        )
        estimator.predict_one(job.request, 60 * number)
        estimator.learn_one(job)
    assert (estimator.weights["ln_processors"] < 0) is wide_is_short
    wide, narrow = (
        estimator.predict_roles(
            finished(1, 7_200, user="new", project=None, processors=size).request, 0
        )
        for size in (63, 33)
    )
    assert (wide.queue < narrow.queue) is wide_is_short
    assert (wide.backfill, wide.drain) == (narrow.backfill, 7_200)


def test_what_a_machine_ended_or_never_began_is_not_compared(finished: Finished) -> None:
    estimator = LearnedOrder()
    estimator.learn_one(waited(finished, 100, 8, 5_000))
    broken = waited(finished, 400, 1, 6_000)
    estimator.learn_one(replace(broken, ending=Ending.NODE_FAILED))
    estimator.learn_one(finished(0, 7_200, started=False, submit_time=0, end_time=6_000))
    assert estimator.weights == BEGINNING
    assert len(estimator._recent) == 1


def test_wrong_settings_and_states_are_refused() -> None:
    for wrong in (
        {"rate": 0.0},
        {"pairs": 0},
        {"remembered": 0},
        {"largest_stake": math.inf},
        {"shortest_s": 0},
    ):
        with pytest.raises(InputError, match=next(iter(wrong))):
            LearnedOrderSettings(**wrong)
    with pytest.raises(StateError, match="another estimator"):
        LearnedOrder().restore(parse_estimator("expected").state())
    with pytest.raises(StateError, match="other settings"):
        LearnedOrder(LearnedOrderSettings(rate=0.1)).restore(LearnedOrder().state())
