"""Priorities, which go by the real clock, for loops that go by the workload's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_sim.reference.slurm.jobs.job import SlurmJob
from foretime_sim.reference.slurm.priorities.priorities import Priorities


class EpochJob:
    """A job with its times in epoch seconds (`PricedJob`)."""

    def __init__(self, job: SlurmJob, epoch: int) -> None:
        self._job, self._epoch = job, epoch

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever kind the job has it in
        return getattr(self._job, name)

    @property
    def submit_time(self) -> int:
        """When it was submitted."""
        return self._job.submit_time + self._epoch

    @property
    def eligible_time(self) -> int | None:
        """Since when only the queue holds it."""
        eligible = self._job.eligible_time
        return None if eligible is None else eligible + self._epoch


class EpochPriorities:
    """`Priorities` on another clock.

    Parameters
    ----------
    priorities
        By epoch seconds.
    epoch
        What to add to a time of the jobs for epoch seconds.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.priorities.epoch_priorities import EpochPriorities
    >>> from foretime_sim.reference.slurm.jobs.job import SlurmJob
    >>> from foretime_sim.reference.slurm.priorities.priorities import Priorities
    >>> from foretime_sim.sites.slurm.priority import SlurmPriority
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> from foretime_sim.workloads.node_request import Request
    >>> site = SlurmSite(Machine.flat(4), priority=SlurmPriority(weight_partition=1000))
    >>> priorities = EpochPriorities(Priorities(site, 1_000_000_000), 1_000_000_000)
    >>> job = SlurmJob(0, Request(1, 1, 0, 0, 0, (), 1), ("all",), 0, 9, 60)
    >>> priorities.submitted(job, 30)
    >>> priorities.priority_of(job, "all", 30)
    1000
    """

    def __init__(self, priorities: Priorities, epoch: int) -> None:
        self._priorities, self._epoch = priorities, epoch
        self._jobs: dict[int, EpochJob] = {}

    @property
    def next_tick(self) -> int:
        """When `tick` is due."""
        return self._priorities.next_tick - self._epoch

    def submitted(self, job: SlurmJob, now: int) -> None:
        """Take up a job."""
        self._jobs[job.index] = EpochJob(job, self._epoch)
        self._priorities.submitted(self._jobs[job.index], now + self._epoch)

    def started(self, job: SlurmJob, tres: Mapping[str, int], now: int) -> None:
        """Note that a job runs in `SlurmJob.slurm_partition`, and on what."""
        epoch_job = self._jobs[job.index]
        self._priorities.started(epoch_job, tres, now + self._epoch, job.slurm_partition)

    def ended(self, job: SlurmJob, now: int) -> None:
        """Note that a job has ended."""
        self._priorities.ended(self._jobs[job.index], now + self._epoch)

    def tick(self, now: int) -> None:
        """Work usage and priorities out anew."""
        self._priorities.tick(now + self._epoch)

    def priority_of(self, job: SlurmJob, slurm_partition: str, now: int) -> int:
        """Give the priority of a job in a slurm_partition, as the queue has it."""
        epoch_job = self._jobs[job.index]
        return self._priorities.priority_of(epoch_job, slurm_partition, now + self._epoch)
