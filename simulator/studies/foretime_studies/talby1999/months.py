"""A log cut into its months, each simulated by itself, as in Talby & Feitelson 1999 (section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Int64Array, StringArray
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import FilterReport, Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.workloads.site_clock import UTC, SiteClock, site_clock
from foretime_sim.workloads.workload import Workload

from foretime_studies.talby1999.cases import MonthsBy
from foretime_studies.talby1999.paper import LOG_PREFIX, PROCESSORS, REAL_PROCESSORS


@dataclass(frozen=True, slots=True)
class Month:
    """The jobs submitted in one month of the site's calendar."""

    name: str  # ``YYYY-MM``
    jobs: Workload  # numbered from 0 on in their order, so that jittered copies know them again


@dataclass(frozen=True, slots=True)
class MonthlyLog:
    """A log by months, on the machine on which they are simulated."""

    name: str  # the log's
    months: tuple[Month, ...]  # in order of time, those without jobs left out
    whole: Workload  # all of their jobs; runtimes may exceed requests
    clock: SiteClock  # by whose clock months are cut
    note: str  # what the filter did, how large the machine is, and by which clock months are cut

    @property
    def papers(self) -> bool:
        """Whether it is the log of the paper, on the machine of the paper."""
        return (
            self.name.startswith(LOG_PREFIX)
            and self.whole.machine_processors == PROCESSORS
            and int(self.whole.processors.max()) <= REAL_PROCESSORS
        )

    @property
    def outliving(self) -> int:
        """How many jobs would run for longer than they requested."""
        return int((self.whole.actual_runtime > self.whole.requested_time).sum())


def read_months(path: Path, processors: int | None = None) -> MonthlyLog:
    """Read a log, put it on its machine (the paper's log on 128 processors), and cut it.

    InputError if it can't be simulated, or does not say when it began or in which time zone.
    """
    log = read_log(path)
    # Runtimes beyond requests are kept: whether such jobs are killed is part of what is studied.
    workload, report = workload_of_log(log, processors=None, filters=Filters(overruns="keep"))
    if processors is None and log.name.startswith(LOG_PREFIX):
        processors = PROCESSORS
    if processors is not None:
        widest = int(workload.processors.max())
        if processors < widest:
            raise InputError(
                f"--processors {processors}: {path.name} has a job of {widest:,} processors"
            )
        workload = replace(workload, machine_processors=processors)
    return by_months(workload, log.time_zone, report)


def by_months(workload: Workload, time_zone: str | None, report: FilterReport) -> MonthlyLog:
    """Cut a workload by the site's clock; by UTC where its time zone is not known.

    InputError if the log does not say when it began.
    """
    if workload.unix_start_time is None:
        raise InputError(
            f"{workload.name}: the log does not say when it began (no UnixStartTime), so it can't "
            "be cut into months"
        )
    clock = site_clock(time_zone)
    names = month_names(workload.submit_time, workload.unix_start_time, clock)
    note = (
        f"{report.text} Simulated on {workload.machine_processors:,} processors, months by "
        f"{clock.name}."
    )
    return MonthlyLog(workload.name, _cut(workload, names), workload, clock, note)


def cut_by(log: MonthlyLog, by: MonthsBy) -> tuple[Month, ...]:
    """Cut a log in another way; by starts or ends only where it has waits for every job."""
    jobs, clock = log.whole, log.clock
    time = jobs.submit_time
    if by is MonthsBy.WHOLE:
        return (numbered_month(by.value, jobs),)
    if by is MonthsBy.UTC:
        clock = UTC
    elif by in (MonthsBy.START, MonthsBy.END):
        if jobs.logged_wait is not None:
            time = time + jobs.logged_wait.filled(0)
        if by is MonthsBy.END:
            time = time + jobs.actual_runtime
    return _cut(jobs, month_names(time, jobs.unix_start_time or 0, clock))


def numbered_month(name: str, jobs: Workload) -> Month:
    """Make a month of jobs, and number them from 0 on."""
    return Month(name, replace(jobs, job_id=np.arange(len(jobs), dtype=np.int64)))


def _cut(workload: Workload, names: StringArray) -> tuple[Month, ...]:
    return tuple(
        numbered_month(name, workload.take(np.flatnonzero(names == name).astype(np.int64)))
        for name in sorted(set(names.tolist()))
    )


def month_names(time: Int64Array, unix_start_time: int, clock: SiteClock) -> StringArray:
    """Give the month (``YYYY-MM``) of each moment on a log's clock."""
    shown = clock.shows(time + unix_start_time).astype("datetime64[s]")
    return np.datetime_as_string(shown, unit="M")
