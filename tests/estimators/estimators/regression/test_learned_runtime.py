"""Learned runtimes: by hand, and that nothing of the future is in them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.estimator import StartObserver
from foretime_estimators.estimators.job_events import learn_history
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.online_regression import RegressionSettings
from foretime_estimators.estimators.regression.prediction_loss import E_LOSS, LOSSES
from foretime_estimators.estimators.testing import predictions
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from hypothesis import given
from hypothesis import strategies as st

Finished = Callable[..., FinishedJob]
SQUARED = LOSSES["squared-squared-constant"]
SLOW = RegressionSettings(eta=100.0)


class Watched(LearnedRuntime):
    """Notes the features that it predicts and learns from."""

    def __init__(self) -> None:
        super().__init__(SQUARED)
        self.seen: list[list[float]] = []
        self.learned: list[list[float]] = []
        learn = self.regression.learn

        def noted(features: Float64Array, slope: Callable[[float], float]) -> float:
            self.learned.append(features.tolist())
            return learn(features, slope)

        self.regression.learn = noted  # type: ignore[method-assign]

    def predict_one(self, job: JobRequest, now: int) -> int:
        self.seen.append(self.features.of(job, now).tolist())
        return super().predict_one(job, now)


def test_it_observes_starts_and_has_a_name_for_each_loss() -> None:
    assert isinstance(LearnedRuntime(), StartObserver)
    for name, loss in LOSSES.items():
        named = parse_estimator(f"regression:{name}")
        assert isinstance(named, LearnedRuntime)
        assert named.loss == loss
    assert LearnedRuntime().loss == E_LOSS


def test_the_request_stands_until_a_job_has_been_learned(finished: Finished) -> None:
    estimator = LearnedRuntime(SQUARED, SLOW)
    job = finished(600, 3_600)
    assert estimator.predict_one(job.request, 0) == 3_600
    estimator.learn_one(replace(job, ending=Ending.NODE_FAILED))
    assert estimator.predict_one(job.request, 0) == 3_600
    estimator.learn_one(job)
    assert estimator.predict_one(job.request, 0) == int(
        estimator.regression.predict(estimator.features.of(job.request, 0))
    )


@pytest.mark.parametrize(
    ("models", "absolute", "predicted"),
    [
        (700.9, True, 700),
        (5_000.0, True, 3_600),
        (0.4, True, 1),
        (-700.9, True, 700),
        (-700.9, False, 1),
        (-5_000.0, True, 3_600),
        (math.inf, True, 3_600),
        (math.nan, True, 3_600),
    ],
)
def test_a_prediction_is_the_models_cut_to_what_may_be_planned_with(
    finished: Finished,
    monkeypatch: pytest.MonkeyPatch,
    models: float,
    absolute: bool,
    predicted: int,
) -> None:
    estimator = LearnedRuntime(SQUARED, RegressionSettings(absolute=absolute))
    job = finished(600, 3_600)
    estimator.learn_one(job)
    monkeypatch.setattr(estimator.regression, "predict", lambda features: models)
    assert estimator.predict_one(job.request, 700) == predicted


def test_it_learns_from_the_features_of_the_first_time_asked(finished: Finished) -> None:
    estimator = Watched()
    job, other = finished(600, 3_600), finished(100, 3_600)
    estimator.predict_one(job.request, job.request.submit_time)
    estimator.learn_one(other)
    estimator.predict_one(job.request, job.request.submit_time + 50)
    estimator.learn_one(job)
    assert estimator.seen[0] != estimator.seen[1]
    assert estimator.learned[1] == estimator.seen[0]


def test_a_job_nobody_asked_about_is_learned_by_what_is_known(finished: Finished) -> None:
    estimator = Watched()
    estimator.learn_one(finished(600, 3_600, processors=4))
    job = finished(100, 3_600)
    expected = estimator.features.of(job.request, job.request.submit_time).tolist()
    estimator.learn_one(job)
    assert estimator.learned[1] == expected
    assert expected[1] == 600


def test_a_history_is_learned_as_if_it_had_been_there(finished: Finished) -> None:
    jobs = [
        finished(900 + 100 * number, 3_600, end_time=10_000 + 300 * number) for number in range(9)
    ]
    afterwards, there = LearnedRuntime(SQUARED), LearnedRuntime(SQUARED)
    learn_history(afterwards, jobs[::-1])
    predictions(there, jobs)
    for job in jobs:
        if job.end_time > jobs[-1].request.submit_time:
            there.learn_one(job)
    asked = replace(jobs[0].request, job_id="new", submit_time=20_000)
    assert afterwards.predict_one(asked, 20_000) == there.predict_one(asked, 20_000)


LOGS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "ben", None]),
        st.integers(1, 64),
        st.integers(1, 3_000),  # seconds since the submission before
        st.integers(0, 4_000),  # wait
        st.integers(0, 9_000),  # runtime
    ),
    min_size=2,
    max_size=25,
)


def log_of(drawn: Sequence[tuple[str | None, int, int, int, int]]) -> list[FinishedJob]:
    jobs, submit_time = [], 0
    for number, (user, processors, gap, wait, runtime) in enumerate(drawn):
        submit_time += gap
        request = JobRequest(str(number), user, None, processors, 10_000, submit_time)
        start_time = submit_time + wait
        jobs.append(
            FinishedJob(request, start_time, start_time + runtime, runtime, Ending.COMPLETED)
        )
    return jobs


@given(LOGS, st.data(), st.booleans())
def test_nothing_of_the_future_changes_what_was_said(
    drawn: list[tuple[str | None, int, int, int, int]], data: st.DataObject, removed: bool
) -> None:
    """Whatever comes after a moment is taken away, or made nonsense: what was said stays."""
    jobs = log_of(drawn)
    until = jobs[data.draw(st.integers(0, len(jobs) - 1))].request.submit_time
    changed = []
    for job in jobs:
        assert job.start_time is not None
        if job.end_time <= until:
            changed.append(job)
        elif job.start_time <= until:  # runs: how long it will is not known
            nonsense = until + 1 + data.draw(st.integers(0, 10**6))
            changed.append(
                replace(job, end_time=nonsense, actual_runtime=7, ending=Ending.CANCELLED)
            )
        elif job.request.submit_time <= until:  # waits: so is when it will start
            start_time = until + 1 + data.draw(st.integers(0, 10**6))
            changed.append(
                replace(job, start_time=start_time, end_time=start_time + 3, actual_runtime=3)
            )
        elif not removed:
            request = replace(job.request, user="ann", processors=10**6, requested_time=5)
            changed.append(replace(job, request=request, actual_runtime=10**7))
    as_it_was, otherwise = Watched(), Watched()
    assert predictions(as_it_was, jobs, until) == predictions(otherwise, changed, until)
    assert as_it_was.seen == otherwise.seen
    assert as_it_was.learned == otherwise.learned


@given(LOGS, st.integers(0, 25))
def test_a_restored_one_goes_on_to_the_last_bit(
    drawn: list[tuple[str | None, int, int, int, int]], cut: int
) -> None:
    settings = RegressionSettings(recent_half_life=50.0)
    jobs = log_of(drawn)
    original, restored = LearnedRuntime(SQUARED, settings), LearnedRuntime(SQUARED, settings)
    learn_history(original, jobs[:cut])
    learn_history(restored, jobs[cut:])
    for job in jobs:
        original.predict_one(job.request, job.request.submit_time)
    restored.restore(json.loads(json.dumps(original.state(), allow_nan=False)))
    assert restored.state() == original.state()
    for estimator in (original, restored):
        learn_history(estimator, jobs[cut:])
    assert restored.state() == original.state()
    assert np.array_equal(restored.regression.weights, original.regression.weights)


def test_states_of_others_are_refused_and_leave_what_is_learned(finished: Finished) -> None:
    estimator = LearnedRuntime()
    estimator.learn_one(finished(600, 3_600))
    before = estimator.state()
    broken = {
        **before,
        "users": 5,
        "regression": LearnedRuntime().state()["regression"],
    }
    states = [
        {},
        LearnedRuntime(SQUARED).state(),
        LearnedRuntime(E_LOSS, RegressionSettings(eta=1.0)).state(),
        {**before, "asked": {"1": [2.0]}},
        broken,
    ]
    for state in states:
        with pytest.raises(StateError, match="saved by another estimator"):
            estimator.restore(state)
        assert estimator.state() == before
