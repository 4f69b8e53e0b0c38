"""Exact weighted order statistics of whole numbers, kept up to date as values come and go."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

BLOCK_LENGTH = 512


class OrderStatistics:
    """A multiset of whole numbers with whole weights, in blocks sorted by value.

    Equal values share one entry. A value is found by bisection of the blocks' last values and then
    of one block, so adding and removing cost a bisection and a short memory move, whatever has
    been added before. Whole weights make every answer exact, whatever the order of adding.
    """

    __slots__ = ("_lasts", "_sums", "_total", "_values", "_weights")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._values: list[list[int]] = []
        self._weights: list[list[int]] = []
        self._lasts: list[int] = []
        self._sums: list[int] = []
        self._total = 0
        for value, weight in entries:
            self.add(value, weight)

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self._total

    def __len__(self) -> int:
        """Count the distinct values."""
        return sum(map(len, self._values))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Give (value, weight) in ascending order of value."""
        for values, weights in zip(self._values, self._weights, strict=True):
            yield from zip(values, weights, strict=True)

    def add(self, value: int, weight: int) -> None:
        """Add ``weight`` (0 does nothing) at ``value``."""
        if weight <= 0:
            if weight < 0:
                raise ValueError(f"weight {weight} at value {value}: a weight can't be negative")
            return
        self._total += weight
        block = bisect_left(self._lasts, value)
        if block == len(self._lasts):
            if block == 0:
                self._values.append([value])
                self._weights.append([weight])
                self._lasts.append(value)
                self._sums.append(weight)
                return
            block -= 1
        values = self._values[block]
        place = bisect_left(values, value)
        self._sums[block] += weight
        if place < len(values) and values[place] == value:
            self._weights[block][place] += weight
            return
        values.insert(place, value)
        self._weights[block].insert(place, weight)
        self._lasts[block] = values[-1]
        if len(values) > 2 * BLOCK_LENGTH:
            self._split(block)

    def remove(self, value: int, weight: int) -> None:
        """Take ``weight`` away at ``value``.

        Raises
        ------
        KeyError
            If there is less than that at ``value``.
        """
        if weight == 0:
            return
        block = bisect_left(self._lasts, value)
        place = bisect_left(self._values[block], value) if block < len(self._lasts) else 0
        if block == len(self._lasts) or self._values[block][place] != value:
            raise KeyError(f"nothing at value {value}")
        weights = self._weights[block]
        left = weights[place] - weight
        if weight < 0 or left < 0:
            raise KeyError(f"can't remove {weight} of {weights[place]} at value {value}")
        self._total -= weight
        self._sums[block] -= weight
        if left:
            weights[place] = left
            return
        del weights[place], self._values[block][place]
        if not weights:
            del self._values[block], self._weights[block], self._lasts[block], self._sums[block]
            return
        self._lasts[block] = self._values[block][-1]
        if len(weights) < BLOCK_LENGTH // 4 and len(self._lasts) > 1:
            self._merge(min(block, len(self._lasts) - 2))

    def first_reaching(self, target: int) -> int | None:
        """Smallest value whose cumulative weight is at least ``target``; ``None`` if none is."""
        if target > self._total or not self._lasts:
            return None
        cumulative = list(accumulate(self._sums))
        block = bisect_left(cumulative, target)
        before = cumulative[block] - self._sums[block]
        within = list(accumulate(self._weights[block]))
        return self._values[block][bisect_left(within, target - before)]

    def _split(self, block: int) -> None:
        values, weights = self._values[block], self._weights[block]
        self._values[block : block + 1] = [values[:BLOCK_LENGTH], values[BLOCK_LENGTH:]]
        self._weights[block : block + 1] = [weights[:BLOCK_LENGTH], weights[BLOCK_LENGTH:]]
        self._refresh(block, block + 1, 2)

    def _merge(self, block: int) -> None:
        self._values[block : block + 2] = [self._values[block] + self._values[block + 1]]
        self._weights[block : block + 2] = [self._weights[block] + self._weights[block + 1]]
        self._refresh(block, block + 2, 1)
        if len(self._values[block]) > 2 * BLOCK_LENGTH:
            self._split(block)

    def _refresh(self, start: int, stop: int, blocks: int) -> None:
        """Recompute the last values and sums where blocks start..stop became ``blocks`` blocks."""
        fresh = range(start, start + blocks)
        self._lasts[start:stop] = [self._values[block][-1] for block in fresh]
        self._sums[start:stop] = [sum(self._weights[block]) for block in fresh]
