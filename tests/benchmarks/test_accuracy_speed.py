"""Learning a finished job at a million jobs of history, and publishing after it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracySettings
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from pytest_benchmark.fixture import BenchmarkFixture

HISTORY_JOBS = 1_000_000
SETTINGS = {"paper": AccuracySettings.tang2010(), "production": AccuracySettings.production()}


def endless(users: int, seed: int) -> Iterator[FinishedJob]:
    """Jobs of ``users`` users in a tenth as many projects, one ending every ten seconds."""
    draw = random.Random(seed)
    number = 0
    while True:
        number += 1
        requested_time = draw.choice([1_800, 7_200, 36_000, 86_400, 172_800])
        runtime = int(requested_time * draw.random())
        user = draw.randrange(users)
        request = JobRequest(
            str(number), f"u{user}", f"p{user // 10}", draw.choice([1, 16, 128]), requested_time, 0
        )
        end_time = 10 * number
        yield FinishedJob(request, end_time - runtime, end_time, runtime, Ending.COMPLETED)


@pytest.mark.parametrize("users", [1, 10_000])
@pytest.mark.parametrize("settings", SETTINGS)
def test_learn_one_at_a_million_jobs(
    benchmark: BenchmarkFixture, settings: str, users: int
) -> None:
    model = AccuracyModel(SETTINGS[settings])
    jobs = endless(users, seed=1)
    for _ in range(HISTORY_JOBS):
        model.learn_one(next(jobs))
    more = [next(jobs) for _ in range(5_000)]
    coming = iter(more)
    # pytest-benchmark leaves pedantic untyped.
    benchmark.pedantic(lambda: model.learn_one(next(coming)), rounds=5_000)  # type: ignore[no-untyped-call]


def test_publishing_after_a_hundred_jobs(benchmark: BenchmarkFixture) -> None:
    model = AccuracyModel(SETTINGS["production"])
    jobs = endless(10_000, seed=1)
    for _ in range(HISTORY_JOBS):
        model.learn_one(next(jobs))
    model.changed_rows()

    def learn() -> None:
        for _ in range(100):
            model.learn_one(next(jobs))

    benchmark.pedantic(model.changed_rows, setup=learn, rounds=20)  # type: ignore[no-untyped-call]  # as above
