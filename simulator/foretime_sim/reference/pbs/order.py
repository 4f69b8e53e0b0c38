"""Who is looked at next: the queue's order (sort.cpp and ``next_job`` in fifo.cpp of OpenPBS)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from itertools import groupby

from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsQueue


class QueueOrder:
    """Goes through the jobs of a cycle, each once.

    Parameters
    ----------
    queues
        In the server's order.
    waiting
        Jobs.
    scheduler, fair_share
        What they are sorted by; no tree without fair share.
    values
        Of job_sort_formula by job; 0 where there is none.
    """

    def __init__(
        self,
        queues: Sequence[PbsQueue],
        waiting: Sequence[PbsJob],
        scheduler: PbsScheduler,
        fair_share: FairShare,
        values: Mapping[int, float],
    ) -> None:
        self.settings = scheduler
        self.fair_share = fair_share
        self.values = values
        by_priority = scheduler.by_queue or scheduler.round_robin
        self.queues = sorted(queues, key=lambda queue: -queue.priority) if by_priority else queues
        self.jobs = list(waiting)
        self.done: set[int] = set()
        self._last_queue = 0
        self._last_level = 0
        self.sort()

    def sort(self) -> None:
        """Sort all anew (``sort_jobs``): at the start, and under fair share when usage changes."""
        self.jobs.sort(key=cmp_to_key(self._compare))

    def drop(self, which: Callable[[PbsJob], bool]) -> None:
        """Leave jobs out of the rest of the cycle."""
        self.done |= {job.index for job in self.jobs if which(job)}

    def next(self) -> PbsJob | None:
        """Give the next job that has not been looked at."""
        if self.settings.round_robin:
            found = self._in_turn()
        elif self.settings.by_queue:
            found = next((job for q in self.queues if (job := self._first(q)) is not None), None)
        else:
            found = next((job for job in self.jobs if job.index not in self.done), None)
        if found is not None:
            self.done.add(found.index)
        return found

    def _first(self, queue: PbsQueue) -> PbsJob | None:
        return next(
            (job for job in self.jobs if job.queue == queue.name and job.index not in self.done),
            None,
        )

    def _in_turn(self) -> PbsJob | None:
        """One job of each queue in turn among those of one priority, then the next priority."""
        levels = [list(same) for _, same in groupby(self.queues, key=lambda q: q.priority)]
        while self._last_level < len(levels):
            queues = levels[self._last_level]
            # Looks once at each queue, from the one after the last; an empty round ends the level.
            for _ in range(2 * len(queues)):
                queue = queues[self._last_queue]
                self._last_queue = (self._last_queue + 1) % len(queues)
                found = self._first(queue)
                if found is not None:
                    return found
            self._last_queue = 0
            self._last_level += 1
        return None

    def _compare(self, one: PbsJob, other: PbsJob) -> int:
        """``cmp_sort``: the formula, fair share, job_sort_key, and the time of submission."""
        value, others = self.values.get(one.index, 0.0), self.values.get(other.index, 0.0)
        if value != others:
            return -1 if value > others else 1
        if self.settings.fair_share:
            first = self.fair_share.compare(one, other)
            if first:
                return first
        for key, high in self.settings.job_sort_key:
            mine, its = self._amount(one, key), self._amount(other, key)
            if mine != its:
                return -1 if (mine > its) == high else 1
        return one.index - other.index

    def _amount(self, job: PbsJob, key: str) -> float:
        if key == "job_priority":
            return job.priority
        if key == "fair_share_perc":
            return self.fair_share.entity_of(job).part
        return job.list.get(key, 0)
