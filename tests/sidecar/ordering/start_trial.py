"""Jobs that start at once, written a second time: on numpy and for one pool, without the daemon.

What `foretime replay --queue-order start-now` says of a log takes some 20 times as long.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import simulate_with_estimator
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload

from tests.sidecar.ordering.looked_at_run import LookedAtRun

LOOK_S, HEAD_DELAY_S, PROTECT_AFTER_S, AGEING_S = 30, 1800, 43_200, 36_000
MOST_LATE_S, MOST_BEHIND_S = 900, 21_600
MOST_PROTECTED = 50
WHOLLY_LATE_S = 10_800
_OVERRUN_S = 60
_ABOVE = 10**7
_TAU_S = 10


class Trial(LookedAtRun):
    """One run of a log whose jobs are started at once.

    What is expected of a job is what was known at its submission in a run of EASY that lets the
    same jobs first, which takes seconds: nearly the same jobs have ended by then.

    Parameters
    ----------
    workload
        On one pool.
    learns
        Whether jobs that end are learned; otherwise all are expected to take what they ask for.
    look_s, head_delay_s, protect_after_s
        The daemon's settings.
    estimator
        What says what is expected.
    plain_start, most_late_s, most_behind_s
        When jobs start without Foretime, how much later one may be before it is protected, and how
        much work such jobs may have, in seconds of the whole machine, before nobody else is raised;
        ``None``: jobs are protected by their waits (`protect_after_s`).
    """

    def __init__(
        self,
        workload: Workload,
        *,
        learns: bool = True,
        look_s: int = LOOK_S,
        head_delay_s: int = HEAD_DELAY_S,
        protect_after_s: int = PROTECT_AFTER_S,
        estimator: str = "expected",
        plain_start: Int64Array | None = None,
        most_late_s: int = MOST_LATE_S,
        most_behind_s: int = MOST_BEHIND_S,
    ) -> None:
        assert isinstance(workload.machine, Machine)
        policy = Policy(backfill=Slurm(SlurmSite(workload.machine)))
        super().__init__(workload, policy, workload.machine, look_s)
        self.head_delay_s, self.protect_after_s = head_delay_s, protect_after_s
        self.protected_from = workload.submit_time + protect_after_s
        self.plain_start, self.most_behind_s = plain_start, most_behind_s
        if plain_start is not None:
            self.protected_from = plain_start + most_late_s
        self.order, self.fits = self.asked, self.asked
        if learns:
            self.order, self.fits = expected_times(workload, estimator)
        self.raised: set[int] = set()
        self.promised: dict[int, int] = {}

    def _submit(self, job: int) -> None:
        self.engine.submit(
            self.now,
            int(self.processors[job]),
            self.runtimes[job],
            int(self.asked[job]),
            resources=job_resources(self.workload, job),
        )

    def _look(self) -> None:
        starts = self._plan()
        for place, job in enumerate(starts):
            self.engine.update(job, site_factor=_ABOVE - place)
        for job in self.raised - set(starts):
            if job in self.waiting:
                self.engine.update(job, site_factor=0)
        self.raised = set(starts)

    def _plan(self) -> list[int]:
        """Give who should start now, first to last."""
        jobs = np.fromiter(self.waiting, np.int64, len(self.waiting))
        running = np.fromiter(self.running, np.int64, len(self.running))
        free = self.workload.machine_processors - int(self.processors[running].sum())
        taken = np.cumsum(self.processors[jobs])
        blocked = np.flatnonzero(taken > free)
        if not len(blocked):
            return []
        first, others = jobs[: blocked[0]], jobs[blocked[0] + 1 :]
        head, left = int(jobs[blocked[0]]), free - int(self.processors[first].sum())
        fitting = self.processors[others] <= left
        if head in self.promised and not fitting.any():
            return []
        ends = np.maximum(self.start[running] + self.asked[running], self.now + _OVERRUN_S)
        profile = Profile(self.now, free, ends, self.processors[running])
        for job in first.tolist():
            profile.take(self.now, int(self.asked[job]), int(self.processors[job]))
        shadow = profile.reserve(int(self.asked[head]), int(self.processors[head]))
        late_s = max(self.now - self.promised.setdefault(head, shadow), 0)
        share = min(late_s / self.head_delay_s, 1.0)
        waited = self.now - self.workload.submit_time[others]
        key = np.maximum(np.rint(self.order[others] / (1 + waited / AGEING_S)), 1)
        starts: list[tuple[float, int]] = []
        old = np.flatnonzero(self.now >= self.protected_from[others])[:MOST_PROTECTED]
        share = max(share, self._late_by(others[old]))
        need = self.fits[others] + np.rint((self.asked[others] - self.fits[others]) * share)
        if self.protect_after_s and len(old):
            need[old] = self.asked[others[old]]
            reserved, behind = 0, np.setdiff1d(np.arange(len(others)), old)
            for place in chain(old.tolist(), behind.tolist()):
                if reserved == len(old):
                    break
                fitting[place] = False
                job = int(others[place])
                if profile.reserve(int(need[place]), int(self.processors[job])) == self.now:
                    starts.append((key[place], job))
                else:
                    reserved += 1
        if self._is_behind(jobs):
            fitting &= self.now >= self.protected_from[others]
        candidates = np.flatnonzero(fitting)
        for place in candidates[np.argsort(key[candidates], kind="stable")].tolist():
            job = int(others[place])
            if profile.begin(self.now + int(need[place]), int(self.processors[job])):
                starts.append((key[place], job))
            if not profile.free[0]:
                break
        return [job for _, job in sorted(starts)]

    def _late_by(self, jobs: Int64Array) -> float:
        """Give how late jobs are that are protected and need over half of the machine."""
        if self.plain_start is None or not len(jobs):
            return 0.0
        late = np.clip((self.now - self.protected_from[jobs]) / WHOLLY_LATE_S, 0, 1)
        return float(
            (late * (2 * self.processors[jobs] / self.workload.machine_processors - 1)).max()
        )

    def _is_behind(self, waiting: Int64Array) -> bool:
        """Whether jobs that would have started without Foretime have too much work."""
        if self.plain_start is None:
            return False
        behind = waiting[self.now >= self.plain_start[waiting]]
        work = float((self.fits[behind] * self.processors[behind]).sum())
        return work > self.most_behind_s * self.workload.machine_processors


class Profile:
    """How many processors are free from when on."""

    def __init__(self, now: int, free: int, ends: Int64Array, sizes: Int64Array) -> None:
        in_order = np.argsort(ends, kind="stable")
        room = free + np.cumsum(sizes[in_order])
        at, first = np.unique(ends[in_order][::-1], return_index=True)
        self.at = np.concatenate([[now], at])
        self.free = np.concatenate([[free], room[::-1][first]])

    def begin(self, end: int, size: int) -> bool:
        """Have a job run from now on until then, after all reservations, if it can."""
        free = self.free[: np.searchsorted(self.at, end)]
        if free.min() < size:
            return False
        free -= size  # all that come later begin now, too: what is free behind the end never counts
        return True

    def take(self, start: int, duration: int, size: int) -> None:
        """Have a job run then."""
        for moment in (start, start + duration):
            place = int(np.searchsorted(self.at, moment))
            if place == len(self.at) or self.at[place] != moment:
                self.at = np.insert(self.at, place, moment)
                self.free = np.insert(self.free, place, self.free[place - 1])
        self.free[slice(*np.searchsorted(self.at, (start, start + duration)))] -= size

    def reserve(self, duration: int, size: int) -> int:
        """Have a job run as early as it can; give when that is."""
        narrow = np.append(np.flatnonzero(self.free < size), len(self.at))
        until = narrow[np.searchsorted(narrow, np.arange(len(self.at)))]
        ends = np.append(self.at, np.iinfo(np.int64).max)[until]
        fits = (self.free >= size) & (ends - self.at >= duration)
        start = int(self.at[np.argmax(fits)])
        self.take(start, duration, size)
        return start


def expected_times(workload: Workload, estimator: str) -> tuple[Int64Array, Int64Array]:
    """Give by what candidates are put in order, and what they must fit by."""
    policy = Policy(backfill=Easy(candidates=Candidates.WSPT), roles=Roles.parse("111"))
    flat = replace(workload, machine=None, requests=None)
    run = simulate_with_estimator(flat, policy, parse_estimator(estimator))
    assert run.role_times is not None
    asked = workload.requested_time
    order, fits = run.role_times.queue, run.role_times.backfill
    return (asked if order is None else order), (asked if fits is None else fits)


def figures(workload: Workload, start: Int64Array) -> Float64Array:
    """Give mean wait, mean bounded slowdown, p99, p99.9 and longest wait."""
    wait = start - workload.submit_time
    ran = np.minimum(workload.actual_runtime, workload.requested_time)
    slowdown = np.maximum((wait + ran) / np.maximum(ran, _TAU_S), 1)
    tails = np.quantile(wait, [0.99, 0.999, 1.0])
    return np.array([wait.mean(), slowdown.mean(), *tails])


def plain(workload: Workload, reservations: int = 0) -> Int64Array:
    """Give when jobs start without Foretime."""
    assert isinstance(workload.machine, Machine)
    parameters = SlurmParameters(bf_job_part_count_reserve=reservations)
    site = SlurmSite(workload.machine, parameters=parameters)
    return simulate(workload, Policy(backfill=Slurm(site))).start_time
