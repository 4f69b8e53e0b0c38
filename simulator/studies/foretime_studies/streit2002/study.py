"""Streit 2002 again: self-tuning dynP on job sets like those of four centres.

A. Streit, "A Self-Tuning Job Scheduler Family with Dynamic Policy Switching", JSSPP 2002, sections
4 and 5. Tables, figures and claims are made of the runs by the modules beside this.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, Unpack

from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.policies.families import Backfill, Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import Decider, PolicySwitching, Quality
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import kept_cases
from foretime_studies.frame.known_by_behaviour import known_by_jobs, probe
from foretime_studies.frame.progress import Begin, Progress
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.measures import Measures
from foretime_studies.streit2002.paper import set_figures
from foretime_studies.streit2002.sets import (
    JOB_SETS,
    TABLE_FACTOR,
    JobSet,
    JobSource,
    Kind,
    Width,
    on_machine,
    printed_gaps,
    with_exact_requests,
)

QUALITIES = (Quality.ARTWW, Quality.ART, Quality.MAKESPAN)
"""In the order of table 4."""
DECIDERS = (Decider.SIMPLE, Decider.ADVANCED)


def _planning(order: Order) -> Policy:
    return Policy(order=order, backfill=Backfill.PLANNING)


def _switching(decider: Decider, quality: Quality, *, one_list: bool = False) -> Policy:
    switching = PolicySwitching(decider=decider, quality=quality, one_list=one_list)
    return Policy(backfill=Planning(switching))


FCFS, SJF, LJF, BASIC, KEPT = "FCFS", "SJF", "LJF", "basic dynP", "conservative"


def self_tuning(decider: Decider, quality: Quality) -> str:
    """Key of a self-tuning scheduler."""
    return f"{decider} {quality}"


SIMPLE, ADVANCED = (self_tuning(decider, Quality.ARTWW) for decider in DECIDERS)
"""With quality ARTwW."""
SINGLES = (FCFS, SJF, LJF)
SCHEDULERS: Mapping[str, Policy] = {
    **{str(order).upper(): _planning(order) for order in (Order.FCFS, Order.SJF, Order.LJF)},
    BASIC: Policy(backfill=Planning(PolicySwitching(decider=Decider.BASIC))),
    **{
        self_tuning(decider, quality): _switching(decider, quality)
        for quality in QUALITIES
        for decider in DECIDERS
    },
    KEPT: Policy(backfill=Backfill.CONSERVATIVE),
}
"""What is run. `KEPT` is conservative backfilling as elsewhere in Foretime: reservations are kept,
and only moved forward; the others plan all jobs anew in each step, as in the paper."""


def with_one_list(decider: Decider, quality: Quality) -> str:
    """Key of a self-tuning scheduler whose queue is one list that FCFS does not sort."""
    return f"one list, {self_tuning(decider, quality)}"


ONE_LIST: Mapping[str, Policy] = {
    with_one_list(decider, quality): _switching(decider, quality, one_list=True)
    for quality in QUALITIES
    for decider in DECIDERS
}
"""The reading under which the paper's table 6 comes out (docs/dynp.md)."""
LIST_SIMPLE, LIST_ADVANCED = (with_one_list(decider, Quality.ARTWW) for decider in DECIDERS)
EVERY: Mapping[str, Policy] = {**SCHEDULERS, **ONE_LIST}
FIVE = (FCFS, SJF, LJF, BASIC, ADVANCED)
"""Those of figures 4, 5, 7 and 8."""
BESIDE = (*SINGLES, ADVANCED)
"""Those that are run on other machines, modulated submissions and logs."""
Requests: TypeAlias = Literal["real", "exact"]


@dataclass(frozen=True, slots=True)
class Case:
    """One run."""

    job_set: str  # name of one of `JOB_SETS`
    scheduler: str  # one of `EVERY`
    factor: float = TABLE_FACTOR  # on the printed machine; on another it is that of the same load
    draw: int = 1  # seed of generated jobs; which part of a log
    kind: Kind = "independent"  # how its jobs are made
    width: Width = "printed"
    requests: Requests = "real"  # as estimated by users, or exact


class Variation(TypedDict, total=False):
    """What of a `Case` mostly is as it is by itself."""

    kind: Kind
    width: Width
    requests: Requests


@dataclass(frozen=True, slots=True)
class Switched:
    """What a scheduler that switches orders did."""

    started: dict[str, int]  # jobs started with each order, by its name
    tries: int  # of switches
    switches: dict[str, int]  # of these, changes to each order
    waiting_at_tries: int  # jobs waiting at them, summed up
    cases: dict[str, int] | None  # of table 1; ``None`` unless self-tuning

    @classmethod
    def of(cls, schedule: Schedule) -> Switched | None:
        """Read it off a schedule; ``None`` without switching."""
        counted = schedule.switching
        if counted is None:
            return None
        names = [str(order) for order in counted.orders]
        return cls(
            dict(zip(names, counted.jobs_started.tolist(), strict=True)),
            counted.tries,
            dict(zip(names, counted.switches, strict=True)),
            counted.waiting_at_tries,
            counted.cases,
        )


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What is kept of a run."""

    measures: Measures
    switched: Switched | None

    @classmethod
    def of(cls, workload: Workload, policy: Policy) -> CaseResult:
        """Run it."""
        schedule = simulate(workload, policy)
        return cls(Measures.of(workload, schedule), Switched.of(schedule))


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How much is run."""

    seeds: int = 10  # of generated sets: 1, 2, ...; the first is the paper-like single draw
    # Of what else runs over shrinking factors: exact requests (figure 6), the qualities ART and MS
    # (figures 2 and 3), other machines, modulated submissions, the logs themselves.
    further_seeds: int = 3
    jobs: int = 10_000


def cases(sources: Mapping[str, JobSource], settings: StudySettings) -> list[Case]:
    """List every run, each once; the paper's own figures first."""
    found = itertools.chain.from_iterable(
        _cases_of(job_set, sources[job_set.name], settings)
        for job_set in JOB_SETS
        if job_set.name in sources
    )
    # Those of the first draws come first: what is interrupted has whole draws.
    return sorted(dict.fromkeys(found), key=lambda case: case.draw)


def _cases_of(job_set: JobSet, source: JobSource, settings: StudySettings) -> Iterator[Case]:
    def crossed(
        schedulers: Iterable[str], factors: Sequence[float], draws: int, **other: Unpack[Variation]
    ) -> Iterator[Case]:
        draws = min(draws, source.draws(other.get("kind", "independent"), settings.jobs))
        for draw, factor, scheduler in itertools.product(range(1, draws + 1), factors, schedulers):
            yield Case(job_set.name, scheduler, factor, draw, **other)

    factors = (*job_set.factors, TABLE_FACTOR)
    few = settings.further_seeds
    yield from crossed(SCHEDULERS, (TABLE_FACTOR,), settings.seeds)
    yield from crossed((*FIVE, SIMPLE), factors, settings.seeds)
    yield from crossed((*SINGLES, ADVANCED), factors, few, requests="exact")
    yield from crossed(SCHEDULERS, factors, few)
    # The sets of tables 4 to 6 with the paper's load, and figure 2, with one list.
    loaded = (*SINGLES, SIMPLE, ADVANCED, *ONE_LIST)
    yield from crossed(loaded, (TABLE_FACTOR,), settings.seeds, kind="loaded")
    yield from crossed((LIST_SIMPLE, LIST_ADVANCED), job_set.factors, settings.seeds)
    some = job_set.some_factors
    yield from crossed(BESIDE, some, few, kind="modulated")
    yield from crossed(BESIDE, some, few, kind="log")
    if job_set.log_processors != job_set.printed_processors:
        yield from crossed(BESIDE, some, few, width="log")
        yield from crossed(BESIDE, some, few, kind="log", width="log")


def drawn_jobs(sources: Mapping[str, JobSource], jobs: int) -> Callable[[Case], Workload]:
    """Give what makes the jobs of a case, ``jobs`` of them."""
    by_name = {job_set.name: job_set for job_set in JOB_SETS}

    @functools.lru_cache(maxsize=8)
    def drawn(name: str, kind: Kind, draw: int, factor: float) -> Workload:
        return sources[name].jobs(kind, draw, jobs, factor)

    def workload(case: Case) -> Workload:
        job_set = by_name[case.job_set]
        factor = job_set.factor_on(case.factor, case.width)
        made = drawn(case.job_set, case.kind, case.draw, factor)
        made = on_machine(made, job_set.processors(case.width))
        return made if case.requests == "real" else with_exact_requests(made)

    return workload


def run(
    listed: Sequence[Case],
    sources: Mapping[str, JobSource],
    settings: StudySettings,
    folder: Path,
    *,
    workers: int,
    progress: Progress | None = None,
) -> dict[Case, CaseResult]:
    """Run what the folder does not have yet.

    A result is known by its jobs, the name of its scheduler, and what this Foretime's does under
    that name to a small workload: so one of older code is not taken for one of this.
    """
    jobs = drawn_jobs(sources, settings.jobs)

    def identity(case: Case) -> str:
        return known_by_jobs(jobs(case), case.scheduler, _behaviour(case.scheduler))

    def result(case: Case) -> CaseResult:
        return CaseResult.of(jobs(case), EVERY[case.scheduler])

    return kept_cases(
        listed, identity, result, CaseResult, folder, workers=workers, progress=progress
    )


@functools.cache
def _behaviour(scheduler: str) -> bytes:
    """Say what a scheduler does to a small workload."""
    small = probe()
    schedule = simulate(small, EVERY[scheduler])
    return f"{Switched.of(schedule)}".encode() + schedule.start_time.tobytes()


Figure = Callable[[CaseResult], float]


@dataclass(frozen=True, slots=True)
class Streit2002:
    """What the study found."""

    sets: tuple[JobSet, ...]  # those that were run, in the paper's order
    sources: Mapping[str, JobSource]  # where their jobs come from, by name
    settings: StudySettings
    results: Mapping[Case, CaseResult]
    notes: tuple[str, ...]  # what was done to the logs

    def runs(
        self, job_set: str, scheduler: str, factor: float = TABLE_FACTOR, **other: Unpack[Variation]
    ) -> list[CaseResult]:
        """Give the runs on all draws, the first first; none where this was not run."""
        drawn = (Case(job_set, scheduler, factor, draw, **other) for draw in itertools.count(1))
        run = itertools.takewhile(self.results.__contains__, drawn)
        return [self.results[case] for case in run]

    def spread(
        self,
        of: Figure,
        job_set: str,
        scheduler: str,
        factor: float = TABLE_FACTOR,
        **other: Unpack[Variation],
    ) -> Spread | None:
        """Give one figure over all draws; ``None`` where this was not run."""
        values = [of(result) for result in self.runs(job_set, scheduler, factor, **other)]
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
    sources: Mapping[str, JobSource],  # by the name of the set; sets without one are left out
    folder: Path,
    settings: StudySettings | None = None,  # how much; the defaults of `StudySettings`
    *,
    workers: int = 2,
    notes: Sequence[str] = (),  # what was done to the logs
    begin: Begin | None = None,
) -> Streit2002:
    """Run what is not kept yet."""
    settings = settings or StudySettings()
    listed = cases(sources, settings)
    progress = None if begin is None else begin(len(listed))
    results = run(listed, sources, settings, folder, workers=workers, progress=progress)
    sets = tuple(job_set for job_set in JOB_SETS if job_set.name in sources)
    return Streit2002(sets, sources, settings, results, tuple(notes))
