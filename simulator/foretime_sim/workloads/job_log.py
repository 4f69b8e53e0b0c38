"""A job log as read: one column per fact, what the log doesn't say masked, nothing dropped yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedFloat64Array, MaskedInt64Array, Selection
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import ENDINGS, MaskedEndings, Workload

_CANCELLED = 5  # of SWF


@dataclass(frozen=True, slots=True)
class JobLog:
    """The jobs of a log, in order of submission, as the log has them.

    Every array has shape (jobs,). Times are integer seconds; ``submit_time`` counts from the log's
    time zero, which is ``unix_start_time``. Nothing is filtered: jobs without runtime, too large
    for the machine or without requested time are all here. `foretime_sim.logs.filters` makes a
    `Workload` of it.

    Attributes
    ----------
    name
        The file's name without endings.
    source
        The file's path as given, for messages.
    job_id
        Job numbers, int64, at least 0.
    submit_time, wait, runtime, requested_time
        Seconds.
    allocated_processors, requested_processors
        Processors.
    average_cpu_time
        Seconds per processor, float64.
    used_memory, requested_memory
        Kilobytes per processor.
    status
        SWF status: 0 failed, 1 completed, 5 cancelled, 2 to 4 partial executions.
    endings
        How each job ended: an index into `foretime_sim.workloads.workload.ENDINGS`.
    users, projects, executables, queues, slurm_partitions
        Names; ``None`` where the log has none at all.
    array_ids
        Which job array a job is a task of; ``None`` where the log has no arrays.
    qos
        Slurm's quality of service; ``None`` where the log does not say.
    requests
        What jobs asked for besides processors; ``None`` where the log says nothing of it.
    preceding_job, think_time
        The job that this one waited for, and the seconds between its end and this submission.
    comments
        Header lines, as they stand in the file, without the newline.
    machine_processors, machine_nodes
        Size of the machine; ``None`` where the log does not say.
    unix_start_time
        Epoch seconds of time zero; ``None`` where the log does not say.
    time_zone
        Name of the site's time zone ("Europe/Stockholm"); ``None`` where the log does not say.
    notes
        What reading had to do to the log (sorting, lines left out), one sentence each.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.workloads.job_log import log_of_workload
    >>> log = log_of_workload(generate("lublin2003", jobs=100, seed=1))
    >>> len(log), log.machine_processors
    (100, 256)
    """

    name: str
    source: str
    job_id: Int64Array
    submit_time: MaskedInt64Array
    wait: MaskedInt64Array
    runtime: MaskedInt64Array
    allocated_processors: MaskedInt64Array
    average_cpu_time: MaskedFloat64Array
    used_memory: MaskedInt64Array
    requested_processors: MaskedInt64Array
    requested_time: MaskedInt64Array
    requested_memory: MaskedInt64Array
    status: MaskedInt64Array
    endings: MaskedEndings
    preceding_job: MaskedInt64Array
    think_time: MaskedInt64Array
    users: Labels | None = None
    projects: Labels | None = None
    executables: Labels | None = None
    queues: Labels | None = None
    slurm_partitions: Labels | None = None
    array_ids: Labels | None = None
    qos: Labels | None = None
    requests: ResourceRequests | None = None
    comments: tuple[str, ...] = ()
    machine_processors: int | None = None
    machine_nodes: int | None = None
    unix_start_time: int | None = None
    time_zone: str | None = None
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.submit_time)

    def take(self, jobs: Selection) -> JobLog:
        """Give the log of a selection of jobs (indices or a boolean mask), in the order given."""
        columns: dict[str, Any] = {}
        for column in ARRAY_COLUMNS:
            columns[column] = getattr(self, column)[jobs]
        for column in LABEL_COLUMNS:
            labels: Labels | None = getattr(self, column)
            columns[column] = None if labels is None else labels.take(jobs)
        requests = None if self.requests is None else self.requests.take(jobs)
        return replace(self, **columns, requests=requests)

    def sorted_by_submission(self) -> JobLog:
        """Give the log in order of submission, ties in the order they had.

        A note says so if that moved jobs; those without a submit time come first.
        """
        submit = self.submit_time.filled(-1)
        late = int(np.count_nonzero(np.diff(submit) < 0))
        if not late:
            return self
        note = (
            f"the log is not in order of submission ({late:,} steps back in time); "
            "its jobs were sorted"
        )
        return replace(
            self.take(np.argsort(submit, kind="stable").astype(np.int64)), notes=(*self.notes, note)
        )


ARRAY_COLUMNS = (
    "job_id",
    "submit_time",
    "wait",
    "runtime",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "endings",
    "preceding_job",
    "think_time",
)
LABEL_COLUMNS = (
    "users",
    "projects",
    "executables",
    "queues",
    "slurm_partitions",
    "array_ids",
    "qos",
)


def labels_of_numbers(
    numbers: MaskedInt64Array, prefix: str, named: Mapping[int, str] | None = None
) -> Labels | None:
    """Name the numbers of a column, ``None`` if no job has one.

    Parameters
    ----------
    numbers
        Shape (jobs,).
    prefix
        A number without a name is called by it ("user12").
    named
        Names by number.
    """
    known = ~np.ma.getmaskarray(numbers)
    if not bool(known.any()):
        return None
    distinct, first, inverse = np.unique(
        numbers.data[known], return_index=True, return_inverse=True
    )
    by_appearance = np.argsort(first)
    rank = np.empty(len(distinct), dtype=np.int32)
    rank[by_appearance] = np.arange(len(distinct), dtype=np.int32)
    codes = np.full(len(numbers), -1, dtype=np.int32)
    codes[known] = rank[inverse]
    ordered = tuple(int(number) for number in distinct[by_appearance])
    names = tuple((named or {}).get(number, f"{prefix}{number}") for number in ordered)
    if len(set(names)) < len(names):  # number 5 is named "queue3", and there is a 3
        names = tuple(f"{prefix}{number}" for number in ordered)
    return Labels(codes, names, ordered)


def count_jobs(count: int) -> str:
    """Write a number of jobs ("1 job", "5,671 jobs")."""
    return f"{count:,} job" if count == 1 else f"{count:,} jobs"


def count_lines(count: int) -> str:
    """Write a number of malformed lines ("1 malformed line", "12 malformed lines")."""
    return f"{count:,} malformed line" if count == 1 else f"{count:,} malformed lines"


def missing_column(jobs: int) -> MaskedInt64Array:
    """Give a column of which the log says nothing: shape (jobs,), all masked."""
    return np.ma.MaskedArray(np.zeros(jobs, dtype=np.int64), mask=np.ones(jobs, dtype=np.bool_))


def missing_cpu_times(jobs: int) -> MaskedFloat64Array:
    """Give CPU times of which the log says nothing: shape (jobs,), all masked."""
    return np.ma.MaskedArray(np.zeros(jobs), mask=np.ones(jobs, dtype=np.bool_))


def missing_endings(jobs: int) -> MaskedEndings:
    """Give endings of which the log says nothing: shape (jobs,), all masked."""
    return np.ma.MaskedArray(np.zeros(jobs, dtype=np.int8), mask=np.ones(jobs, dtype=np.bool_))


def masked_column(values: Sequence[int | None]) -> MaskedInt64Array:
    """Give a column from values, ``None`` where the log says nothing."""
    mask = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
    data = np.fromiter(
        (0 if value is None else value for value in values), dtype=np.int64, count=len(values)
    )
    return np.ma.MaskedArray(data, mask=mask)


def labels_of(names: Iterable[str | None]) -> Labels | None:
    """Give a column of names, ``None`` if no job has one."""
    code_of: dict[str, int] = {}
    codes = np.array(
        [-1 if name is None else code_of.setdefault(name, len(code_of)) for name in names],
        dtype=np.int32,
    )
    return Labels(codes, tuple(code_of)) if code_of else None


def log_of_workload(
    workload: Workload,
    wait: Int64Array | MaskedInt64Array | None = None,
    comments: Sequence[str] = (),
) -> JobLog:
    """Give a workload as a log, so that it can be written: a generated one, or a schedule.

    Parameters
    ----------
    workload
        The jobs.
    wait
        Shape (jobs,), seconds: the wait to record for each job; the logged ones if not given. A
        job whose wait is masked never ran: it has no runtime, and the status of a job that was
        cancelled before its start.
    comments
        Header lines to put first, each without newline; a leading ``;`` is added where it lacks.
    """
    jobs = len(workload)

    def copied(values: Int64Array) -> MaskedInt64Array:
        return np.ma.MaskedArray(values.copy(), mask=np.zeros(jobs, dtype=np.bool_))

    waits = missing_column(jobs) if workload.logged_wait is None else workload.logged_wait.copy()
    runtime = copied(workload.actual_runtime)
    status = missing_column(jobs) if workload.status is None else workload.status.copy()
    endings = missing_endings(jobs) if workload.endings is None else workload.endings.copy()
    if wait is not None:
        never_ran = np.ma.getmaskarray(wait)
        waits = np.ma.MaskedArray(np.ma.getdata(wait).copy(), mask=never_ran.copy())
        runtime[never_ran] = np.ma.masked
        status[never_ran] = _CANCELLED
        endings[never_ran] = ENDINGS.index(Ending.NEVER_STARTED)
    return JobLog(
        name=workload.name,
        source=workload.name,
        job_id=workload.job_id.copy(),
        submit_time=copied(workload.submit_time),
        wait=waits,
        runtime=runtime,
        allocated_processors=copied(workload.processors),
        average_cpu_time=missing_cpu_times(jobs),
        used_memory=missing_column(jobs),
        requested_processors=copied(workload.processors),
        requested_time=copied(workload.requested_time),
        requested_memory=missing_column(jobs),
        status=status,
        endings=endings,
        preceding_job=missing_column(jobs),
        think_time=missing_column(jobs),
        users=workload.users,
        projects=workload.projects,
        executables=workload.executables,
        queues=workload.queues,
        array_ids=workload.array_ids,
        qos=None if workload.site_jobs is None else workload.site_jobs.qos,
        requests=workload.requests,
        comments=tuple(line if line.startswith(";") else f"; {line}" for line in comments),
        machine_processors=workload.machine_processors,
        unix_start_time=workload.unix_start_time,
        notes=workload.notes,
    )
