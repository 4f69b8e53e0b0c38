"""Expected waits over job size and requested time: a map of where a job would start when."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sidecar.forecasts.forecast_board import Board, Waits
from foretime_sidecar.queue.forecast_question import NewJob

TIMES_S = (900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600)


@dataclass(frozen=True, slots=True)
class WaitMap:
    """Waits of jobs of nobody's in particular.

    Attributes
    ----------
    made_at
        Epoch seconds.
    slurm_partition
        Where they would run; ``None``: anywhere on a flat pool.
    sizes, times_s
        Processors, and requested times in seconds.
    median_wait_s, bound_95_s
        By size and time; ``None`` where no such job can run.
    """

    made_at: int
    slurm_partition: str | None
    sizes: tuple[int, ...]
    times_s: tuple[int, ...]
    median_wait_s: Sequence[Sequence[int | None]]
    bound_95_s: Sequence[Sequence[int | None]]


def sizes_of(processors: int) -> tuple[int, ...]:
    """Give the powers of two up to a machine's processors, and these."""
    powers = [2**power for power in range(processors.bit_length()) if 2**power < processors]
    return (*powers, processors)


def mapped(board: Board) -> tuple[str | None, ...]:
    """Give the slurm_partitions that have a map each; on a flat pool ``None``, for all of it."""
    live = board.moment.taken.live
    return (None,) if live is None else tuple(p.name for p in live.machine.slurm_partitions)


def largest_mapped(board: Board, most: int) -> frozenset[str | None]:
    """Give those of `mapped` that have most processors, at most so many; of equals by name."""
    by_size = sorted(mapped(board), key=lambda name: (-_processors(board, name), name or ""))
    return frozenset(by_size[:most])


class MapDrawing:
    """A map that is drawn cell by cell, the small jobs first.

    Parameters
    ----------
    board
        Of its moment; the cells may be forecast by later ones.
    slurm_partition
        One of `mapped`.

    Attributes
    ----------
    looks
        How many looks of the daemon's have given it some time.
    """

    def __init__(self, board: Board, slurm_partition: str | None) -> None:
        self.slurm_partition = slurm_partition
        self._made_at = board.made_at
        self._sizes = sizes_of(_processors(board, slurm_partition))
        self._waits: list[Waits | None] = []
        self._began = time.monotonic()
        self.looks = 0

    @property
    def cells(self) -> tuple[int, int]:
        """How many cells are forecast, of how many."""
        return len(self._waits), len(self._sizes) * len(TIMES_S)

    def remaining_s(self, pause_s: int) -> int | None:
        """Say when it will be done if it goes on as so far; ``None`` before the first cell.

        ``pause_s``: from look to look.
        """
        done, of = self.cells
        if not done:
            return None
        looks = max(self.looks, 1)
        look_s = max(pause_s, (time.monotonic() - self._began) / looks)
        return math.ceil(math.ceil((of - done) * looks / done) * look_s)

    @property
    def next_cell(self) -> NewJob | None:
        """The job that is to be forecast next; ``None``: the map is done."""
        place, of = self.cells
        if place == of:
            return None
        size, time_s = self._sizes[place // len(TIMES_S)], TIMES_S[place % len(TIMES_S)]
        request = JobRequest("", None, None, size, time_s, self._made_at, self.slurm_partition)
        return NewJob(request)

    def add(self, waits: Waits | None) -> None:
        """Take the forecast of `next_cell`."""
        self._waits.append(waits)

    def done(self) -> WaitMap:
        """Give the map."""

        def rows(level: float) -> list[list[int | None]]:
            waits = np.array([np.nan if each is None else each.at(level) for each in self._waits])
            grid = waits.reshape(len(self._sizes), len(TIMES_S))
            # More processors or more time start no sooner: a cell that does is chance.
            filled = np.where(np.isnan(grid), -np.inf, grid)
            for axis in (0, 1):
                filled = np.maximum.accumulate(filled, axis=axis)
            return [
                [None if np.isnan(here) else int(most) for here, most in zip(*both, strict=True)]
                for both in zip(grid.tolist(), filled.tolist(), strict=True)
            ]

        return WaitMap(
            self._made_at, self.slurm_partition, self._sizes, TIMES_S, rows(0.5), rows(0.95)
        )


def _processors(board: Board, slurm_partition: str | None) -> int:
    taken = board.moment.taken
    if slurm_partition is None or taken.live is None:
        return taken.snapshot.machine_processors
    machine = taken.live.machine
    groups = machine.groups_of(machine.partition_index(slurm_partition))
    return sum(machine.node_groups[g].nodes * machine.node_groups[g].cpus for g in groups)
