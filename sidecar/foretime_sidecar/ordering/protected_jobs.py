"""Jobs that wait too long over their start without Foretime: nobody may delay them further.

They hold reservations, as jobs do that have waited for long, and candidates in their
slurm_partitions must fit by the time that they asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from foretime_sidecar.clients.client import QueuedJob


class LateJobs(Protocol):
    """Who knows; `foretime_sidecar.plain_beside.late_jobs.LateJobs`."""

    def late_s(self, job: QueuedJob, now: int) -> int:
        """Give by how many seconds a job is later than it may be; 0 if it is not."""
        ...


@dataclass(frozen=True, slots=True)
class Protected:
    """The late jobs of a look, by identity."""

    late: frozenset[int]
    slurm_partitions: frozenset[str]
    everywhere: bool

    @classmethod
    def of(cls, late: LateJobs | None, waiting: Iterable[QueuedJob], now: int) -> Protected:
        """Find them among the jobs that wait."""
        found = [] if late is None else [job for job in waiting if late.late_s(job, now) > 0]
        return cls(
            frozenset(id(job) for job in found),
            frozenset(
                name for job in found for name in (job.request.queue or "").split(",") if name
            ),
            any(not job.request.queue for job in found),
        )

    def __contains__(self, job: QueuedJob) -> bool:
        return id(job) in self.late

    def is_in(self, slurm_partition: str) -> bool:
        """Whether one of them waits for a slurm_partition."""
        return self.everywhere or slurm_partition in self.slurm_partitions
