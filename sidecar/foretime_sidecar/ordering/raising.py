"""What jobs have of priority without us, and the site factors that raise some above all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.queue.site_factors import name_of

_ABOVE = 1000  # the rest: other factors drift between two looks
_HIGHEST = 2_000_000_000  # Slurm keeps a site factor in 31 bits


class SeenFactors:
    """The site factors of pending jobs, and which of them are ours.

    Parameters
    ----------
    factors
        Of the jobs that Slurm weighs, by name; of an array under its own number.
    ours
        What we gave jobs, and what stood there before.
    """

    def __init__(self, factors: Mapping[str, int], ours: Mapping[str, Mapping[int, int]]) -> None:
        self._factors = factors
        self._ours = ours

    def own_priority(self, job: QueuedJob) -> int:
        """Give a job's priority without what we added to it."""
        return job.priority - self.own_part(job)

    def own_part(self, job: QueuedJob) -> int:
        """Give what of a job's site factor is ours; what we last gave where it does not show."""
        ours = self._ours.get(job.request.job_id)
        if not ours:
            return 0
        factor = self._factors.get(job.request.job_id)
        if factor is None:
            return max(ours)
        return factor - ours[factor] if factor in ours else 0

    def is_weighed(self, job: QueuedJob) -> bool:
        """Whether Slurm works out a job's priority: not if somebody has fixed that."""
        return self._factor_of(job) is not None

    def is_free(self, job: QueuedJob) -> bool:
        """Whether Slurm weighs a job, and nobody else has given it a site factor."""
        return self._factor_of(job) in (0, self.own_part(job))

    def _factor_of(self, job: QueuedJob) -> int | None:
        factor = self._factors.get(job.request.job_id)
        return self._factors.get(name_of(job)) if factor is None else factor

    def above_all(
        self, starts: Sequence[QueuedJob], waiting: Sequence[QueuedJob]
    ) -> dict[str, int]:
        """Give the site factors that put jobs before all others that Slurm weighs, in this order.

        One that stands above the others already keeps its factor. Of an array the first task has
        one. Who has a fixed priority above that stays before them.
        """
        if not starts:
            return {}
        weighed = [self.own_priority(job) for job in waiting if self.is_weighed(job)]
        top = max(weighed, default=0)
        wanted = {}
        for place, job in enumerate(starts):
            own, base = self.own_part(job), self.own_priority(job)
            if not own or base + own <= top:
                own = min(top + _ABOVE + len(starts) - place - base, _HIGHEST)
            wanted[raised_name(job)] = own
        return wanted


def raised_name(job: QueuedJob) -> str:
    """Give the name under which a job is raised: of an array its first task's."""
    return job.task_ids[0] if job.tasks > 1 else job.request.job_id
