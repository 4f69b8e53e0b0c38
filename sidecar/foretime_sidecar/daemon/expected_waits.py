"""Expected waits for monitoring: by slurm_partition and size class, and never many series.

A series is a slurm_partition and a size class. The largest slurm_partitions have their own, all
others are one, of which the longest wait is told; and size classes are in powers of four. So there
are at most `MOST_PARTITIONS` + 1 times as many as the largest machine has classes: 21 x 9 for
65,536 processors. Which are largest hangs on the machine alone, so series do not come and go with
the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from foretime_sidecar.forecasts.wait_map import WaitMap
from foretime_sidecar.plain_beside.account import size_class

MOST_PARTITIONS = 20
OTHERS = "(others)"
"""What stands for all other slurm_partitions; none can be named so."""
LIMIT_S = 4 * 3600
"""Time limit of the jobs that are told of, or the longest below it that can run."""


@dataclass(frozen=True, slots=True)
class ExpectedWait:
    """Of a job of the largest size of a class.

    Attributes
    ----------
    slurm_partition
        Its name, `OTHERS`, or "" for the whole machine.
    size_class
        As `foretime_sidecar.plain_beside.account.size_class`.
    median_s, bound_95_s
        The likely wait, and what 95% do not exceed, seconds.
    """

    slurm_partition: str
    size_class: str
    median_s: int
    bound_95_s: int


def expected_waits(maps: Sequence[WaitMap], own: Collection[str | None]) -> list[ExpectedWait]:
    """Give the waits of some maps, of each slurm_partition the smallest jobs first.

    Parameters
    ----------
    maps
        Those that have been drawn.
    own
        Of which slurm_partitions waits are told; those of all others are put together.
    """
    found, others = [], []
    for one in maps:
        if one.slurm_partition in own:
            found += _of_map(one, one.slurm_partition or "")
        else:
            others += _of_map(one, OTHERS)
    return found + _longest(others)


def _of_map(one: WaitMap, name: str) -> list[ExpectedWait]:
    found: dict[str, ExpectedWait] = {}
    for size, medians, bounds in zip(one.sizes, one.median_wait_s, one.bound_95_s, strict=True):
        for time_s, median_s, bound_s in zip(one.times_s, medians, bounds, strict=True):
            if time_s <= LIMIT_S and median_s is not None and bound_s is not None:
                label = size_class(size)
                found[label] = ExpectedWait(name, label, median_s, bound_s)
    return list(found.values())


def _longest(waits: Iterable[ExpectedWait]) -> list[ExpectedWait]:
    """Give of each size class the longest of the likely waits, and of the bounds."""
    found: dict[str, ExpectedWait] = {}
    for wait in waits:
        known = found.get(wait.size_class, wait)
        found[wait.size_class] = ExpectedWait(
            OTHERS,
            wait.size_class,
            max(known.median_s, wait.median_s),
            max(known.bound_95_s, wait.bound_95_s),
        )
    return sorted(found.values(), key=lambda wait: int(wait.size_class.partition("-")[0]))
