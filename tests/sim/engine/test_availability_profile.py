"""The availability profile against an array with one entry a second."""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from foretime_estimators.jobs.errors import InputError
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tests.support.plans.availability_profile import AvailabilityProfile

CAPACITY = 12
HORIZON = 80
"""Seconds beyond which nothing in the array ends; the last entry stands for all time after it."""

times = st.integers(0, HORIZON)
durations = st.one_of(st.none(), st.integers(0, HORIZON))
widths = st.integers(0, CAPACITY)


class AgainstAnArray(RuleBasedStateMachine):
    taken = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.profile = AvailabilityProfile(CAPACITY)
        self.free = [CAPACITY] * (2 * HORIZON + 1)
        self.now = 0

    def span(self, start: int, duration: int | None) -> range:
        end = len(self.free) if duration is None else start + duration
        return range(max(start, self.now), end)

    @rule(target=taken, start=times, duration=durations, processors=widths)
    def reserve(
        self, start: int, duration: int | None, processors: int
    ) -> tuple[int, int | None, int]:
        span = self.span(start, duration)
        if all(self.free[t] >= processors for t in span):
            self.profile.reserve(start, duration, processors)
            for t in span:
                self.free[t] -= processors
            return start, duration, processors
        before = self.profile.steps()
        with pytest.raises(InputError, match="cannot reserve"):
            self.profile.reserve(start, duration, processors)
        assert self.profile.steps() == before
        return start, 0, 0

    @rule(reservation=consumes(taken))
    def release(self, reservation: tuple[int, int | None, int]) -> None:
        start, duration, processors = reservation
        self.profile.release(start, duration, processors)
        for t in self.span(start, duration):
            self.free[t] += processors

    @rule(start=times, duration=durations, processors=st.integers(1, CAPACITY))
    def refuse_to_release_what_is_free(
        self, start: int, duration: int | None, processors: int
    ) -> None:
        if any(self.free[t] + processors > CAPACITY for t in self.span(start, duration)):
            before = self.profile.steps()
            with pytest.raises(InputError, match="cannot release"):
                self.profile.release(start, duration, processors)
            assert self.profile.steps() == before

    @rule(seconds=st.integers(0, 6))
    def advance(self, seconds: int) -> None:
        self.now = min(self.now + seconds, HORIZON)
        self.profile.advance(self.now)

    @rule()
    def copy(self) -> None:
        original = self.profile
        self.profile = original.copy()
        before = self.profile.steps()
        fit = original.earliest_fit(self.now, 1, 1)
        if fit is not None:
            original.reserve(fit, 1, 1)
        assert self.profile.steps() == before

    @rule(from_time=times, duration=durations, processors=widths)
    def earliest_fit(self, from_time: int, duration: int | None, processors: int) -> None:
        def fits(start: int) -> bool:
            end = len(self.free) if duration is None else start + max(duration, 1)
            return all(f >= processors for f in self.free[start:end])

        starts = range(max(from_time, self.now), len(self.free))
        expected = next((start for start in starts if fits(start)), None)
        assert self.profile.earliest_fit(from_time, duration, processors) == expected

    @rule(start=times, end=st.one_of(st.none(), st.integers(0, 2 * HORIZON)))
    def min_free(self, start: int, end: int | None) -> None:
        start = max(start, self.now)
        stop = len(self.free) if end is None else max(end, start + 1)
        assert self.profile.min_free(start, end) == min(self.free[start:stop])
        assert self.profile.free_at(start) == self.free[start]

    @invariant()
    def steps_are_the_array_without_repetitions(self) -> None:
        changes = [
            (t, self.free[t])
            for t in range(self.now, len(self.free))
            if t == self.now or self.free[t] != self.free[t - 1]
        ]
        assert self.profile.steps() == changes
        assert len(self.profile) == len(changes)
        assert self.profile.now == self.now


AgainstAnArray.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestAgainstAnArray = AgainstAnArray.TestCase


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_profile_of_many_blocks_is_the_array(seed: int) -> None:
    """Far more steps than a block holds, so that blocks split, join and are skipped."""
    random_numbers = random.Random(seed)
    capacity, horizon = 40, 6000
    profile = AvailabilityProfile(capacity)
    free = [capacity] * (horizon + 1)
    taken: list[tuple[int, int, int]] = []
    now = 0

    def check_searches() -> None:
        start, end = sorted(random_numbers.sample(range(now, horizon + 1), 2))
        assert profile.min_free(start, end) == min(free[start:end])
        processors = random_numbers.randint(1, capacity)
        duration = random_numbers.choice([1, 5, 50, 500, 4000])
        fit = profile.earliest_fit(start, duration, processors)
        run = 0
        for t in range(start, horizon + 1):
            run = run + 1 if free[t] >= processors else 0
            if run == duration:
                break
        assert fit == (t - run + 1)

    for step in range(5000):
        grow = step < 3500
        if grow or not taken:
            duration = random_numbers.choice([1, 2, 3, 1000])
            processors = random_numbers.randint(1, 4)
            start = random_numbers.randint(now, horizon - duration)
            if min(free[start : start + duration]) < processors:
                continue
            profile.reserve(start, duration, processors)
            taken.append((start, duration, processors))
            change = -processors
        else:
            start, duration, processors = taken.pop(random_numbers.randrange(len(taken)))
            profile.release(start, duration, processors)
            change = processors
        for t in range(max(start, now), start + duration):
            free[t] += change
        if step % 10 == 0:
            now = min(now + random_numbers.randint(0, 3), horizon - 1001)
            profile.advance(now)
            check_searches()
        if step == 3499:
            assert len(profile) > 3 * 256

    for start, duration, processors in taken:
        profile.release(start, duration, processors)
    assert profile.steps() == [(now, capacity)]


def test_a_new_profile_is_one_step() -> None:
    profile = AvailabilityProfile(4, now=-7)
    assert profile.steps() == [(-7, 4)]
    assert (profile.capacity, profile.now, len(profile)) == (4, -7, 1)


def test_neighbouring_reservations_of_one_height_are_one_step() -> None:
    profile = AvailabilityProfile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(10, 10, 3)
    assert profile.steps() == [(0, 1), (20, 4)]
    profile.release(0, 20, 3)
    assert profile.steps() == [(0, 4)]


def test_full_machine_for_good_leaves_no_fit() -> None:
    profile = AvailabilityProfile(4)
    profile.reserve(100, None, 4)
    assert profile.earliest_fit(0, 100, 4) == 0
    assert profile.earliest_fit(0, 101, 1) is None
    assert profile.earliest_fit(0, None, 1) is None
    assert profile.earliest_fit(0, None, 0) == 0
    profile.release(200, None, 4)
    assert profile.earliest_fit(0, 101, 1) == 200


def test_zero_duration_takes_nothing_and_asks_for_the_moment() -> None:
    profile = AvailabilityProfile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(0, 0, 4)
    assert profile.steps() == [(0, 1), (10, 4)]
    assert profile.earliest_fit(0, 0, 2) == 10
    assert profile.min_free(5, 5) == 1


def test_the_past_is_left_out() -> None:
    profile = AvailabilityProfile(4, now=100)
    profile.reserve(50, 60, 3)
    assert profile.steps() == [(100, 1), (110, 4)]
    assert profile.free_at(0) == 1
    profile.reserve(0, 100, 4)
    assert profile.steps() == [(100, 1), (110, 4)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.reserve(0, 1, 5), "processors is 5: it must be from 0 to 4"),
        (lambda p: p.reserve(0, -1, 1), "duration is -1"),
        (lambda p: p.earliest_fit(2**60, 1, 1), "from_time is"),
        (lambda p: p.advance(-1), "now is -1: it must be from 0"),
        (lambda _: AvailabilityProfile(0), "capacity is 0"),
    ],
)
def test_numbers_out_of_range_are_named(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call(AvailabilityProfile(4))
