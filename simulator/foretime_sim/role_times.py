"""The three scheduled times of each job, one for each use that a scheduler makes of a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_estimators.errors import InputError

from foretime_sim.policy import Roles
from foretime_sim.workload import Int64Array, Workload

LONGEST_S = 2**52
"""Bound of every time: beyond it seconds are not exact in the double precision of scores."""


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

    def role(given: Int64Array | None) -> Int64Array:
        if given is None:
            return requested
        column = _column(workload, given, "scheduled_time", 0)
        return np.minimum(np.maximum(column, 1), requested)

    if isinstance(scheduled_time, RoleTimes):
        times = [role(t) for t in (scheduled_time.queue, scheduled_time.backfill,
                                   scheduled_time.drain)]  # fmt: skip
    else:
        scheduled = role(scheduled_time)
        used = (roles.queue, roles.backfill, roles.drain)
        times = [scheduled if uses else requested for uses in used]
    limit = requested if time_limit is None else _column(workload, time_limit, "time_limit", 1)
    if priority is None:
        priority = np.zeros(len(workload), dtype=np.int64)
    else:
        priority = _column(workload, priority, "priority", -LONGEST_S)
    return JobTimes(times[0], times[1], times[2], limit, priority)


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
