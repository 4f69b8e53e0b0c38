"""A log under PBS's scheduler: when cycles are, and what comes of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foretime_sim.reference.pbs.calendar import Placement
from foretime_sim.reference.pbs.cycle import PbsCycles, Running
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.reference.pbs.limits import Counts, why_refused
from foretime_sim.sites.pbs.site import PbsSite

_END, _SUBMIT, _TIMED = range(3)


@dataclass(slots=True)
class PbsRun:
    """What became of jobs; seconds.

    Attributes
    ----------
    start, placement
        By job; who is missing never started.
    start_order
        Numbers of jobs in the order in which they started.
    refused
        Why jobs were refused at their submission.
    top_jobs
        Of each cycle that planned one: when, who, and the start that was planned.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.job import Chunk, PbsJob
    >>> from foretime_sim.reference.pbs.run import run_pbs
    >>> from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
    >>> site = PbsSite((PbsHost("n1", {"ncpus": 4}),), (PbsQueue("workq"),))
    >>> jobs = [PbsJob(i, i, 100, (Chunk(1, {"ncpus": 4}),), walltime_s=200) for i in range(2)]
    >>> run_pbs(site, jobs).start
    {0: 0, 1: 100}
    """

    start: dict[int, int] = field(default_factory=dict)
    placement: dict[int, Placement] = field(default_factory=dict)
    start_order: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    top_jobs: list[tuple[int, int, int]] = field(default_factory=list)


def run_pbs(
    site: PbsSite, jobs: Sequence[PbsJob], happened: Sequence[tuple[str, int]] = ()
) -> PbsRun:
    """Run jobs, in the order of their submission, under a site's scheduler.

    A cycle follows each end and each submission. There is one at the beginning and end of each
    reservation, and one after ``scheduler_iteration`` seconds without, whether anybody waits or not
    (``next_task`` in pbsd_main.c). Where nobody waits or runs, nothing comes of it.

    Parameters
    ----------
    site, jobs
        Times on one clock.
    happened
        In which order ends (``E``) and submissions (``Q``) of jobs happened within seconds, as a
        server's accounting has them. Those that are not there come last, ends before submissions.

    Raises
    ------
    InputError
        If the site or a job is not modelled.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.job import Chunk, PbsJob
    >>> from foretime_sim.reference.pbs.run import run_pbs
    >>> from foretime_sim.sites.pbs.scheduler import PbsScheduler
    >>> from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
    >>> strict = PbsScheduler(strict_ordering=True)
    >>> site = PbsSite((PbsHost("n1", {"ncpus": 4}),), (PbsQueue("workq"),), scheduler=strict)
    >>> asked = [(3, 100), (4, 100), (1, 100)]
    >>> jobs = [
    ...     PbsJob(i, i, seconds, (Chunk(1, {"ncpus": cpus}),), walltime_s=seconds)
    ...     for i, (cpus, seconds) in enumerate(asked)
    ... ]
    >>> run_pbs(site, jobs).start_order
    [0, 1, 2]
    """
    return _Run(site, jobs, happened).go()


class _Run:
    def __init__(
        self, site: PbsSite, jobs: Sequence[PbsJob], happened: Sequence[tuple[str, int]]
    ) -> None:
        self.site, self.jobs = site, {job.index: job for job in jobs}
        self.place = {event: place for place, event in enumerate(happened)}
        begins = min((job.submit_time for job in jobs), default=0)
        self.cycles = PbsCycles(site, begins)
        self.events: list[tuple[int, int, int, int]] = []
        for job in jobs:
            self._add(job.submit_time, _SUBMIT, job.index)
        for reservation in site.reservations:
            self._add(reservation.start, _TIMED, -1)
            self._add(reservation.end, _TIMED, -1)
        for _, dedicated_end in site.dedicated_time:
            # Nothing else may happen until the next cycle after it.
            self._add(dedicated_end + site.server.scheduler_iteration_s, _TIMED, -1)
        self.waiting: list[PbsJob] = []
        self.running: dict[int, Running] = {}
        self.in_queue, self.queued = Counts(), Counts()
        self.run = PbsRun()

    def _add(self, time: int, kind: int, index: int) -> None:
        letter = {_SUBMIT: "Q", _END: "E"}.get(kind, "")
        place = self.place.get((letter, index), len(self.place))
        heapq.heappush(self.events, (time, place, kind, index))

    def go(self) -> PbsRun:
        iteration = self.site.server.scheduler_iteration_s
        last = 0
        while self.events:
            if (self.waiting or self.running) and self.events[0][0] > last + iteration:
                now, kind, index = last + iteration, _TIMED, -1
            else:
                now, _, kind, index = heapq.heappop(self.events)
            if kind == _SUBMIT:
                self._submit(self.jobs[index])
            elif kind == _END:
                self._end(index)
            self._cycle(now, after_end=kind == _END)
            last = now
        return self.run

    def _submit(self, job: PbsJob) -> None:
        refusal = why_refused(self.site, job, self.in_queue, self.queued)
        if refusal is not None:
            self.run.refused[job.index] = refusal
            return
        self.waiting.append(job)
        self.in_queue.add(job, 1)
        self.queued.add(job, 1)

    def _end(self, index: int) -> None:
        del self.running[index]
        self.in_queue.add(self.jobs[index], -1)

    def _cycle(self, now: int, after_end: bool) -> None:
        running = [
            replace(each, exiting=after_end and each.start + each.job.held_s == now)
            for each in self.running.values()
        ]
        decisions = self.cycles.cycle(now, self.waiting, running)
        for job, placement in decisions.started:
            self.run.start[job.index] = now
            self.run.placement[job.index] = placement
            self.run.start_order.append(job.index)
            self.running[job.index] = Running(job, now, placement)
            self.queued.add(job, -1)
            self._add(now + job.held_s, _END, job.index)
        gone = {job.index for job, _ in decisions.started}
        self.waiting = [job for job in self.waiting if job.index not in gone]
        self.run.top_jobs += [(now, job.index, start) for job, start in decisions.top_jobs]
