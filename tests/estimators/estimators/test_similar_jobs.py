"""`similar` against a plain calculation from all finished jobs, and what it must never do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from foretime_estimators.estimators.job_kinds import Ageing, kinds_of
from foretime_estimators.estimators.similar_jobs import SimilarJobs
from foretime_estimators.estimators.similar_jobs_estimator import SimilarJobsEstimator
from foretime_estimators.estimators.similar_jobs_settings import RoleRule, SimilarJobsSettings
from foretime_estimators.jobs.endings import MICRO
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from hypothesis import given, settings
from hypothesis import strategies as st

Finished = Callable[..., FinishedJob]
AGEING = Ageing(3.0, 2.0)
REMEMBERED = 4
WINDOW_S = 5_000
HOURS = 3_600


@st.composite
def requests(draw: st.DrawFn) -> JobRequest:
    return JobRequest(
        job_id="1",
        user=draw(st.sampled_from(["ann", "ben", None])),
        project=draw(st.sampled_from(["stars", None])),
        processors=draw(st.sampled_from([1, 3, 64])),
        requested_time=draw(st.sampled_from([100, 120, 9_000])),
        submit_time=0,
        queue=draw(st.sampled_from(["long", None])),
        executable=draw(st.sampled_from(["a.out", None])),
    )


ended = st.lists(
    st.tuples(requests(), st.integers(0, MICRO), st.booleans(), st.integers(0, 3_000)), max_size=25
)


def plain(
    past: list[tuple[JobRequest, int, bool, int]], job: JobRequest
) -> list[tuple[int, float]] | None:
    """What is expected of a job, from the list of all that ended: (R in millionths, weight)."""
    left, parts = 1.0, []
    for kind in kinds_of(job):
        alike = [job for job in past if kind in kinds_of(job[0])][-REMEMBERED:]
        if not alike:
            continue
        ages = [2 ** (-age / AGEING.half_life_jobs) for age in range(len(alike))][::-1]
        share = left / (sum(ages) + AGEING.enough_jobs)
        parts += [
            (micro, not exact and micro < MICRO, age * share)
            for (_, micro, exact, _), age in zip(alike, ages, strict=True)
        ]
        left = share * AGEING.enough_jobs
        if left < 0.01:
            break
    if not parts:
        return None
    parts.append((MICRO, False, left))
    parts.sort(key=lambda part: part[:2])
    weights = [weight for _, _, weight in parts]
    for place, (_, bound, _) in enumerate(parts):
        if bound:
            above = sum(weights[place + 1 :])
            for later in range(place + 1, len(parts)):
                weights[later] += weights[later] * weights[place] / above
            weights[place] = 0.0
    return [(micro, weight) for (micro, _, _), weight in zip(parts, weights, strict=True)]


@settings(max_examples=60, deadline=None)
@given(ended, requests())
def test_what_is_expected_is_the_plain_mixture(
    jobs: list[tuple[JobRequest, int, bool, int]], job: JobRequest
) -> None:
    similar = SimilarJobs([Ageing(1.0, 1.0), AGEING], REMEMBERED, WINDOW_S)
    end, past = 0, []
    for request, micro, exact, later in jobs:
        end += min(later, 150)  # within the window all together: forgetting has its own test
        past.append((request, micro, exact, end))
        similar.remember(request, micro, exact=exact, end_time=end)
    found, wanted = similar.expected(job, 1), plain(past, job)
    if wanted is None:
        assert found is None
        return
    assert found is not None
    assert sum(weight for _, weight in wanted) == pytest.approx(1)
    assert found.mean() == pytest.approx(sum(r * weight for r, weight in wanted) / MICRO)
    for cut in (0, 1, 300_000, MICRO):
        below = sum(weight for r, weight in wanted if r < cut)
        assert found.share_below(cut) == pytest.approx(below)
    for share in (0.1, 0.5, 0.9, 1.0):
        told = round(found.percentile(share) * MICRO)
        assert sum(weight for r, weight in wanted if r <= told) >= share - 1e-9
        assert sum(weight for r, weight in wanted if r < told) <= share + 1e-9


def test_fine_kinds_come_before_coarse_ones(finished: Finished) -> None:
    job = replace(finished(1).request, executable="a.out", queue="long")
    names = [kind[0] for kind in kinds_of(job)]
    assert names == [
        "executable", "user-request-size", "user-request", "user-class", "user",
        "project-request", "project", "queue-classes", "classes", "all",
    ]  # fmt: skip
    assert [kind[0] for kind in kinds_of(replace(job, user=None, project=None, queue=None))] == [
        "classes",
        "all",
    ]


def test_a_thin_history_falls_back_on_a_wider_one(finished: Finished) -> None:
    """With one job of the user's own, others' jobs and the request still have their say."""
    similar = SimilarJobs([Ageing(10.0, 2.0)], 40, WINDOW_S)
    for _ in range(20):
        other = finished(1, user="other", project="theirs").request
        similar.remember(other, 500_000, exact=True, end_time=0)
    mine = finished(1, user="me", project=None).request
    strange = similar.expected(mine, 0)
    assert strange is not None
    assert strange.percentile(0.5) == 0.5
    means = [strange.mean()]
    for _ in range(10):
        similar.remember(mine, 100_000, exact=True, end_time=0)
        known = similar.expected(mine, 0)
        assert known is not None
        means.append(known.mean())
    assert all(after < before for before, after in pairwise(means[:5]))
    # Kinds that could decide no more than a hundredth are not looked at: the request has that.
    assert all(after < before + 0.01 for before, after in pairwise(means))
    assert 0.1 < means[-1] < 0.12


def test_newer_jobs_count_more_and_old_kinds_are_forgotten(finished: Finished) -> None:
    similar = SimilarJobs([Ageing(1.0, 0.1)], 40, WINDOW_S)
    job = finished(1).request
    for micro in (900_000, 900_000, 100_000):
        similar.remember(job, micro, exact=True, end_time=0)
    expected = similar.expected(job, 0)
    assert expected is not None
    assert expected.mean() < 0.5
    other = finished(1, 100, user="other", project="theirs", processors=500).request
    kinds = len(similar)
    similar.remember(other, 1, exact=True, end_time=WINDOW_S + 1)
    # The kinds of the first job are gone, but for the one that both are of.
    assert len(similar) == len(kinds_of(other))
    assert kinds == len(kinds_of(job))


def test_lower_bounds_only_lengthen(finished: Finished) -> None:
    plainly, bounded = SimilarJobsEstimator(), SimilarJobsEstimator()
    job = finished(1).request
    for estimator in (plainly, bounded):
        for runtime in (HOURS, 2 * HOURS, 10 * HOURS):
            estimator.learn_one(finished(runtime))
    bounded.learn_one(finished(4 * HOURS, ending=Ending.CANCELLED))
    plain_times, bounded_times = (e.predict_roles(job, 0) for e in (plainly, bounded))
    assert bounded_times.backfill > plain_times.backfill
    node_failed = plainly.state()
    plainly.learn_one(finished(5, ending=Ending.NODE_FAILED))
    assert plainly.state() == node_failed


def test_each_role_goes_by_its_rule(finished: Finished) -> None:
    rules = SimilarJobsSettings(
        queue=RoleRule(0.5, trust=0.5), backfill=RoleRule(None), drain=RoleRule(None, trust=0.0)
    )
    estimator = SimilarJobsEstimator(rules)
    for _ in range(60):
        estimator.learn_one(finished(12 * HOURS))  # a quarter of the 48 hours
    job = finished(1).request
    times = estimator.predict_roles(job, 0)
    assert times.queue == 24 * HOURS
    assert 12 * HOURS < times.backfill < 12.2 * HOURS
    assert times.drain == 48 * HOURS
    assert estimator.predict_one(job, 0) == times.backfill
    short = replace(job, requested_time=200)
    assert estimator.predict_roles(short, 0) == (200, 200, 200)


def test_percentiles_cover_what_they_say(finished: Finished) -> None:
    """A mixture that is always off is corrected by what was covered."""
    rules = SimilarJobsSettings(drain=RoleRule(0.8), judge_every=1)
    estimator, covered, asked = SimilarJobsEstimator(rules), 0, 0
    for number in range(1_500):
        # Every job of a user runs longer than those before, until it starts anew.
        done = finished(HOURS + 600 * (number % 40), 12 * HOURS)
        if number > 500:
            asked += 1
            covered += done.actual_runtime <= estimator.predict_roles(done.request, 0).drain
        estimator.learn_one(done)
    assert 0.75 < covered / asked < 0.9
    untuned = SimilarJobsEstimator(replace(rules, judged_jobs=10**9))
    late = 0
    for number in range(600):
        done = finished(HOURS + 600 * (number % 40), 12 * HOURS)
        late += done.actual_runtime > untuned.predict_roles(done.request, 0).drain
        untuned.learn_one(done)
    assert late / 600 > 0.25


def test_the_ageing_that_serves_is_the_one_that_did_best(finished: Finished) -> None:
    """Runtimes that change for good every fifty jobs want a short memory."""
    long_memory, short_memory = Ageing(1_000.0, 0.1), Ageing(0.5, 0.1)
    rules = SimilarJobsSettings(ageings=(long_memory, short_memory), judge_every=1)
    estimator = SimilarJobsEstimator(rules)
    for number in range(400):
        estimator.learn_one(finished(HOURS * (1 + 20 * (number // 20 % 2))))
    only = SimilarJobsEstimator(replace(rules, ageings=(short_memory,)))
    only.restore({**estimator.state(), "loss": [0.0], "settings": only.state()["settings"]})
    job = finished(1).request
    assert estimator.predict_roles(job, 0).backfill == only.predict_roles(job, 0).backfill


def test_other_states_are_refused(finished: Finished) -> None:
    estimator = SimilarJobsEstimator()
    estimator.learn_one(finished(5))
    with pytest.raises(StateError, match="other settings"):
        SimilarJobsEstimator(SimilarJobsSettings(remembered_jobs=3)).restore(estimator.state())
    with pytest.raises(StateError, match="another estimator"):
        estimator.restore({"recent": {}})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RoleRule(0.0), "percentile is 0: give more than 0"),
        (lambda: RoleRule(0.5, trust=1.5), "trust is 1.5: give 0 to 1"),
        (lambda: RoleRule(0.5, least=-1), "least is -1: give 0 to 1"),
        (lambda: Ageing(0.0, 1.0), "half_life_jobs 0.0 must be above 0"),
        (lambda: Ageing(1.0, float("inf")), "enough_jobs inf must be above 0"),
        (lambda: SimilarJobsSettings(ageings=()), "ageings = \\(\\): it must be at least one"),
        (lambda: SimilarJobsSettings(judge_every=0), "judge_every = 0: it must be at least 1"),
    ],
)
def test_wrong_settings_are_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()
