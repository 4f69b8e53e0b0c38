"""The three scheduled times of each job, one for each use that a scheduler makes of a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim.policies.policy import Roles
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class RoleTimes:
    """Scheduled times by role, whatever the policy's roles say; seconds, shape (jobs,).

    Attributes
    ----------
    queue, backfill, drain
        t_sched in that role; ``None`` for the requested time.
    """

    queue: Int64Array | None = None
    backfill: Int64Array | None = None
    drain: Int64Array | None = None


@dataclass(frozen=True, slots=True)
class JobTimesUpdate:
    """Scheduled times of one job by role, seconds; ``None`` for its requested time."""

    queue: int | None = None
    backfill: int | None = None
    drain: int | None = None


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What a scheduler knows of each job's times, checked; seconds, int64, shape (jobs,)."""

    queue: Int64Array
    backfill: Int64Array
    drain: Int64Array
    time_limit: Int64Array
    priority: Int64Array


ScheduledTimes: TypeAlias = Int64Array | RoleTimes | None


def job_times(
    workload: Workload,
    roles: Roles,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
) -> JobTimes:
    """Check a workload, and work out its times in each role.

    Parameters
    ----------
    workload
        Jobs in submission order.
    roles
        Which roles use ``scheduled_time``; the others use the requested time.
    scheduled_time
        Shape (jobs,), seconds, or a `RoleTimes` to give each role its own. Held within
        1 <= t_sched <= t_req. ``None``: the requested times.
    time_limit
        Shape (jobs,), seconds: the kill limits that the scheduler holds; ``None``: the requested
        times.
    priority
        Shape (jobs,): for the queue order ``priority``, larger first; ``None``: 0.

    Raises
    ------
    InputError
        Naming the job and the field.
    """
    requested = _column(workload, workload.requested_time, "requested_time", 1)
    submit = _column(workload, workload.submit_time, "submit_time", -LONGEST_S)
    _column(workload, workload.actual_runtime, "actual_runtime", 0)
    processors = _column(workload, workload.processors, "processors", 1)
    if len(submit) > 1 and bool((np.diff(submit) < 0).any()):
        job = int(np.flatnonzero(np.diff(submit) < 0)[0]) + 1
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]} comes after a job submitted later:"
            " sort the workload by submit_time"
        )
    if bool((processors > workload.machine_processors).any()):
        job = int(np.flatnonzero(processors > workload.machine_processors)[0])
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]} needs {processors[job]} processors, the"
            f" machine has {workload.machine_processors}: drop such jobs with a filter or give the"
            " machine's true size"
        )

    def checked(times: Int64Array | None) -> Int64Array | None:
        return None if times is None else _column(workload, times, "scheduled_time", 0)

    if isinstance(scheduled_time, RoleTimes):
        given = (scheduled_time.queue, scheduled_time.backfill, scheduled_time.drain)
        scheduled_time = RoleTimes(*map(checked, given))
    else:
        scheduled_time = checked(scheduled_time)
    queue, backfill, drain = by_role(requested, scheduled_time, roles)
    limit = requested if time_limit is None else _column(workload, time_limit, "time_limit", 1)
    if priority is None:
        priority = np.zeros(len(workload), dtype=np.int64)
    else:
        priority = _column(workload, priority, "priority", -LONGEST_S)
    return JobTimes(queue, backfill, drain, limit, priority)


def by_role(
    requested: Int64Array, scheduled_time: ScheduledTimes, roles: Roles
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Give the times for queue, backfill and drain, from columns that have been checked."""

    def held(given: Int64Array | None) -> Int64Array:
        return requested if given is None else np.clip(given, 1, requested)

    if isinstance(scheduled_time, RoleTimes):
        each = scheduled_time
        return held(each.queue), held(each.backfill), held(each.drain)
    scheduled = held(scheduled_time)
    uses = (roles.queue, roles.backfill, roles.drain)
    queue, backfill, drain = (scheduled if used else requested for used in uses)
    return queue, backfill, drain


def _column(workload: Workload, values: Int64Array, name: str, least: int) -> Int64Array:
    column = np.ascontiguousarray(values)
    if column.shape != (len(workload),) or column.dtype.kind not in "iu":
        raise InputError(
            f"{workload.name}: {name} has shape {column.shape} and type {column.dtype}:"
            f" give one integer for each of the {len(workload)} jobs"
        )
    outside = (column < least) | (column > LONGEST_S)
    if bool(outside.any()):
        job = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]}: {name} is {column[job]},"
            f" it must be from {least} to {LONGEST_S}"
        )
    return column.astype(np.int64, copy=False)
