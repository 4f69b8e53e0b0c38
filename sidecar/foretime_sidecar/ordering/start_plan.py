"""Which waiting jobs should start now, in front of jobs before them that have to wait anyway.

It is one pass of EASY over the queue as it stands, with a time for each use that is made of one
(docs/backfilling.md, who goes first, and who fits). In each slurm_partition the first job, by the
site's own priorities, that has to wait holds a reservation. Running jobs are taken to use all that
they asked for. Others start if they are expected to end before that reservation, or need none of
its nodes; those come first whose expected runtime is shortest (Smith 1956), less the longer they
have waited.

Jobs that are late hold reservations of their own, behind the first job. Without these, many short
jobs that each delay nobody but them make the longest waits longer. The later a first job or one of
these is, the more others must fit with what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import first_pass
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.role_times import RoleTimes

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import PreparedJobs
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, SortedOut, snapshot_of

AGEING_S = 36_000
"""A candidate that has waited for so long goes by half of its expected runtime."""
MOST_PROTECTED = 50
"""So many protected jobs hold a reservation, the first of the queue."""
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


class StartMoments:
    """What the plans of a look begin with, worked out once, with what still holds of the last."""

    def __init__(self) -> None:
        self._prepared = PreparedJobs()
        self._of: tuple[Look, QueueSnapshot | SortedOut] | None = None

    def of(self, look: Look) -> QueueSnapshot | SortedOut:
        """Give the snapshot of a look; its jobs sorted out, if none fits what is free."""
        if self._of is None or self._of[0] is not look:
            self._of = look, self._worked_out(look)
        return self._of[1]

    def _worked_out(self, look: Look) -> QueueSnapshot | SortedOut:
        out = None
        if look.cluster is not None:
            with suppress(InputError):  # which the snapshot tells
                out = SortedOut.of(
                    look.queue,
                    look.cluster,
                    look.taken_at,
                    look.reservations,
                    prepared=self._prepared,
                )
        if out is not None and out.live is not None:
            free = out.live.most_free([each.has for each in out.running])
            asked = [each.request for each in out.pending]
            if all(request is not None and request.cpus > free for request in asked):
                return out
        return snapshot_of(
            look.queue,
            look.cluster,
            taken_at=look.taken_at,
            reservations=look.reservations,
            tells=False,
            sorted_out=out,
        )


def plan_starts(
    look: Look,
    expected: Callable[[QueuedJob], RolePrediction | None],
    own_priority: Callable[[QueuedJob], int],
    lateness: Callable[[str], float],
    late_by: Callable[[QueuedJob], float | None],
    moments: StartMoments | None = None,
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
        candidates for the same nodes must fit with grades from the expected runtime to the
        requested one.
    late_by
        How late a waiting job is that holds a reservation though it is not the first that has to
        wait, from 0 to 1; ``None``: it holds none.
    moments
        Of the looks before; ``None``: there were none.
    """
    taken = (moments or StartMoments()).of(look)
    if isinstance(taken, QueueSnapshot):
        return plan_starts_in(taken, expected, own_priority, lateness, late_by)
    waiting = [each.job for each in taken.pending]
    for job in waiting:
        expected(job)  # which is said as of when a job is first seen
    if taken.live is None or not waiting:
        return StartPlan((), {})
    line = _Line.of(waiting, own_priority, taken.live.machine)
    nobody = np.zeros(len(waiting), dtype=bool)
    return StartPlan((), line.heads(line.in_order(), nobody, look.taken_at))


def plan_starts_in(
    taken: QueueSnapshot,
    expected: Callable[[QueuedJob], RolePrediction | None],
    own_priority: Callable[[QueuedJob], int],
    lateness: Callable[[str], float],
    late_by: Callable[[QueuedJob], float | None],
) -> StartPlan:
    """Say who of a snapshot should start now; parameters as of `plan_starts`."""
    now = taken.snapshot.now
    waiting = taken.jobs[len(taken.snapshot.running) :]
    if not waiting or taken.live is None:
        return StartPlan((), {})
    line = _Line.of(waiting, own_priority, taken.live.machine)
    times = [expected(job) for job in line.records]
    requested = taken.snapshot.pending.requested_time
    late = {name: lateness(name) for name in line.partitions.tier}
    planned = _Times.of(line, times, requested, now)
    fits = planned.fits(late)
    priority = line.priority
    in_order = line.in_order()

    def started_with(reservations: int) -> Int8Array:
        snapshot = as_asked(taken.snapshot, RoleTimes(planned.order, fits, None), priority)
        return first_pass(snapshot, _pass_with(reservations))

    started = started_with(1)
    heads = line.heads(in_order, started != 0, now)
    of_head = {id(job) for job in heads.values()}
    is_head = np.fromiter((id(job) in of_head for job in line.records), bool, len(line.records))
    front = (started == StartedBy.HEAD) | is_head[line.record]
    others = in_order[~front[in_order]].tolist()
    protected = ((row, by) for row in others if (by := late_by(waiting[row])) is not None)
    if heads and (late_by_row := dict(islice(protected, MOST_PROTECTED))):
        held = list(late_by_row)
        first = in_order[front[in_order]]
        late = line.partitions.late_with(late, ((waiting[row], late_by_row[row]) for row in held))
        fits = planned.fits(late)
        front[held] = True
        fits[front] = requested[front]
        behind = in_order[~front[in_order]]
        priority = np.empty_like(priority)
        priority[np.concatenate([first, held, behind])] = np.arange(len(waiting), 0, -1)
        started = started_with(1 + len(held))
    least_tier = line.partitions.least_tier(heads)
    starts: dict[int, QueuedJob] = {}
    for row in np.flatnonzero((started != 0) & (started != StartedBy.HEAD)).tolist():
        job, record = waiting[row], int(line.record[row])
        if times[record] is not None and line.partitions.may_pass(job, least_tier):
            starts[record] = job  # who is the first is started by Slurm itself
    return StartPlan(
        tuple(starts[at] for at in sorted(starts, key=lambda at: planned.key[at])), heads
    )


@dataclass(frozen=True, slots=True)
class _Times:
    """The times that a pass goes by.

    Attributes
    ----------
    line
        Who waits.
    asked, expected
        Of each record what it asks for, and what it is expected to take: the same where nothing is.
    key
        Of each record, by what records are put in order.
    order
        Of each row, what its place among candidates goes by.
    """

    line: _Line
    asked: Int64Array
    expected: Int64Array
    key: Float64Array
    order: Int64Array

    @classmethod
    def of(
        cls,
        line: _Line,
        times: Sequence[RolePrediction | None],
        requested: Int64Array,
        now: int,
    ) -> _Times:
        jobs = len(line.records)
        first = np.zeros(jobs, dtype=np.int64)  # a row of each record: all tasks ask for the same
        first[line.record] = np.arange(len(line.record))
        asked = requested[first]
        said = np.array([(0, 0) if t is None else (t.queue, t.backfill) for t in times], np.int64)
        queue, backfill = said.reshape(-1, 2).T
        known = np.fromiter((time is not None for time in times), bool, jobs)
        key = queue / (1 + line.waited_s(now) / AGEING_S)
        order = np.where(known, np.maximum(np.rint(key), 1), asked).astype(np.int64)
        return cls(line, asked, np.where(known, backfill, asked), key, order[line.record])

    def fits(self, late: Mapping[str, float]) -> Int64Array:
        """Give of each row what it must fit with, by the latest job of each slurm_partition."""
        share = self.line.of_partitions(self.line.partitions.late_by(late))
        fits = self.expected + np.rint((self.asked - self.expected) * share)
        return fits.astype(np.int64)[self.line.record]


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


def waits_since(job: QueuedJob) -> int:
    """Say since when a job could start, epoch seconds."""
    return max(job.eligible_time or 0, job.request.submit_time)


def waited_s(job: QueuedJob, now: int) -> int:
    """Say for how long a job has waited since it could first start, seconds."""
    return max(now - waits_since(job), 0)


def holds_reservation(job: QueuedJob, after_s: int, now: int) -> bool:
    """Whether a job has waited for so long that it holds a reservation; ``after_s`` 0: never."""
    return after_s > 0 and can_start(job, now) and waited_s(job, now) >= after_s


def start_key(time: RolePrediction, job: QueuedJob, now: int) -> float:
    """Give by what candidates are put in order, the smallest first."""
    return time.queue / (1 + waited_s(job, now) / AGEING_S)


class _Partitions:
    """The slurm_partitions that take jobs, and in which of them a job is."""

    def __init__(self, machine: Machine) -> None:
        partitions = machine.slurm_partitions
        sizes = {group.name: group.nodes * group.cpus for group in machine.node_groups}
        self.tier = {part.name: part.priority_tier for part in partitions}
        self._groups = {part.name: frozenset(part.node_groups) for part in partitions}
        self._processors = {
            part.name: sum(sizes[group] for group in part.node_groups) for part in partitions
        }
        self._default = next((part.name for part in partitions if part.default), None)

        self._of: dict[str | None, tuple[str, ...]] = {}

    def of(self, job: QueuedJob) -> tuple[str, ...]:
        found = self._of.get(job.request.queue)
        if found is None:
            named = (name for name in (job.request.queue or "").split(",") if name in self.tier)
            found = tuple(named) or (self._default or next(iter(self.tier)),)
            self._of[job.request.queue] = found
        return found

    def late_with(
        self, latest: Mapping[str, float], held: Iterable[tuple[QueuedJob, float]]
    ) -> dict[str, float]:
        """Give how late the latest job of each slurm_partition is, with those behind the head.

        ``held``: such jobs, and how late each is, 0 to 1. It counts for jobs that need over half of
        the processors, wholly for one that needs all: others find room without that.
        """
        found = dict(latest)
        for job, late in held:
            for name in self.of(job):
                share = job.request.processors / self._processors[name]
                found[name] = max(found[name], late * (2 * share - 1))
        return found

    def late_by(self, latest: Mapping[str, float]) -> dict[str, float]:
        """Give how late the latest job is that a job of a slurm_partition may delay, 0 to 1.

        That is one of the same nodes, unless the site lets the job's slurm_partition go first.
        """
        return {
            name: max(
                min(max(late, 0.0), 1.0)
                for other, late in latest.items()
                if self._groups[name] & self._groups[other] and self.tier[other] >= self.tier[name]
            )
            for name in self.tier
        }

    def least_tier(self, heads: Mapping[str, QueuedJob]) -> dict[str, int]:
        """Give what PriorityTier jobs of each slurm_partition need to start before head jobs.

        That is the highest of the head jobs that wait for any of the same nodes.
        """
        tiers = {name: self._tier_of(job) for name, job in heads.items()}
        return {
            name: max((tiers[other] for other in tiers if groups & self._groups[other]), default=0)
            for name, groups in self._groups.items()
        }

    def may_pass(self, job: QueuedJob, least_tier: Mapping[str, int]) -> bool:
        """Whether a job's PriorityTier lets it start before head jobs; see `least_tier`."""
        return self._tier_of(job) >= max(least_tier[name] for name in self.of(job))

    def _tier_of(self, job: QueuedJob) -> int:
        """Give PriorityTier of a job: the highest of its slurm_partitions."""
        return max(self.tier[name] for name in self.of(job))


@dataclass(frozen=True, slots=True)
class _Line:
    """Who waits: the scheduler's records, and the rows of a snapshot, one for each task.

    Attributes
    ----------
    records
        Each record once.
    record
        Of each row the index of its record.
    priority
        Of each row, without what we have added to it.
    partitions
        Those that take jobs.
    queues
        The slurm_partitions of jobs, once for each way in which jobs name them.
    queue
        Of each record the index of its own in ``queues``.
    """

    records: Sequence[QueuedJob]
    record: Int64Array
    priority: Int64Array
    partitions: _Partitions
    queues: Sequence[tuple[str, ...]]
    queue: Int64Array

    @classmethod
    def of(
        cls,
        waiting: Sequence[QueuedJob],
        own_priority: Callable[[QueuedJob], int],
        machine: Machine,
    ) -> _Line:
        of_job = {id(job): job for job in waiting}
        records = tuple(of_job.values())
        index = {key: at for at, key in enumerate(of_job)}
        record = np.fromiter((index[id(job)] for job in waiting), np.int64, len(waiting))
        priority = np.fromiter(map(own_priority, records), np.int64, len(records))
        partitions = _Partitions(machine)
        naming = {job.request.queue: job for job in records}  # one job of each queue
        at = {name: place for place, name in enumerate(naming)}
        queue = np.fromiter((at[job.request.queue] for job in records), np.int64, len(records))
        queues = tuple(map(partitions.of, naming.values()))
        return cls(records, record, priority[record], partitions, queues, queue)

    def in_order(self) -> Int64Array:
        """Give the rows, the first of the queue first."""
        jobs = len(self.records)
        tiers = self.of_partitions(self.partitions.tier)[self.record]
        submitted = np.fromiter((job.request.submit_time for job in self.records), np.int64, jobs)
        return np.lexsort((submitted[self.record], -self.priority, -tiers))

    def of_partitions(self, value: Mapping[str, float]) -> Float64Array:
        """Give of each record the highest value of its slurm_partitions."""
        highest = [max(value[name] for name in names) for names in self.queues]
        return np.array(highest, np.float64)[self.queue]

    def waited_s(self, now: int) -> Int64Array:
        """Give of each record for how long it has waited, seconds."""
        since = np.fromiter(map(waits_since, self.records), np.int64, len(self.records))
        return np.maximum(now - since, 0)

    def heads(self, in_order: Int64Array, started: BoolArray, now: int) -> dict[str, QueuedJob]:
        """Give the first job of each slurm_partition that has to wait."""
        jobs = self.records
        could = np.fromiter(((job.eligible_time or 0) <= now for job in jobs), bool, len(jobs))
        records = self.record[in_order[~started[in_order] & could[self.record[in_order]]]]
        _, first = np.unique(self.queue[records], return_index=True)
        heads: dict[str, QueuedJob] = {}
        for at in sorted(first.tolist()):
            job = jobs[records[at]]
            for name in self.partitions.of(job):
                heads.setdefault(name, job)
        return heads
