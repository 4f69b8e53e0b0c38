"""A job as limits see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class LimitedJob(Protocol):
    """What limits need to know of a job.

    Attributes
    ----------
    index
        Its place in the order of submission.
    user, account, qos
        ``None``: not said; then the user's default account, and the default QOS.
    slurm_partitions
        Where it may run; at least one.
    slurm_partition
        The one that it is tried in or runs in; ``None``: the first of them.
    time_limit_s
        As it stands (while backfill tests a job under soft limits, its least time); Slurm counts
        whole minutes, rounded up.
    tres
        What it asks for: ``cpu``, ``mem`` (MiB), ``node``, ``gres/gpu``; ``billing`` is worked out.
    licenses
        How many of each.
    array, array_most_running
        Which array it is a task of, and how many of that may run (``--array=..%N``); ``None``: of
        none; 0: any number.
    """

    @property
    def index(self) -> int:
        """Place in the order of submission."""

    @property
    def user(self) -> str | None:
        """Whose it is."""

    @property
    def account(self) -> str | None:
        """``--account``."""

    @property
    def qos(self) -> str | None:
        """``--qos``."""

    @property
    def slurm_partitions(self) -> tuple[str, ...]:
        """Where it may run."""

    @property
    def slurm_partition(self) -> str | None:
        """Where it is tried or runs."""

    @property
    def time_limit_s(self) -> int:
        """Its time limit."""

    @property
    def tres(self) -> Mapping[str, int]:
        """What it asks for."""

    @property
    def licenses(self) -> Mapping[str, int]:
        """``--licenses``."""

    @property
    def array(self) -> str | None:
        """Its job array."""

    @property
    def array_most_running(self) -> int:
        """``%N`` of it."""
