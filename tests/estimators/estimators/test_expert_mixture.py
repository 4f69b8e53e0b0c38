"""Experts weighed user by user: worked by hand, the bound on regret, changes, restoring."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.estimators.estimator import Memoryless, clamped
from foretime_estimators.estimators.expert_mixture import ExpertMixture, MixtureSettings
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

Finished = Callable[..., FinishedJob]
WIDE = MixtureSettings(share=0.0, largest_loss=100.0)


class Constant(Memoryless):
    """Always says the same."""

    oracle = False

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def predict_one(self, job: JobRequest, now: int) -> int:
        return clamped(self.seconds, job)


def constants(*seconds: int) -> dict[str, Constant]:
    return {str(each): Constant(each) for each in seconds}


def test_an_expert_loses_weight_by_how_far_it_was_off(finished: Finished) -> None:
    """After a job of 1000 s the expert of 100 s has lost ln(10) / 2, the one of 1000 s nothing."""
    mixture = ExpertMixture(constants(100, 1_000), WIDE)
    mixture.learn_one(finished(1_000, 5_000))
    weights = mixture.weights("u")
    assert weights["100"] / weights["1000"] == pytest.approx(10**-0.5)
    assert math.fsum(weights.values()) == pytest.approx(1.0)
    assert mixture.predict_one(finished(1, 5_000).request, 0) == 1_000


def test_underestimates_cost_more_above_the_median(finished: Finished) -> None:
    mixture = ExpertMixture(constants(100, 10_000), replace(WIDE, level=0.8))
    mixture.learn_one(finished(1_000, 50_000))
    weights = mixture.weights("u")
    assert weights["100"] / weights["10000"] == pytest.approx(10 ** -(0.8 - 0.2))


def test_fixed_share_by_hand(finished: Finished) -> None:
    """What is shared by a user goes by all users' weights, and theirs by equal ones."""
    mixture = ExpertMixture(constants(100, 1_000), replace(WIDE, share=0.1))
    mixture.learn_one(finished(1_000, 5_000, user="ann"))
    everybody = 0.9 / (1 + 10**-0.5) + 0.05
    assert mixture.weights("ben")["1000"] == pytest.approx(everybody)
    assert mixture.weights(None) == mixture.weights("ben")
    ann = 0.9 / (1 + 10**-0.5) + 0.1 * everybody
    assert mixture.weights("ann")["1000"] == pytest.approx(ann)


def test_each_user_has_an_expert_of_their_own(finished: Finished) -> None:
    mixture = ExpertMixture(constants(60, 600, 6_000))
    for number in range(40):
        mixture.learn_one(finished(70, 9_000, user="ann", end_time=number))
        mixture.learn_one(finished(5_000, 9_000, user="ben", end_time=number))
    assert mixture.predict_one(finished(1, 9_000, user="ann").request, 50) == 60
    assert mixture.predict_one(finished(1, 9_000, user="ben").request, 50) == 6_000


def test_the_best_expert_of_late_takes_over_within_few_jobs(finished: Finished) -> None:
    mixture = ExpertMixture(constants(60, 6_000))
    for number in range(500):
        mixture.learn_one(finished(60, 9_000, end_time=number))
    jobs = 0
    while mixture.predict_one(finished(1, 9_000).request, 600 + jobs) == 60:
        mixture.learn_one(finished(6_000, 9_000, end_time=600 + jobs))
        jobs += 1
    assert 1 <= jobs <= 5


def test_regret_is_within_the_bound(finished: Finished) -> None:
    """Expected loss under the weights exceeds the best expert's by ln(N)/eta + eta*T*L^2/8 at most.

    Cesa-Bianchi and Lugosi 2006, theorem 2.2, for losses from 0 to L and no sharing.
    """
    draw = random.Random(1)
    settings = MixtureSettings(rate=0.3, share=0.0, largest_loss=2.0)
    experts = constants(60, 300, 3_000, 20_000)
    mixture = ExpertMixture(experts, settings)
    total, own = 0.0, dict.fromkeys(experts, 0.0)
    jobs = 400
    for number in range(jobs):
        took = int(60 * math.exp(draw.random() * 6))
        weights = mixture.weights("u")
        for name, expert in experts.items():
            loss = min(2.0, 0.5 * abs(math.log(took / expert.seconds)))
            own[name] += loss
            total += weights[name] * loss
        mixture.learn_one(finished(took, 50_000, end_time=number))
    bound = math.log(4) / 0.3 + 0.3 * jobs * 2.0**2 / 8
    assert total - min(own.values()) <= bound


def test_experts_are_judged_by_what_they_said_when_asked(finished: Finished) -> None:
    """The last two said nothing at the submission: that they know better now does not count."""
    jobs = [finished(100, 1_000, end_time=number) for number in range(3)]
    asked = ExpertMixture({"last-two": LastTwo(), "100": Constant(100)}, WIDE)
    for job in jobs:
        asked.predict_one(job.request, 0)
    late = ExpertMixture({"last-two": LastTwo(), "100": Constant(100)}, WIDE)
    for job in jobs:
        asked.learn_one(job)
        late.learn_one(job)
    assert asked.weights("u")["last-two"] < late.weights("u")["last-two"] < 0.5


def test_jobs_cut_at_their_limit_count_as_so_long_and_cancelled_ones_not(
    finished: Finished,
) -> None:
    mixture = ExpertMixture(constants(100, 1_000), WIDE)
    mixture.learn_one(finished(100, 1_000, ending=Ending.CANCELLED))
    assert mixture.weights("u")["100"] == 0.5
    mixture.learn_one(finished(1_100, 1_000, ending=Ending.TIMED_OUT))
    assert mixture.weights("u")["1000"] > 0.7


def test_users_of_long_ago_are_forgotten(finished: Finished) -> None:
    mixture = ExpertMixture(constants(60, 6_000), replace(MixtureSettings(), window_s=1_000))
    for number in range(20):
        mixture.learn_one(finished(60, 9_000, user="ann", end_time=number))
    mixture.learn_one(finished(6_000, 9_000, user="ben", end_time=5_000))
    assert mixture.weights("ann") == mixture.weights("cy")


def test_wrong_settings_and_states_are_refused(finished: Finished) -> None:
    with pytest.raises(InputError, match="no expert"):
        ExpertMixture({})
    for wrong in ({"level": 1.0}, {"rate": 0.0}, {"share": 1.5}, {"shortest_s": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            MixtureSettings(**wrong)
    mixture = ExpertMixture(constants(60, 600))
    with pytest.raises(StateError, match="another estimator"):
        mixture.restore(parse_estimator("last-two").state())
    with pytest.raises(StateError, match="60, 6000"):
        mixture.restore(ExpertMixture(constants(60, 6_000)).state())
    assert parse_estimator("mixture:0.5").oracle is False
