"""What keeps jobs from the queue: others that must start or end first, and limits of groups."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.native.snapshot_columns import checked_column


class After(enum.IntEnum):
    """What must have happened to a job that another waits for."""

    START = 0
    """It has started (Slurm's ``after``)."""
    END = 1
    """It has ended, however (``afterany``)."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What pending jobs wait for, a row for each event; shape (events,).

    A job joins the queue when all its events have happened and their delays are over, not before
    its ``submit_time`` and ``eligible_time``, and counts as submitted then. That a job fails is not
    modelled: an end is an end.

    Attributes
    ----------
    job
        Row of the pending job that waits.
    on
        Column of the job that it waits for, running or pending.
    event
        Values of `After`.
    delay_s
        Seconds from the event on (``after:job+minutes``).
    any_suffices
        1 where the first of a job's events is enough (Slurm's ``?``), the same for all its rows.
    """

    job: Int64Array
    on: Int64Array
    event: Int64Array
    delay_s: Int64Array
    any_suffices: Int64Array

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[int, int, int, int, int]]) -> Dependencies:
        """Make them of rows of job, on, event, delay_s, any_suffices."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 5)
        return cls(*(np.ascontiguousarray(table[:, column]) for column in range(5)))

    def checked(self, running: int, pending: int) -> Dependencies:
        """Check every row; InputError names it, or the jobs that wait for each other."""
        events, kind = len(self.job), "dependencies"
        checked = Dependencies(
            checked_column(kind, "job", self.job, events, 0, pending - 1),
            checked_column(kind, "on", self.on, events, 0, running + pending - 1),
            checked_column(kind, "event", self.event, events, 0, 1),
            checked_column(kind, "delay_s", self.delay_s, events, 0),
            checked_column(kind, "any_suffices", self.any_suffices, events, 0, 1),
        )
        waits_for: dict[int, set[int]] = {}
        suffices: dict[int, bool] = {}
        columns = (checked.job, checked.on, checked.any_suffices)
        for job, on, any_suffices in zip(*(column.tolist() for column in columns), strict=True):
            if suffices.setdefault(job, bool(any_suffices)) != bool(any_suffices):
                raise InputError(f"{kind}: pending job {job}: any_suffices is both 0 and 1")
            waits_for.setdefault(job, set()).add(on - running)
        free = {on for waits in waits_for.values() for on in waits} - waits_for.keys()
        while freed := {
            job
            for job, waits in waits_for.items()
            if (waits & free if suffices[job] else waits <= free)
        }:
            free |= freed
            waits_for = {job: w for job, w in waits_for.items() if job not in freed}
        if waits_for:
            raise InputError(
                f"{kind}: pending jobs wait for each other and never start:"
                f" {', '.join(map(str, sorted(waits_for)))}"
            )
        return checked


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """A limit on what a group of jobs has at once.

    Jobs are let into the queue in order (larger priorities first, then by their joining), each if
    there is room for it; it counts from then on until it ends. In Slurm any of the group's jobs
    that could be backfilled might take the room; here it is the first in order. A group that has
    more than its limit already gets nothing until it has less.

    Attributes
    ----------
    jobs
        Columns of the group's jobs, running and pending.
    most_jobs, most_processors
        ``None`` for no limit.
    """

    jobs: Int64Array
    most_jobs: int | None = None
    most_processors: int | None = None

    def checked(self, number: int, running: int, processors: Int64Array) -> GroupLimit:
        """Check it; InputError names the limit and the job that could never start.

        Parameters
        ----------
        number
            Of the limit, from 0.
        running
            How many of the jobs run.
        processors
            Shape (jobs,), of each column.
        """
        kind = f"limit {number}"
        jobs = checked_column(kind, "jobs", self.jobs, len(self.jobs), 0, len(processors) - 1)
        if len(np.unique(jobs)) < len(jobs):
            raise InputError(f"{kind}: a job is in it twice")
        pending = jobs[jobs >= running]
        if self.most_jobs is not None and self.most_jobs < 1 and len(pending):
            raise InputError(f"{kind}: most_jobs is {self.most_jobs}: none could ever start")
        if self.most_processors is not None:
            wide = pending[processors[pending] > self.most_processors]
            if len(wide):
                raise InputError(
                    f"{kind}: job {wide[0]} needs {processors[wide[0]]} processors, more than"
                    f" most_processors, {self.most_processors}: it could never start"
                )
        return GroupLimit(jobs, self.most_jobs, self.most_processors)
