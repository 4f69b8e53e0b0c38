"""Runtimes that are drawn once for a queue and all that is asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sidecar.forecasts.sample_cache import DrawnOnce


class Counted:
    """Draws numbers, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        assert len(age) == len(jobs)
        self.asked.append((len(jobs), samples))
        return rng.integers(1, 1_000, (samples, len(jobs)))

    def learn_one(self, job: FinishedJob) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        raise NotImplementedError


def _job(number: int) -> JobRequest:
    return JobRequest(f"j{number}", "ann", "p", 1, 60 * number, 0)


QUEUE = [_job(number) for number in range(1, 6)]


def _sample(cache: DrawnOnce, jobs: list[JobRequest], samples: int, now: int = 100) -> Int64Array:
    return cache.sample(jobs, np.zeros(len(jobs), np.int64), now, samples, np.random.default_rng(7))


@pytest.mark.parametrize("more", [5, 10, 40])
def test_questions_are_answered_by_one_drawing_of_the_queue(more: int) -> None:
    """Also those that want more samples than the queue was forecast with."""
    drawn = Counted()
    cache = DrawnOnce(drawn)
    queue = _sample(cache, QUEUE, 10)
    found = [_sample(cache, [*QUEUE, _job(number)], more) for number in (8, 9, 8)]
    assert drawn.asked == [(5, 10)] + [(5, 40)] * (more == 40)
    for number, each in zip((8, 9, 8), found, strict=True):
        assert (each[:, -1] == 60 * number).all()
        assert (each[:, :-1] == found[0][:, :-1]).all()
    if more <= 10:
        assert (found[0][:, :-1] == queue[:more]).all()


def test_another_queue_and_another_time_are_drawn_anew() -> None:
    drawn = Counted()
    cache = DrawnOnce(drawn)
    for queue, now in ((QUEUE, 100), (QUEUE, 160), ([_job(1), *QUEUE[1:]], 160), (QUEUE, 160)):
        _sample(cache, queue, 10, now)
    assert len(drawn.asked) == 3
