"""From a log to a workload by explicit filters, each of them counted and reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S

from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.machines.largest_machine import MAX_PROCESSORS
from foretime_sim.workloads.job_log import JobLog, count_jobs
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload

Overruns: TypeAlias = Literal["cut", "keep"]
Occupied: TypeAlias = Literal["requested", "allocated"]
MissingRequest: TypeAlias = Literal["drop", "runtime"] | int

PARTIAL_STATUSES = (2, 3, 4)
MOST_RUNTIME_S = 3650 * DAY_S
"""No job runs for so long but by a mistake of its log, such as a start at epoch 0.

A scheduler with periodic passes goes on as long as it runs, of which a simulation needs seconds a
year.
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """What is made of jobs that a simulation can't take as they are.

    The defaults are the filter behind Gaussier et al. (SC'15) and the figures published with it.

    Attributes
    ----------
    overruns
        ``"cut"``: a runtime beyond the requested time is cut to it, as if the job had been killed
        there on time; ``"keep"``: it stays, so that R may exceed 1.
    missing_request
        What a job without requested time gets: ``"drop"`` leaves it out; a number of seconds is
        the limit that the site gives such jobs; ``"runtime"`` takes its runtime, as if its user had
        known it. A log in which no job has a requested time is refused with ``"drop"``.
    occupied
        ``"requested"``: a job occupies the processors it asked for; ``"allocated"``: those it got
        (whole nodes, on many Slurm sites). Where only one of the two is known, it is used.

    Examples
    --------
    >>> from foretime_sim import Filters
    >>> Filters(overruns="keep", missing_request=86_400).missing_request
    86400
    """

    overruns: Overruns = "cut"
    missing_request: MissingRequest = "drop"
    occupied: Occupied = "requested"

    def __post_init__(self) -> None:
        if self.overruns not in ("cut", "keep"):
            raise InputError(f"overruns: {self.overruns!r} is unknown; use 'cut' or 'keep'")
        if self.occupied not in ("requested", "allocated"):
            raise InputError(
                f"occupied: {self.occupied!r} is unknown; use 'requested' or 'allocated'"
            )
        missing = self.missing_request
        if isinstance(missing, int):
            if not 1 <= missing <= MAX_SECONDS:
                raise InputError(
                    f"missing request: {missing} s is no time limit; give 1 to {MAX_SECONDS:,}"
                )
        elif missing not in ("drop", "runtime"):
            raise InputError(
                f"missing request: {missing!r} is unknown; use 'drop', 'runtime' or seconds"
            )

    def without_requests(self) -> Filters:
        """Give the filters for jobs whose requested times will all be drawn anew.

        No request cuts a runtime, and jobs without one are kept.
        """
        drop = self.missing_request == "drop"
        missing: MissingRequest = "runtime" if drop else self.missing_request
        return replace(self, overruns="keep", missing_request=missing)


@dataclass(frozen=True, slots=True)
class FilterReport:
    """What the filters did, so that two people can see that they have the same workload.

    Attributes
    ----------
    name
        The log.
    jobs_read, jobs_kept
        Jobs in the log and in the workload.
    dropped, changed
        Reason and number of jobs, in the order in which the filters were applied. A job is dropped
        once, for the first reason that fits.
    overran
        How many of the jobs kept ran for longer than they had asked, whether cut or not.
    notes
        What reading had to do to the log, and what stands out in it.
    """

    name: str
    jobs_read: int
    jobs_kept: int
    dropped: tuple[tuple[str, int], ...]
    changed: tuple[tuple[str, int], ...]
    overran: int = 0
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One paragraph."""
        parts = [f"{self.name}: {self.jobs_kept:,} of {self.jobs_read:,} jobs kept"]
        parts.extend(f"{count_jobs(jobs)} dropped: {reason}" for reason, jobs in self.dropped)
        parts.extend(f"{count_jobs(jobs)} changed: {reason}" for reason, jobs in self.changed)
        return "; ".join([*parts, *self.notes]) + "."


def workload_of_log(
    log: JobLog, *, processors: int | None = None, filters: Filters | None = None
) -> tuple[Workload, FilterReport]:
    """Make a workload of a log, and report what was dropped and changed.

    Dropped are, in this order: parts of a job that the log also has as a whole (SWF status 2 to 4),
    jobs without submit time, jobs without processors, jobs larger than the machine (requested or
    allocated), jobs without runtime or with a runtime of 0 s, jobs without requested time, and jobs
    that run for longer than `MOST_RUNTIME_S`.
    A job occupies the processors that the filters say.

    Parameters
    ----------
    log
        The log as read.
    processors
        Size of the machine; the log's own if not given.
    filters
        What to do about over-runs and missing requests; the defaults if not given.

    Raises
    ------
    InputError
        If the size of the machine is unknown, no job has a requested time, or no job is left.

    Examples
    --------
    >>> from foretime_sim import generate, workload_of_log
    >>> from foretime_sim.workloads.job_log import log_of_workload
    >>> log = log_of_workload(generate("lublin2003", jobs=100, seed=1))
    >>> workload, report = workload_of_log(log)
    >>> report.jobs_read, report.jobs_kept, report.dropped
    (100, 100, ())
    """
    filters = Filters() if filters is None else filters
    machine = _machine_processors(log, processors)
    requested = _positive(log.requested_processors)
    allocated = _positive(log.allocated_processors)
    runtime = _positive(log.runtime)
    requested_time = _requested_time(log, filters.missing_request, runtime)
    unknown_runtime = np.ma.getmaskarray(log.runtime)

    kept = np.ones(len(log), dtype=np.bool_)
    dropped: list[tuple[str, int]] = []

    def drop(reason: str, jobs: BoolArray) -> None:
        hit = kept & jobs
        if count := int(np.count_nonzero(hit)):
            dropped.append((reason, count))
            kept[hit] = False

    drop("part of a job that is listed as a whole", _partial_executions(log))
    drop("no submit time", np.ma.getmaskarray(log.submit_time) | (log.submit_time.filled(0) < 0))
    drop("no processors", (requested == 0) & (allocated == 0))
    drop(f"more than {machine:,} processors", (requested > machine) | (allocated > machine))
    drop("no runtime", unknown_runtime)
    drop("runtime of 0 s", runtime == 0)
    lasting = np.minimum(runtime, requested_time) if filters.overruns == "cut" else runtime
    drop("no requested time", requested_time == 0)
    drop(f"runtime over {MOST_RUNTIME_S // DAY_S:,} days", lasting > MOST_RUNTIME_S)
    if not kept.any():
        reasons = "; ".join(f"{count_jobs(jobs)}: {reason}" for reason, jobs in dropped)
        raise InputError(f"{log.source}: no job is left after filtering ({reasons})")

    changed: list[tuple[str, int]] = []

    def note_change(reason: str, jobs: BoolArray) -> None:
        if count := int(np.count_nonzero(kept & jobs)):
            changed.append((reason, count))

    first, second = requested, allocated
    if filters.occupied == "allocated":
        first, second = allocated, requested
        note_change("allocated processors unknown, requested ones used", allocated == 0)
    else:
        note_change("requested processors unknown, allocated ones used", requested == 0)
    if isinstance(filters.missing_request, int):
        note_change(
            f"no requested time, {filters.missing_request:,} s used",
            _positive(log.requested_time) == 0,
        )
    elif filters.missing_request == "runtime":
        note_change("no requested time, runtime used", _positive(log.requested_time) == 0)
    over = runtime > requested_time
    if filters.overruns == "cut":
        note_change("runtime cut to the requested time", over)

    jobs = np.flatnonzero(kept).astype(np.int64)
    selected = log.take(jobs)
    notes = [*log.notes, *repeated_numbers(selected)]
    report = FilterReport(
        log.name,
        len(log),
        len(jobs),
        tuple(dropped),
        tuple(changed),
        int(np.count_nonzero(kept & over)),
        tuple(notes),
    )
    workload = Workload(
        name=log.name,
        machine_processors=machine,
        unix_start_time=log.unix_start_time,
        job_id=selected.job_id,
        submit_time=selected.submit_time.filled(0),
        processors=np.where(first > 0, first, second)[jobs],
        actual_runtime=lasting[jobs],
        requested_time=requested_time[jobs],
        logged_wait=_unless_all_masked(selected.wait),
        status=_unless_all_masked(selected.status),
        endings=None if bool(np.ma.getmaskarray(selected.endings).all()) else selected.endings,
        users=selected.users,
        projects=selected.projects,
        queues=selected.queues if selected.queues is not None else selected.slurm_partitions,
        executables=selected.executables,
        array_ids=selected.array_ids,
        requests=_requests(selected),
        site_jobs=None if selected.qos is None else SiteJobs(qos=selected.qos),
        notes=(report.text,),
    )
    return workload, report


def repeated_numbers(log: JobLog) -> list[str]:
    """Note how many jobs have a number that an earlier one has; no note if none has.

    Parts of a job that the log also has as a whole do not count.
    """
    parts = _partial_executions(log)
    repeated = int(np.count_nonzero(~parts)) - len(np.unique(log.job_id[~parts]))
    if not repeated:
        return []
    have = "has a number that another has" if repeated == 1 else "have numbers that others have"
    return [f"{count_jobs(repeated)} {have}: run again, or a part of the log is there twice"]


def _requests(log: JobLog) -> ResourceRequests | None:
    """Give what jobs ask of a machine of nodes: queue names and SWF's memory, too."""
    requests = log.requests or ResourceRequests()
    names = log.slurm_partitions if log.slurm_partitions is not None else log.queues
    memory = requests.memory_per_cpu_mib
    if memory is None:  # kilobytes per processor
        memory = _unless_all_masked(-(-log.requested_memory // 1_024))
    if log.requests is None and names is None and memory is None:
        return None
    return replace(requests, slurm_partitions=names, memory_per_cpu_mib=memory)


def _machine_processors(log: JobLog, processors: int | None) -> int:
    """Give the size of the machine, as asked for or as the log says."""
    if processors is not None:
        if not 1 <= processors <= MAX_PROCESSORS:
            raise InputError(
                f"--processors {processors}: a machine has 1 to {MAX_PROCESSORS:,} processors"
            )
        return processors
    if log.machine_processors is None:
        largest = max(
            int(_positive(log.requested_processors).max(initial=0)),
            int(_positive(log.allocated_processors).max(initial=0)),
        )
        raise InputError(
            f"{log.source}: the log does not say how large the machine is (MaxProcs); give it "
            f"with --processors (its largest job has {largest:,})"
        )
    return log.machine_processors


def _positive(column: MaskedInt64Array) -> Int64Array:
    """Give a column with 0 for what is missing or not positive."""
    return np.maximum(column.filled(0), 0)


def _requested_time(
    log: JobLog, missing_request: MissingRequest, runtime: Int64Array
) -> Int64Array:
    """Give the requested times, completed as asked; 0 for jobs that still have none."""
    requested_time = _positive(log.requested_time)
    missing = requested_time == 0
    if isinstance(missing_request, int):
        return np.where(missing, np.int64(missing_request), requested_time)
    if missing_request == "runtime":
        return np.where(missing, runtime, requested_time)
    if missing.all():
        raise InputError(
            f"{log.source}: none of the {len(log):,} jobs has a requested time, which scheduling "
            "needs; take a log that has them, or a command with --missing-request: TIME (12:00:00) "
            "is the limit that such jobs had, and runtime takes their runtimes as requests"
        )
    return requested_time


def _partial_executions(log: JobLog) -> BoolArray:
    """Find parts of a job (status 2 to 4) that the log also lists as a whole (0, 1, 5)."""
    status = log.status.filled(1)
    part = np.isin(status, PARTIAL_STATUSES)
    if not part.any():
        return part
    return part & np.isin(log.job_id, log.job_id[~part])


def _unless_all_masked(column: MaskedInt64Array) -> MaskedInt64Array | None:
    """Give a column, or ``None`` if it says nothing."""
    return None if bool(np.ma.getmaskarray(column).all()) else column
