"""A campaign's failed cells by cause, so that one mistake is told once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from foretime_sim.campaigns.runs import Record

# Not those behind a letter, a point or a colon: a file's name, its line.
_NUMBER = re.compile(r"(?<![\w.:])-?\d[\w.,:+-]*")


class Cause(NamedTuple):
    """Cells that failed alike.

    Attributes
    ----------
    cells
        How many.
    example
        Record of the first.
    """

    cells: int
    example: Record


def causes(failed: Iterable[Record]) -> list[Cause]:
    """Group records of failed cells; errors that differ only in numbers (times, jobs) are one."""
    groups: dict[str, list[Record]] = {}
    for record in failed:
        groups.setdefault(_NUMBER.sub("#", record["error"]), []).append(record)
    return [Cause(len(group), group[0]) for group in groups.values()]
