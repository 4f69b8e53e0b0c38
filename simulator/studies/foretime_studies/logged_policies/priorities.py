"""Slurm's priorities of a log's pending jobs, worked out of what has run until then.

A log names users and projects, and no shares: every project has the same, and every user of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.snapshot import PendingJobs
from foretime_sim.reference.slurm.priorities.factors import FactorsOfJobs
from foretime_sim.reference.slurm.priorities.fair_share import FairShare
from foretime_sim.sites.slurm.accounts import ROOT, Accounts
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class _LoggedJob:
    """What factors need to know of a job (`factors.PricedJob`)."""

    user: str | None
    account: str | None
    slurm_partitions: tuple[str, ...]
    submit_time: int
    time_limit_s: int
    tres: Mapping[str, int]
    index: int = 0
    qos: str | None = None
    nice: int = 0
    site_factor: int = 0

    @property
    def eligible_time(self) -> int | None:
        return self.submit_time


def with_people(site: SlurmSite, workload: Workload) -> SlurmSite:
    """Give the site with an account for each project of the log, and users with equal shares."""
    users, projects = (
        [None] * len(workload) if labels is None else labels.by_job()
        for labels in (workload.users, workload.projects)
    )
    pairs = sorted(
        {
            (project or user, user)
            for user, project in zip(users, projects, strict=True)
            if user is not None
        }
    )
    accounts = (Association(account, shares=1) for account in sorted({pair[0] for pair in pairs}))
    members = (Association(account, user=user, shares=1) for account, user in pairs)
    return replace(site, associations=(Association(ROOT, shares=1), *accounts, *members))


class LoggedPriorities:
    """Priorities of pending jobs at moments of a log, told of starts and ends in their order."""

    def __init__(
        self,
        site: SlurmSite,  # with its people (`with_people`)
    ) -> None:
        self._settings = site.priority
        self._factors = FactorsOfJobs(site)
        self._fair_share = FairShare(site)
        self._accounts = Accounts(site)
        # Association, processors, and until when its usage is charged.
        self._running: dict[str, tuple[int, int, int]] = {}
        self._zero: int | None = None

    def started(self, job: JobRequest, start_time: int) -> None:
        """Charge from now on."""
        if self._zero is None:
            self._zero = start_time
        place = self._place_of(job)
        if place is not None:
            self._running[job.job_id] = (place, job.processors, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Charge the rest."""
        self._charge(job.request.job_id, job.end_time)
        self._running.pop(job.request.job_id, None)

    def of(
        self, jobs: Sequence[JobRequest], slurm_partitions: Sequence[str], now: int
    ) -> Int64Array:
        """Give the priorities of pending jobs, larger first; shape (jobs,)."""
        for job_id in list(self._running):
            self._charge(job_id, now)
        if self._fair_share.is_fair_tree:
            self._fair_share.apply_fair_tree()
        else:
            self._fair_share.begin_classic()
        pairs = zip(jobs, slurm_partitions, strict=True)
        return np.array([self._priority(job, name, now) for job, name in pairs], dtype=np.int64)

    def _priority(self, job: JobRequest, slurm_partition: str, now: int) -> int:
        priced = _LoggedJob(
            job.user,
            job.project or job.user,
            (slurm_partition,),
            job.submit_time,
            job.requested_time,
            {"cpu": job.processors, "node": 1},
        )
        place = self._place_of(job)
        share = 0.0 if place is None else self._fair_share.factor_of(place)
        weighed = share * float(self._settings.weight_fair_share)
        factors = self._factors.fixed(priced, priced.tres, slurm_partition)
        return factors.aged(self._factors.age(priced, now), weighed).priority

    def _place_of(self, job: JobRequest) -> int | None:
        return self._accounts.association_of(job.user, job.project or job.user, ())

    def _charge(self, job_id: str, until: int) -> None:
        """Charge a job's use; later use grows in the place of a decay of all that was before.

        Fair share goes by parts of all usage, so both are the same.
        """
        if job_id not in self._running:
            return
        place, processors, since = self._running[job_id]
        if until <= since:
            return
        self._running[job_id] = (place, processors, until)
        half_life, zero = self._settings.decay_half_life_s, self._zero or 0
        if half_life:
            rate = np.log(2.0) / half_life
            used = (np.exp(rate * (until - zero)) - np.exp(rate * (since - zero))) / rate
        else:
            used = float(until - since)
        self._fair_share.charge(place, float(processors * used))


def joined_in_order(pending: PendingJobs, now: int) -> Int64Array:
    """Give times of joining by which the queue has the order of its jobs' priorities.

    For a scheduler that orders by submission in the place of one whose priorities are known as of
    now. The times of those that have joined are dealt out anew, the earliest to the first in order;
    who comes later keeps its own.

    >>> import numpy as np
    >>> from foretime_sim.engine.snapshot import PendingJobs
    >>> from foretime_studies.logged_policies.priorities import joined_in_order
    >>> one, asked = np.ones(3, dtype=int), np.full(3, 600)
    >>> jobs = PendingJobs(np.array([10, 20, 90]), one, asked, priority=np.array([1, 5, 9]))
    >>> joined_in_order(jobs, now=60).tolist()
    [20, 10, 90]
    """
    joined = pending.joins_at().copy()
    rows = np.flatnonzero(joined <= now)
    first = rows[np.lexsort((rows, joined[rows], -pending.priorities()[rows]))]
    # Equal times leave the order to the rows, so one who must go before a row above it is earlier.
    gap = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(first) < 0)])[: len(first)]
    latest = np.minimum.accumulate((np.sort(joined[rows]) - gap)[::-1])[::-1]
    joined[first] = latest + gap
    return joined
