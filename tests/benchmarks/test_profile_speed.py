"""What each operation of the availability profile costs as the profile grows.

Beside it runs the plain version: one Python list of steps, walked from its first; so
part of the ratio is the language, and what counts is how it grows. The extra column
``plain_over_block_list`` is the ratio of the two, measured in the same run.
"""

from __future__ import annotations

import random
import timeit
from collections.abc import Callable
from typing import Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.support.plans.availability_profile import AvailabilityProfile

CAPACITY = 1_000
LENGTHS = [10, 100, 1_000, 10_000, 100_000]
OPERATIONS = [
    "earliest_fit",
    "earliest_fit_crossing",
    "reserve_release",
    "min_free",
    "free_at",
    "copy",
]


class Profile(Protocol):
    def reserve(self, start: int, duration: int | None, processors: int) -> None: ...
    def release(self, start: int, duration: int | None, processors: int) -> None: ...
    def earliest_fit(self, from_time: int, duration: int | None, processors: int) -> int | None: ...
    def free_at(self, time: int) -> int: ...
    def min_free(self, start: int, end: int | None) -> int: ...
    def copy(self) -> object: ...


class PlainProfile:
    """The same operations by walking one list of (time, free) from its first step."""

    def __init__(self, steps: list[tuple[int, int]]) -> None:
        self.steps = steps

    def add(self, start: int, end: int, change: int) -> None:
        changed: list[tuple[int, int]] = []
        before = 0
        for time, free in self.steps:
            for edge in (start, end):
                if changed and changed[-1][0] < edge < time:
                    changed.append((edge, before))
            changed.append((time, free))
            before = free
        self.steps = []
        for time, free in changed:
            height = free + change if start <= time < end else free
            if not self.steps or self.steps[-1][1] != height:
                self.steps.append((time, height))

    def reserve(self, start: int, duration: int | None, processors: int) -> None:
        assert duration is not None
        self.add(start, start + duration, -processors)

    def release(self, start: int, duration: int | None, processors: int) -> None:
        assert duration is not None
        self.add(start, start + duration, processors)

    def earliest_fit(self, from_time: int, duration: int | None, processors: int) -> int | None:
        assert duration is not None
        start: int | None = from_time
        for time, free in self.steps:
            if start is not None and time >= start + duration:
                return start
            if free < processors:
                start = None
            elif start is None:
                start = max(time, from_time)
        return start

    def free_at(self, time: int) -> int:
        free = 0
        for step_time, step_free in self.steps:
            if step_time > time:
                break
            free = step_free
        return free

    def min_free(self, start: int, end: int | None) -> int:
        assert end is not None
        least, before = CAPACITY, CAPACITY
        for time, free in self.steps:
            if time >= end:
                break
            if time > start:
                least = min(least, free, before)
            before = free
        return min(least, before)

    def copy(self) -> PlainProfile:
        return PlainProfile(list(self.steps))


def busy_profile(length: int) -> AvailabilityProfile:
    """A loaded machine: free processors wander below 400, one step a minute."""
    random_numbers = random.Random(length)
    profile = AvailabilityProfile(CAPACITY)
    before = -1
    for i in range(length - 1):
        free = random_numbers.choice([f for f in range(10, 400, 7) if f != before])
        profile.reserve(60 * i, 60, CAPACITY - free)
        before = free
    assert len(profile) == length
    return profile


def work(operation: str, profile: Profile, length: int) -> Callable[[], object]:
    """One typical call: a job that only fits near the end, a claim across the middle half."""
    end = 60 * (length - 1)
    middle, half = end // 4 + 1, end // 2

    def reserve_release() -> None:
        profile.reserve(middle, half, 9)
        profile.release(middle, half, 9)

    calls: dict[str, Callable[[], object]] = {
        "earliest_fit": lambda: profile.earliest_fit(0, 3600, 500),
        # The worst case: in every block some steps suffice, but never for long enough.
        "earliest_fit_crossing": lambda: profile.earliest_fit(0, 21_600, 200),
        "reserve_release": reserve_release,
        "min_free": lambda: profile.min_free(middle, middle + half),
        "free_at": lambda: profile.free_at(end - 30),
        "copy": profile.copy,
    }
    return calls[operation]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_profile_operation(benchmark: BenchmarkFixture, operation: str, length: int) -> None:
    profile = busy_profile(length)
    plain = PlainProfile(profile.steps())
    fast = work(operation, profile, length)
    slow = work(operation, plain, length)
    assert operation == "copy" or fast() == slow()
    assert profile.steps() == plain.steps

    benchmark.group = f"availability profile: {operation}"
    benchmark(fast)
    repeats = max(1, 20_000 // length)
    ratio = (
        min(timeit.repeat(slow, number=repeats, repeat=3))
        / repeats
        / min(timeit.repeat(fast, number=100, repeat=3))
        * 100
    )
    benchmark.extra_info["plain_over_block_list"] = round(ratio, 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_advance(benchmark: BenchmarkFixture, length: int) -> None:
    """Through the whole profile, a minute at a time; the time shown is for all of it."""
    full = busy_profile(length)

    def pass_time(profile: AvailabilityProfile) -> None:
        for minute in range(length):
            profile.advance(60 * minute)

    benchmark.group = "availability profile: advance through all steps"
    benchmark.pedantic(  # type: ignore[no-untyped-call]  # pytest-benchmark gives it no types
        pass_time, setup=lambda: ((full.copy(),), {}), rounds=3
    )
