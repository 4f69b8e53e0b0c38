"""Expected waits over job size and requested time: a map of where a job would start when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foretime_estimators.jobs import JobRequest

from foretime_sidecar.forecast_board import Board, NewJobForecast
from foretime_sidecar.queue_moment import NewJob

TIMES_S = (900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600)


@dataclass(frozen=True, slots=True)
class WaitMap:
    """Waits of jobs of nobody's in particular.

    Attributes
    ----------
    made_at
        Epoch seconds.
    slurm_partition
        Where they would run; ``None``: wherever there is room, as far as is modelled.
    sizes, times_s
        Processors, and requested times in seconds.
    median_wait_s, bound_95_s
        By size and time; ``None`` where nothing can be said.
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


def map_cells(processors: int, slurm_partition: str | None, now: int) -> list[NewJob]:
    """Give the jobs that a map asks about, size by size."""
    return [
        NewJob(JobRequest("", None, None, size, time_s, now, slurm_partition))
        for size in sizes_of(processors)
        for time_s in TIMES_S
    ]


def map_of(
    board: Board, slurm_partition: str | None, forecasts: Sequence[NewJobForecast]
) -> WaitMap:
    """Give the map from the forecasts of `map_cells`."""
    processors = board.moment.taken.snapshot.machine_processors

    def rows(level: float) -> list[list[int | None]]:
        waits = [None if each.waits is None else each.waits.at(level) for each in forecasts]
        width = len(TIMES_S)
        return [waits[first : first + width] for first in range(0, len(waits), width)]

    return WaitMap(
        board.made_at, slurm_partition, sizes_of(processors), TIMES_S, rows(0.5), rows(0.95)
    )
