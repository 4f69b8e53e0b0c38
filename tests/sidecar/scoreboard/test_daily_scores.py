"""Sums of scores by day: faded, by class, saved, and equal to a plain recomputation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.estimators.prediction_scores import MEASURES, SCORES, measured
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.scoreboard.daily_scores import DailyScores, JobClasses
from hypothesis import given
from hypothesis import strategies as st

REQUEST = JobRequest("1", "alice", "physics", 4, 3600, 100)
CLASSES = JobClasses((1800, 7200))
HALF_LIFE_S = 10 * DAY_S
BEGIN = 20_000 * DAY_S


def job(ended: int, ran: int = 600, **changes: Any) -> FinishedJob:
    return FinishedJob(replace(REQUEST, **changes), ended - ran, ended, ran, Ending.COMPLETED)


def test_a_job_is_in_one_class_of_each_kind() -> None:
    labels = [CLASSES.classes[at].label for at in CLASSES.of(REQUEST, 9)]
    assert labels == ["all jobs", "up to 02:00:00", "up to 16", "up to 9 finished jobs"]
    large = replace(REQUEST, processors=129, requested_time=7201)
    labels = [CLASSES.classes[at].label for at in CLASSES.of(large, 100)]
    assert labels == [
        "all jobs",
        "more than 02:00:00",
        "more than 128",
        "more than 99 finished jobs",
    ]


def test_a_half_life_halves() -> None:
    scores = DailyScores(1, CLASSES, HALF_LIFE_S)
    # Half as accurate as can be on the first day, right ten days later.
    scores.add(job(BEGIN + 5), np.array([1200]), 0)
    scores.add(job(BEGIN + 10 * DAY_S + 5), np.array([600]), 0)
    sums = scores.sums(BEGIN + 11 * DAY_S)
    found = SCORES["accuracy"](sums.weighted.sum(axis=0))
    assert found[0, 0] == pytest.approx((0.5 * 0.5 + 1) / 1.5)
    assert sums.plain[0, 0, MEASURES.index("jobs")] == 2


def test_faded_days_are_dropped() -> None:
    scores = DailyScores(1, CLASSES, HALF_LIFE_S)
    scores.add(job(BEGIN + 5), np.array([1200]), 0)
    scores.drop_old(BEGIN + DAY_S + 6 * HALF_LIFE_S)
    assert len(scores.sums(BEGIN).weighted) == 1
    scores.drop_old(BEGIN + DAY_S + 7 * HALF_LIFE_S)
    assert len(scores.sums(BEGIN).weighted) == 0


def test_intervals_need_a_fortnight_and_pairs_cancel_what_days_share() -> None:
    scores = DailyScores(2, CLASSES, HALF_LIFE_S)
    for day in range(13):
        # Days differ wildly; the second is always a little better.
        said = 600 * (1 + day % 5)
        scores.add(job(BEGIN + day * DAY_S), np.array([said + 60, said]), 0)
    now = BEGIN + 14 * DAY_S
    assert scores.sums(now).resampled() is None
    scores.add(job(BEGIN + 13 * DAY_S), np.array([660, 600]), 0)
    drawn = scores.sums(now).resampled()
    assert drawn is not None
    accuracy = SCORES["accuracy"](drawn)
    assert (accuracy[:, 1] > accuracy[:, 0]).all()
    assert accuracy[:, 1].std() > (accuracy[:, 1] - accuracy[:, 0]).std()


def test_sums_survive_json() -> None:
    scores, again = (DailyScores(2, CLASSES, HALF_LIFE_S) for _ in range(2))
    for day in range(3):
        scores.add(job(BEGIN + day * DAY_S), np.array([700, 0]), day)
    again.restore(json.loads(json.dumps(scores.state())))
    now = BEGIN + 3 * DAY_S
    np.testing.assert_array_equal(scores.sums(now).weighted, again.sums(now).weighted)


@pytest.mark.parametrize(
    "days",
    [
        {"20000": "[[[1.0]]]"},
        {"20000": "[[["},
        {"x": "[]"},
        {"20000": None},
        [],
        {"20000": json.dumps([[[float("nan")] * 7]] * 11)},
    ],
)
def test_damaged_sums_are_refused_and_change_nothing(days: Any) -> None:
    scores = DailyScores(1, CLASSES, HALF_LIFE_S)
    scores.add(job(BEGIN), np.array([700]), 0)
    before = scores.sums(BEGIN).plain
    states: list[Any] = [{"time_bounds_s": [1800, 7200], "days": days}, {"days": days}, []]
    for state in states:
        with pytest.raises(StateError, match=r"can't be used"):
            scores.restore(state)
    np.testing.assert_array_equal(scores.sums(BEGIN).plain, before)


def test_sums_of_other_classes_are_refused() -> None:
    scores = DailyScores(1, JobClasses((60,)), HALF_LIFE_S)
    with pytest.raises(StateError, match="class_bounds_s"):
        scores.restore(DailyScores(1, CLASSES, HALF_LIFE_S).state())


JOBS = st.lists(
    st.tuples(st.integers(0, 30 * DAY_S), st.integers(1, 4000), st.integers(1, 3600)),
    min_size=1,
    max_size=40,
)


@given(JOBS, st.integers(0, 10 * DAY_S))
def test_a_score_is_the_weighted_mean_over_the_jobs(
    jobs: list[tuple[int, int, int]], later: int
) -> None:
    now = BEGIN + 30 * DAY_S + later
    scores = DailyScores(1, CLASSES, HALF_LIFE_S)
    weights, ratios = [], []
    for at, ran, said in jobs:
        ended = job(BEGIN + at, ran)
        scores.add(ended, np.array([said]), 0)
        age_s = max(now - (ended.end_time // DAY_S + 1) * DAY_S, 0)
        weights.append(0.5 ** (age_s / HALF_LIFE_S))
        ratios.append(measured(np.array([said]), ended)[0, MEASURES.index("ratio")])
    found = SCORES["accuracy"](scores.sums(now).weighted.sum(axis=0))
    assert found[0, 0] == pytest.approx(np.average(ratios, weights=weights))
