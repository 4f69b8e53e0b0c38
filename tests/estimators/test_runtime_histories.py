"""Runtimes as distributions: the contract, and quantiles against a plain calculation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.errors import InputError, StateError
from foretime_estimators.job_kinds import Ageing
from foretime_estimators.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.runtime_histories import RuntimeHistories, RuntimeHistoriesSettings
from foretime_estimators.runtime_quantiles import NORMAL_SCORES, RuntimeQuantiles
from foretime_estimators.shared_effects import SharedEffects
from hypothesis import given, settings
from hypothesis import strategies as st

Finished = Callable[..., FinishedJob]
HOUR = 3_600


@st.composite
def requests(draw: st.DrawFn) -> JobRequest:
    return JobRequest(
        job_id="1",
        user=draw(st.sampled_from(["ann", "ben", None])),
        project=draw(st.sampled_from(["stars", None])),
        processors=draw(st.sampled_from([1, 64])),
        requested_time=draw(st.sampled_from([1, 100, 120, 9_000, 10_000_000])),
        submit_time=draw(st.integers(0, 200_000)),
        queue=draw(st.sampled_from(["long", None])),
        executable=draw(st.sampled_from(["a.out", None])),
    )


@st.composite
def ended(draw: st.DrawFn) -> FinishedJob:
    request = draw(requests())
    runtime = draw(st.integers(0, request.requested_time + 100))
    ending = draw(st.sampled_from(list(Ending)))
    start = None if ending is Ending.NEVER_STARTED else request.submit_time
    return FinishedJob(request, start, request.submit_time + runtime, runtime, ending)


def taught(jobs: list[FinishedJob]) -> RuntimeHistories:
    model = RuntimeHistories()
    for job in sorted(jobs, key=lambda job: job.end_time):
        model.learn_one(job)
    return model


@settings(max_examples=60)
@given(
    st.lists(ended(), max_size=20),
    st.lists(st.tuples(requests(), st.sampled_from([0, 1, 99, 100, 5_000, 20_000])), max_size=8),
    st.integers(1, 20),
)
def test_a_runtime_lies_between_the_age_and_the_request(
    past: list[FinishedJob], asked: list[tuple[JobRequest, int]], samples: int
) -> None:
    model = taught(past)
    jobs = [job for job, _ in asked]
    age = np.array([age for _, age in asked], dtype=np.int64)
    runtime = model.sample(jobs, age, 300_000, samples, np.random.default_rng(1))
    assert runtime.shape == (samples, len(jobs))
    assert runtime.dtype == np.int64
    requested = np.array([job.requested_time for job in jobs])
    assert (runtime <= requested).all()
    assert ((runtime > age) | (requested <= age)).all()
    again = model.sample(jobs, age, 300_000, samples, np.random.default_rng(1))
    assert (runtime == again).all()
    text = json.dumps(model.state(), allow_nan=False)
    restored = RuntimeHistories()
    restored.restore(json.loads(text))
    assert json.dumps(restored.state()) == text
    restored_runtime = restored.sample(jobs, age, 300_000, samples, np.random.default_rng(1))
    assert (runtime == restored_runtime).all()


def drawn(
    model: RuntimeHistories, job: JobRequest, age: int = 0, samples: int = 20_000
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    runtimes = model.sample([job], np.array([age]), 0, samples, np.random.default_rng(2))
    return runtimes[:, 0]


def test_without_history_the_logarithm_is_uniform_up_to_the_request(finished: Finished) -> None:
    job = finished(1, 10_000).request
    runtime = drawn(RuntimeHistories(), job)
    for share in (0.2, 0.5, 0.8):
        assert np.mean(runtime <= 10_000**share) == pytest.approx(share * 7 / 8, abs=0.06)
    assert np.mean(runtime == 10_000) == pytest.approx(1 / 16, abs=0.02)


def test_what_a_user_s_jobs_take_is_expected_of_the_next(finished: Finished) -> None:
    model = taught([finished(taken) for taken in (600,) * 30 + (48 * HOUR,) * 10])
    runtime = drawn(model, finished(1).request)
    assert np.mean(runtime == 48 * HOUR) > 0.4  # the newest weigh more than the quarter they are
    assert np.mean(runtime == 600) > 0.3
    stranger = drawn(model, finished(1, user="x", project=None).request)
    assert np.mean(stranger == 600) > 0.2


def test_a_job_that_outlived_its_kind_is_as_coarser_kinds_are(finished: Finished) -> None:
    """All of the user's own jobs took ten minutes; others of the class went on to two hours."""
    past = [finished(2 * HOUR, user=f"u{n}", project=None) for n in range(40)]
    past += [finished(600) for _ in range(40)]
    model, job = taught(past), finished(1).request
    assert np.mean(drawn(model, job) <= 600) > 0.9
    left = drawn(model, job, age=700)
    assert left.min() > 700
    older = taught(past[:40] + past[40:43])  # a thinner own history: the class has a say
    assert np.mean(drawn(older, job, age=700) == 2 * HOUR) > 0.3
    assert np.mean(drawn(older, job, age=3 * HOUR) > 3 * HOUR) == 1


def test_a_request_is_read_in_seconds_and_as_a_share(finished: Finished) -> None:
    past = [finished(HOUR, 10 * HOUR) for _ in range(40)]
    job = finished(1, 40 * HOUR).request
    for as_share, runtime in ((0.0, HOUR), (1.0, 4 * HOUR)):
        model = RuntimeHistories(RuntimeHistoriesSettings(as_share=as_share))
        for each in past:
            model.learn_one(each)
        assert np.median(drawn(model, job)) == runtime


def test_a_lower_bound_gives_its_weight_to_what_lies_above(finished: Finished) -> None:
    past = [finished(taken) for taken in [HOUR, 3 * HOUR] * 20]
    job = finished(1).request
    before = np.mean(drawn(taught(past), job) > 2 * HOUR)
    cancelled = [finished(2 * HOUR, ending=Ending.CANCELLED) for _ in range(10)]
    assert np.mean(drawn(taught(past + cancelled), job) > 2 * HOUR) > before + 0.1
    failed = [finished(2 * HOUR, ending=Ending.NODE_FAILED) for _ in range(10)]
    assert np.mean(drawn(taught(past + failed), job) > 2 * HOUR) == before


def test_a_limit_reached_says_only_that_a_longer_one_may_be(finished: Finished) -> None:
    past = [finished(HOUR, HOUR, ending=Ending.TIMED_OUT) for _ in range(40)]
    model = taught(past)
    assert np.mean(drawn(model, finished(1, HOUR).request) == HOUR) > 0.9
    assert np.mean(drawn(model, finished(1, HOUR // 2).request) == HOUR // 2) > 0.9
    assert np.mean(drawn(model, finished(1, 2 * HOUR).request) < HOUR) < 0.1


def test_jobs_of_a_campaign_are_long_together(finished: Finished) -> None:
    """The sum over a campaign varies as the correlation says; independent draws would not."""
    model = taught([finished(taken) for taken in range(HOUR, 41 * HOUR, HOUR)])
    campaign = [finished(1, submit_time=0).request for _ in range(30)]
    strangers = [finished(1, user=f"x{n}", submit_time=0).request for n in range(30)]
    age = np.zeros(30, dtype=np.int64)

    def excess(jobs: list[JobRequest], shared: SharedEffects) -> float:
        alike = RuntimeHistories(replace(model.settings, shared=shared))
        state = model.state()
        alike.restore({**state, "settings": alike.state()["settings"]})
        runtime = alike.sample(jobs, age, 0, 4_000, np.random.default_rng(3)).astype(float)
        return float(runtime.sum(axis=1).var() / runtime.var(axis=0).sum())

    together = SharedEffects(0.1, 0.5)
    assert excess(campaign, SharedEffects(0.0, 0.0)) == pytest.approx(1, abs=0.1)
    assert excess(strangers, together) == pytest.approx(1, abs=0.1)
    assert excess(campaign, together) == pytest.approx(1 + 29 * 0.5, rel=0.15)
    paused = [replace(job, submit_time=2 * 86_400 * number) for number, job in enumerate(campaign)]
    assert excess(paused, together) == pytest.approx(1 + 29 * 0.1, rel=0.15)
    tasks = [replace(job, array_id="7") for job in paused]
    assert excess(tasks, together) == pytest.approx(1 + 29 * 0.5, rel=0.15)


def plain_quantile(past: list[tuple[float, float, bool]], beyond: float, share: float) -> float:
    """Kaplan and Meier by the book: (log runtime, weight, bound), then interpolated."""
    past = sorted(past, key=lambda each: (each[0], each[2]))
    points, survival = [], 1.0
    for place, (value, weight, bound) in enumerate(past):
        if not bound:
            ending = survival * weight / sum(weight for _, weight, _ in past[place:])
            points.append((value, 1 - survival + ending / 2))
            survival -= ending
    values, levels = zip(*points, strict=True)
    known = float(np.interp(beyond, values, levels, left=0, right=1))
    return max(beyond, float(np.interp(known + share * (1 - known), levels, values)))


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.floats(0.01, 1), st.booleans()), min_size=1, max_size=12
    ),
    st.lists(st.integers(0, 19), min_size=1, max_size=3),
)
def test_quantiles_are_kaplan_and_meier_s(
    past: list[tuple[int, float, bool]], beyond: list[int]
) -> None:
    # Values all different: between equal ones the order decides, and the plain way has another.
    known = [(v / 10 + n / 1_000, w, b) for n, (v, w, b) in enumerate(past)]
    known.append((21.0, 0.5, False))
    other = [(1.0, 1.0, False), (5.0, 1.0, True), (6.0, 2.0, False)]
    flat = known + other
    quantiles = RuntimeQuantiles(
        np.array([0] * len(known) + [1] * len(other)),
        np.array([value for value, _, _ in flat]),
        np.array([weight for _, weight, _ in flat]),
        np.array([bound for _, _, bound in flat]),
    )
    for of, each in ((0, known), (1, other)):
        table = quantiles.table(np.full(len(beyond), of), np.array(beyond, dtype=np.float64))
        for row, age in zip(table, beyond, strict=True):
            for place in range(0, len(NORMAL_SCORES), 16):
                share = 0.5 * math.erfc(-NORMAL_SCORES[place] / math.sqrt(2))
                assert row[place] == pytest.approx(plain_quantile(each, age, share), abs=1e-6)


def test_nothing_is_learned_of_what_tells_nothing(finished: Finished) -> None:
    model = RuntimeHistories()
    for ending in (Ending.NODE_FAILED, Ending.PREEMPTED, Ending.REQUEUED, Ending.NEVER_STARTED):
        model.learn_one(finished(100, ending=ending))
    assert model.state() == RuntimeHistories().state()


def test_a_state_of_others_is_refused() -> None:
    model = RuntimeHistories()
    with pytest.raises(StateError, match="saved by another model"):
        model.restore({})
    other = RuntimeHistories(RuntimeHistoriesSettings(as_share=0.1))
    with pytest.raises(StateError, match="other settings"):
        model.restore(other.state())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RuntimeHistoriesSettings(remembered_jobs=0), "remembered_jobs 0"),
        (lambda: RuntimeHistoriesSettings(window_s=0), "window_s 0"),
        (lambda: RuntimeHistoriesSettings(as_share=1.5), "as_share 1.5"),
        (lambda: SharedEffects(0.5, 0.4), "0 <= user <= campaign <= 1"),
        (lambda: Ageing(0.0, 1.0), "half_life_jobs 0.0"),
    ],
)
def test_settings_out_of_range(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()
