"""Slurm's releases as numbers to compare."""

from __future__ import annotations

import re

SOFT_LIMIT_SINCE = (23, 11)
"""The first release with ``SchedulerParameters=time_min_as_soft_limit``."""


def slurm_release(version: str) -> tuple[int, ...]:
    """Give a version such as "22.05.8" as numbers, (22, 5, 8); without any it is older than all."""
    return tuple(int(part) for part in re.findall(r"\d+", version, re.ASCII))
