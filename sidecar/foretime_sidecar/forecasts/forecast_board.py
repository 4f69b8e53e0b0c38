"""What is forecast of a queue at one moment: a row for each pending job, never changed after."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.logs.pbs_records import array_of
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts

from foretime_sidecar.clients.array_indices import index_ranges
from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.queue.forecast_question import NewJob, QueueMoment

_Job = TypeVar("_Job")

_INDEX = re.compile(r"[\[-](\d+)", re.ASCII)  # of a task


@dataclass(frozen=True, slots=True)
class Waits:
    """How much longer one job will wait.

    Attributes
    ----------
    wait_s
        Seconds at each of `foretime_sim.waits.forecaster.LEVELS`, never falling.
    starts_now
        Probability of a start at the moment itself.
    end_s
        Seconds until its end, as ``wait_s``; ``()``: not known.
    planned_s
        Seconds until its start if every job took all of its request and nobody came later;
        ``None``: not known.
    """

    wait_s: tuple[int, ...]
    starts_now: float
    end_s: tuple[int, ...] = ()
    planned_s: int | None = None

    @classmethod
    def rows(
        cls, forecasts: WaitForecasts, end_s: Float64Array | None = None
    ) -> list[Waits | None]:
        """Give the rows of an answer, with the ends of its jobs; ``None`` for one that is none."""
        answered = forecasts.answered
        planned = forecasts.planned_s
        if planned is None:
            planned = np.full(len(answered), np.nan)
        found: list[Waits | None] = [None] * len(answered)
        # Rounded up, so that a bound that is told holds at least as often as the one that was
        # meant.
        wait_s = np.ceil(forecasts.wait_s[answered]).astype(np.int64).tolist()
        ends = [()] * len(wait_s) if end_s is None else in_seconds(end_s[answered])
        for row, waits, end in zip(np.flatnonzero(answered).tolist(), wait_s, ends, strict=True):
            plan = None if np.isnan(planned[row]) else int(planned[row])
            found[row] = cls(tuple(waits), float(forecasts.starts_now[row]), tuple(end), plan)
        return found

    def later(self, seconds: int) -> Waits:
        """Give the same from a moment so much later, at which the job still waits."""
        return Waits(
            tuple(max(wait - seconds, 0) for wait in self.wait_s),
            self.starts_now,
            tuple(max(end - seconds, 0) for end in self.end_s),
            None if self.planned_s is None else max(self.planned_s - seconds, 0),
        )

    def let_go(self, let_go_s: tuple[int, ...]) -> Waits:
        """Give the same of a job that joins the queue when other jobs let it go.

        These waits are as if that were known to be at its median. It may be earlier or later, and
        all that comes after with it.

        Parameters
        ----------
        let_go_s
            When that is, seconds at each of ``LEVELS``.
        """
        likely = let_go_s[LEVELS.index(0.5)]

        def moved(seconds: tuple[int, ...]) -> tuple[int, ...]:
            each = (at + s - likely for at, s in zip(let_go_s, seconds, strict=True))
            return tuple(accumulate(map(max, each, let_go_s), max))

        starts_now = self.starts_now if let_go_s[0] <= NOW_S else 0.0
        return Waits(moved(self.wait_s), starts_now, self.end_s and moved(self.end_s))

    def at(self, level: float) -> int:
        """Give the bound that holds with a probability that is one of ``LEVELS``; seconds."""
        return self.wait_s[LEVELS.index(level)]

    @property
    def likely_now(self) -> bool:
        """Whether it likely starts at once."""
        return self.at(0.5) <= NOW_S

    @property
    def room_now(self) -> bool:
        """Whether the scheduler's plan, if it is known, starts it at once."""
        return self.planned_s is not None and self.planned_s <= NOW_S


def in_seconds(quantiles: Float64Array) -> list[tuple[int, ...]]:
    """Round each row up to whole seconds."""
    return [tuple(row) for row in np.ceil(quantiles).astype(np.int64).tolist()]


@dataclass(frozen=True, slots=True)
class JobForecast:
    """The forecast of one pending job.

    Attributes
    ----------
    job
        The scheduler's record; it may stand for several tasks of an array.
    request
        The job, or the task, as its user submitted it.
    waits
        From the board's moment; ``None`` if nothing can be said.
    ahead
        Jobs before it in the queue's order; ``None`` for one that is kept back.
    kept_back
        Why it can't start whatever is free, such as "held"; ``None`` if nothing of the kind.
    assumed
        What was assumed of this job besides, in words.
    """

    job: QueuedJob
    request: JobRequest
    waits: Waits | None
    ahead: int | None = None
    kept_back: str | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """All that is forecast at one moment.

    Attributes
    ----------
    moment
        The look at the queue that it was made of.
    rows
        Each pending record of the queue, of an array the task that comes first.
    tasks
        Rows by identifier of job and, where Slurm tells them, of task.
    running
        Jobs that run or are suspended, by identifier.
    assumptions
        What was assumed of all, and what is not modelled, in words.
    site
        The site as whose scheduler the queue was run forward; ``None``: it was not.
    ends
        Of jobs that run, seconds until their end, as `Waits.end_s`; by identifier.
    """

    moment: QueueMoment
    rows: Sequence[JobForecast]
    tasks: Mapping[str, JobForecast]
    running: Mapping[str, QueuedJob]
    assumptions: tuple[str, ...]
    site: SlurmSite | PbsSite | None = None
    ends: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def made_at(self) -> int:
        """When the queue was looked at, epoch seconds."""
        return self.moment.look.taken_at

    def pending_job(self, job_id: str) -> JobForecast | None:
        """Find a pending job or task; on PBS the server's name may be left out."""
        found, array = _named(self.tasks, job_id), array_of(job_id)
        if found is not None or array is None:
            return found
        found = _named(self.tasks, array)
        return found if found is not None and _task_waits(found.job, job_id) else None

    def running_job(self, job_id: str) -> QueuedJob | None:
        """Find a job that runs or is suspended, in the same way."""
        return _named(self.running, job_id)


def _named(jobs: Mapping[str, _Job], job_id: str) -> _Job | None:
    if job_id in jobs:
        return jobs[job_id]
    # As PBS's own commands take it: 12 for 12.pbs01.
    full = [name for name in jobs if name.partition(".")[0] == job_id]
    return jobs[full[0]] if len(full) == 1 else None


def _task_waits(array: QueuedJob, job_id: str) -> bool:
    """Whether a task of PBS's, ``12[3]``, is one of those that an array's record stands for."""
    index = _INDEX.search(job_id)
    ranges = [part for part in index_ranges(array.pending_tasks) if part is not None]
    return index is not None and any(int(index[1]) in part for part in ranges)


@dataclass(frozen=True, slots=True)
class NewJobForecast:
    """The forecast of a job that nobody has submitted.

    Attributes
    ----------
    job
        What was asked about.
    waits
        From the board's moment; ``None`` if nothing can be said.
    ahead
        Jobs that would be before it in the queue's order.
    board
        Of the queue that it would join.
    assumed
        What was assumed of this job besides, in words.
    """

    job: NewJob
    waits: Waits | None
    ahead: int
    board: Board
    assumed: tuple[str, ...] = ()
