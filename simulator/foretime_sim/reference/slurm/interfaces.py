"""What the loops ask of priorities and of limits, and the plainest of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from foretime_sim.reference.slurm.job import SlurmJob

TOP_PRIORITY = 0xFFFF0000
"""Of the first job under priority/basic, plus 1 (slurmctld.h)."""
NO_TICK = 2**62
"""When nothing ever has to be worked out anew."""


class Priorities(Protocol):
    """Priorities of pending jobs; a priority of 0 holds a job."""

    next_tick: int

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Take up a job."""

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Note that a job runs, and on what."""

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

    def why_not_started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> str | None:
        """Say why a job may not have so much (`acct_policy_job_runnable_post_select`)."""

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Count a job."""

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Count what a job has."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Count it no longer."""


class BasicPriorities:
    """priority/basic: each job one below the lowest so far, less its nice value.

    `priority_p_set` (plugins/priority/basic) and `set_job_prio` (job_mgr.c): a nice value lowers
    those who come later, too.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.interfaces import BasicPriorities
    >>> from foretime_sim.reference.slurm.job import SlurmJob
    >>> from foretime_sim.workloads.node_request import Request
    >>> one, two = (SlurmJob(n, Request(1, 1, 0, 0, 0, (), 1), ("all",), n, 9, 60) for n in (0, 1))
    >>> priorities = BasicPriorities()
    >>> priorities.submitted(one, 0)
    >>> priorities.submitted(two, 1)
    >>> priorities.priority_of(one, "all", 1) - priorities.priority_of(two, "all", 1)
    1
    """

    def __init__(self) -> None:
        self.lowest = TOP_PRIORITY
        self.priority: dict[int, int] = {}
        self.next_tick = NO_TICK

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Take up a job."""
        priority = self.lowest - 1 if self.lowest >= 2 else 1
        if job.nice <= 0 or priority > job.nice + 1:
            priority -= job.nice
        self.priority[job.index] = max(priority, 1)
        self.lowest = min(self.lowest, self.priority[job.index])

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Nothing changes."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Nothing changes."""

    def tick(self, now: int) -> None:
        """Nothing is worked out anew."""

    def priority_of(self, job: SlurmJob, slurm_partition: str, now: int) -> int:
        """Give the priority of a job, the same in each slurm_partition."""
        return self.priority[job.index]


class NoLimits:
    """Everything is allowed.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.interfaces import NoLimits
    >>> from foretime_sim.reference.slurm.job import SlurmJob
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

    def why_not_started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> str | None:
        """Hold nothing."""
        return None

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Count nothing."""

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Count nothing."""

    def ended(self, job: SlurmJob, now: int) -> None:
        """Count nothing."""
