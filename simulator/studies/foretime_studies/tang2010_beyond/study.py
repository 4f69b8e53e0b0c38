"""Beyond Tang 2010: how much of perfect knowledge's gain a scheme reaches, and at what price.

The paper's section VI asks for ageing of old history and for more than user and project; the
estimator `similar` has both. Each log runs in the real loop: a job is predicted at its submission,
by what had finished then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard, parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.scores.job_classes import ALL, SIZES
from foretime_sim.scores.metrics import ScoredSpan
from foretime_sim.scores.policy_comparison import (
    CaseScores,
    PolicyCase,
    PolicyComparison,
    compare_policies,
)
from foretime_sim.scores.repeats import FEWEST_REPEATS, Repeats
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.claims import yes
from foretime_studies.frame.progress import Begin, counted_on
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import Entry, Row, StudyTable
from foretime_studies.frame.targets import Spread, Target

REQUESTS, PERFECT = "requests", "perfect"
SELECTIVE = Roles(queue=True, backfill=True, drain=False)
"""Running jobs are expected to end at their requests (Tang 2010, section V.A)."""
GUARD_S = 0
SCHEMES = (
    PolicyCase("combined", Policy(order=Order.WFP, roles=SELECTIVE), "combined"),
    PolicyCase(
        "combined, guard",
        Policy(backfill=Easy(guard=Guard(GUARD_S)), order=Order.WFP, roles=SELECTIVE),
        "combined",
    ),
    PolicyCase("similar", Policy(backfill=Easy(guard=Guard(GUARD_S)), order=Order.WFP), "similar"),
)
"""What is judged: the paper's selective scheme, the same with our guard, and ours."""


def _oracle(name: str, roles: str, estimator: str, guard_s: int | None) -> PolicyCase:
    return PolicyCase(
        name,
        Policy(
            backfill=Easy(guard=parse_guard(guard_s)), order=Order.WFP, roles=Roles.parse(roles)
        ),
        estimator,
    )


CEILING = "S110, guard"
"""Perfect knowledge in the roles in which `similar` has estimates, with its guard."""
ORACLES = (
    _oracle("S111, guard", "111", "actual", GUARD_S),
    _oracle(CEILING, "110", "actual", GUARD_S),
    _oracle("S010, guard", "010", "actual", GUARD_S),
    _oracle("S100, guard", "100", "actual", GUARD_S),
    _oracle("S100, known below 10 min", "100", "actual-below:600", GUARD_S),
    _oracle("S100, known below 1 min", "100", "actual-below:60", GUARD_S),
)
"""What limits a scheme: perfect knowledge in some roles, or of short jobs only, with our guard."""
CASES = (
    PolicyCase(REQUESTS, Policy(order=Order.WFP)),
    PolicyCase(PERFECT, Policy(order=Order.WFP), "actual"),
    *SCHEMES,
    *ORACLES,
)
"""Baseline, what is measured against (S111), what is judged, and what explains it."""


@dataclass(frozen=True, slots=True)
class BeyondInput:
    """A log, and which of its jobs are scored; all are learned as they finish."""

    name: str
    workload: Workload
    span: ScoredSpan


def _share(key: str) -> Callable[[CaseScores, CaseScores, CaseScores], float]:
    def share_of_perfect(requests: CaseScores, perfect: CaseScores, scheme: CaseScores) -> float:
        base, best, new = (_value(scores, key) for scores in (requests, perfect, scheme))
        return (base - new) / (base - best) if base != best else float("nan")

    return share_of_perfect


def _times(key: str) -> Callable[[CaseScores, CaseScores, CaseScores], float]:
    def times_of_requests(requests: CaseScores, _: CaseScores, scheme: CaseScores) -> float:
        base, new = _value(requests, key), _value(scheme, key)
        return new / base if base else float("nan")

    return times_of_requests


def _class_times(size: str) -> Callable[[CaseScores, CaseScores, CaseScores], float]:
    def times_of_requests(requests: CaseScores, _: CaseScores, scheme: CaseScores) -> float:
        base, new = (_class_wait(scores, size) for scores in (requests, scheme))
        return new / base if base and new is not None else float("nan")

    return times_of_requests


def _value(scores: CaseScores, key: str) -> float:
    value = scores.scores.to_dict()[key]
    return float("nan") if value is None else float(value)


def _class_wait(scores: CaseScores, size: str) -> float | None:
    return next(
        row.value for row in scores.by_class if row.size_class == size and row.length_class == ALL
    )


TARGETS = (
    Target("wait, share of perfect's gain", _share("wait_mean_s"), least=0.40),
    Target("slowdown, share of perfect's gain", _share("slowdown_mean"), least=0.40),
    Target("unitless wait, times requests'", _times("unitless_wait_mean"), most=1.0),
    Target("p99 wait, times requests'", _times("wait_p99_s"), most=1.05),
    *(
        Target(f"wait of {size} jobs, times requests'", _class_times(size), most=1.05)
        for size in SIZES
    ),
)
"""Those of issue 4."""
BESIDES = (
    Target("longest wait, times requests'", _times("wait_max_s")),
    Target("bounded slowdown, share of perfect's gain", _share("bounded_slowdown_mean")),
)
"""Told, but no targets."""
FIGURES = (
    ("wait, s", "wait_mean_s", ",.0f"),
    ("unitless wait", "unitless_wait_mean", ",.2f"),
    ("slowdown", "slowdown_mean", ",.1f"),
    ("bounded slowdown", "bounded_slowdown_mean", ",.1f"),
    ("p99 wait, s", "wait_p99_s", ",.0f"),
    ("longest wait, s", "wait_max_s", ",.0f"),
    ("starved", "starved_jobs", ",.1f"),
    ("backfilled", "backfilled_jobs", ",.0f"),
)
"""Heading, metric and form of what is told of each case."""


def run(
    inputs: Sequence[BeyondInput],  # with distinct names
    repeats: Repeats,  # how often, and how repeats differ
    begin: Begin | None = None,
) -> dict[str, PolicyComparison]:
    """Run every case on every input's jittered copies."""
    whole = sum(len(given.workload) for given in inputs) * len(CASES) * repeats.count
    progress = None if begin is None else begin(whole)
    done = 0
    found = {}
    for given in inputs:
        found[given.name] = compare_policies(
            given.workload,
            CASES,
            repeats=repeats,
            accuracy=AccuracySettings.tang2010(),
            span=given.span,
            class_metric="wait_mean_s",
            progress=counted_on(progress, done),
        )
        done += len(given.workload) * len(CASES) * repeats.count
    return found


def measured(comparison: PolicyComparison, target: Target, case: int) -> Spread:
    """Work one target's figure out in every repeat of a case."""
    values = [target.measure(run[0], run[1], run[case]) for run in comparison.runs]
    return Spread.of(values, comparison.repeats.level)


def targets_table(name: str, comparison: PolicyComparison, key: str) -> StudyTable:
    """Say of each scheme which targets it meets on one log, and beside them what S110 gives."""
    names = [case.name for case in CASES]
    rows: list[Row] = []
    for target in (*TARGETS, *BESIDES):
        row: list[Entry] = [("target", target.title), ("bound", target.bound())]
        for case in SCHEMES:
            value = measured(comparison, target, names.index(case.name))
            judged = target in TARGETS and value.mean == value.mean
            row += [
                (case.name, value.ranging()),
                ("met", yes(target.met(value.mean)) if judged else "–"),
            ]
        ceiling = measured(comparison, target, names.index(CEILING))
        rows.append([*row, (CEILING, ceiling.ranging())])
    count = comparison.repeats.count
    note = f"Means over {count} jittered runs" + (
        f", with {comparison.repeats.level:.0%} intervals." if count >= FEWEST_REPEATS else "."
    )
    return StudyTable.of(f"{key}-targets", f"{name}: targets", rows, note)


def figures_table(name: str, comparison: PolicyComparison, key: str) -> StudyTable:
    """Give each case's own figures on one log."""
    rows: list[Row] = [
        [
            ("case", case.name),
            *((t, comparison.figure(place, metric).mean, form) for t, metric, form in FIGURES),
        ]
        for place, case in enumerate(comparison.cases)
    ]
    return StudyTable.of(f"{key}-figures", f"{name}: figures", rows)


def oracles_table(name: str, comparison: PolicyComparison, key: str) -> StudyTable:
    """Give what perfect knowledge of some roles or jobs does to each target's figure."""
    first = len(CASES) - len(ORACLES)
    rows: list[Row] = [
        [
            ("figure", target.title),
            *(
                (case.name, measured(comparison, target, place).ranging())
                for place, case in enumerate(ORACLES, first)
            ),
        ]
        for target in (*TARGETS, *BESIDES)
    ]
    return StudyTable.of(f"{key}-oracles", f"{name}: oracles", rows)


def report(found: dict[str, PolicyComparison], notes: Sequence[str] = ()) -> StudyReport:
    """Put the tables of all logs together."""
    tables = []
    for number, (name, comparison) in enumerate(found.items(), 1):
        tables += [
            targets_table(name, comparison, f"log{number}"),
            oracles_table(name, comparison, f"log{number}"),
            figures_table(name, comparison, f"log{number}"),
        ]
    return StudyReport("Beyond Tang 2010", notes, tables)
