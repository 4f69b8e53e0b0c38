"""Which waiting jobs should start now, in front of jobs before them that have to wait anyway.

It is one pass of EASY over the queue as it stands, with a time for each use that is made of one
(docs/backfilling.md, who goes first, and who fits). In each slurm_partition the first job, by the
site's own priorities, that has to wait holds a reservation. Running jobs are taken to use all that
they asked for. Others start if they are expected to end before that reservation, or need none of
its nodes; those come first whose expected runtime is shortest (Smith 1956), less the longer they
have waited.

Jobs that have waited for long hold reservations of their own, behind the first job. Without these,
many short jobs that each delay nobody but them make the longest waits longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from foretime_estimators.arrays import Int8Array, Int64Array
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import first_pass
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.machines.machine import SlurmPartition
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.role_times import RoleTimes

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.prepared_jobs import PreparedJobs
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, SortedOut, snapshot_of

AGEING_S = 36_000
"""A candidate that has waited for so long goes by half of its expected runtime."""
MOST_PROTECTED = 50
"""So many jobs that have waited for long hold a reservation, the first of the queue."""
_OVERRUN_S = 60


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What should happen now.

    Attributes
    ----------
    starts
        Jobs that should start before others, first to last; of an array its first task alone.
    heads
        The first job of each slurm_partition that has to wait, by the partition's name.
    """

    starts: tuple[QueuedJob, ...]
    heads: Mapping[str, QueuedJob]


def plan_starts(
    look: Look,
    expected: Callable[[QueuedJob], RolePrediction | None],
    own_priority: Callable[[QueuedJob], int],
    lateness: Callable[[str], float],
    is_protected: Callable[[QueuedJob], bool],
    prepared: PreparedJobs | None = None,
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
    is_protected
        Whether a waiting job holds a reservation though it is not the first that has to wait.
    prepared
        As of `snapshot_of`.
    """
    if prepared is not None and (stuck := _where_none_fits(look, prepared)) is not None:
        live, waiting = stuck
        for job in waiting:
            expected(job)  # which is said as of when a job is first seen
        return StartPlan((), _first_jobs(waiting, live, own_priority, look.taken_at))
    taken = snapshot_of(
        look.queue,
        look.cluster,
        taken_at=look.taken_at,
        reservations=look.reservations,
        tells=False,
        prepared=prepared,
    )
    return plan_starts_in(taken, expected, own_priority, lateness, is_protected)


def _where_none_fits(
    look: Look, prepared: PreparedJobs
) -> tuple[LiveMachine, list[QueuedJob]] | None:
    """Give the machine and who waits, if every job needs more CPUs than are free of it."""
    if look.cluster is None:
        return None
    jobs = look.queue.jobs
    waiting = [job for job in jobs if job.state is QueueState.PENDING]
    try:
        live = LiveMachine.of(look.cluster, waiting, look.reservations, look.taken_at)
    except InputError:
        return None
    out = SortedOut.of(look.queue, prepared.of(jobs, live, knows_limits=False), live)
    free = live.most_free([each.has for each in out.running])
    if any(each.request is None or each.request.cpus <= free for each in out.pending):
        return None
    return live, [each.job for each in out.pending]


def _first_jobs(
    waiting: Sequence[QueuedJob],
    live: LiveMachine,
    own_priority: Callable[[QueuedJob], int],
    now: int,
) -> dict[str, QueuedJob]:
    """Give the first job of each slurm_partition where none can start."""
    partitions = _Partitions(live.machine.slurm_partitions)
    priority = np.fromiter(map(own_priority, waiting), np.int64, len(waiting))
    in_order = _in_order(waiting, priority, partitions)
    return _heads(waiting, np.zeros(len(waiting), dtype=np.int8), in_order, partitions, now)


def plan_starts_in(
    taken: QueueSnapshot,
    expected: Callable[[QueuedJob], RolePrediction | None],
    own_priority: Callable[[QueuedJob], int],
    lateness: Callable[[str], float],
    is_protected: Callable[[QueuedJob], bool],
) -> StartPlan:
    """Say who of a snapshot should start now; parameters as of `plan_starts`."""
    now = taken.snapshot.now
    waiting = taken.jobs[len(taken.snapshot.running) :]
    if not waiting or taken.live is None:
        return StartPlan((), {})
    of_job = {id(job): job for job in waiting}
    times = {key: expected(job) for key, job in of_job.items()}
    priority = {key: own_priority(job) for key, job in of_job.items()}
    partitions = _Partitions(taken.live.machine.slurm_partitions)
    late = {name: min(max(lateness(name), 0.0), 1.0) for name in partitions.tier}
    requested = taken.snapshot.pending.requested_time
    by_job: dict[int, tuple[int, int]] = {}  # by what it is put in order, and must fit
    for row, job in enumerate(waiting):
        if (time := times[id(job)]) is not None and id(job) not in by_job:
            share = max(late[name] for name in partitions.of(job))
            by_job[id(job)] = (
                max(round(start_key(time, job, now)), 1),
                time.backfill + round((int(requested[row]) - time.backfill) * share),
            )
    limits = requested.tolist()
    rows = [by_job.get(id(job)) or (limits[row],) * 2 for row, job in enumerate(waiting)]
    order, fits = np.array(rows, dtype=np.int64).T.copy()
    column = np.fromiter((priority[id(job)] for job in waiting), np.int64, len(waiting))
    in_order = _in_order(waiting, column, partitions)

    def started_with(reservations: int) -> Int8Array:
        snapshot = as_asked(taken.snapshot, RoleTimes(order, fits, None), column)
        return first_pass(snapshot, _pass_with(reservations))

    started = started_with(1)
    heads = _heads(waiting, started, in_order, partitions, now)
    of_head = {id(job) for job in heads.values()}
    front = np.array(
        [
            how == StartedBy.HEAD or id(job) in of_head
            for job, how in zip(waiting, started.tolist(), strict=True)
        ]
    )
    held = [row for row in in_order if not front[row] and is_protected(waiting[row])]
    if heads and (held := held[:MOST_PROTECTED]):
        front[held] = True
        fits[front] = requested[front]
        first = [row for row in in_order if front[row] and row not in held]
        others = [row for row in in_order if not front[row]]
        column[[*first, *held, *others]] = np.arange(len(waiting), 0, -1)
        started = started_with(1 + len(held))
    highest = max((partitions.tier_of(job) for job in heads.values()), default=0)
    starts: dict[int, float] = {}
    for job, how in zip(waiting, started.tolist(), strict=True):
        time = times[id(job)]
        if how in (0, StartedBy.HEAD) or time is None or partitions.tier_of(job) < highest:
            continue  # Slurm starts by itself who is the first
        starts[id(job)] = start_key(time, job, now)
    return StartPlan(tuple(of_job[key] for key in sorted(starts, key=starts.__getitem__)), heads)


@lru_cache(maxsize=2 * MOST_PROTECTED)
def _pass_with(reservations: int) -> Policy:
    """Give a pass in which the first jobs of each slurm_partition hold so many reservations."""
    return Policy(
        order=Order.PRIORITY,
        backfill=Easy(candidates=Candidates.WSPT, depth=reservations),
        roles=Roles.parse("111"),
        correction=Correction.REQUESTED,
    )


def as_asked(snapshot: Snapshot, times: RoleTimes, priority: Int64Array) -> Snapshot:
    """Give a snapshot whose running jobs take what they asked for, and waiting ones these times."""
    running = snapshot.running
    # One that has passed its limit ends soon, but it has not yet.
    at_least = snapshot.now - running.start_time + _OVERRUN_S
    return snapshot.planned_on(np.maximum(running.requested_time, at_least), times, priority)


def waited_s(job: QueuedJob, now: int) -> int:
    """Say for how long a job has waited since it could first start, seconds."""
    return max(now - max(job.eligible_time or 0, job.request.submit_time), 0)


def holds_reservation(job: QueuedJob, after_s: int, now: int) -> bool:
    """Whether a job has waited for so long that it holds a reservation; ``after_s`` 0: never."""
    return after_s > 0 and can_start(job, now) and waited_s(job, now) >= after_s


def start_key(time: RolePrediction, job: QueuedJob, now: int) -> float:
    """Give by what candidates are put in order, the smallest first."""
    return time.queue / (1 + waited_s(job, now) / AGEING_S)


class _Partitions:
    """The slurm_partitions that take jobs, and in which of them a job is."""

    def __init__(self, partitions: Sequence[SlurmPartition]) -> None:
        self.tier = {part.name: part.priority_tier for part in partitions}
        self._default = next((part.name for part in partitions if part.default), None)

        self._of: dict[str | None, tuple[str, ...]] = {}

    def of(self, job: QueuedJob) -> tuple[str, ...]:
        found = self._of.get(job.request.queue)
        if found is None:
            named = (name for name in (job.request.queue or "").split(",") if name in self.tier)
            found = tuple(named) or (self._default or next(iter(self.tier)),)
            self._of[job.request.queue] = found
        return found

    def tier_of(self, job: QueuedJob) -> int:
        """Give PriorityTier of a job: the highest of its slurm_partitions."""
        return max(self.tier[name] for name in self.of(job))


def _in_order(
    waiting: Sequence[QueuedJob], priority: Int64Array, partitions: _Partitions
) -> list[int]:
    """Give the rows of waiting jobs, the first of the queue first."""
    tiers = np.array([partitions.tier_of(job) for job in waiting])
    submitted = np.array([job.request.submit_time for job in waiting])
    return [int(row) for row in np.lexsort((submitted, -priority, -tiers))]


def _heads(
    waiting: Sequence[QueuedJob],
    started: Int8Array,
    in_order: Sequence[int],
    partitions: _Partitions,
    now: int,
) -> dict[str, QueuedJob]:
    """Give the first job of each slurm_partition that has to wait."""
    heads: dict[str, QueuedJob] = {}
    for row in in_order:
        job = waiting[row]
        if not started[row] and (job.eligible_time or 0) <= now:
            for name in partitions.of(job):
                heads.setdefault(name, job)
    return heads
