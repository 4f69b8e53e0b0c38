"""Which waiting jobs should start now, in front of jobs before them that have to wait anyway.

It is one pass of EASY over the queue as it stands, with a time for each use that is made of one
(docs/backfilling.md, who goes first, and who fits). In each slurm_partition the first job, by the
site's own priorities, that has to wait holds a reservation. Running jobs are taken to use all that
they asked for. Others start if they are expected to end before that reservation, or need none of
its nodes; those come first whose expected runtime is shortest (Smith 1956), less the longer they
have waited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_sim.engine.forward import first_pass
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.role_times import RoleTimes

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of

AGEING_S = 36_000
"""A candidate that has waited for so long goes by half of its expected runtime."""
_OVERRUN_S = 60
_PASS = Policy(
    order=Order.PRIORITY,
    backfill=Easy(candidates=Candidates.WSPT),
    roles=Roles.parse("111"),
    correction=Correction.REQUESTED,
)


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What should happen now.

    Attributes
    ----------
    starts
        Jobs that should start before others, first to last; of an array its first task alone.
    heads
        The first job of each slurm_partition that has to wait, by the partition's name; "" is the
        name where nodes are not told.
    """

    starts: tuple[QueuedJob, ...]
    heads: Mapping[str, QueuedJob]


def plan_starts(
    look: Look,
    expected: Callable[[QueuedJob], RolePrediction | None],
    own_priority: Callable[[QueuedJob], int],
    lateness: Callable[[str], float],
) -> StartPlan:
    """Say who should start now.

    Parameters
    ----------
    look
        The queue and the nodes.
    expected
        How long a waiting job is expected to run, seconds; ``None`` where nothing may be expected:
        that job is planned with what it asks for, and never named.
    own_priority
        A waiting job's priority without what we have added to it.
    lateness
        How late the head job of a slurm_partition is, by the partition's name, from 0 to 1. What
        candidates there must fit with grades from the expected runtime to the requested one.
    """
    queue = look.queue
    jobs = tuple(
        replace(job, priority=own_priority(job)) if job.state is QueueState.PENDING else job
        for job in queue.jobs
    )
    taken = snapshot_of(
        Queue(queue.processors, jobs),
        look.cluster,
        taken_at=look.taken_at,
        reservations=look.reservations,
        tells=False,
    )
    given = {id(mine): job for mine, job in zip(jobs, queue.jobs, strict=True)}
    waiting = taken.jobs[len(taken.snapshot.running) :]
    if not waiting:
        return StartPlan((), {})
    times = {id(job): expected(given[id(job)]) for job in waiting}
    started = _pass(taken, waiting, times, look.taken_at, lateness)
    tiers = _Tiers(taken)
    heads = _heads(waiting, started, tiers, look.taken_at)
    highest = max((tiers.of(job) for job in heads.values()), default=0)
    chosen: dict[int, tuple[float, QueuedJob]] = {}
    for job, how in zip(waiting, started.tolist(), strict=True):
        time = times[id(job)]
        if how in (0, StartedBy.HEAD) or time is None or tiers.of(job) < highest:
            continue  # Slurm starts by itself who is the first
        chosen.setdefault(id(job), (_key(time, job, look.taken_at), given[id(job)]))
    starts = [job for _, job in sorted(chosen.values(), key=lambda each: each[0])]
    return StartPlan(tuple(starts), {name: given[id(job)] for name, job in heads.items()})


def _pass(
    taken: QueueSnapshot,
    waiting: Sequence[QueuedJob],
    times: Mapping[int, RolePrediction | None],
    now: int,
    lateness: Callable[[str], float],
) -> Int64Array:
    snapshot = taken.snapshot
    requested = snapshot.pending.requested_time
    order, fits = requested.copy(), requested.copy()
    late: dict[str, float] = {}
    for row, job in enumerate(waiting):
        time = times[id(job)]
        if time is None:
            continue
        order[row] = max(round(_key(time, job, now)), 1)
        share = 0.0
        for name in queues_or_pool(job, taken):
            if name not in late:
                late[name] = min(max(lateness(name), 0.0), 1.0)
            share = max(share, late[name])
        fits[row] = time.backfill + round((int(requested[row]) - time.backfill) * share)
    running = snapshot.running
    # One that has passed its limit ends soon, but it has not yet.
    at_least = now - running.start_time + _OVERRUN_S
    asked = replace(
        snapshot,
        running=replace(
            running,
            requested_time=np.maximum(running.requested_time, at_least),
            scheduled_time=None,
            time_limit=None,
        ),
        pending=replace(snapshot.pending, scheduled_time=RoleTimes(order, fits, None)),
    )
    return first_pass(asked, _PASS).astype(np.int64)


def _key(time: RolePrediction, job: QueuedJob, now: int) -> float:
    """Give by what candidates are put in order, the smallest first."""
    since = max(job.eligible_time or 0, job.request.submit_time)
    return time.queue / (1 + max(now - since, 0) / AGEING_S)


def queues_or_pool(job: QueuedJob, taken: QueueSnapshot) -> list[str]:
    """Name the slurm_partitions that a job is in, of those that take jobs; "" on a flat pool."""
    if taken.live is None:
        return [""]
    up = {part.name for part in taken.live.machine.slurm_partitions}
    named = [name for name in (job.request.queue or "").split(",") if name in up]
    return named or [taken.live.machine.slurm_partitions[0].name]


class _Tiers:
    """PriorityTier of jobs: the highest of their slurm_partitions."""

    def __init__(self, taken: QueueSnapshot) -> None:
        self._taken = taken
        parts = () if taken.live is None else taken.live.machine.slurm_partitions
        self._tier = {part.name: part.priority_tier for part in parts}

    def of(self, job: QueuedJob) -> int:
        return max(self._tier.get(name, 0) for name in self.names(job))

    def names(self, job: QueuedJob) -> list[str]:
        return queues_or_pool(job, self._taken)


def _heads(
    waiting: Sequence[QueuedJob], started: Int64Array, tiers: _Tiers, now: int
) -> dict[str, QueuedJob]:
    """Give the first job of each slurm_partition that has to wait."""
    heads: dict[str, QueuedJob] = {}
    in_order = sorted(
        range(len(waiting)),
        key=lambda row: (
            -tiers.of(waiting[row]),
            -waiting[row].priority,
            waiting[row].request.submit_time,
            row,
        ),
    )
    for row in in_order:
        job = waiting[row]
        if not started[row] and (job.eligible_time or 0) <= now:
            for name in tiers.names(job):
                heads.setdefault(name, job)
    return heads
