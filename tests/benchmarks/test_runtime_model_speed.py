"""Speed of runtimes as distributions: 500 samples of 1,000 jobs, and learning from a job.

Goals: samples in under 0.1 s; 100 us for a finished job, of which most is spent on judging one
campaign in ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

SAMPLES, JOBS, PAST = 500, 1_000, 20_000


def finished(number: int, rng: np.random.Generator) -> FinishedJob:
    """A job of one of 200 users, each with a few requests and sizes of its own."""
    user = int(rng.integers(200))
    requested = int(3_600 * (1 + (user + rng.integers(3)) % 48))
    request = JobRequest(
        str(number),
        f"u{user}",
        f"p{user % 40}",
        int(2 ** rng.integers(user % 6, 8)),
        requested,
        number * 60,
        queue=f"q{requested // 50_000}",
    )
    runtime = max(1, int(requested * rng.beta(0.5, 1.0)))
    return FinishedJob(request, number * 60, number * 60 + runtime, runtime, Ending.COMPLETED)


@pytest.fixture(scope="module")
def past() -> list[FinishedJob]:
    rng = np.random.default_rng(1)
    jobs = [finished(number, rng) for number in range(PAST)]
    return sorted(jobs, key=lambda job: job.end_time)


@pytest.fixture(scope="module")
def model(past: list[FinishedJob]) -> RuntimeHistories:
    taught = RuntimeHistories()
    for job in past:
        taught.learn_one(job)
    return taught


def test_samples(benchmark: Any, model: RuntimeHistories) -> None:
    rng = np.random.default_rng(2)
    jobs = [finished(PAST + number, rng).request for number in range(JOBS)]
    age = np.array([0 if number % 3 else 60 * number for number in range(JOBS)])
    benchmark.extra_info["goal_s"] = 0.1
    benchmark(model.sample, jobs, age, 60 * PAST, SAMPLES, rng)


def test_learning(benchmark: Any, past: list[FinishedJob]) -> None:
    def learn() -> None:
        model = RuntimeHistories()
        for job in past:
            model.learn_one(job)

    benchmark.extra_info["jobs"] = PAST
    benchmark.extra_info["goal_jobs_per_s"] = 10_000
    benchmark.pedantic(learn, rounds=3)
