"""Mira's four weeks of 2018 again, to see whether the model of a Blue Gene waits as a real one.

Each log begins with two days whose jobs have been given their starts as submissions (every job that
started in them, and no other, has a wait of 0): they bring the machine into its real state. A
replay begins at their end, with the jobs that ran then on the bgp_partitions that they really had,
and those that waited since when they really did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.engine.stepwise import Engine
from foretime_sim.logs.cobalt_log import CobaltLog, read_cobalt_log
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from numpy.typing import NDArray

from foretime_studies.frame.progress import Progress

PREPARED_S = 2 * DAY_S
"""So long, from the midnight before the first end, submissions are starts."""
SCORED_S = 7 * DAY_S
"""Jobs submitted in so long after that are scored; there is a further day of submissions."""
INTERVAL_S = 10
"""Cobalt looks at the queue every so many seconds."""
ORDERS = (Order.WFP, Order.FCFS)
RESERVED = "R."
"""How the queues of reservations begin."""


@dataclass(frozen=True, slots=True)
class Week:
    """A log, its jobs in order of submission, and what of it is replayed.

    Every array has shape (jobs,); times are seconds from the log's time zero.
    """

    name: str
    unix_start_time: int  # Epoch seconds of time zero
    begin: int  # from when it is replayed
    # job_id, submit_time, start_time, runtime, requested_time, nodes: as logged
    job_id: Int64Array
    submit_time: Int64Array
    start_time: Int64Array
    runtime: Int64Array
    requested_time: Int64Array
    nodes: Int64Array
    # queues, bgp_partitions: each job's queue, and what it ran on
    queues: tuple[str, ...]
    bgp_partitions: tuple[str, ...]
    scored: NDArray[np.bool_]  # submitted in the week, and not into a reservation's queue

    @property
    def end_time(self) -> Int64Array:
        """When each job ended."""
        return self.start_time + self.runtime

    @property
    def running(self) -> NDArray[np.bool_]:
        """Jobs that ran when the replay begins."""
        return (self.start_time < self.begin) & (self.end_time > self.begin)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Jobs that waited when the replay begins."""
        return (self.submit_time < self.begin) & (self.start_time >= self.begin)


@dataclass(frozen=True, slots=True)
class Mira2018:
    """The study's weeks, each replayed under every order."""

    machine: BgpMachine
    weeks: tuple[Week, ...]
    replays: Mapping[Order, tuple[Replay, ...]]  # by order, one for each week

    def scored(self, column: str) -> NDArray[Any]:
        """Give a column of all weeks' scored jobs."""
        return np.concatenate([np.array(getattr(w, column))[w.scored] for w in self.weeks])

    def waits(self, order: Order | None) -> list[Int64Array]:
        """Give the waits of each week's scored jobs, seconds; as logged for ``None``."""
        starts = (
            [week.start_time for week in self.weeks]
            if order is None
            else [done.start_time for done in self.replays[order]]
        )
        return [
            (start - week.submit_time)[week.scored]
            for week, start in zip(self.weeks, starts, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Replay:
    """A week under a policy."""

    # Shape (jobs,): of a `Week`'s jobs, seconds from its time zero; the logged one of jobs that had
    # started before the replay begins.
    start_time: Int64Array
    bgp_partitions: tuple[str, ...]  # what each job ran on; the logged one likewise
    # Jobs that ran when the replay begins, but not on a bgp_partition that the machine has.
    moved: int


def read_weeks(paths: Iterable[Path]) -> list[Week]:
    """Read event logs.

    InputError if one can't be read, or does not begin with two prepared days.
    """
    return [week_of(read_cobalt_log(path)) for path in paths]


def week_of(read: CobaltLog) -> Week:
    """Find what of a log is replayed and scored; see `read_weeks`."""
    log = read.job_log
    for name, column in (
        ("start", log.wait),
        ("runtime", log.runtime),
        ("walltime", log.requested_time),
        ("number of nodes", log.requested_processors),
    ):
        if column.mask.any():
            raise InputError(f"{log.source}: job {log.job_id[column.mask][0]} has no {name}")
    zero = log.unix_start_time or 0
    submit = np.asarray(log.submit_time.data)
    start = submit + log.wait.data
    runtime = np.asarray(log.runtime.data)
    first_midnight = (int((start + runtime).min()) + zero) // DAY_S * DAY_S - zero
    begin = first_midnight + PREPARED_S
    if not np.array_equal(start < begin, start == submit):
        raise InputError(
            f"{log.source}: its first two days are not prepared: of every job that started before "
            "their end, and of no other, submission and start should be the same"
        )
    queues = tuple(name or "" for name in ([] if log.queues is None else log.queues.by_job()))
    ordinary = np.array([not queue.startswith(RESERVED) for queue in queues], dtype=np.bool_)
    return Week(
        name=log.name,
        unix_start_time=zero,
        begin=begin,
        job_id=np.asarray(log.job_id),
        submit_time=submit,
        start_time=start,
        runtime=runtime,
        requested_time=np.asarray(log.requested_time.data),
        nodes=np.asarray(log.requested_processors.data),
        queues=queues,
        bgp_partitions=tuple(read.bgp_partition_of[job] for job in log.job_id.tolist()),
        scored=(submit >= begin) & (submit < begin + SCORED_S) & ordinary,
    )


def policy_of(order: Order) -> Policy:
    """Give what Cobalt does, with a queue order."""
    return Policy(order=order, scheduling_interval_s=INTERVAL_S)


def replay(week: Week, machine: BgpMachine, policy: Policy) -> Replay:
    """Run a week from its beginning on.

    Jobs are planned with what they asked for, and run as long as they really did.

    InputError if a job is larger than every bgp_partition, or what ran at the beginning has no
    room.
    """
    engine = Engine(machine.nodes, policy, now=week.begin, machine=machine)
    known = {part.name for part in machine.bgp_partitions}
    limit = np.maximum(week.requested_time, week.runtime)

    def asks(job: int) -> tuple[int, int, int]:
        return int(week.nodes[job]), int(week.runtime[job]), int(week.requested_time[job])

    order: list[int] = []
    running = np.flatnonzero(week.running).tolist()
    moved = [job for job in running if week.bgp_partitions[job] not in known]
    for job in [job for job in running if job not in moved] + moved:
        engine.add_running(
            int(week.start_time[job]),
            *asks(job),
            time_limit=int(limit[job]),
            submit_time=int(week.submit_time[job]),
            bgp_partition=None if job in moved else week.bgp_partitions[job],
        )
        order.append(job)
    for job in np.flatnonzero(week.waiting).tolist():
        engine.add_pending(int(week.submit_time[job]), *asks(job), time_limit=int(limit[job]))
        order.append(job)
    for job in np.flatnonzero(week.submit_time >= week.begin).tolist():
        engine.submit(int(week.submit_time[job]), *asks(job), time_limit=int(limit[job]))
        order.append(job)
    engine.finish()
    schedule = engine.schedule()
    start = week.start_time.copy()
    start[order] = schedule.start_time
    names = list(week.bgp_partitions)
    if schedule.bgp_partition is not None:
        for job, index in zip(order, schedule.bgp_partition.tolist(), strict=True):
            if job not in running:
                names[job] = machine.bgp_partitions[index].name
    return Replay(start, tuple(names), len(moved))


def study(weeks: Iterable[Week], machine: BgpMachine, progress: Progress | None = None) -> Mira2018:
    """Replay weeks under every order; ``progress`` is told how many replays are done.

    InputError as `replay`.
    """
    weeks = tuple(weeks)
    replays: dict[Order, tuple[Replay, ...]] = dict.fromkeys(ORDERS, ())
    for order in ORDERS:
        for week in weeks:
            replays[order] += (replay(week, machine, policy_of(order)),)
            if progress is not None:
                progress(sum(map(len, replays.values())))
    return Mira2018(machine, weeks, replays)


def busy_share(week: Week, start_time: Int64Array, machine: BgpMachine) -> float:
    """Share of the scored week's node-seconds that jobs had."""
    begin, end = week.begin, week.begin + SCORED_S
    inside = np.clip(start_time + week.runtime, begin, end) - np.clip(start_time, begin, end)
    return float((inside * week.nodes).sum() / (machine.nodes * SCORED_S))


def half_empty_s(week: Week, start_time: Int64Array, machine: BgpMachine) -> int:
    """Seconds of the scored week in which jobs waited though less than half of the nodes was busy.

    Be it that the machine is drained for a large job, or that it is out of order, of which logs say
    nothing.
    """
    begin, end = week.begin, week.begin + SCORED_S
    times = np.concatenate([start_time, start_time + week.runtime, week.submit_time, start_time])
    used = np.concatenate([week.nodes, -week.nodes, np.zeros(2 * len(week.nodes), dtype=np.int64)])
    ones = np.ones(len(week.nodes), dtype=np.int64)
    queued = np.concatenate([0 * ones, 0 * ones, ones, -ones])
    order = np.argsort(times, kind="stable")
    at = np.clip(times[order], begin, end)
    idle = np.cumsum(used[order]) < machine.nodes / 2
    wanted = np.cumsum(queued[order]) > 0
    return int((np.diff(at) * (idle & wanted)[:-1]).sum())
