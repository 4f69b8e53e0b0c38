"""Jobs that wait too long over their start without Foretime: nobody goes before them who may not.

The one that is latest is planned before all others, so that it holds the reservation of its
slurm_partitions; candidates there must fit before it by the time that they asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from foretime_sidecar.clients.client import QueuedJob

_BEFORE_ALL = 2**40  # priorities of Slurm have 32 bits


class LateJobs(Protocol):
    """Who knows; `foretime_sidecar.plain_beside.late_jobs.LateJobs`."""

    def late_s(self, job: QueuedJob, now: int) -> int:
        """Give by how many seconds a job is later than it may be; 0 if it is not."""
        ...


@dataclass(frozen=True, slots=True)
class Protected:
    """The late jobs of a look, with how late each is, by identity."""

    late_s: dict[int, int]
    slurm_partitions: frozenset[str]
    everywhere: bool

    @classmethod
    def of(cls, late: LateJobs | None, waiting: Iterable[QueuedJob], now: int) -> Protected:
        """Find them among the jobs that wait."""
        late_s: dict[int, int] = {}
        names: set[str] = set()
        everywhere = False
        for job in waiting:
            by_s = 0 if late is None else late.late_s(job, now)
            if by_s > 0:
                late_s[id(job)] = by_s
                names.update(filter(None, (job.request.queue or "").split(",")))
                everywhere = everywhere or not job.request.queue
        return cls(late_s, frozenset(names), everywhere)

    def priority(self, job: QueuedJob, own: int) -> int:
        """Give the priority that a job is planned by."""
        by_s = self.late_s.get(id(job))
        return own if by_s is None else _BEFORE_ALL + by_s

    def is_in(self, slurm_partition: str) -> bool:
        """Whether one of them waits for a slurm_partition."""
        return self.everywhere or slurm_partition in self.slurm_partitions
