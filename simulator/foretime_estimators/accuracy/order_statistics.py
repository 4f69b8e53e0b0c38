"""Exact weighted order statistics of whole numbers, kept up to date as values come and go."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

BLOCK_LENGTH = 512
_FEW = 8
"""Where so many times as many are there already, each is put in its place by itself."""


class OrderStatistics:
    """A multiset of whole numbers with whole weights, in blocks sorted by value.

    Equal values share one entry. A value is found by bisection of the blocks' last values and then
    of one block, so removing costs a bisection and a short memory move, whatever has been added
    before. What is added is put in its place when somebody asks: of a history that is learned at
    once, all together. Whole weights make every answer exact, whatever the order of adding.
    """

    __slots__ = ("_added", "_lasts", "_sums", "_total", "_values", "_weights")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._values: list[list[int]] = []
        self._weights: list[list[int]] = []
        self._lasts: list[int] = []
        self._sums: list[int] = []
        self._total = 0
        self._added: dict[int, int] = {}  # weights by value that are in no block yet
        for value, weight in entries:
            self.add(value, weight)

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self._total

    def __len__(self) -> int:
        """Count the distinct values."""
        self._place_added()
        return sum(map(len, self._values))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Give (value, weight) in ascending order of value."""
        self._place_added()
        for values, weights in zip(self._values, self._weights, strict=True):
            yield from zip(values, weights, strict=True)

    def add(self, value: int, weight: int) -> None:
        """Add ``weight`` (0 does nothing) at ``value``."""
        if weight <= 0:
            if weight < 0:
                raise ValueError(f"weight {weight} at value {value}: a weight can't be negative")
            return
        self._total += weight
        self._added[value] = self._added.get(value, 0) + weight

    def _place_added(self) -> None:
        added = self._added
        if not added:
            return
        self._added = {}
        if len(added) * _FEW < sum(map(len, self._values)):
            for value, weight in added.items():
                self._place(value, weight)
            return
        for value, weight in self:
            added[value] = added.get(value, 0) + weight
        values = sorted(added)
        starts = range(0, len(values), BLOCK_LENGTH)
        self._values = [values[start : start + BLOCK_LENGTH] for start in starts]
        self._weights = [[added[value] for value in block] for block in self._values]
        self._lasts = [block[-1] for block in self._values]
        self._sums = [sum(block) for block in self._weights]

    def _place(self, value: int, weight: int) -> None:
        block = min(bisect_left(self._lasts, value), len(self._lasts) - 1)
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
        self._place_added()
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
        self._place_added()
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
