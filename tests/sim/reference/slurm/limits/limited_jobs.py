"""Jobs for tests of limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """A job as limits see it."""

    index: int
    user: str | None = "ann"
    account: str | None = None
    qos: str | None = None
    slurm_partitions: tuple[str, ...] = ("all",)
    slurm_partition: str | None = None
    time_limit_s: int = 600
    tres: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "mem": 100, "node": 1})
    licenses: Mapping[str, int] = field(default_factory=dict)
    array: str | None = None
    array_most_running: int = 0
