"""How long a campaign's cells will take: by rough rates at first, then by what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from foretime_sim.campaigns.cells import Cell
from foretime_sim.campaigns.runs import Record

_Kind: TypeAlias = tuple[str, str, str, str]

_US_A_JOB = {"conservative": 30.0, "planning": 60.0}
"""Microseconds of simulation for each job, on one core; others a tenth of that."""
_US_A_JOB_OTHERWISE = 3.0
_US_A_JOB_IN_PYTHON = 200.0
"""Of a policy of the user's own."""
_US_A_JOB_LEARNING = 40.0
"""Of an estimator in the loop, on top."""
_CELL_S = 0.01
_UNKNOWN_JOBS = 50_000


class TimeEstimate:
    """What cells take, seconds; learns from those that have ended.

    Parameters
    ----------
    jobs
        Jobs by log, where they are known.
    """

    def __init__(self, jobs: Mapping[str, int] | None = None) -> None:
        self._jobs = jobs or {}
        self._measured: dict[_Kind, tuple[float, int]] = {}
        self._rough_s, self._real_s = 0.0, 0.0

    def learn(self, cell: Cell, record: Record) -> None:
        """Learn from the record of a cell that was run on a machine like this one."""
        taken_s = record["wall_clock_s"]
        if record["status"] != "done" or taken_s is None:
            return
        total, count = self._measured.get(_kind(cell), (0.0, 0))
        self._measured[_kind(cell)] = (total + taken_s, count + 1)
        self._rough_s += self._rough(cell)
        self._real_s += taken_s

    def of(self, cell: Cell) -> float:
        """Seconds that one worker will need for a cell."""
        if _kind(cell) in self._measured:
            total, count = self._measured[_kind(cell)]
            return total / count
        scale = self._real_s / self._rough_s if self._rough_s else 1.0
        return scale * self._rough(cell)

    def remaining(self, cells: Iterable[Cell], workers: int) -> float:
        """Seconds that so many workers will need for cells."""
        return sum(self.of(cell) for cell in cells) / workers

    def _rough(self, cell: Cell) -> float:
        axes = cell.axes
        jobs = self._jobs.get(axes["log"], _UNKNOWN_JOBS)
        own = ":" in axes["order"] or ":" in axes["backfill"]
        each_us = _US_A_JOB.get(axes["backfill"], _US_A_JOB_OTHERWISE)
        if own:
            each_us = _US_A_JOB_IN_PYTHON
        if axes["learn"] is not None:
            each_us += _US_A_JOB_LEARNING
        return _CELL_S + jobs * each_us / 1e6


def _kind(cell: Cell) -> _Kind:
    axes = cell.axes
    return axes["log"], axes["order"], axes["backfill"], axes["estimator"]


def told(seconds: float) -> str:
    """Write a duration that is an estimate: two digits at most."""
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            value = seconds / size
            return f"{value:.0f} {name}" if value >= 10 else f"{value:.1f} {name}"
    return f"{max(1, round(seconds))} s"
