"""The job sets of Streit 2002 (sections 4 and 5): which logs, machines and shrinking factors.

A set is generated anew for each seed from what its log is like, or from the paper's published
statistics for the log of PC2, which is not public; or it is the log itself, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias

import numpy as np
import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models import pc2
from foretime_sim.models.description import describe
from foretime_sim.models.log_model import LogModel
from foretime_sim.models.weibull import Weibull
from foretime_sim.workloads.workload import Workload

from foretime_studies.streit2002.paper import TABLE_2, TABLE_4

Width: TypeAlias = Literal["printed", "log"]
"""Machine as in the paper's tables 2 and 3, or as in the log's own header."""
Kind: TypeAlias = Literal["independent", "loaded", "modulated", "log"]
"""Interarrival times drawn one by one, as in the paper; the same, stretched until the load is the
paper's; such that days and weeks show; or a part of the log as it is."""
JOBS = 10_000
MOST_DRAWS = 1_000
TABLE_FACTOR = 1.0
"""Shrinking factor of tables 4 to 6."""
_STEP = 0.05


def _down(first: float, last: float) -> tuple[float, ...]:
    """Factors from the first down to the last in steps of 0.05."""
    return tuple(
        round(first - _STEP * step, 2) for step in range(round((first - last) / _STEP) + 1)
    )


@dataclass(frozen=True, slots=True)
class JobSet:
    """One of the paper's four."""

    name: str
    # Beginning of its log's file name; ``None`` where it is made from published statistics.
    log: str | None
    printed_processors: int  # machine in tables 2 and 3
    log_processors: int  # machine in the log's header; the printed one where there is no log
    factors: tuple[float, ...]  # shrinking factors of section 5.2, falling

    @property
    def some_factors(self) -> tuple[float, ...]:
        """Give the table's, the first, the middle and the last one, each once."""
        middle = self.factors[len(self.factors) // 2]
        chosen = (TABLE_FACTOR, self.factors[0], middle, self.factors[-1])
        return tuple(dict.fromkeys(chosen))

    def processors(self, width: Width) -> int:
        """Size of the machine."""
        return self.printed_processors if width == "printed" else self.log_processors

    def factor_on(self, factor: float, width: Width) -> float:
        """Give the factor that offers a machine the load that ``factor`` offers the printed one."""
        return round(factor * self.printed_processors / self.processors(width), 4)


CTC = JobSet("CTC", "CTC-SP2-1996", 430, 338, _down(1.00, 0.65))
KTH = JobSet("KTH", "KTH-SP2-1996", 100, 100, _down(1.00, 0.60))
PC2 = JobSet("PC2", None, 96, 96, _down(0.80, 0.40))
SDSC = JobSet("SDSC", "SDSC-SP2-1998", 352, 128, _down(0.60, 0.30))
JOB_SETS = (CTC, KTH, PC2, SDSC)


PaperLogs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[LOG...]",
        help="The paper's logs: CTC-SP2-1996, KTH-SP2-1996, SDSC-SP2-1998; without any, the "
        "PC2-like set alone.",
    ),
]
JobsOption: TypeAlias = Annotated[int, typer.Option(min=10, help="Jobs in each set.")]


def absent_sets(present: Collection[JobSet]) -> list[str]:
    """Say which of the paper's sets are not here, if any."""
    absent = [job_set.name for job_set in JOB_SETS if job_set not in present]
    return [f"Not here, for want of their logs: {', '.join(absent)}."] if absent else []


def printed_gaps(job_set: JobSet) -> Weibull:
    """Give the distribution of the time between submissions that table 2 prints."""
    alpha, beta_s = (TABLE_2[title][job_set.name] for title in ("Weibull alpha", "Weibull beta, s"))
    return Weibull(alpha, beta_s)


def as_loaded(jobs: Workload, job_set: JobSet) -> Workload:
    """Stretch the gaps of a set until it offers its printed machine what the paper's set did.

    The paper's load is taken for the utilization that its table 4 prints, which is a little less.
    """
    offered = describe(on_machine(jobs, job_set.printed_processors)).offered_load
    if offered is None:
        raise InputError(f"{job_set.name}: all jobs come at once; take more of them")
    printed = TABLE_4[job_set.name, "artww", "advanced"]["utilization"]
    return jobs.with_interarrival_factor(offered / printed)


class JobSource(Protocol):
    """Where the jobs of a set come from."""

    def draws(self, kind: Kind, jobs: int) -> int:
        """Give how many different sets of so many jobs there are; 0 where this kind is not."""
        ...

    def jobs(self, kind: Kind, draw: int, jobs: int, factor: float) -> Workload:
        """Give a set: its draw from 1, its jobs, its shrinking factor."""
        ...


@dataclass(frozen=True, slots=True)
class LogSource:
    """A set that has a log: the log's own jobs, and generated ones."""

    job_set: JobSet  # whose it is
    log: Workload  # with runtimes beyond the requests as they are (`Filters(overruns="keep")`)
    model: LogModel  # of the log, its submissions as the log has them
    # Of the log, but gaps between submissions as table 2 prints them: they are denser.
    as_printed: LogModel

    @classmethod
    def of(cls, job_set: JobSet, log: Workload) -> LogSource:
        """Read a log of the paper."""
        as_printed = LogModel.of(log, interarrival=printed_gaps(job_set))
        return cls(job_set, log, LogModel.of(log), as_printed)

    def draws(self, kind: Kind, jobs: int) -> int:
        """Give how many different sets there are: of a log its whole parts, but one at least."""
        return max(1, len(self.log) // jobs) if kind == "log" else MOST_DRAWS

    def jobs(self, kind: Kind, draw: int, jobs: int, factor: float) -> Workload:
        """Give a set; ``draw`` is the seed, or the part of the log."""
        if kind == "log":
            part = np.arange((draw - 1) * jobs, min(draw * jobs, len(self.log)), dtype=np.int64)
            return self.log.take(part).with_interarrival_factor(factor)
        if kind == "loaded":
            drawn = self.jobs("independent", draw, jobs, TABLE_FACTOR)
            return as_loaded(drawn, self.job_set).with_interarrival_factor(factor)
        model = self.as_printed if kind == "independent" else self.model
        return model.generate(jobs, seed=draw, arrivals=kind, shrink=factor)


class Pc2Source:
    """The set that has no log: drawn from what the paper says of it."""

    def draws(self, kind: Kind, jobs: int) -> int:
        """Give how many different sets there are: nothing is published of the log's weeks."""
        return MOST_DRAWS if kind in ("independent", "loaded") else 0

    def jobs(self, kind: Kind, draw: int, jobs: int, factor: float) -> Workload:
        """Give a set; ``draw`` is the seed."""
        if kind == "loaded":
            drawn = pc2.generate(jobs, seed=draw, shrink=TABLE_FACTOR)
            return as_loaded(drawn, PC2).with_interarrival_factor(factor)
        return pc2.generate(jobs, seed=draw, shrink=factor)


def on_machine(workload: Workload, processors: int) -> Workload:
    """Put jobs on a machine of another size.

    InputError if a job is wider than the machine.
    """
    widest = int(workload.processors.max(initial=0))
    if widest > processors:
        raise InputError(
            f"{workload.name}: its widest job has {widest} processors; a machine of {processors} "
            "is too small"
        )
    return replace(workload, machine_processors=processors)


def with_exact_requests(workload: Workload) -> Workload:
    """Give the workload with each job's request set to how long it really runs (figure 6).

    A job that would be killed at its request runs as long as that here, too, so that the jobs are
    the same; a runtime of 0 is asked for as 1 s.
    """
    runs = np.minimum(workload.actual_runtime, workload.requested_time)
    return replace(workload, actual_runtime=runs, requested_time=np.maximum(1, runs))


def sets_of_logs(names: Sequence[str]) -> Mapping[str, JobSet]:
    """Give the job set of each log by its file's name, for those that are the paper's.

    InputError if a log is not one of the paper's, or two are of one set.
    """
    known = {job_set.log: job_set for job_set in JOB_SETS if job_set.log is not None}
    found: dict[str, JobSet] = {}
    for name in names:
        of_log = [job_set for beginning, job_set in known.items() if name.startswith(beginning)]
        if not of_log:
            raise InputError(
                f"{name}: not a log of this study; it has those whose names begin with "
                f"{', '.join(known)}"
            )
        if of_log[0] in found.values():
            raise InputError(f"{name}: another log of {of_log[0].name} is given, too; give one")
        found[name] = of_log[0]
    return found


def read_sources(logs: Sequence[Path]) -> tuple[dict[str, JobSource], list[str]]:
    """Read the paper's logs; give the sets' sources, PC2's always, and what was done to each log.

    InputError as `sets_of_logs`, before any log is read; or if one can't be simulated.
    """
    of_logs = sets_of_logs([log.name for log in logs])
    sources: dict[str, JobSource] = {PC2.name: Pc2Source()}
    notes: list[str] = []
    for log in logs:
        job_set = of_logs[log.name]
        # Runtimes beyond the estimate are part of what is generated; jobs are killed all the same.
        workload, filtered = workload_of_log(read_log(log), filters=Filters(overruns="keep"))
        sources[job_set.name] = LogSource.of(job_set, workload)
        notes.append(filtered.text)
    return sources, notes
