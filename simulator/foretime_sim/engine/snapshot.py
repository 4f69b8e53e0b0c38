"""A snapshot: what runs and what waits at one moment, which forward runs begin with."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim import _core
from foretime_sim.engine.admission import Dependencies, GroupLimit
from foretime_sim.engine.native.snapshot_columns import (
    check_within,
    checked_column,
    checked_times,
    unmask,
)
from foretime_sim.engine.node_snapshot import (
    HeldNodes,
    NodeRequests,
    check_nodes_in_use,
    nodes_of_engine,
)
from foretime_sim.engine.snapshot_notes import GuardNotes, PlanNotes, SlurmNotes
from foretime_sim.engine.stepwise import Engine
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation, NodeReservation
from foretime_sim.policies.advance_reservations import (
    check_node_reservations,
    check_reservations,
    node_reservations,
    of_processors,
)
from foretime_sim.policies.order import Order
from foretime_sim.policies.role_times import RoleTimes, ScheduledTimes
from foretime_sim.policies.slurm import Slurm
from foretime_sim.workloads.node_request import JobResources, fit_request

__all__ = ["PendingJobs", "RunningJobs", "Snapshot"]


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
    slurm_partition
        On nodes: index of the slurm_partition in which each runs.
    held
        On nodes: what each has of them. A job may have nodes besides that the machine does not
        have, as they take no new jobs: leave them out.
    """

    start_time: Int64Array
    processors: Int64Array
    requested_time: Int64Array
    scheduled_time: ScheduledTimes = None
    time_limit: Int64Array | None = None
    slurm_partition: Int64Array | None = None
    held: HeldNodes | None = None

    def __post_init__(self) -> None:
        kind, jobs = "running jobs", len(self.start_time)
        _hold(self, "start_time", checked_column(kind, "start_time", self.start_time, jobs))
        _hold_job(self, kind, jobs)
        if self.slurm_partition is not None:
            partition = checked_column(kind, "slurm_partition", self.slurm_partition, jobs, 0)
            _hold(self, "slurm_partition", partition)

    def __len__(self) -> int:
        return len(self.start_time)

    def time_limits(self) -> Int64Array:
        """Give after how long each job is killed, seconds."""
        return self.requested_time if self.time_limit is None else self.time_limit


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
    requests
        What the jobs ask of a machine of nodes
        (`foretime_sim.engine.node_snapshot.NodeRequests.of`); ``None`` on a flat pool.
        ``processors`` are then the CPUs of their tasks.
    dependencies
        What the jobs wait for before they join the queue, ``None`` if nothing.
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
    requests: NodeRequests | None = None
    dependencies: Dependencies | None = None

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
        if self.requests is not None and len(self.requests) != jobs:
            raise InputError(f"{kind}: there are {len(self.requests)} requests for {jobs} jobs")

    def __len__(self) -> int:
        return len(self.submit_time)

    def joins_at(self) -> Int64Array:
        """Give when each job joined the queue or will, seconds."""
        if self.eligible_time is None:
            return self.submit_time
        return np.maximum(self.submit_time, self.eligible_time)

    def time_limits(self) -> Int64Array:
        """Give after how long each job is killed, seconds."""
        return self.requested_time if self.time_limit is None else self.time_limit

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
        Size of the flat pool; on a machine of nodes all its CPUs (``machine.cpus``).
    running, pending
        The jobs.
    reservations
        Processors claimed from outside, as for `foretime_sim.engine.engine.simulate`; on a machine
        of nodes, groups of nodes that are set aside, as in the requests of the jobs.
    pass_due
        Whether the scheduler is to look at the queue now. If it has looked at this very queue
        already, nothing is done until something happens.
    estimated_at
        When the scheduler last worked out the ends of jobs that have outlived their estimates,
        which under the correction ``slurm`` it does at every pass; seconds, ``None`` for now.
    engine_index
        The engine's index of each job, in the order of columns, if taken of an engine.
    machine
        Nodes in place of a flat pool, for jobs with ``RunningJobs.held`` and
        ``PendingJobs.requests``.
    limits
        On what groups of jobs have at once.
    slurm_notes
        Under Slurm, taken of an engine: whose the jobs are, priorities and usage, when its loops
        run next, and what they left; ``None``: they look at the queue at once.
    told
        Under Slurm or PBS, of a real queue: what it tells of each job, in the order of columns.
        Without this and notes, nobody knows whose the jobs are: Slurm's queue has the order of
        submissions, and only partitions have limits; PBS has no limits by person, or is refused.
    away
        Under PBS: names of hosts that take no jobs now.
    pbs_notes
        Under PBS, taken of an engine: whose the jobs are, what fair share has counted, and when the
        last cycle was; ``None``: nothing is known of that.
    epoch_of_zero
        Epoch seconds of the clock's zero: Slurm's periods are those of the real clock.
    current_order
        Under a policy that switches between queue orders, which is current now; ``None``: the
        policy's ``order``.

    Raises
    ------
    InputError
        Naming the row and the field, if a value is impossible or the running jobs use more
        processors than there are.

    Examples
    --------
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.stepwise import Engine
    >>> engine = Engine(8, Policy())
    >>> for _ in range(2):
    ...     job = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> _ = engine.advance(60)
    >>> snapshot = Snapshot.of(engine)
    >>> snapshot.now, len(snapshot.running), len(snapshot.pending)
    (60, 1, 1)
    """

    now: int
    machine_processors: int
    running: RunningJobs
    pending: PendingJobs
    reservations: tuple[AdvanceReservation | NodeReservation, ...] = ()
    pass_due: bool = True
    estimated_at: int | None = None
    engine_index: Int64Array | None = None
    machine: Machine | None = None
    limits: tuple[GroupLimit, ...] = ()
    current_order: Order | None = None
    slurm_notes: SlurmNotes | None = None
    told: tuple[ToldJob, ...] | tuple[ToldPbsJob, ...] | None = None
    away: frozenset[str] = frozenset()
    pbs_notes: _core.PbsNotes | None = None
    epoch_of_zero: int = 0

    def __post_init__(self) -> None:
        if self.machine_processors < 1:
            raise InputError(f"machine_processors is {self.machine_processors}: give at least 1")
        if not -LONGEST_S <= self.now <= LONGEST_S:
            raise InputError(f"now is {self.now}: give seconds within {LONGEST_S}")
        if self.estimated_at is not None and self.estimated_at > self.now:
            raise InputError(f"estimated_at is {self.estimated_at}, after now, {self.now}")
        for kind, jobs in (("running jobs", self.running), ("pending jobs", self.pending)):
            check_within(kind, "processors", jobs.processors, 1, self.machine_processors)
        check_within("running jobs", "start_time", self.running.start_time, -LONGEST_S, self.now)
        running, pending = len(self.running), len(self.pending)
        if self.told is not None and len(self.told) != running + pending:
            raise InputError(f"told: {len(self.told)} rows for {running + pending} jobs")
        if self.pending.dependencies is not None:
            self.pending.dependencies.checked(running, pending)
        processors = np.concatenate([self.running.processors, self.pending.processors])
        for number, limit in enumerate(self.limits):
            limit.checked(number, running, processors)
        if self.machine is not None:
            self._check_nodes(self.machine)
            return
        if self.running.held is not None or self.pending.requests is not None:
            raise InputError("the jobs have or ask for nodes, and the snapshot has no machine")
        check_reservations(of_processors(self.reservations), self.machine_processors)
        used = int(self.running.processors.sum())
        if used > self.machine_processors:
            raise InputError(
                f"running jobs use {used} processors, the machine has {self.machine_processors}"
            )

    def _check_nodes(self, machine: Machine) -> None:
        running, requests = self.running, self.pending.requests
        if self.machine_processors != machine.cpus:
            raise InputError(
                f"machine_processors is {self.machine_processors}: the machine has {machine.cpus}"
                " CPUs"
            )
        if running.held is None or running.slurm_partition is None or requests is None:
            raise InputError(
                "on a machine of nodes give RunningJobs.held, RunningJobs.slurm_partition and"
                " PendingJobs.requests"
            )
        kind, last = "running jobs", len(machine.slurm_partitions) - 1
        check_within(kind, "slurm_partition", running.slurm_partition, 0, last)
        check_nodes_in_use(machine, running.held.checked(machine, kind, len(running)))
        asked = requests.processors()
        if not np.array_equal(self.pending.processors, asked):
            row = int(np.flatnonzero(self.pending.processors != asked)[0])
            raise InputError(
                f"pending jobs: row {row}: processors is {self.pending.processors[row]}, the tasks"
                f" of its request have {asked[row]}"
            )
        check_node_reservations(self.reservations, [group.name for group in machine.node_groups])

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
        if isinstance(engine.machine, BgpMachine):
            raise InputError("a snapshot is of a flat pool or nodes: this engine has a Blue Gene")
        core = engine._core
        running = core.running()
        running = running[np.argsort(_rows(core, running).tie, kind="stable")]
        pending = _core.waiting_jobs(core)
        runs, waiting = _rows(core, running), _rows(core, pending)
        jobs = np.concatenate([running, pending])
        slurm_notes, backfill = None, engine.policy.backfill
        if isinstance(backfill, Slurm) and engine._slurm_names is not None:
            state = _core.slurm_state(core, jobs)
            slurm_notes = SlurmNotes(backfill.site, state, engine._slurm_names.of_jobs(jobs))
        guard, plans = None, None
        if engine.policy.guard is not None:
            guard = GuardNotes(unmask(waiting.guard_planned_start), waiting.guarded)
        if (notes := _core.plan_notes(core)) is not None:
            changed, broken, *gained = notes
            window = (gained[0], gained[1]) if gained[0] < gained[1] else None
            plans = PlanNotes(unmask(waiting.planned_start), changed, broken, window)
        nodes = None
        if engine.machine is not None:
            nodes = nodes_of_engine(engine, running, pending)
            if plans is not None:
                start, partition = unmask(nodes.planned_start), nodes.planned_partition
                plans = PlanNotes(start, changed, broken, None, partition, nodes.planned)
        return cls(
            engine.now,
            engine.machine_processors,
            RunningJobs(
                runs.start_time,
                runs.processors,
                runs.requested_time,
                RoleTimes(drain=runs.drain_time),
                runs.time_limit,
                None if nodes is None else nodes.slurm_partition,
                None if nodes is None else nodes.held,
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
                requests=None if nodes is None else nodes.requests,
            ),
            engine.reservations,
            pass_due=engine.next_event_time == engine.now,
            estimated_at=_core.estimated_at(core),
            engine_index=jobs,
            machine=engine.machine,
            current_order=engine.current_order if engine.policy.switching else None,
            slurm_notes=slurm_notes,
            pbs_notes=_core.pbs_notes(core, running, pending) if engine.policy.is_pbs else None,
            epoch_of_zero=engine.epoch_of_zero,
        )

    def in_order_of_rows(self) -> Snapshot:
        """Give the snapshot with the pending jobs' rows as the queue's order.

        For the order ``priority``: a job submitted later takes the place of its row. This is how a
        real scheduler's own order, whatever it comes from, is kept.
        """
        return self.with_priorities(-np.arange(len(self.pending), dtype=np.int64))

    def planned_on(
        self, running_time: Int64Array, times: ScheduledTimes, priority: Int64Array
    ) -> Snapshot:
        """Give the snapshot with other times to plan with, and other priorities.

        Parameters
        ----------
        running_time
            What running jobs take, seconds: in place of their requested times, t_sched and limits.
        times, priority
            As of `PendingJobs`, of its jobs.
        """
        kind, running, pending = "running jobs", copy(self.running), copy(self.pending)
        takes = checked_column(kind, "requested_time", running_time, len(running), 1)
        for name, value in (
            ("requested_time", takes), ("scheduled_time", None), ("time_limit", None),
        ):  # fmt: skip
            _hold(running, name, value)
        kind, jobs = "pending jobs", len(pending)
        _hold(pending, "scheduled_time", checked_times(kind, times, jobs))
        _hold(pending, "priority", checked_column(kind, "priority", priority, jobs))
        # All else has been checked, nodes in use among it, which takes far longer.
        planned = copy(self)
        _hold(planned, "running", running)
        _hold(planned, "pending", pending)
        return planned

    def with_priorities(self, priority: Int64Array) -> Snapshot:
        """Give the snapshot with other priorities of its pending jobs, larger first."""
        return replace(self, pending=replace(self.pending, priority=priority))

    def with_job(
        self,
        processors: int,
        requested_time: int,
        scheduled_time: int | None = None,
        *,
        submit_time: int | None = None,
        priority: int | None = None,
        resources: JobResources | None = None,
        limits: Sequence[int] = (),
        told: ToldJob | ToldPbsJob | None = None,
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
        resources
            What it asks of a machine of nodes, as for sbatch; ``None``: its processors as tasks in
            the default slurm_partition.
        limits
            Which of the snapshot's limits count for it, by number.
        told
            Whose it is, where that is told of the other jobs; ``None``: nobody's.

        Raises
        ------
        InputError
            If a value is impossible, or no slurm_partition could ever run it.
        """
        pending, requests = self.pending, self.pending.requests
        if requests is not None and self.machine is not None:
            asked = resources or JobResources()
            reserved = node_reservations(self.reservations)
            request = fit_request(self.machine, asked, processors, requested_time, reserved)
            requests, processors = requests.with_one(request), request.cpus
        elif resources is not None:
            raise InputError("resources are for a machine of nodes: this snapshot has none")

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
            partition = plans.slurm_partition
            plans = replace(
                plans,
                planned_start=unseen(plans.planned_start),
                slurm_partition=None if partition is None else add(partition, -1),
            )
        column, bound = len(self), set(limits)
        return replace(
            self,
            told=None if self.told is None else _with_one(self.told, told, submit),
            limits=tuple(
                replace(limit, jobs=add(limit.jobs, column)) if number in bound else limit
                for number, limit in enumerate(self.limits)
            ),
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
                requests,
                pending.dependencies,
            ),
            pass_due=True,
            engine_index=None,
        )


def _with_one(
    told: tuple[ToldJob, ...] | tuple[ToldPbsJob, ...],
    one: ToldJob | ToldPbsJob | None,
    submit_time: int,
) -> tuple[ToldJob, ...] | tuple[ToldPbsJob, ...]:
    """Give what is told of jobs with one more, nobody's if nothing is told of it."""
    of_pbs = [job for job in told if isinstance(job, ToldPbsJob)]
    if of_pbs or isinstance(one, ToldPbsJob):
        return (*of_pbs, one if isinstance(one, ToldPbsJob) else ToldPbsJob())
    of_slurm = [job for job in told if isinstance(job, ToldJob)]
    return (*of_slurm, one if isinstance(one, ToldJob) else ToldJob(ages_since=submit_time))


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


def _hold(jobs: object, name: str, value: object) -> None:
    # Frozen for its users; its own checks put the checked columns in place.
    object.__setattr__(jobs, name, value)


def _hold_job(jobs: RunningJobs | PendingJobs, kind: str, count: int) -> None:
    for name in ("processors", "requested_time"):
        _hold(jobs, name, checked_column(kind, name, getattr(jobs, name), count, 1))
    _hold(jobs, "scheduled_time", checked_times(kind, jobs.scheduled_time, count))
    if jobs.time_limit is not None:
        _hold(jobs, "time_limit", checked_column(kind, "time_limit", jobs.time_limit, count, 1))
