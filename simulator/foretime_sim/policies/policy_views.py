"""What a policy written in Python sees of the queue and the machine: read-only NumPy arrays.

Every array has a value for each job of its view, in the view's order; it is made when it is first
asked for. A view holds for the pass that it was made for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim.workloads.labels import Labels


class JobSource(Protocol):
    """Where the columns come from: the native engine, or the reference in plain Python."""

    def values(self, field: str, jobs: Int64Array) -> Int64Array:
        """Give a field of some jobs."""

    def planned_ends(self, jobs: Int64Array, on_requested: bool) -> Int64Array:
        """Give when plans assume running jobs to end."""

    def running(self) -> Int64Array:
        """Give the running jobs, by index."""

    @property
    def free_processors(self) -> int:
        """How many processors are free."""


class JobLabels:
    """Users or projects of the jobs of a run, as codes; jobs may be added as they come."""

    def __init__(self, labels: Labels | None = None, jobs: int = 0) -> None:
        if labels is None:
            self._codes = np.full(jobs, -1, dtype=np.int64)
            self.names: list[str] = []
        else:
            self._codes = labels.codes.astype(np.int64)
            self.names = list(labels.names)
        self._jobs = jobs
        self._code_of = {name: code for code, name in enumerate(self.names)}

    def add(self, name: str | None) -> None:
        """Add the next job's."""
        if self._jobs == len(self._codes):
            self._codes = np.concatenate([self._codes, np.full(self._jobs + 64, -1)])
        if name is not None:
            code = self._code_of.setdefault(name, len(self.names))
            if code == len(self.names):
                self.names.append(name)
            self._codes[self._jobs] = code
        self._jobs += 1

    def codes(self, jobs: Int64Array) -> Int64Array:
        """Give those of some jobs, read-only."""
        return _read_only(self._codes[jobs])


@dataclass(frozen=True, slots=True)
class KnownJobs:
    """All that policies may know of a run's jobs."""

    source: JobSource
    users: JobLabels
    projects: JobLabels
    epoch_of_zero: int

    def values(self, field: str, jobs: Int64Array) -> Int64Array:
        """Give a field of some jobs."""
        return _read_only(self.source.values(field, jobs))

    def times(self, field: str, jobs: Int64Array) -> Int64Array:
        """Give when something happened to some jobs, epoch seconds."""
        return _read_only(self.source.values(field, jobs) + self.epoch_of_zero)

    def planned_ends(self, jobs: Int64Array, on_requested: bool) -> Int64Array:
        """Give when plans assume running jobs to end, epoch seconds."""
        return _read_only(self.source.planned_ends(jobs, on_requested) + self.epoch_of_zero)


def _read_only(column: Int64Array) -> Int64Array:
    column.flags.writeable = False
    return column


class JobsView:
    """Some jobs, as arrays.

    Attributes
    ----------
    job
        Place of each in the log or order of submission, from 0.
    """

    def __init__(self, known: KnownJobs, jobs: Int64Array) -> None:
        self._known = known
        self.job = jobs

    def __len__(self) -> int:
        return len(self.job)

    @cached_property
    def submit_time(self) -> Int64Array:
        """When they were submitted, epoch seconds."""
        return self._known.times("submit_time", self.job)

    @cached_property
    def processors(self) -> Int64Array:
        """How many processors they need."""
        return self._known.values("processors", self.job)

    @cached_property
    def requested_time(self) -> Int64Array:
        """t_req, seconds: what their users asked for."""
        return self._known.values("requested_time", self.job)

    @cached_property
    def scheduled_time(self) -> Int64Array:
        """t_sched in its queue role, seconds: what the queue is ordered by."""
        return self._known.values("scheduled_time", self.job)

    @cached_property
    def user(self) -> Int64Array:
        """A code for each job's user, an index into ``user_names``; -1 where none is known."""
        return self._known.users.codes(self.job)

    @cached_property
    def project(self) -> Int64Array:
        """A code for each job's project, an index into ``project_names``; -1 for none known."""
        return self._known.projects.codes(self.job)

    @property
    def user_names(self) -> Sequence[str]:
        """Names of all users so far."""
        return self._known.users.names

    @property
    def project_names(self) -> Sequence[str]:
        """Names of all projects so far."""
        return self._known.projects.names


class QueueView(JobsView):
    """The waiting jobs: by submission for an order, in queue order for backfilling."""

    def __init__(
        self, known: KnownJobs, jobs: Int64Array, now: int, on_requested: bool = False
    ) -> None:
        super().__init__(known, jobs)
        self._now = now
        self._on_requested = on_requested

    @cached_property
    def wait(self) -> Int64Array:
        """How long they have waited, seconds."""
        return _read_only(self._now - self.submit_time)

    @cached_property
    def backfill_time(self) -> Int64Array:
        """How long they are assumed to run, seconds: t_sched in its backfill role.

        t_req while the starvation guard is active.
        """
        field = "requested_time" if self._on_requested else "backfill_time"
        return self._known.values(field, self.job)

    @cached_property
    def priority(self) -> Int64Array:
        """The priority given from outside; 0 where none was."""
        return self._known.values("priority", self.job)


class StartedView(JobsView):
    """Jobs that have started, by index."""

    @cached_property
    def start_time(self) -> Int64Array:
        """When they started, epoch seconds."""
        return self._known.times("start_time", self.job)


class RunningView(StartedView):
    """The running jobs, by index."""

    def __init__(self, known: KnownJobs, jobs: Int64Array, on_requested: bool) -> None:
        super().__init__(known, jobs)
        self._on_requested = on_requested

    @cached_property
    def expected_end(self) -> Int64Array:
        """When the scheduler assumes them to end, epoch seconds; never before now.

        At their requested times while the starvation guard is active.
        """
        return self._known.planned_ends(self.job, self._on_requested)


class FinishedView(StartedView):
    """Jobs that have ended, by index."""

    @cached_property
    def end_time(self) -> Int64Array:
        """When they ended, epoch seconds."""
        return self._known.times("end_time", self.job)


class MachineView:
    """The machine at a pass, with the jobs that started from the head of the queue in it.

    Attributes
    ----------
    processors
        Size of the machine.
    free_processors
        How many are free now.
    """

    def __init__(self, known: KnownJobs, processors: int, on_requested: bool) -> None:
        self._known = known
        self._on_requested = on_requested
        self.processors = processors
        self.free_processors = known.source.free_processors

    @cached_property
    def running(self) -> RunningView:
        """The running jobs."""
        return RunningView(self._known, self._known.source.running(), self._on_requested)
