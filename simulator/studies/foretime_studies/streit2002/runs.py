"""The runs of Streit 2002, section 5: which scheduler on which jobs, and what is kept of each."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.policies.families import Backfill, Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import Decider, PolicySwitching, Quality
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import kept_results
from foretime_studies.frame.known_by_behaviour import known_by_jobs, probe
from foretime_studies.streit2002.measures import Measures
from foretime_studies.streit2002.sets import (
    JOB_SETS,
    TABLE_FACTOR,
    JobSet,
    JobSource,
    Kind,
    Width,
    on_machine,
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
    """One run.

    Attributes
    ----------
    job_set
        Name of one of `JOB_SETS`.
    kind
        How its jobs are made.
    draw
        Seed of generated jobs; which part of a log.
    width
        Machine.
    factor
        Shrinking factor on the printed machine; on another it is that of the same load.
    requests
        As estimated by users, or exact.
    scheduler
        One of `EVERY`.
    """

    job_set: str
    kind: Kind
    draw: int
    width: Width
    factor: float
    requests: Requests
    scheduler: str


@dataclass(frozen=True, slots=True)
class Switched:
    """What a scheduler that switches orders did.

    Attributes
    ----------
    started
        Jobs started with each order, by its name.
    tries
        Of switches.
    switches
        Of these, changes to each order.
    waiting_at_tries
        Jobs waiting at them, summed up.
    cases
        Of table 1; ``None`` unless self-tuning.
    """

    started: dict[str, int]
    tries: int
    switches: dict[str, int]
    waiting_at_tries: int
    cases: dict[str, int] | None

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
    """How much is run.

    Attributes
    ----------
    seeds
        Of generated sets: 1, 2, ...; the first is the paper-like single draw.
    further_seeds
        Of what else runs over shrinking factors: exact requests (figure 6), the qualities ART and
        MS (figures 2 and 3), other machines, modulated submissions, the logs themselves.
    jobs
        In each set.
    """

    seeds: int = 10
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
        schedulers: Sequence[str],
        factors: Sequence[float],
        draws: int,
        *,
        kind: Kind = "independent",
        width: Width = "printed",
        requests: Requests = "real",
    ) -> Iterator[Case]:
        draws = min(draws, source.draws(kind, settings.jobs))
        for draw, factor, scheduler in itertools.product(range(1, draws + 1), factors, schedulers):
            yield Case(job_set.name, kind, draw, width, factor, requests, scheduler)

    factors = (*job_set.factors, TABLE_FACTOR)
    few = settings.further_seeds
    yield from crossed(tuple(SCHEDULERS), (TABLE_FACTOR,), settings.seeds)
    yield from crossed((*FIVE, SIMPLE), factors, settings.seeds)
    yield from crossed((*SINGLES, ADVANCED), factors, few, requests="exact")
    yield from crossed(tuple(SCHEDULERS), factors, few)
    # The sets of tables 4 to 6 with the paper's load, and figure 2, with one list.
    loaded = (*SINGLES, SIMPLE, ADVANCED, *ONE_LIST)
    yield from crossed(loaded, (TABLE_FACTOR,), settings.seeds, kind="loaded")
    yield from crossed((LIST_SIMPLE, LIST_ADVANCED), job_set.factors, settings.seeds)
    some = job_set.some_factors
    kinds: tuple[Kind, ...] = ("modulated", "log")
    for kind in kinds:
        yield from crossed(BESIDE, some, few, kind=kind)
    if job_set.log_processors != job_set.printed_processors:
        yield from crossed(BESIDE, some, few, width="log")
        yield from crossed(BESIDE, some, few, kind="log", width="log")


def run(
    listed: Sequence[Case],
    sources: Mapping[str, JobSource],
    settings: StudySettings,
    folder: Path,
    *,
    workers: int,
    progress: Callable[[int], None] | None = None,
) -> dict[Case, CaseResult]:
    """Run what is not kept yet.

    A result is known by its jobs, the name of its scheduler, and what this Foretime's does under
    that name to a small workload: so one of older code is not taken for one of this.

    Parameters
    ----------
    listed, sources, settings
        What, on which jobs, how many of them.
    folder
        Where results are kept.
    workers
        Threads.
    progress
        Called with the number of cases that are done.
    """
    by_name = {job_set.name: job_set for job_set in JOB_SETS}

    @functools.lru_cache(maxsize=8)
    def drawn(name: str, kind: Kind, draw: int, factor: float) -> Workload:
        return sources[name].jobs(kind, draw, settings.jobs, factor)

    def workload(case: Case) -> Workload:
        job_set = by_name[case.job_set]
        factor = job_set.factor_on(case.factor, case.width)
        made = on_machine(
            drawn(case.job_set, case.kind, case.draw, factor), job_set.processors(case.width)
        )
        return made if case.requests == "real" else with_exact_requests(made)

    ids = {case: _identity(workload(case), case.scheduler) for case in listed}
    todo = {
        ids[case]: functools.partial(_result, workload, case, EVERY[case.scheduler])
        for case in listed
    }
    found = kept_results(todo, CaseResult, folder, workers=workers, progress=progress)
    return {case: found[ids[case]] for case in listed}


def _result(workload: Callable[[Case], Workload], case: Case, policy: Policy) -> CaseResult:
    return CaseResult.of(workload(case), policy)


def _identity(workload: Workload, scheduler: str) -> str:
    return known_by_jobs(workload, scheduler, _behaviour(scheduler))


@functools.cache
def _behaviour(scheduler: str) -> bytes:
    """Say what a scheduler does to a small workload."""
    small = probe()
    schedule = simulate(small, EVERY[scheduler])
    return f"{Switched.of(schedule)}".encode() + schedule.start_time.tobytes()
