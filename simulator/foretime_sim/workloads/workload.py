"""A workload: the jobs that a simulation runs, complete and in submission order."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array, Selection
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, JobRequest

from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.site_jobs import SiteJobs

MaskedEndings: TypeAlias = np.ma.MaskedArray[tuple[int], np.dtype[np.int8]]

ENDINGS: tuple[Ending, ...] = tuple(Ending)
"""What the codes in a column of endings stand for."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs sorted by submission (ties in the log's order), and the machine that they ran on.

    Every array has shape (jobs,) and nothing missing; times are seconds since the log's start.

    Attributes
    ----------
    name
        What reports call it; usually the log's file name without endings.
    machine_processors
        Size of the flat pool.
    unix_start_time
        Epoch seconds of the log's time zero; ``None`` where the log does not say.
    job_id
        The log's own job numbers, int64.
    submit_time, processors, actual_runtime, requested_time
        int64; ``actual_runtime`` may exceed ``requested_time`` only where the filters allow it.
    logged_wait
        Wait as logged, a masked int64 array, ``None`` where the log has none at all.
    status
        SWF status (1 completed, 0 failed, 5 cancelled, ...), a masked int64 array or ``None``.
    endings
        How each job ended in the log: a masked int8 array of indices into `ENDINGS`, or ``None``.
    users, projects, queues, executables
        Names, ``None`` where the log has none at all.
    array_ids
        Which job array a job is a task of; ``None`` where the log has no arrays.
    requests
        What jobs ask of a machine of nodes; ``None`` where the log says nothing of it.
    machine
        The nodes that it runs on (`foretime_sim.workloads.resource_requests.with_machine`), or the
        Blue Gene (`foretime_sim.workloads.bgp_jobs.with_bgp_machine`), where processors are nodes;
        ``None`` for the flat pool of ``machine_processors``.
    site_jobs
        What jobs say to a site's scheduler (QOS, nice, reservations, ...); ``None``: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim import Workload
    >>> column = np.array
    >>> workload = Workload(
    ...     name="two jobs",
    ...     machine_processors=8,
    ...     unix_start_time=None,
    ...     job_id=column([1, 2]),
    ...     submit_time=column([0, 60]),
    ...     processors=column([8, 4]),
    ...     actual_runtime=column([300, 300]),
    ...     requested_time=column([3600, 600]),
    ... )
    >>> len(workload), workload.take([1]).job_id.tolist()
    (2, [2])
    """

    name: str
    machine_processors: int
    unix_start_time: int | None
    job_id: Int64Array
    submit_time: Int64Array
    processors: Int64Array
    actual_runtime: Int64Array
    requested_time: Int64Array
    logged_wait: MaskedInt64Array | None = None
    status: MaskedInt64Array | None = None
    endings: MaskedEndings | None = None
    users: Labels | None = None
    projects: Labels | None = None
    queues: Labels | None = None
    executables: Labels | None = None
    array_ids: Labels | None = None
    requests: ResourceRequests | None = None
    machine: Machine | BgpMachine | None = None
    notes: tuple[str, ...] = field(default=())
    site_jobs: SiteJobs | None = None

    def __len__(self) -> int:
        return len(self.submit_time)

    @property
    def epoch_of_zero(self) -> int:
        """Epoch seconds of time zero; 2001-09-09 01:46:40 UTC where the log does not say."""
        return 1_000_000_000 if self.unix_start_time is None else self.unix_start_time

    def take(self, jobs: Selection) -> Workload:
        """Give the workload of a selection of jobs (indices or a boolean mask), order kept."""

        def labels(column: Labels | None) -> Labels | None:
            return None if column is None else column.take(jobs)

        return replace(
            self,
            job_id=self.job_id[jobs],
            submit_time=self.submit_time[jobs],
            processors=self.processors[jobs],
            actual_runtime=self.actual_runtime[jobs],
            requested_time=self.requested_time[jobs],
            logged_wait=None if self.logged_wait is None else self.logged_wait[jobs],
            status=None if self.status is None else self.status[jobs],
            endings=None if self.endings is None else self.endings[jobs],
            users=labels(self.users),
            projects=labels(self.projects),
            queues=labels(self.queues),
            executables=labels(self.executables),
            array_ids=labels(self.array_ids),
            requests=None if self.requests is None else self.requests.take(jobs),
            site_jobs=None if self.site_jobs is None else self.site_jobs.take(jobs),
        )

    def ending(self, job: int) -> Ending | None:
        """How the job at one position ended in the log, ``None`` where the log does not say."""
        if self.endings is None or bool(np.ma.getmaskarray(self.endings)[job]):
            return None
        return ENDINGS[int(self.endings.data[job])]

    def job_request(self, job: int) -> JobRequest:
        """Give the job at one position as its user submitted it; times from the log's start."""

        def name(column: Labels | None) -> str | None:
            return None if column is None else column.get(job)

        return JobRequest(
            job_id=str(self.job_id[job]),
            user=name(self.users),
            project=name(self.projects),
            processors=int(self.processors[job]),
            requested_time=int(self.requested_time[job]),
            submit_time=int(self.submit_time[job]),
            queue=name(self.queues),
            array_id=name(self.array_ids),
            executable=name(self.executables),
        )

    def distinct_job_ids(self) -> list[str]:
        """Give every job's number; a repeated one is followed by which of them it is, from 2."""
        ids = [str(number) for number in self.job_id.tolist()]
        if len(set(ids)) == len(ids):
            return ids
        seen: dict[str, int] = {}
        for job, number in enumerate(ids):
            seen[number] = seen.get(number, 0) + 1
            if seen[number] > 1:
                ids[job] = f"{number}#{seen[number]}"
        return ids

    def head(self, jobs: int) -> Workload:
        """Give the workload of the first jobs; InputError unless at least one is asked for."""
        if jobs < 1:
            raise InputError(f"{jobs} jobs asked for; a workload has at least one")
        return self.take(np.arange(min(jobs, len(self)), dtype=np.int64))

    def split(self, time: int) -> tuple[Workload, Workload]:
        """Give the jobs submitted before a time (the history) and those from then on (the test).

        Both keep the log's time zero.

        Parameters
        ----------
        time
            Seconds since the log's start; see `seconds_at` for dates.

        Raises
        ------
        InputError
            If either part would have no jobs.
        """
        first = int(np.searchsorted(self.submit_time, time, side="left"))
        if not 0 < first < len(self):
            raise InputError(
                f"{self.name}: no job was submitted {'before' if first == 0 else 'after'} the "
                f"split; its jobs were submitted from {self.moment(int(self.submit_time[0]))} to "
                f"{self.moment(int(self.submit_time[-1]))}"
            )
        jobs = np.arange(len(self), dtype=np.int64)
        return self.take(jobs[:first]), self.take(jobs[first:])

    def seconds_at(self, date: datetime.datetime) -> int:
        """Give a moment in seconds since the log's start; UTC if it has no time zone.

        Raises
        ------
        InputError
            If the log does not say when it started.
        """
        if self.unix_start_time is None:
            raise InputError(
                f"{self.name}: the log does not say when it started (no UnixStartTime); "
                "give the split in seconds or days since its start"
            )
        if date.tzinfo is None:
            date = date.replace(tzinfo=datetime.UTC)
        return int(date.timestamp()) - self.unix_start_time

    def moment(self, time: int) -> str:
        """Write a time as a date (UTC), or as days where the log does not say when it started."""
        if self.unix_start_time is None:
            return f"day {time / 86_400:.1f}"
        date = datetime.datetime.fromtimestamp(self.unix_start_time + time, datetime.UTC)
        return date.strftime("%Y-%m-%d %H:%M")

    def jittered(self, rng: np.random.Generator, jitter_s: int = 60) -> Workload:
        """Give the workload with every submission moved by up to so many seconds, sorted again.

        Each job moves by a whole number of seconds drawn evenly from -jitter_s to jitter_s, but
        not to before the log's start; ties keep the order that the jobs had. With requested times
        EASY is chaotic, so a result is a mean over such copies.

        Raises
        ------
        InputError
            If ``jitter_s`` is negative.
        """
        if jitter_s < 0:
            raise InputError(f"a jitter of {jitter_s} s; give 0 or more")
        moved = self.submit_time + rng.integers(-jitter_s, jitter_s + 1, size=len(self))
        submit_time = np.maximum(moved, 0)
        order = np.argsort(submit_time, kind="stable").astype(np.int64)
        return replace(self.take(order), submit_time=submit_time[order])

    def shuffled_ties(self, rng: np.random.Generator) -> Workload:
        """Give the workload with jobs submitted in the same second in a random order."""
        return self.take(np.lexsort((rng.random(len(self)), self.submit_time)).astype(np.int64))

    def with_interarrival_factor(self, factor: float) -> Workload:
        """Give the workload with the times between submissions multiplied by a factor.

        The shrinking factor of Streit 2002 (section 5): below 1 the same jobs come in a shorter
        time, and the load grows. The first submission stays, any other comes at
        first + (submission - first) * factor, rounded to the second (halves to even), so that no
        error adds up. Days and weeks shrink with the rest.

        Raises
        ------
        InputError
            Unless the factor is above 0 and at most 1,000.
        """
        if not 0 < factor <= 1_000:
            raise InputError(f"interarrival factor {factor:g}: give more than 0 and at most 1,000")
        return replace(self, submit_time=self.shrunk_time(self.submit_time, factor))

    def shrunk_time(self, time: Int64Array, factor: float) -> Int64Array:
        """Say where moments of this workload's clock lie after `with_interarrival_factor`."""
        if not len(self):
            return time
        first = int(self.submit_time[0])
        shrunk: Int64Array = np.rint((time - first) * factor).astype(np.int64)
        return shrunk + first
