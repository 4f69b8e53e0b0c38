"""Columns of a snapshot, checked: one integer for each job."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim.policies.role_times import RoleTimes, ScheduledTimes

NEVER = np.iinfo(np.int64).max
"""The native core's value for a time that there is not."""


def unmask(column: Int64Array) -> MaskedInt64Array:
    """Mask the times that there are not."""
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

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.engine.native.snapshot_columns import checked_column
    >>> checked_column("pending jobs", "processors", np.array([1, 4]), jobs=2).tolist()
    [1, 4]
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
    check_within(kind, name, column, least, most)
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


def check_within(kind: str, name: str, column: Int64Array, least: int, most: int) -> None:
    """Check values; InputError names the row and the field."""
    outside = (column < least) | (column > most)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"{kind}: row {row}: {name} is {column[row]}, it must be from {least} to {most}"
        )
