"""Beyond Streit 2002: self-tuning by forward runs, against the best single policy.

What the paper wishes for in its last sentence is a curve that "would always stay below or is equal
to the best single policy at any workload": here that is judged at each shrinking factor of each job
set, against FCFS, SJF and LJF as the paper has them (every job planned anew at each step, on
requested times). Settings are chosen for each set on other draws of the others.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.families import Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.self_tuning.forward_candidates import Candidate, OrderedBy
from foretime_sim.self_tuning.forward_switching import ForwardSwitching, width_candidates
from foretime_sim.self_tuning.switched_run import SwitchedSchedule, simulate_switching
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import kept_cases
from foretime_studies.frame.known_by_behaviour import known_by_jobs, probe
from foretime_studies.frame.progress import Begin, counted_on
from foretime_studies.streit2002.measures import Measures
from foretime_studies.streit2002.sets import JOB_SETS, JobSet, JobSource
from foretime_studies.streit2002.study import (
    ADVANCED,
    FCFS,
    KEPT,
    LJF,
    SCHEDULERS,
    SINGLES,
    SJF,
    Case,
    drawn_jobs,
)

FIRST_DRAW, FIRST_TUNING_DRAW = 21, 101
"""Of those that are judged, and of those that settings are chosen on. Which candidates there are,
how far ahead futures reach, and how patient jobs are, was found on draws 1, 2, 11 and 101."""

VARIANTS: Mapping[str, ForwardSwitching] = {
    "default": ForwardSwitching(),
    "without SJF on requests": ForwardSwitching(width_candidates()[:-1]),
}
"""What is chosen between for each set, on the others; the first where there are none."""
NEVER = 1_000_000_000


def _alone(by: OrderedBy) -> ForwardSwitching:
    """Give a scheduler of one candidate, which never decides."""
    only = Candidate(Order.SJF, by, 0.5, Easy(depth=16))
    return ForwardSwitching((only,), every_jobs=NEVER)


RIVALS = (FCFS, SJF)
"""What ours is judged by. LJF is run beside, and is never as good as the better of these."""
BY_REQUEST, BY_MEAN = "width order, requested", "width order, expected"
"""Steps from the paper's dynP to ours: another order; going by what is expected."""
STEPS = (KEPT, ADVANCED, BY_REQUEST, BY_MEAN)
TUNED: Mapping[str, ForwardSwitching] = {
    BY_REQUEST: _alone(OrderedBy.REQUESTED),
    BY_MEAN: _alone(OrderedBy.EXPECTED),
    **VARIANTS,
}


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a scheduler that tunes itself did."""

    started: dict[str, int]  # jobs started under each candidate, by its name
    # decisions, switches: how often it decided, and went over to another candidate
    decisions: int
    switches: int
    # Processor time of a decision on average, seconds; ``None`` without any.
    decision_s: float | None
    due: int  # jobs that had waited for too long, and went before all orders

    @classmethod
    def of(cls, ran: SwitchedSchedule, settings: ForwardSwitching) -> Tuning:
        """Read it off a run."""
        names = [candidate.name for candidate in settings.candidates]
        counts = np.bincount(ran.started_under, minlength=len(names)).tolist()
        return cls(
            dict(zip(names, counts, strict=True)),
            len(ran.decisions),
            sum(decision.before != decision.chosen for decision in ran.decisions),
            float(np.mean(ran.decision_s)) if ran.decision_s else None,
            int(ran.was_due.sum()),
        )


@dataclass(frozen=True, slots=True)
class BeyondResult:
    """What is kept of a run."""

    measures: Measures  # as in Streit 2002
    p99_wait_s: float  # 99th percentile of the waits, seconds
    tuning: Tuning | None  # ``None`` of a scheduler that does not tune itself by forward runs

    @classmethod
    def of(cls, workload: Workload, scheduler: Policy | ForwardSwitching) -> BeyondResult:
        """Run it."""
        tuning = None
        if isinstance(scheduler, Policy):
            plain = simulate(workload, scheduler)
            measures, start_time = Measures.of(workload, plain), plain.start_time
        else:
            ran = simulate_switching(workload, scheduler)
            measures, start_time = Measures.of(workload, ran), ran.start_time
            tuning = Tuning.of(ran, scheduler)
        p99 = float(np.quantile(start_time - workload.submit_time, 0.99))
        return cls(measures, p99, tuning)


@dataclass(frozen=True, slots=True)
class BeyondSettings:
    """How much is run."""

    seeds: int = 10  # draws of each set at each factor that are judged
    # The first of these, on which what stands beside is run: LJF, which is never the best; at three
    # factors the paper's dynP, steps from there to ours, and conservative backfilling that keeps
    # its reservations; and so many parts of each log.
    few_seeds: int = 2
    tuning_seeds: int = 1  # other draws, on which settings are chosen
    # Draws after those, of the set that has no log: a few week-long jobs decide there, so that it
    # takes many draws to tell one scheduler from another. Reported beside.
    more_seeds: int = 10
    jobs: int = 10_000

    def draws_of(self, job_set: JobSet) -> int:
        """Count a set's judged draws, further ones included."""
        return self.seeds + (self.more_seeds if job_set.log is None else 0)


@dataclass(frozen=True, slots=True)
class Streit2002Beyond:
    """What the study found."""

    sets: tuple[JobSet, ...]  # those that were run, in the paper's order
    settings: BeyondSettings
    chosen: Mapping[str, str]  # which of `VARIANTS` each set was judged with
    results: Mapping[Case, BeyondResult]
    log_parts: Mapping[str, int]  # parts of each set's log
    notes: tuple[str, ...]  # what was done to the logs

    def runs(
        self, job_set: JobSet, factor: float, scheduler: str, draws: int | None = None
    ) -> list[BeyondResult]:
        """Give the judged runs, by draw: of the first ``draws``, ``settings.seeds`` if ``None``."""
        count = self.settings.seeds if draws is None else draws
        return [
            self.results[Case(job_set.name, scheduler, factor, draw)]
            for draw in range(FIRST_DRAW, FIRST_DRAW + count)
        ]

    def artww(
        self, job_set: JobSet, factor: float, scheduler: str, draws: int | None = None
    ) -> Float64Array:
        """Give ARTwW of the judged runs, seconds, by draw."""
        runs = self.runs(job_set, factor, scheduler, draws)
        return np.array([run.measures.artww_s for run in runs])

    def best_single(self, job_set: JobSet, factor: float, draws: int | None = None) -> str:
        """Name the better of FCFS and SJF by mean ARTwW."""
        return min(
            RIVALS, key=lambda single: float(self.artww(job_set, factor, single, draws).mean())
        )


def study(
    sources: Mapping[str, JobSource],
    folder: Path,
    settings: BeyondSettings | None = None,
    *,
    workers: int = 2,
    notes: Sequence[str] = (),
    begin: Begin | None = None,
) -> Streit2002Beyond:
    """Choose settings for each set on the others, and run what is judged.

    Parameters are those of `foretime_studies.streit2002.study.study`.
    """
    settings = settings or BeyondSettings()
    sets = tuple(job_set for job_set in JOB_SETS if job_set.name in sources)
    tuned = list(_tuning_cases(sets, settings)) if len(sets) > 1 else []
    parts = {
        job_set.name: min(settings.few_seeds, sources[job_set.name].draws("log", settings.jobs))
        for job_set in sets
    }
    judged = functools.partial(_judged_cases, sets, settings, parts)
    anything = dict.fromkeys((job_set.name for job_set in sets), next(iter(VARIANTS)))
    progress = None if begin is None else begin(len(tuned) + len(judged(anything)))

    jobs = drawn_jobs(sources, settings.jobs)

    def identity(case: Case) -> str:
        return known_by_jobs(jobs(case), case.scheduler, _behaviour(case.scheduler))

    def result(case: Case) -> BeyondResult:
        return BeyondResult.of(jobs(case), _scheduler(case.scheduler))

    def run(listed: Sequence[Case], before: int = 0) -> dict[Case, BeyondResult]:
        on = counted_on(progress, before)
        return kept_cases(
            listed, identity, result, BeyondResult, folder, workers=workers, progress=on
        )

    results = run(tuned) if tuned else {}
    chosen = {job_set.name: _choose(job_set, results) for job_set in sets}
    results |= run(judged(chosen), len(tuned))
    return Streit2002Beyond(sets, settings, chosen, results, parts, tuple(notes))


def tuning_factors(job_set: JobSet) -> tuple[float, ...]:
    """Give the factors at which settings are chosen: the first, the middle and the last."""
    factors = job_set.factors
    return factors[0], factors[len(factors) // 2], factors[-1]


def log_factors(job_set: JobSet) -> tuple[float, ...]:
    """Give the factors at which parts of the logs are run: the first and the middle."""
    return tuning_factors(job_set)[:2]


def _tuning_cases(sets: Sequence[JobSet], settings: BeyondSettings) -> Iterator[Case]:
    draws = range(FIRST_TUNING_DRAW, FIRST_TUNING_DRAW + settings.tuning_seeds)
    for draw, job_set in itertools.product(draws, sets):
        for factor, variant in itertools.product(tuning_factors(job_set), VARIANTS):
            yield Case(job_set.name, variant, factor, draw)


def _choose(job_set: JobSet, tuned: Mapping[Case, BeyondResult]) -> str:
    """Give what does best on the other sets: the least mean logarithm of ARTwW."""

    def score(variant: str) -> float:
        of_others = [
            math.log(result.measures.artww_s)
            for case, result in tuned.items()
            if case.scheduler == variant and case.job_set != job_set.name
        ]
        return float(np.mean(of_others)) if of_others else 0.0

    return min(VARIANTS, key=score)


def _judged_cases(
    sets: Sequence[JobSet],
    settings: BeyondSettings,
    log_parts: Mapping[str, int],
    chosen: Mapping[str, str],
) -> list[Case]:
    """List what is judged; those of the first draws come first, further draws last."""
    found: list[Case] = []
    for number, job_set in itertools.product(range(settings.seeds), sets):
        ours = chosen[job_set.name]
        is_few = number < settings.few_seeds
        draw = FIRST_DRAW + number
        for factor in job_set.factors:
            schedulers = [ours, *RIVALS, *([LJF] if is_few else [])]
            if is_few and factor in tuning_factors(job_set):
                schedulers += STEPS
            found += [Case(job_set.name, scheduler, factor, draw) for scheduler in schedulers]
        of_log = log_factors(job_set) if number < log_parts[job_set.name] else ()
        found += [
            Case(job_set.name, scheduler, factor, number + 1, kind="log")
            for factor, scheduler in itertools.product(of_log, (ours, *SINGLES))
        ]
    return found + [
        Case(job_set.name, scheduler, factor, FIRST_DRAW + number)
        for job_set in sets
        for number in range(settings.seeds, settings.draws_of(job_set))
        for factor in job_set.factors
        for scheduler in (chosen[job_set.name], *RIVALS)
    ]


def _scheduler(name: str) -> Policy | ForwardSwitching:
    return TUNED[name] if name in TUNED else SCHEDULERS[name]


@functools.cache
def _behaviour(name: str) -> bytes:
    """Say what a scheduler does to a small workload, deciding often if it does at all."""
    small = probe()
    scheduler = _scheduler(name)
    if isinstance(scheduler, Policy):
        return simulate(small, scheduler).start_time.tobytes()
    often = replace(scheduler, every_jobs=min(scheduler.every_jobs, 50))
    ran = simulate_switching(small, often)
    return f"{scheduler} {ran.decisions}".encode() + ran.start_time.tobytes()
