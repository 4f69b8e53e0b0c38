"""Every registered estimator passes the shared checks; each gives its formula's figures."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.estimators.registry import ESTIMATORS, estimator_name, parse_estimator
from foretime_estimators.estimators.regression.learned_runtime import LearnedRuntime
from foretime_estimators.estimators.regression.online_regression import RegressionSettings
from foretime_estimators.estimators.scaled_request import RandomisedRequest, ScaledRequest
from foretime_estimators.estimators.testing import CHECKS, Check, predictions
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

Finished = Callable[..., FinishedJob]
SPELLINGS = [entry.example for entry in ESTIMATORS]
SETTINGS = {
    "paper": replace(AccuracySettings.tang2010(), threshold=5),
    "production": replace(AccuracySettings.production(), threshold=5),
    "window": replace(AccuracySettings.production(), threshold=3, window_s=20_000),
    "half-life": replace(AccuracySettings.tang2010(), threshold=5, half_life_s=86_400),
}


@pytest.fixture(scope="module")
def history() -> list[FinishedJob]:
    """Jobs of every ending, overlapping in time, with users, projects, arrays."""
    draw = random.Random(7)
    jobs = []
    for number in range(201):
        submit_time = 10_000 + 500 * number + draw.randrange(400)
        ending = draw.choice([*Ending, Ending.COMPLETED, Ending.COMPLETED, Ending.COMPLETED])
        requested_time = draw.choice([30, 600, 3_600, 20_000, 100_000])
        runtime = int(requested_time * draw.betavariate(0.6, 1.2))
        if ending is Ending.NEVER_STARTED:
            runtime = 0
        request = JobRequest(
            job_id=str(number),
            user=draw.choice(["ann", "ben", "cy", None]),
            project=draw.choice(["fluids", "stars", None]),
            processors=draw.choice([1, 4, 64]),
            requested_time=requested_time,
            submit_time=submit_time,
            array_id=draw.choice([None, None, f"a{number // 10}"]),
        )
        start_time = submit_time + draw.randrange(3_000)
        never = ending is Ending.NEVER_STARTED
        end_time = start_time + runtime
        jobs.append(FinishedJob(request, None if never else start_time, end_time, runtime, ending))
    return jobs


def runtimes(jobs: Sequence[FinishedJob]) -> dict[str, int]:
    return {job.request.job_id: job.actual_runtime for job in jobs}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_estimator_passes_the_shared_checks(
    history: list[FinishedJob], settings: str, spelling: str, check: Check
) -> None:
    def make(jobs: Sequence[FinishedJob]) -> RuntimeEstimator:
        return parse_estimator(
            spelling, settings=SETTINGS[settings], actual_runtimes=runtimes(jobs)
        )

    check(make, history)


@pytest.mark.parametrize("name", ["user", "project", "combined", "last-two", "recent-maximum"])
def test_what_learns_shortens_some_jobs(history: list[FinishedJob], name: str) -> None:
    predicted = predictions(parse_estimator(name, settings=SETTINGS["paper"]), history)
    requested = [job.request.requested_time for job in history]
    shortened = sum(p < r for p, r in zip(predicted, requested, strict=True))
    assert 20 < shortened < len(history)


class Forgetful:
    """Broken on purpose in every way that the checks look for."""

    oracle = False

    def __init__(self, jobs: Sequence[FinishedJob]) -> None:
        self.jobs, self.calls = jobs, 0

    def predict_one(self, job: JobRequest, now: int) -> int:
        self.calls += 1
        return self.calls + sum(known.actual_runtime for known in self.jobs)

    def learn_one(self, job: FinishedJob) -> None:
        self.calls += 1

    def state(self) -> dict[str, int]:
        return {"calls": self.calls}

    def restore(self, state: object) -> None:
        pass


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_checks_can_fail(history: list[FinishedJob], check: Check) -> None:
    with pytest.raises(AssertionError):
        check(Forgetful, history)


def test_oracles_give_the_actual_runtime_or_a_blend_with_the_request(finished: Finished) -> None:
    job = finished(100, 1_000)
    over = finished(1_100, 1_000)
    known = runtimes([job, over])
    assert parse_estimator("actual", actual_runtimes=known).predict_one(job.request, 0) == 100
    assert parse_estimator("actual", actual_runtimes=known).predict_one(over.request, 0) == 1_000
    for a, expected in (("0", 1_000), ("0.25", 775), ("0.333", 701), ("1", 100)):
        blend = parse_estimator(f"blend:{a}", actual_runtimes=known)
        assert blend.oracle
        assert blend.predict_one(job.request, 0) == expected
    below = parse_estimator("actual-below:100", actual_runtimes=known)
    assert below.oracle
    assert below.predict_one(job.request, 0) == 1_000  # it runs for the bound, not below it
    below = parse_estimator("actual-below:101", actual_runtimes=known)
    assert below.predict_one(job.request, 0) == 100
    assert below.predict_one(over.request, 0) == 1_000
    with pytest.raises(InputError, match="job 99: no actual runtime is known"):
        parse_estimator("actual", actual_runtimes=known).predict_one(
            replace(job.request, job_id="99"), 0
        )


def test_last_two_is_the_mean_of_two_and_at_most_the_request(finished: Finished) -> None:
    estimator = parse_estimator("last-two")
    job = finished(1, 1_000).request
    for runtime, expected in ((101, 1_000), (200, 151), (300, 250), (5_000, 1_000)):
        estimator.learn_one(finished(runtime, 9_000))
        assert estimator.predict_one(job, 0) == expected
    assert estimator.predict_one(replace(job, user="new"), 0) == 1_000
    assert estimator.predict_one(replace(job, user=None), 0) == 1_000


def test_recent_maximum_is_the_longest_of_fifteen_and_a_margin(finished: Finished) -> None:
    estimator = parse_estimator("recent-maximum")
    day_s = 86_400
    for runtime in [9_000] + [100 * number for number in range(1, 16)]:
        estimator.learn_one(finished(runtime, 10_000))  # the first is out of the last fifteen
    assert estimator.predict_one(finished(1, 10_000).request, 0) == 1_500 + 900
    assert estimator.predict_one(finished(1, day_s).request, 0) == 12_960 + 900
    assert estimator.predict_one(finished(1, 2 * day_s).request, 0) == 2 * 25_920 + 900
    assert estimator.predict_one(finished(1, 1_000).request, 0) == 1_000
    assert estimator.predict_one(finished(1, 1_059).request, 0) == 1_059
    assert estimator.predict_one(finished(1, 1_060).request, 0) == 1_059


def test_scaled_requests_exceed_the_request_only_unclamped(finished: Finished) -> None:
    job = finished(1, 1_001).request
    assert ScaledRequest(2).predicted_runtime(job) == 2_002
    assert ScaledRequest(2).predict_one(job, 0) == 1_001
    assert ScaledRequest(0.5).predict_one(job, 0) == 501


def test_randomised_requests_are_uniform_and_a_jobs_own(finished: Finished) -> None:
    jobs = [finished(1, 1_000).request for _ in range(2_000)]
    drawn = [RandomisedRequest(seed=1).predict_one(job, 0) for job in jobs]
    assert 480 < sum(drawn) / len(drawn) < 520
    assert min(drawn) < 10
    assert max(drawn) > 990
    assert [RandomisedRequest(seed=1).predict_one(job, 5) for job in jobs] == drawn
    assert [RandomisedRequest(seed=2).predict_one(job, 0) for job in jobs] != drawn
    assert max(RandomisedRequest(highest=2).predicted_runtime(job) for job in jobs) > 1_900


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("combind", "did you mean 'combined'"),
        ("", "there is none of that name"),
        ("blend", "needs a number; write blend:A, such as blend:0.5"),
        ("blend:half", "needs a number"),
        ("blend:1.5", "a = 1.5 must be from 0"),
        ("blend:nan", "a = nan must be from 0"),
        ("actual-below:0", "the bound 0.0 must be above 0 seconds"),
        ("actual-below:nan", "the bound nan must be above 0 seconds"),
        (
            "scaled:-1",
            "estimator 'scaled:-1': scaled request: factor -1.0 must be a finite number above 0",
        ),
        ("typical:2", "estimator 'typical:2': percentile is 2: give more than 0"),
        ("scaled:inf", "factor inf"),
        ("user:0.5", "user takes no parameter; write 'user'"),
        ("regression", "takes a loss, written regression:LOSS; valid: squared-squared"),
        ("regression:squared-linear-large", "did you mean 'squared-linear-large-area'"),
        ("regression:linear-linear-constant:signed", "valid: clipped, half-life=JOBS"),
        ("regression:linear-linear-constant:half-life=many", "such as half-life=1000"),
        ("regression:linear-linear-constant:half-life=0", "recent_half_life is 0.0"),
    ],
)
def test_names_of_no_estimator_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_estimator(text, actual_runtimes={})
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["actual", "blend:0.5"])
def test_oracles_need_a_log(text: str) -> None:
    with pytest.raises(InputError, match="needs the actual runtimes"):
        parse_estimator(text)


def test_states_of_others_are_refused(finished: Finished) -> None:
    last_two = parse_estimator("last-two")
    last_two.learn_one(finished(5))
    for name in ("requested", "recent-maximum", "combined"):
        with pytest.raises(StateError):
            parse_estimator(name).restore(last_two.state())


def test_every_estimator_is_documented(repository: Path) -> None:
    text = (repository / "docs" / "estimators.md").read_text()
    for entry in ESTIMATORS:
        assert f"`{entry.spelling}`" in text, f"docs/estimators.md lacks {entry.spelling}"
    for setting in fields(AccuracySettings):
        assert f"`{setting.name}`" in text, f"docs/estimators.md lacks setting {setting.name}"


def test_options_of_the_regression() -> None:
    made = parse_estimator("regression:linear-linear-constant:clipped:half-life=1000")
    assert isinstance(made, LearnedRuntime)
    assert made.regression.settings == RegressionSettings(recent_half_life=1_000, absolute=False)
    assert estimator_name("blend:0.50") == "blend:0.5"
    for name in ("last-two", "regression:linear-linear-constant:half-life=20"):
        assert estimator_name(f" {name} ") == name
