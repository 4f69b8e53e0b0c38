"""The queue of a loop: pending jobs that may be looked at, once for each of their partitions."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_sim.reference.slurm.jobs.job import SlurmJob
from foretime_sim.reference.slurm.loops.controller import Controller


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A job in one of its slurm_partitions (`job_queue_rec_t`).

    Attributes
    ----------
    number
        Index of the slurm_partition among the job's choices.
    priority
        As it was when the queue was built.
    """

    job: SlurmJob
    number: int
    priority: int

    @property
    def partition_index(self) -> int:
        """The slurm_partition."""
        return self.job.request.choices[self.number].slurm_partition


def build_job_queue(controller: Controller) -> list[QueueRecord]:
    """Collect and sort the jobs that a loop looks at.

    `build_job_queue` and `sort_job_queue2` (job_scheduler.c): not held, independent, in a
    slurm_partition that starts jobs; those in reservations first, then by PriorityTier, priority,
    submission, and job id. Preemptors before those that they may preempt: there is no preemption
    here.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.loops.controller import Controller
    >>> from foretime_sim.reference.slurm.loops.interfaces import NoLimits
    >>> from foretime_sim.reference.slurm.priorities.priorities import Priorities
    >>> from foretime_sim.reference.slurm.loops.queue import build_job_queue
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(Machine.flat(8))
    >>> build_job_queue(Controller(site, (), Priorities(site, 0), NoLimits(), epoch=0))
    []
    """
    records = []
    for job in sorted(controller.pending, key=lambda job: job.index):
        if not controller.is_independent(job):
            continue
        for number, choice in enumerate(job.request.choices):
            name = controller.partition_name(choice.slurm_partition)
            if controller.site.rules_of(name).state in ("DOWN", "INACTIVE"):
                controller.refuse(job, "PartitionDown")
                continue
            priority = controller.priority(job, number)
            if priority > 0:
                records.append(QueueRecord(job, number, priority))

    def place(record: QueueRecord) -> tuple[int, int, int, int, int]:
        tier = controller.machine.slurm_partitions[record.partition_index].priority_tier
        job = record.job
        in_reservation = 0 if job.reservation is not None else 1
        return (in_reservation, -tier, -record.priority, job.submit_time, job.index)

    return sorted(records, key=place)


@dataclass(slots=True)
class RejectedArray:
    """The job array whose first waiting task was rejected: its other tasks are passed over.

    `reject_array_job` and so on, in both loops.
    """

    key: tuple[str, int, str | None] | None = None

    def passes_over(self, record: QueueRecord) -> bool:
        """Whether a task is passed over; it is rejected until it is cleared."""
        job = record.job
        if job.array is None:
            return False
        key = (job.array, record.partition_index, job.reservation)
        if key == self.key:
            return True
        self.key = key
        return False

    def clear(self) -> None:
        """Forget it: the task could start, or was planned."""
        self.key = None
