"""Streit 2002 again: self-tuning dynP on job sets like those of four centres.

A. Streit, "A Self-Tuning Job Scheduler Family with Dynamic Policy Switching", JSSPP 2002, sections
4 and 5. Tables, figures and claims are made of the runs by the modules beside this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from foretime_sim.scores.intervals import Interval, t_interval
from foretime_sim.scores.repeats import FEWEST_REPEATS
from foretime_sim.workloads.workload import Workload

from foretime_studies.streit2002.paper import set_figures
from foretime_studies.streit2002.runs import (
    Case,
    CaseResult,
    Requests,
    StudySettings,
    cases,
    run,
)
from foretime_studies.streit2002.sets import (
    JOB_SETS,
    TABLE_FACTOR,
    JobSet,
    JobSource,
    Kind,
    Width,
    on_machine,
    printed_gaps,
)

Figure = Callable[[CaseResult], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over several draws of a set: its mean, and where that lies at 95%.

    Attributes
    ----------
    first
        Of the first draw, which is what a paper with single runs would print.
    mean, interval
        Over all of them; no interval of fewer than three.
    """

    first: float
    mean: float
    interval: Interval | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sum up at least one value."""
        interval = t_interval(values) if len(values) >= FEWEST_REPEATS else None
        return cls(values[0], float(np.mean(values)), interval)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends of the interval."""
        return (None, None) if self.interval is None else (self.interval.low, self.interval.high)


@dataclass(frozen=True, slots=True)
class Streit2002:
    """What the study found.

    Attributes
    ----------
    sets
        Those that were run, in the paper's order.
    sources
        Where their jobs come from, by name.
    settings
        How much was run.
    results
        Of every run.
    notes
        What was done to the logs.
    """

    sets: tuple[JobSet, ...]
    sources: Mapping[str, JobSource]
    settings: StudySettings
    results: Mapping[Case, CaseResult]
    notes: tuple[str, ...]

    def runs(
        self,
        job_set: str,
        scheduler: str,
        factor: float = TABLE_FACTOR,
        *,
        kind: Kind = "independent",
        width: Width = "printed",
        requests: Requests = "real",
    ) -> list[CaseResult]:
        """Give the runs on all draws, the first first; none where this was not run."""
        found: list[CaseResult] = []
        while True:
            case = Case(job_set, kind, len(found) + 1, width, factor, requests, scheduler)
            if case not in self.results:
                return found
            found.append(self.results[case])

    def spread(
        self,
        of: Figure,
        job_set: str,
        scheduler: str,
        factor: float = TABLE_FACTOR,
        *,
        kind: Kind = "independent",
        width: Width = "printed",
        requests: Requests = "real",
    ) -> Spread | None:
        """Give one figure over all draws; ``None`` where this was not run."""
        found = self.runs(job_set, scheduler, factor, kind=kind, width=width, requests=requests)
        values = [of(result) for result in found]
        return Spread.of(values) if values else None

    def jobs(self, job_set: JobSet, draw: int = 1) -> Workload:
        """Give a generated set at the factor of table 3, on its printed machine."""
        source = self.sources[job_set.name]
        made = source.jobs("independent", draw, self.settings.jobs, TABLE_FACTOR)
        return on_machine(made, job_set.printed_processors)

    def figures_of_set(self, job_set: JobSet, draw: int = 1) -> dict[str, float]:
        """Give table 3's figures of a generated set."""
        return set_figures(self.jobs(job_set, draw), printed_gaps(job_set))


def study(
    sources: Mapping[str, JobSource],
    folder: Path,
    settings: StudySettings | None = None,
    *,
    workers: int = 2,
    notes: Sequence[str] = (),
    begin: Callable[[int], Callable[[int], None]] | None = None,
) -> Streit2002:
    """Run what is not kept yet.

    Parameters
    ----------
    sources
        By the name of the set; sets without one are left out.
    folder
        Where results are kept.
    settings
        How much; the defaults of `StudySettings`.
    workers
        Threads.
    notes
        What was done to the logs.
    begin
        Called with the number of runs; what it gives is called with how many are done.
    """
    settings = settings or StudySettings()
    listed = cases(sources, settings)
    progress = None if begin is None else begin(len(listed))
    results = run(listed, sources, settings, folder, workers=workers, progress=progress)
    sets = tuple(job_set for job_set in JOB_SETS if job_set.name in sources)
    return Streit2002(sets, sources, settings, results, tuple(notes))
