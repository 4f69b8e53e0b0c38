"""Boosted trees: the shared checks with trees that grow early, what they learn, when they grow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from foretime_estimators.estimators.boosted_runtime import BoostedRuntime, BoostedSettings
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.testing import CHECKS, Check
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

SMALL = BoostedSettings(first_jobs=40, refit_jobs=160, window_jobs=120, trees=4, least_jobs=4)


@pytest.fixture(scope="module")
def history() -> list[FinishedJob]:
    """Jobs whose size says how long they take, but not by user, request or queue."""
    draw = random.Random(9)
    jobs = []
    for number in range(300):
        processors = draw.choice([1, 2, 64, 128])
        took = int((40 if processors > 2 else 3_000) * draw.uniform(0.7, 1.3))
        request = JobRequest(
            str(number), draw.choice(["ann", "ben"]), None, processors, 7_200, 400 * number
        )
        start = request.submit_time + draw.randrange(300)
        jobs.append(FinishedJob(request, start, start + took, took, Ending.COMPLETED))
    return jobs


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes_the_shared_checks(history: list[FinishedJob], check: Check) -> None:
    def make(_: Sequence[FinishedJob]) -> BoostedRuntime:
        return BoostedRuntime(SMALL)

    check(make, history)


def learned(history: Sequence[FinishedJob], settings: BoostedSettings) -> BoostedRuntime:
    estimator = BoostedRuntime(settings)
    for job in history:
        estimator.predict_one(job.request, job.request.submit_time)
        estimator.start_one(job.request, job.request.submit_time)
        estimator.learn_one(job)
    return estimator


def test_trees_find_what_tells_short_jobs(history: list[FinishedJob]) -> None:
    estimator = learned(history, replace(SMALL, trees=60))
    wide, narrow = (
        estimator.predict_roles(JobRequest("new", "ann", None, size, 7_200, 150_000), 150_000)
        for size in (64, 2)
    )
    assert 20 < wide.backfill < 80
    assert 2_000 < narrow.backfill < 4_000
    assert wide.queue <= wide.backfill
    assert wide.drain == 7_200


def test_before_the_first_trees_it_is_as_expected(history: list[FinishedJob]) -> None:
    estimator, plain = learned(history[:39], SMALL), ExpectedRuntime()
    for job in history[:39]:
        plain.learn_one(job)
    request = history[50].request
    assert estimator.predict_roles(request, 0) == plain.predict_roles(request, 0)
    estimator.learn_one(history[39])
    plain.learn_one(history[39])
    assert estimator.predict_roles(request, 0) != plain.predict_roles(request, 0)


def test_trees_grow_anew_at_doublings_and_then_at_even_steps() -> None:
    grown = [jobs for jobs in range(1, 700) if SMALL.refits_after(jobs)]
    assert grown == [40, 80, 160, 320, 480, 640]
    for jobs in range(1, 700):
        before = [each for each in grown if each <= jobs]
        assert SMALL.last_refit(jobs) == (before[-1] if before else 0)


def test_wrong_settings_and_states_are_refused() -> None:
    for wrong in ({"first_jobs": 5}, {"refit_jobs": 20}, {"trees": 0}, {"rate": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            replace(SMALL, **wrong)
    with pytest.raises(StateError, match="other settings"):
        BoostedRuntime().restore(BoostedRuntime(SMALL).state())
