"""Indices of job arrays as Slurm and PBS write them: "1-5,8,10-20:2"."""

from __future__ import annotations

import re

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(0*[1-9]\d{0,8}))?)?", re.ASCII)


def index_ranges(indices: str) -> list[range | None]:
    """Read each part of a list of indices; ``None`` for what is none."""
    matches = (_RANGE.fullmatch(part.strip()) for part in indices.split(","))
    return [
        None
        if match is None
        else range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))
        for match in matches
    ]


def count_indices(indices: str) -> int:
    """Count the indices of a list; parts that are none count nothing."""
    return sum(len(part) for part in index_ranges(indices) if part is not None)
