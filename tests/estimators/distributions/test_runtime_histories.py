"""Runtimes as distributions: the contract, and quantiles against a plain calculation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.distributions import runtime_histories
from foretime_estimators.distributions.runtime_histories import (
    RuntimeHistories,
    RuntimeHistoriesSettings,
)
from foretime_estimators.distributions.runtime_quantiles import NORMAL_SCORES, settled_within
from foretime_estimators.distributions.shared_effects import SharedEffects
from foretime_estimators.estimators.job_kinds import Ageing, kinds_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from hypothesis import assume, given, settings
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


def test_what_is_forgotten_is_not_drawn_any_more(finished: Finished) -> None:
    """Though it had been asked about: the same as of a model that was never asked, or restored."""
    window = RuntimeHistoriesSettings(window_s=HOUR)
    asked, unasked, restored = (RuntimeHistories(window) for _ in range(3))
    end = 1_000_000_000
    own = [finished(60, 1_000, user="ann", project=None, end_time=end) for _ in range(30)]
    others = [
        finished(900, 1_000, user="ben", project=None, end_time=end + later)
        for later in (HOUR, 2 * HOUR, 2 * HOUR + 1)
    ]
    job = own[0].request
    for past in own:
        asked.learn_one(past)
        unasked.learn_one(past)
    assert np.mean(drawn(asked, job) == 60) > 0.7
    for past in others:
        asked.learn_one(past)
        unasked.learn_one(past)
    restored.restore(json.loads(json.dumps(asked.state())))
    runtime = drawn(asked, job)
    assert (runtime == drawn(restored, job)).all()
    assert (runtime == drawn(unasked, job)).all()
    assert np.mean(runtime == 60) < 0.7


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


def test_a_runtime_is_read_as_a_share_of_its_request(finished: Finished) -> None:
    model = taught([finished(HOUR, 10 * HOUR) for _ in range(40)])
    assert np.median(drawn(model, finished(1, 40 * HOUR).request)) == 4 * HOUR


def test_a_lower_bound_gives_its_weight_to_what_lies_above(finished: Finished) -> None:
    past = [finished(taken) for taken in [HOUR, 3 * HOUR] * 20]
    job = finished(1).request
    before = np.mean(drawn(taught(past), job) > 2 * HOUR)
    cancelled = [finished(2 * HOUR, ending=Ending.CANCELLED) for _ in range(10)]
    assert np.mean(drawn(taught(past + cancelled), job) > 2 * HOUR) > before + 0.1
    failed = [finished(2 * HOUR, ending=Ending.NODE_FAILED) for _ in range(10)]
    assert np.mean(drawn(taught(past + failed), job) > 2 * HOUR) == before


def test_jobs_that_still_run_are_evidence(finished: Finished) -> None:
    """Those of a campaign that end first are its shortest: the others show it by their ages."""
    past = [finished(8 * HOUR, user=f"u{n}", project=None) for n in range(40)]
    model = taught([*past, *[finished(60) for _ in range(10)]])
    waiting = finished(1).request
    running = [finished(1).request for _ in range(90)]
    alone = drawn(model, waiting)
    age = np.array([0, *[HOUR] * 90])
    rng = np.random.default_rng(2)
    among = model.sample([waiting, *running], age, 0, 20_000, rng)[:, 0]
    assert np.mean(alone <= 60) > 0.6
    assert np.mean(among <= 60) < 0.2
    just_begun = model.sample([waiting, *running], np.array([0, *[30] * 90]), 0, 20_000, rng)[:, 0]
    assert np.mean(just_begun <= 60) == pytest.approx(np.mean(alone <= 60), abs=0.02)


def test_jobs_of_a_campaign_are_long_together(finished: Finished) -> None:
    """The sum over a campaign varies as the correlation says; independent draws would not."""
    model = taught([finished(taken) for taken in range(HOUR, 41 * HOUR, HOUR)])
    campaign = [finished(1, submit_time=0).request for _ in range(30)]
    strangers = [finished(1, user=f"x{n}", submit_time=0).request for n in range(30)]
    age = np.zeros(30, dtype=np.int64)

    def excess(jobs: list[JobRequest], shared: SharedEffects) -> float:
        alike = RuntimeHistories(
            RuntimeHistoriesSettings(
                campaign_correlation=shared.campaign,
                user_share=shared.user / max(shared.campaign, 0.1),
            )
        )
        state, fresh = model.state(), alike.state()
        alike.restore({**state, "settings": fresh["settings"], "campaigns": fresh["campaigns"]})
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


Known = tuple[float, float, bool]  # (log runtime, weight, whether a bound)


def plain_settled(known: list[Known]) -> list[Known]:
    """Redistribute bounds to the right, one after the other (Efron 1967)."""
    known = sorted(known, key=lambda each: (each[0], each[2]))
    weights = [weight for _, weight, _ in known]
    for place, (_, _, bound) in enumerate(known):
        above = sum(weights[place + 1 :])
        if bound and above:
            for later in range(place + 1, len(known)):
                weights[later] *= 1 + weights[place] / above
            weights[place] = 0.0
    return [(value, w, bound) for (value, _, bound), w in zip(known, weights, strict=True) if w]


def plain_mixture(model: RuntimeHistories, job: JobRequest, age: int) -> list[Known]:
    """What is expected of a job that nobody runs beside, by the words of the module's docstring."""
    found: list[Known] = []
    left_open = 1.0
    request, ageing = math.log(job.requested_time), model.settings.ageing
    for kind in kinds_of(job):
        past = list(model._jobs.get(kind) or ())[::-1]
        known = [
            (math.log(runtime / asked), 2 ** (-place / ageing.half_life_jobs), bound)
            for place, (runtime, asked, bound) in enumerate(past)
        ]
        settled = [(max(0, r + request), w, bound) for r, w, bound in plain_settled(known)]
        if age:
            # Whether a runtime that is the age but for its rounding is beyond it nobody can say.
            assume(all(abs(value - math.log(age)) > 1e-12 for value, _, _ in settled))
            settled = [each for each in settled if each[0] > math.log(age)]
        share = left_open / (sum(weight for _, weight, _ in settled) + ageing.enough_jobs)
        found += [(value, weight * share, bound) for value, weight, bound in settled]
        left_open = share * ageing.enough_jobs
    low = min(math.log(max(age, 1)), request)
    for part in (*((n + 0.5) / 7 for n in range(7)), 1.0):
        found.append((low + part * (request - low), left_open / 8, False))
    return plain_settled(found)


def plain_quantile(known: list[Known], share: float, heavy_first: bool) -> float:
    """Interpolate; of equal values, which have no order, heavy or light ones come first."""
    sign = -1 if heavy_first else 1
    known = sorted(known, key=lambda each: (round(each[0], 9), sign * each[1]))
    total, reached, points = sum(weight for _, weight, _ in known), 0.0, []
    for value, weight, _ in known:
        points.append((value, (reached + weight / 2) / total))
        reached += weight
    return float(np.interp(share, [level for _, level in points], [v for v, _ in points]))


@given(st.lists(ended(), max_size=12), requests(), st.sampled_from([0, 1, 50, 110, 5_000]))
def test_quantiles_are_those_of_the_plain_mixture(
    past: list[FinishedJob], job: JobRequest, age: int
) -> None:
    model = taught(past)
    age = min(age, job.requested_time - 1)
    # A job without a user: a running one is evidence of its own user's jobs.
    asked = replace(job, user=None) if age else job
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime_histories, "_LEAST_SAY", 0.0)
        table = model._log_quantiles([asked], np.array([age]))[0]
    known = plain_mixture(model, asked, age)
    for place in range(0, len(NORMAL_SCORES), 16):
        share = 0.5 * math.erfc(-NORMAL_SCORES[place] / math.sqrt(2))
        found = [
            plain_quantile(known, share + by, first)
            for by in (-1e-9, 1e-9)
            for first in (False, True)
        ]
        assert min(found) - 1e-6 <= table[place] <= max(found) + 1e-6


@pytest.mark.parametrize("together", [0.0, 0.6])
def test_sums_over_campaigns_are_covered(finished: Finished, together: float) -> None:
    """How campaigns hang together is learned; draws that are independent would be too sure."""
    rng = np.random.default_rng(5)
    model = RuntimeHistories()
    end, age = 10**9, np.zeros(8, dtype=np.int64)
    covered: list[bool] = []
    covered_apart: list[bool] = []
    for campaign in range(500):
        score = math.sqrt(together) * rng.normal() + math.sqrt(1 - together) * rng.normal(size=8)
        jobs = [
            finished(
                runtime,
                user=f"u{campaign % 50}",
                end_time=end + 100 * place,
                submit_time=end - 1,
            )
            for place, runtime in enumerate(np.exp(8 + score).astype(int).tolist())
        ]
        if campaign > 250:
            runtime = model.sample([job.request for job in jobs], age, end, 400, rng)
            total = sum(job.actual_runtime for job in jobs)
            for draws, hits in ((runtime, covered), (rng.permuted(runtime, axis=0), covered_apart)):
                low, high = np.quantile(draws.sum(axis=1), [0.05, 0.95])
                hits.append(low <= total <= high)
        for job in jobs:
            model.learn_one(job)
        end += 1_000
    assert np.mean(covered) > 0.82
    if together:
        assert model.shared.campaign > 0.4
        assert np.mean(covered_apart) < 0.65
    else:
        assert model.shared.campaign < 0.2


def test_nothing_is_learned_of_what_tells_nothing(finished: Finished) -> None:
    model = RuntimeHistories()
    for ending in (Ending.NODE_FAILED, Ending.PREEMPTED, Ending.REQUEUED, Ending.NEVER_STARTED):
        model.learn_one(finished(100, ending=ending))
    assert model.state() == RuntimeHistories().state()


def test_a_state_of_others_is_refused() -> None:
    model = RuntimeHistories()
    with pytest.raises(StateError, match="saved by another model"):
        model.restore({})
    other = RuntimeHistories(RuntimeHistoriesSettings(user_share=0.1))
    with pytest.raises(StateError, match="other settings"):
        model.restore(other.state())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RuntimeHistoriesSettings(remembered_jobs=0), "remembered_jobs 0"),
        (lambda: RuntimeHistoriesSettings(window_s=0), "window_s 0"),
        (lambda: RuntimeHistoriesSettings(user_share=1.5), "user_share 1.5"),
        (lambda: SharedEffects(0.5, 0.4), "0 <= user <= campaign <= 1"),
        (lambda: Ageing(0.0, 1.0), "half_life_jobs 0.0"),
    ],
)
def test_settings_out_of_range_are_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


def test_a_bound_at_a_known_runtime_goes_to_what_is_above_it() -> None:
    """Of three alike one ends at 1; the bound at 1 was still there, so its weight goes to 2."""
    weight, bound = settled_within(
        np.zeros(3, dtype=np.int64),
        np.array([1.0, 1.0, 2.0]),
        np.ones(3),
        np.array([True, False, False]),
    )
    assert weight == pytest.approx([0, 1, 2])
    assert bound.tolist() == [True, False, False]
