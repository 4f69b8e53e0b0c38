"""Means by kind against sums written out, and the times that `expected` makes of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime, ExpectedRuntimeSettings
from foretime_estimators.estimators.job_kinds import Ageing, BackOff, Kind, kinds_of
from foretime_estimators.estimators.kind_sums import KindSums
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob

Finished = Callable[..., FinishedJob]


def test_means_are_those_of_a_long_memory(finished: Finished) -> None:
    """The same shares over kept jobs (`BackOff`), written out, as the sums give."""
    draw = random.Random(3)
    ageing = Ageing(5.0, 1.5)
    sums = KindSums(1, ageing, 10**9)
    kept: dict[Kind, list[float]] = {}
    for number in range(300):
        job = finished(
            1,
            draw.choice([600, 7_200]),
            user=draw.choice(["ann", "ben", None]),
            project=draw.choice(["p", None]),
            processors=draw.choice([1, 8]),
            end_time=number,
        )
        figure = draw.random()
        known = [kept[kind] for kind in kinds_of(job.request) if kind in kept]
        got = sums.mean(job.request, [7.0])
        if known:
            parts, left = BackOff(ageing, 300).shares([len(each) for each in known])
            pairs = zip(parts, known, strict=False)
            expected = sum(float(part @ each) for part, each in pairs) + 7.0 * left
            assert got is not None
            assert math.isclose(got[0], expected, rel_tol=1e-12)
        else:
            assert got is None
        sums.add(job.request, [figure], job.end_time)
        for kind in kinds_of(job.request):
            kept.setdefault(kind, []).append(figure)


def test_kinds_of_which_nothing_ended_for_long_are_forgotten(finished: Finished) -> None:
    sums = KindSums(1, Ageing(8.0, 2.0), 1_000)
    sums.add(finished(1, user="ann", project=None).request, [0.25], 0)
    alone = len(sums)
    sums.add(finished(1, user="ben", project=None).request, [0.25], 1_000)
    assert len(sums) > alone
    sums.add(finished(1, user="ben", project=None).request, [0.25], 1_001)
    assert len(sums) == alone


def test_each_role_has_the_time_of_its_own_mean(finished: Finished) -> None:
    """One job of 360 s of 3600: weight 1 of 3 in the finest kind, of what is left in the next."""
    estimator = ExpectedRuntime(ExpectedRuntimeSettings(enough_jobs=2.0))
    job = finished(360, 3_600, project=None)
    estimator.learn_one(job)
    kinds = len(kinds_of(job.request))
    open_share = max((2 / 3) ** kinds, 0.0)
    share = 0.1 * (1 - open_share) + open_share
    inverse = 10.0 * (1 - open_share) + open_share
    assert kinds == 6
    assert open_share > 0.01
    assert estimator.predict_roles(job.request, 0) == RolePrediction(
        math.ceil(3_600 * math.sqrt(share / inverse)), math.ceil(3_600 * share), 3_600
    )
    assert estimator.predict_one(job.request, 0) == math.ceil(3_600 * share)


def test_jobs_that_may_fail_at_once_are_first_in_order_but_not_short(finished: Finished) -> None:
    estimator = ExpectedRuntime()
    for number in range(200):
        estimator.learn_one(finished(7_200 if number % 2 else 12, 7_200, end_time=number))
    times = estimator.predict_roles(finished(1, 7_200).request, 300)
    assert 0.4 < times.backfill / 7_200 < 0.6
    assert times.queue < 600
    assert times.drain == 7_200


@pytest.mark.parametrize(
    ("ending", "counts_as"),
    [(Ending.TIMED_OUT, 1.0), (Ending.CANCELLED, 0.25), (Ending.COMPLETED, 0.25)],
)
def test_a_timed_out_job_counts_as_its_request_and_others_as_they_ran(
    finished: Finished, ending: Ending, counts_as: float
) -> None:
    estimator = ExpectedRuntime()
    for number in range(300):
        estimator.learn_one(finished(900, 3_600, ending=ending, end_time=number))
    assert estimator.predict_one(finished(1, 3_600).request, 400) == pytest.approx(
        3_600 * counts_as, rel=0.02
    )


def test_what_a_machine_ended_and_states_of_others_are_refused(finished: Finished) -> None:
    estimator = ExpectedRuntime()
    estimator.learn_one(finished(10, 100, ending=Ending.NODE_FAILED))
    assert estimator.predict_one(finished(1, 100).request, 0) == 100
    with pytest.raises(StateError, match="another estimator"):
        estimator.restore(parse_estimator("last-two").state())
    settings = replace(ExpectedRuntimeSettings(), shortest_s=60)
    with pytest.raises(StateError, match="other settings"):
        ExpectedRuntime(settings).restore(estimator.state())
    with pytest.raises(InputError, match="shortest_s = 0"):
        ExpectedRuntimeSettings(shortest_s=0)


def test_typical_covers_the_share_that_it_is_asked_for(finished: Finished) -> None:
    draw = random.Random(5)
    low, high = parse_estimator("typical:0.2"), parse_estimator("typical:0.8")
    outlived = [0, 0]
    for number in range(2_000):
        job = finished(draw.randrange(100, 10_000), 10_000, end_time=number)
        if number >= 1_000:
            for place, estimator in enumerate((low, high)):
                outlived[place] += estimator.predict_one(job.request, number) < job.actual_runtime
        low.learn_one(job)
        high.learn_one(job)
    assert outlived[0] / 1_000 == pytest.approx(0.8, abs=0.05)
    assert outlived[1] / 1_000 == pytest.approx(0.2, abs=0.05)
    with pytest.raises(InputError, match="percentile"):
        parse_estimator("typical:1.5")
