"""What the loops ask of priorities and of limits, and limits that allow everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from foretime_sim.reference.slurm.jobs.job import SlurmJob


class Priorities(Protocol):
    """Priorities of pending jobs; a priority of 0 holds a job."""

    @property
    def next_tick(self) -> int:
        """When `tick` is due."""

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Take up a job."""

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Note that a job runs in `SlurmJob.slurm_partition`, and on what."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Note that a job has ended."""

    def tick(self, now: int) -> None:
        """Work usage and priorities out anew."""

    def priority_of(self, job: SlurmJob, slurm_partition: str, now: int) -> int:
        """Give the priority of a job in a slurm_partition, as the queue has it."""


class Limits(Protocol):
    """Limits of QOS, associations and slurm_partitions; answers are Slurm's words for a reason.

    `SlurmJob.slurm_partition` is the one that is asked about.
    """

    def why_refused(self, job: SlurmJob) -> str | None:
        """Say why a job is refused at submission."""

    def why_not_considered(self, job: SlurmJob, now: int) -> str | None:
        """Say why a job may not be looked at (`acct_policy_job_runnable_pre_select`)."""

    def why_not_started(
        self, job: SlurmJob, tres: Mapping[str, int], now: int, nodes: Iterable[int] = ()
    ) -> str | None:
        """Say why a job may not have so much (`acct_policy_job_runnable_post_select`)."""

    def blocks_lower_jobs(self, reason: str) -> bool:
        """Say whether a job with such a reason blocks its slurm_partition in the main loop."""

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Count a job."""

    def started(
        self, job: SlurmJob, tres: Mapping[str, int], now: int, nodes: Iterable[int] = ()
    ) -> None:
        """Count what a job has."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Count it no longer."""

    def tick(self, now: int) -> None:
        """Work out anew what has been used."""

    def is_killed(self, job: SlurmJob, now: int) -> bool:
        """Say whether a running job is ended for what it, or its group, has used."""

    @property
    def may_kill(self) -> bool:
        """Whether a running job may be ended so."""


class NoLimits:
    """Everything is allowed.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.loops.interfaces import NoLimits
    >>> from foretime_sim.reference.slurm.jobs.job import SlurmJob
    >>> from foretime_sim.workloads.node_request import Request
    >>> job = SlurmJob(0, Request(1, 1, 0, 0, 0, (), 1), ("all",), 0, 9, 60)
    >>> NoLimits().why_refused(job) is None
    True
    """

    def why_refused(self, job: SlurmJob) -> str | None:
        """Refuse nothing."""
        return None

    def why_not_considered(self, job: SlurmJob, now: int) -> str | None:
        """Hold nothing."""
        return None

    def why_not_started(
        self, job: SlurmJob, tres: Mapping[str, int], now: int, nodes: Iterable[int] = ()
    ) -> str | None:
        """Hold nothing."""
        return None

    def blocks_lower_jobs(self, reason: str) -> bool:
        """Block nothing."""
        return False

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Count nothing."""

    def started(
        self, job: SlurmJob, tres: Mapping[str, int], now: int, nodes: Iterable[int] = ()
    ) -> None:
        """Count nothing."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Count nothing."""

    def tick(self, now: int) -> None:
        """Work out nothing."""

    def is_killed(self, job: SlurmJob, now: int) -> bool:
        """End nobody."""
        return False

    @property
    def may_kill(self) -> bool:
        """Nobody."""
        return False
