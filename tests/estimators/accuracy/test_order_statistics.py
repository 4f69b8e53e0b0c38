"""The blocked structure against a plain sorted list."""

from __future__ import annotations

import random

import pytest
from foretime_estimators.accuracy.order_statistics import BLOCK_LENGTH, OrderStatistics
from hypothesis import given
from hypothesis import strategies as st


def plainly(entries: list[tuple[int, int]], target: int) -> int | None:
    """Smallest value whose cumulative weight reaches the target, by adding up."""
    cumulative = 0
    for value, weight in sorted(entries):
        cumulative += weight
        if weight and cumulative >= target:
            return value
    return None


ENTRIES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)))


@given(ENTRIES, st.integers(1, 300))
def test_first_reaching_is_what_adding_up_gives(
    entries: list[tuple[int, int]], target: int
) -> None:
    statistics = OrderStatistics(entries)
    assert statistics.total == sum(weight for _, weight in entries)
    assert statistics.first_reaching(target) == plainly(entries, target)


@given(ENTRIES, ENTRIES)
def test_removing_undoes_adding(kept: list[tuple[int, int]], gone: list[tuple[int, int]]) -> None:
    statistics = OrderStatistics(kept + gone)
    for value, weight in gone:
        statistics.remove(value, weight)
    assert list(statistics) == list(OrderStatistics(kept))
    assert statistics.total == OrderStatistics(kept).total


def test_many_blocks_split_and_merge() -> None:
    draw = random.Random(2)
    statistics = OrderStatistics()
    live: list[tuple[int, int]] = []
    for step in range(40_000):
        growing = step < 15_000 or step % 3 == 0
        if growing or not live:
            entry = (draw.randrange(1_000_000), draw.randrange(1, 100))
            live.append(entry)
            statistics.add(*entry)
        else:
            place = draw.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            statistics.remove(*live.pop())
        if step % 4_000 == 3_999:
            total = sum(weight for _, weight in live)
            assert statistics.total == total
            assert len(statistics) == len({value for value, _ in live})
            for target in (1, total // 3, total * 4 // 5, total):
                assert statistics.first_reaching(target) == plainly(live, target)
            assert statistics.first_reaching(total + 1) is None
    blocks = [len(block) for block in statistics._values]
    assert max(blocks) <= 2 * BLOCK_LENGTH
    assert sum(blocks) / len(blocks) >= BLOCK_LENGTH / 8


def test_an_empty_one_reaches_and_removes_nothing() -> None:
    assert OrderStatistics().first_reaching(0) is None
    with pytest.raises(KeyError, match="value 3"):
        OrderStatistics().remove(3, 1)


def test_more_than_there_is_can_not_be_removed() -> None:
    statistics = OrderStatistics([(3, 2)])
    with pytest.raises(KeyError, match="can't remove 3 of 2 at value 3"):
        statistics.remove(3, 3)
    with pytest.raises(KeyError, match="nothing at value 2"):
        statistics.remove(2, 1)
    with pytest.raises(ValueError, match="negative"):
        statistics.add(3, -1)


def test_weights_of_any_length_stay_exact() -> None:
    statistics = OrderStatistics([(1, 1 << 300), (2, 1)])
    assert statistics.first_reaching(1 << 300) == 1
    assert statistics.first_reaching((1 << 300) + 1) == 2
