"""A snapshot: what runs and what waits at one moment, which forward runs begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from foretime_estimators.errors import InputError

from foretime_sim import _core
from foretime_sim.advance_reservations import AdvanceReservation, check_reservations
from foretime_sim.machine import Machine
from foretime_sim.role_times import LONGEST_S, RoleTimes, ScheduledTimes
from foretime_sim.stepwise import Engine
from foretime_sim.workload import Int64Array, MaskedInt64Array

__all__ = ["GuardNotes", "PendingJobs", "PlanNotes", "RunningJobs", "Snapshot"]

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class RunningJobs:
    """Jobs that have started, in the order in which they did; columns of shape (jobs,).

    Attributes
    ----------
    start_time
        Seconds, not after the snapshot: a job's age is ``now - start_time``.
    processors, requested_time
        Requested times in seconds.
    scheduled_time
        t_sched, seconds, used if the policy's roles name the drain role, or a `RoleTimes` for that
        role; ``None`` for the requested times. A job that has outlived it has been corrected by the
        policy's rule.
    time_limit
        Kill limits that the scheduler holds, seconds; ``None`` for the requested times.
    """

    start_time: Int64Array
    processors: Int64Array
    requested_time: Int64Array
    scheduled_time: ScheduledTimes = None
    time_limit: Int64Array | None = None

    def __post_init__(self) -> None:
        kind, jobs = "running jobs", len(self.start_time)
        _hold(self, "start_time", checked_column(kind, "start_time", self.start_time, jobs))
        _hold_job(self, kind, jobs)

    def __len__(self) -> int:
        return len(self.start_time)


@dataclass(frozen=True, slots=True)
class GuardNotes:
    """What the starvation guard has noted of pending jobs; columns of shape (jobs,).

    Attributes
    ----------
    planned_start
        Start as planned on t_req when the job was first seen blocked at the head of the queue,
        seconds; masked where it was not seen there yet.
    active
        1 where the guard is active for the job, else 0.
    """

    planned_start: MaskedInt64Array
    active: Int64Array


@dataclass(frozen=True, slots=True)
class PlanNotes:
    """What a scheduler that plans more than the head job keeps from pass to pass.

    Attributes
    ----------
    planned_start
        Shape (jobs,): start that a pending job was promised or planned for, seconds; masked where
        there is none. Conservative backfilling keeps it, or makes it earlier.
    changed, broken
        Whether since the last plan running jobs' claims have changed, or grown over what was
        promised to others.
    gained
        From when until when processors were given back since the last plan, seconds; ``None`` if
        none were.
    """

    planned_start: MaskedInt64Array
    changed: bool = False
    broken: bool = False
    gained: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PendingJobs:
    """Jobs that have not started; columns of shape (jobs,).

    Whatever the queue's order, ties go by submission, then by row.

    Attributes
    ----------
    submit_time
        Seconds. A job submitted after the snapshot joins the queue then, in every run.
    processors, requested_time
        Requested times in seconds.
    scheduled_time
        t_sched, seconds, used in the roles that the policy names, or a `RoleTimes`. Held within
        1 <= t_sched <= t_req. ``None`` for the requested times.
    time_limit
        Kill limits that the scheduler holds, seconds; ``None`` for the requested times.
    priority
        For the queue order ``priority``, larger first; ``None``: 0. See
        `Snapshot.in_order_of_rows`.
    eligible_time
        Seconds: where it is later than ``submit_time`` the job counts as submitted then, and if it
        is after the snapshot joins the queue then (held until, ``sbatch --begin``). Masked or
        ``None`` for jobs that are eligible from their submission.
    guard, plans
        What the scheduler keeps in mind of the jobs, ``None`` if nothing.
    """

    submit_time: Int64Array
    processors: Int64Array
    requested_time: Int64Array
    scheduled_time: ScheduledTimes = None
    time_limit: Int64Array | None = None
    priority: Int64Array | None = None
    eligible_time: Int64Array | MaskedInt64Array | None = None
    guard: GuardNotes | None = None
    plans: PlanNotes | None = None

    def __post_init__(self) -> None:
        kind, jobs = "pending jobs", len(self.submit_time)
        _hold(self, "submit_time", checked_column(kind, "submit_time", self.submit_time, jobs))
        _hold_job(self, kind, jobs)
        if self.priority is not None:
            _hold(self, "priority", checked_column(kind, "priority", self.priority, jobs))
        if self.eligible_time is not None:
            masked = np.ma.getmaskarray(self.eligible_time)
            given = checked_column(kind, "eligible_time", np.ma.getdata(self.eligible_time), jobs)
            _hold(self, "eligible_time", np.where(masked, self.submit_time, given))
        if self.guard is not None:
            planned = np.ma.getdata(self.guard.planned_start)
            checked_column(kind, "guard.planned_start", planned, jobs)
            checked_column(kind, "guard.active", self.guard.active, jobs, 0, 1)
        if self.plans is not None:
            planned = np.ma.getdata(self.plans.planned_start)
            checked_column(kind, "plans.planned_start", planned, jobs)

    def __len__(self) -> int:
        return len(self.submit_time)

    def joins_at(self) -> Int64Array:
        """Give when each job joined the queue or will, seconds."""
        if self.eligible_time is None:
            return self.submit_time
        return np.maximum(self.submit_time, self.eligible_time)

    def priorities(self) -> Int64Array:
        """Give the priorities, 0 where there are none."""
        return np.zeros(len(self), dtype=np.int64) if self.priority is None else self.priority


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A machine and its jobs at one moment.

    The columns of forward runs are the running jobs, then the pending ones, in the order of their
    rows.

    Attributes
    ----------
    now
        Seconds.
    machine_processors
        Size of the flat pool.
    running, pending
        The jobs.
    reservations
        Processors claimed from outside, as for `foretime_sim.engine.simulate`.
    pass_due
        Whether the scheduler is to look at the queue now. If it has looked at this very queue
        already, nothing is done until something happens.
    estimated_at
        When the scheduler last worked out the ends of jobs that have outlived their estimates,
        which under the correction ``slurm`` it does at every pass; seconds, ``None`` for now.
    engine_index
        The engine's index of each job, in the order of columns, if taken of an engine.

    Raises
    ------
    InputError
        Naming the row and the field, if a value is impossible or the running jobs use more
        processors than there are.
    """

    now: int
    machine_processors: int
    running: RunningJobs
    pending: PendingJobs
    reservations: tuple[AdvanceReservation, ...] = ()
    pass_due: bool = True
    estimated_at: int | None = None
    engine_index: Int64Array | None = None

    def __post_init__(self) -> None:
        if self.machine_processors < 1:
            raise InputError(f"machine_processors is {self.machine_processors}: give at least 1")
        if not -LONGEST_S <= self.now <= LONGEST_S:
            raise InputError(f"now is {self.now}: give seconds within {LONGEST_S}")
        if self.estimated_at is not None and self.estimated_at > self.now:
            raise InputError(f"estimated_at is {self.estimated_at}, after now, {self.now}")
        check_reservations(self.reservations, self.machine_processors)
        for kind, jobs in (("running jobs", self.running), ("pending jobs", self.pending)):
            _within(kind, "processors", jobs.processors, 1, self.machine_processors)
        _within("running jobs", "start_time", self.running.start_time, -LONGEST_S, self.now)
        used = int(self.running.processors.sum())
        if used > self.machine_processors:
            raise InputError(
                f"running jobs use {used} processors, the machine has {self.machine_processors}"
            )

    def __len__(self) -> int:
        return len(self.running) + len(self.pending)

    @classmethod
    def of(cls, engine: Engine) -> Snapshot:
        """Take a snapshot of an engine at its clock's time.

        Its jobs that are running or pending, and those submitted at a later time than the clock's;
        with their actual runtimes forward runs go on as the engine would. Pending jobs have the
        order of their indices, whatever the queue's. Under the event order ``per-event`` settle the
        engine first: a snapshot does not know the order of events held back at one second.

        Parameters
        ----------
        engine
            Driven step by step; it is not changed.
        """
        if engine.machine is not None:
            kind = "a machine of nodes" if isinstance(engine.machine, Machine) else "a Blue Gene"
            raise InputError(f"a snapshot is of a flat pool: this engine has {kind}")
        core = engine._core
        running = core.running()
        running = running[np.argsort(_rows(core, running).tie, kind="stable")]
        pending = _core.waiting_jobs(core)
        runs, waiting = _rows(core, running), _rows(core, pending)
        guard, plans = None, None
        if engine.policy.guard_s is not None:
            guard = GuardNotes(_seen(waiting.guard_planned_start), waiting.guarded)
        if (notes := _core.plan_notes(core)) is not None:
            changed, broken, *gained = notes
            window = (gained[0], gained[1]) if gained[0] < gained[1] else None
            plans = PlanNotes(_seen(waiting.planned_start), changed, broken, window)
        return cls(
            engine.now,
            engine.machine_processors,
            RunningJobs(
                runs.start_time,
                runs.processors,
                runs.requested_time,
                RoleTimes(drain=runs.drain_time),
                runs.time_limit,
            ),
            PendingJobs(
                waiting.submit_time,
                waiting.processors,
                waiting.requested_time,
                RoleTimes(waiting.queue_time, waiting.backfill_time, waiting.drain_time),
                waiting.time_limit,
                waiting.priority,
                guard=guard,
                plans=plans,
            ),
            engine.reservations,
            pass_due=engine.next_event_time == engine.now,
            estimated_at=_core.estimated_at(core),
            engine_index=np.concatenate([running, pending]),
        )

    def in_order_of_rows(self) -> Snapshot:
        """Give the snapshot with the pending jobs' rows as the queue's order.

        For the order ``priority``: a job submitted later takes the place of its row. This is how a
        real scheduler's own order, whatever it comes from, is kept.
        """
        ranks = -np.arange(len(self.pending), dtype=np.int64)
        return replace(self, pending=replace(self.pending, priority=ranks))

    def with_job(
        self,
        processors: int,
        requested_time: int,
        scheduled_time: int | None = None,
        *,
        submit_time: int | None = None,
        priority: int | None = None,
    ) -> Snapshot:
        """Give the snapshot with one more pending job, whose column is the last.

        Parameters
        ----------
        processors, requested_time, scheduled_time
            Of the job, seconds; ``scheduled_time`` is for every role that the policy names,
            ``None`` for the requested time.
        submit_time
            Seconds; ``None`` for the moment of the snapshot.
        priority
            For the queue order ``priority``; ``None``: after every job of the snapshot.

        Raises
        ------
        InputError
            If a value is impossible.
        """
        pending = self.pending

        def add(column: Int64Array, value: int) -> Int64Array:
            return np.append(column, np.int64(value))

        def role(column: Int64Array | None) -> Int64Array | None:
            if column is None and scheduled_time is None:
                return None
            before = pending.requested_time if column is None else column
            return add(before, requested_time if scheduled_time is None else scheduled_time)

        submit = self.now if submit_time is None else submit_time
        priorities = pending.priorities()
        if priority is None:
            priority = int(priorities.min(initial=1)) - 1
        times = pending.scheduled_time

        def unseen(column: MaskedInt64Array) -> MaskedInt64Array:
            mask = np.append(np.ma.getmaskarray(column), True)
            return np.ma.MaskedArray(add(np.ma.getdata(column), 0), mask=mask)

        guard, plans = pending.guard, pending.plans
        if guard is not None:
            guard = GuardNotes(unseen(guard.planned_start), add(guard.active, 0))
        if plans is not None:
            plans = replace(plans, planned_start=unseen(plans.planned_start))
        return replace(
            self,
            pending=PendingJobs(
                add(pending.submit_time, submit),
                add(pending.processors, processors),
                add(pending.requested_time, requested_time),
                RoleTimes(role(times.queue), role(times.backfill), role(times.drain))
                if isinstance(times, RoleTimes)
                else role(times),
                None if pending.time_limit is None else add(pending.time_limit, requested_time),
                add(priorities, priority),
                None if pending.eligible_time is None else add(pending.eligible_time, submit),
                guard,
                plans,
            ),
            pass_due=True,
            engine_index=None,
        )


class _Rows(NamedTuple):
    """Columns of the native core's `snapshot_rows`, in its order."""

    submit_time: Int64Array
    processors: Int64Array
    requested_time: Int64Array
    queue_time: Int64Array
    backfill_time: Int64Array
    drain_time: Int64Array
    time_limit: Int64Array
    priority: Int64Array
    start_time: Int64Array
    tie: Int64Array
    guard_planned_start: Int64Array
    guarded: Int64Array
    planned_start: Int64Array


def _rows(core: _core.Engine, jobs: Int64Array) -> _Rows:
    return _Rows(*_core.snapshot_rows(core, jobs).T)


def _seen(column: Int64Array) -> MaskedInt64Array:
    """Mask the native core's value for a time that there is not."""
    never = column == NEVER
    return np.ma.MaskedArray(np.where(never, 0, column), mask=never)


def or_never(column: MaskedInt64Array) -> Int64Array:
    """Fill the masked times with the native core's value for a time that there is not."""
    return np.where(np.ma.getmaskarray(column), NEVER, np.ma.getdata(column))


def checked_column(
    kind: str,
    name: str,
    values: Int64Array,
    jobs: int,
    least: int = -LONGEST_S,
    most: int = LONGEST_S,
) -> Int64Array:
    """Give a column as int64, its own and not to be written to.

    Raises
    ------
    InputError
        Naming the kind of jobs, the row and the field, if it has another length or type than one
        integer for each job, or a value below ``least`` or beyond ``most``.
    """
    column = np.array(values)
    if np.ma.is_masked(values):
        row = int(np.flatnonzero(np.ma.getmaskarray(values))[0])
        raise InputError(f"{kind}: row {row}: {name} is missing")
    if column.shape != (jobs,) or (jobs and column.dtype.kind not in "iu"):
        raise InputError(
            f"{kind}: {name} has shape {column.shape} and type {column.dtype}:"
            f" give one integer for each of the {jobs} jobs"
        )
    _within(kind, name, column, least, most)
    column = column.astype(np.int64, copy=False)
    column.flags.writeable = False
    return column


def checked_times(kind: str, times: ScheduledTimes, jobs: int) -> ScheduledTimes:
    """Check scheduled times; InputError as `checked_column`."""

    def role(name: str, column: Int64Array | None) -> Int64Array | None:
        return None if column is None else checked_column(kind, name, column, jobs, 0)

    if not isinstance(times, RoleTimes):
        return role("scheduled_time", times)
    return RoleTimes(
        role("scheduled_time.queue", times.queue),
        role("scheduled_time.backfill", times.backfill),
        role("scheduled_time.drain", times.drain),
    )


def _within(kind: str, name: str, column: Int64Array, least: int, most: int) -> None:
    outside = (column < least) | (column > most)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"{kind}: row {row}: {name} is {column[row]}, it must be from {least} to {most}"
        )


def _hold(jobs: object, name: str, value: object) -> None:
    # Frozen for its users; its own checks put the checked columns in place.
    object.__setattr__(jobs, name, value)


def _hold_job(jobs: RunningJobs | PendingJobs, kind: str, count: int) -> None:
    for name in ("processors", "requested_time"):
        _hold(jobs, name, checked_column(kind, name, getattr(jobs, name), count, 1))
    _hold(jobs, "scheduled_time", checked_times(kind, jobs.scheduled_time, count))
    if jobs.time_limit is not None:
        _hold(jobs, "time_limit", checked_column(kind, "time_limit", jobs.time_limit, count, 1))
