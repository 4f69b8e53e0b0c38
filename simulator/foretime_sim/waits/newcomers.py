"""Where sampled arrivals belong: their place in the queue, and what they ask of nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.engine.snapshot import PendingJobs
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob
from foretime_sim.logs.pbs_records import NO_PROJECT
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.waits.moment import Moment
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.site_jobs import SiteJob

_NEWEST = 50
"""Pending jobs that show where newcomers come in the queue."""
_REMEMBERED = 2_000
"""Submissions that show where jobs of a size are sent."""


class Newcomers:
    """Completes sampled arrivals for a moment, by what submissions have been like.

    - In a scheduler's own order (``priority``) they get priorities, see `newcomers_priorities`.
    - On a machine of nodes each goes to the slurm_partitions that some past job of its size was
      submitted to (or of the size next to it), as tasks of one CPU each; memory and GPUs are not
      modelled. Forward runs leave out who could never run there.
    - Where a snapshot tells whose its jobs are, each is of the user and the account of that job. It
      has that job's QOS, too, if that was ever seen in the queue: submissions do not tell it.
    - On a pool, who is wider than what is up is left out.
    """

    def __init__(self) -> None:
        self._sent: deque[JobRequest] = deque(maxlen=_REMEMBERED)
        self._qos: dict[str, str] = {}

    def submitted(self, job: JobRequest) -> None:
        """Learn where a job of its size is sent."""
        self._sent.append(job)

    def placed(
        self, arrivals: SampledArrivals, moment: Moment, rng: np.random.Generator
    ) -> SampledArrivals:
        """Give the arrivals with all that forward runs of the moment need."""
        snapshot = moment.snapshot
        if snapshot.machine is not None and arrivals.requests is None:
            like = self._jobs_like(arrivals.processors, rng)
            where = _slurm_partitions_of(like, snapshot.machine)
            arrivals = replace(arrivals, slurm_partitions=where)
            if snapshot.told is not None and self._sent:
                arrivals = _owned(arrivals, like, self._qos_now(moment), moment.policy)
        elif snapshot.machine is None:
            fits = arrivals.processors <= snapshot.machine_processors
            arrivals = arrivals if fits.all() else arrivals.rows(np.flatnonzero(fits))
        if moment.policy.order is Order.PRIORITY and arrivals.priority is None:
            places = newcomers_priorities(snapshot.pending, len(arrivals.sample), rng)
            arrivals = replace(arrivals, priority=places)
        return arrivals

    def _qos_now(self, moment: Moment) -> Mapping[str, str]:
        """Give the QOS of jobs, those of a moment among them, if the site still has it."""
        for request, told in zip(moment.requests, moment.snapshot.told or (), strict=False):
            if isinstance(told, ToldJob) and told.said.qos is not None:
                self._qos[request.job_id] = told.said.qos
        if len(self._qos) > 2 * _REMEMBERED:
            sent = {job.job_id for job in self._sent}
            self._qos = {job_id: qos for job_id, qos in self._qos.items() if job_id in sent}
        slurm = moment.policy.backfill
        there = slurm.site.qos if isinstance(slurm, Slurm) else {}
        return {job_id: qos for job_id, qos in self._qos.items() if qos in there}

    def _jobs_like(
        self, processors: Int64Array, rng: np.random.Generator
    ) -> list[JobRequest | None]:
        """Draw for each job a past one of its size."""
        if not self._sent:
            return [None] * len(processors)
        sizes = np.array([job.processors for job in self._sent], dtype=np.int64)
        different = np.unique(sizes)
        place = np.clip(np.searchsorted(different, processors), 0, len(different) - 1)
        below = different[np.maximum(place - 1, 0)]
        nearer = np.abs(np.log(processors / below)) < np.abs(np.log(processors / different[place]))
        nearest = np.where(nearer, below, different[place])
        order = np.argsort(sizes, kind="stable")
        first = np.searchsorted(sizes[order], nearest, side="left")
        last = np.searchsorted(sizes[order], nearest, side="right")
        drawn = order[first + (rng.random(len(processors)) * (last - first)).astype(np.int64)]
        sent = list(self._sent)
        return [sent[job] for job in drawn.tolist()]


def _slurm_partitions_of(like: Sequence[JobRequest | None], machine: Machine) -> Labels:
    """Give where past jobs were sent; names that the machine does not have are left out."""
    known = {partition.name for partition in machine.slurm_partitions}
    codes: dict[str, int] = {}

    @cache
    def code(queue: str | None) -> int:
        named = ",".join(name for name in (queue or "").split(",") if name in known)
        return codes.setdefault(named, len(codes)) if named else -1

    sent = [code(None if job is None else job.queue) for job in like]
    return Labels(np.array(sent, dtype=np.int32), tuple(codes))


def _owned(
    arrivals: SampledArrivals,
    like: Sequence[JobRequest | None],
    qos: Mapping[str, str],
    policy: Policy,
) -> SampledArrivals:
    """Give arrivals that are whose the past jobs were."""
    codes: dict[tuple[str | None, str | None, str | None], int] = {}
    owner = [
        codes.setdefault((job.user, job.project, qos.get(job.job_id)), len(codes))
        for job in like
        if job is not None
    ]
    owners: tuple[ToldJob, ...] | tuple[ToldPbsJob, ...]
    if policy.is_pbs:
        owners = tuple(ToldPbsJob(user, project or NO_PROJECT) for user, project, _ in codes)
    else:
        owners = tuple(
            ToldJob(user, account, said=SiteJob(qos=which)) for user, account, which in codes
        )
    return replace(arrivals, owner=np.array(owner, dtype=np.int64), owners=owners)


def newcomers_priorities(pending: PendingJobs, count: int, rng: np.random.Generator) -> Int64Array:
    """Draw priorities for jobs still to come, of which a scheduler of its own order says nothing.

    A newcomer overtakes the share of the queue that one of the newest pending jobs overtakes of
    those submitted before it: none where the order is that of submissions.

    Parameters
    ----------
    pending
        Those that wait, with their priorities.
    count
        How many to draw.
    rng
        What decides them.
    """
    order = np.argsort(pending.submit_time, kind="stable")
    priority = pending.priorities()[order]
    if len(priority) < 2:
        last = int(priority[0]) - 1 if len(priority) else 0
        return np.full(count, last, dtype=np.int64)
    newest = range(max(1, len(priority) - _NEWEST), len(priority))
    overtaken = np.array([np.mean(priority[:job] < priority[job]) for job in newest])
    ascending = np.sort(priority)
    behind = np.floor(rng.choice(overtaken, count) * len(priority)).astype(np.int64)
    just_before = ascending[np.maximum(behind, 1) - 1] + 1
    places: Int64Array = np.where(behind == 0, ascending[0] - 1, just_before)
    return places
