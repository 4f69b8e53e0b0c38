"""Beyond Gaussier 2015: what predictions bring to first come, first served with backfilling.

Each case runs on jittered copies of each log, in the real loop: a job is predicted at its
submission, by what had finished then. What is judged is how much of the gap between EASY and the
clairvoyant EASY-SJBF is closed, and what becomes of long waits. Nothing is chosen on the log that
it is judged on: for each log the case is taken that does best on the others.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.campaigns.cells import Plan, plan
from foretime_sim.campaigns.execution import Outcome
from foretime_sim.campaigns.file import parse_campaign
from foretime_sim.campaigns.runs import Record
from foretime_sim.policies.policy_values import OFF

from foretime_studies.frame.known_by_behaviour import known_by_behaviour
from foretime_studies.frame.targets import Spread, Target
from foretime_studies.gaussier2015.study import (
    CAMPAIGN,
    StudiedLog,
    campaign_head,
    check_outcome,
)
from foretime_studies.gaussier2015_beyond.cases import (
    CASES,
    CHOSEN_AMONG,
    CLAIRVOYANT,
    EASY,
    Case,
    Kind,
)


def missed(
    target: Target,
    # Figures, shape (logs, cases). A bound of the mean counts once for each log.
    values: Float64Array,
) -> Float64Array:
    """Say by how much cases miss a target on some logs: the sum of the shares of the bounds."""
    by = np.zeros_like(values)
    if target.most is not None:
        by += np.maximum(0, values / target.most - 1)
    if target.least is not None:
        by += np.maximum(0, 1 - values / target.least)
    if target.least_mean is not None:
        by += np.maximum(0, 1 - values.mean(axis=0) / target.least_mean)
    total: Float64Array = by.sum(axis=0)
    return total


def _gap(easy: Mapping[str, Any], best: Mapping[str, Any], own: Mapping[str, Any]) -> float:
    base, least, value = (float(run["bounded_slowdown_mean"]) for run in (easy, best, own))
    return (base - value) / (base - least) if base != least else float("nan")


def _below(easy: Mapping[str, Any], _: Mapping[str, Any], own: Mapping[str, Any]) -> float:
    return 1 - float(own["bounded_slowdown_mean"]) / float(easy["bounded_slowdown_mean"])


def _times(key: str) -> Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], float]:
    def times(easy: Mapping[str, Any], _: Mapping[str, Any], own: Mapping[str, Any]) -> float:
        return float(own[key]) / float(easy[key]) if easy[key] else float("nan")

    return times


GAP = Target("share of the gap closed", _gap, least=0.80, least_mean=0.90)
BELOW = Target("AVEbsld below EASY's", _below, least_mean=0.50)
MEAN_WAIT = Target("mean wait, times EASY's", _times("wait_mean_s"), most=1.0)
P99 = Target("p99 wait, times EASY's", _times("wait_p99_s"), most=1.05)
P99_9 = Target("p99.9 wait, times EASY's", _times("wait_p99_9_s"), most=1.05)
LONGEST = Target("longest wait, times EASY's", _times("wait_max_s"), most=1.2)
TARGETS = (GAP, BELOW, MEAN_WAIT, P99, P99_9, LONGEST)
WAITS = (MEAN_WAIT, P99, P99_9, LONGEST)
"""Those of waits: no log's may grow beyond its bound."""


class Rule(enum.Enum):
    """By what a case is chosen on the other logs."""

    GAP = "gap"
    """The greatest mean share of the gap closed."""
    WAITS = "waits"
    """The same among the cases that keep the targets of waits on all of them; where none does, the
    one that misses them by least."""
    ALL = "all"
    """The same by all targets."""


_JUDGED: Mapping[Rule, Sequence[Target]] = {Rule.GAP: (), Rule.WAITS: WAITS, Rule.ALL: TARGETS}
"""What must not be missed."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """What the study found."""

    logs: tuple[StudiedLog, ...]  # in the order of tables
    cases: tuple[Case, ...]  # those that were run, the first two as in `CASES`
    # Metrics (docs/outputs.md) of each repeat, by log and case.
    runs: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]

    @property
    def repeats(self) -> int:
        """How often each case ran on each log."""
        return len(self.runs[self.logs[0].name, EASY.name])

    def of_kind(self, *kinds: Kind) -> list[Case]:
        """Give the cases of some kinds."""
        return [case for case in self.cases if case.kind in kinds]

    def values(self, log: str, case: Case, target: Target) -> list[float]:
        """Give a target's figure in each repeat that the case has."""
        own = self.runs[log, case.name]
        easy, best = (self.runs[log, each.name][: len(own)] for each in (EASY, CLAIRVOYANT))
        return [target.measure(*run) for run in zip(easy, best, own, strict=True)]

    def measured(self, log: str, case: Case, target: Target) -> Spread:
        """Give a target's figure on a log."""
        return Spread.of(self.values(log, case, target))

    def matrix(self, cases: Sequence[Case], target: Target) -> Float64Array:
        """Give a target's means, shape (logs, cases)."""
        return np.array(
            [[self.measured(log.name, case, target).mean for case in cases] for log in self.logs]
        )

    def choices(self, rule: Rule) -> dict[str, Case]:
        """Choose a case for each log on the others; empty with a single log."""
        if len(self.logs) < 2:
            return {}
        cases = [case for case in self.of_kind(*CHOSEN_AMONG) if case.copies is None]
        values = {target: self.matrix(cases, target) for target in TARGETS}
        chosen = {}
        for place, log in enumerate(self.logs):
            others = np.arange(len(self.logs)) != place
            score = values[GAP][others].mean(axis=0)
            if judged := _JUDGED[rule]:
                by = np.sum([missed(target, values[target][others]) for target in judged], axis=0)
                score = np.where(by <= by.min() + 1e-12, score, -np.inf)
            chosen[log.name] = cases[int(np.argmax(score))]
        return chosen


def study(
    logs: Sequence[StudiedLog],  # with distinct names
    folder: Path,  # where results are kept; messages name it
    # Runs the cells of a plan that are not kept, keeps them, and gives all records.
    execute: Callable[[Plan], Outcome],
    *,
    repeats: int,  # jittered copies of each log, at least 1
    cases: Sequence[Case] = CASES,  # what is run; begins with `EASY` and `CLAIRVOYANT`
) -> Beyond:
    """Run what is not kept yet.

    ForetimeError if runs failed; those that did not are kept.
    """
    text = campaign_text(logs, repeats, cases)
    planned = known_by_behaviour(plan(parse_campaign(text, folder / CAMPAIGN)))
    outcome = execute(planned)
    check_outcome(outcome)
    return Beyond(tuple(logs), tuple(cases), _runs(planned, outcome.records.values(), cases))


def campaign_text(logs: Sequence[StudiedLog], repeats: int, cases: Sequence[Case]) -> str:
    """Write the campaign as `foretime_sim.campaigns.file` reads it."""
    seeds = list(range(1, repeats + 1))
    lines = [*campaign_head("Beyond Gaussier 2015", logs), "[grid]", f"seeds = {seeds}"]
    for case in cases:
        if case.axes:
            lines += ["[[include]]", f"seeds = {seeds[: case.copies]}"]
            lines += [f"{axis} = {json.dumps(value)}" for axis, value in case.axes.items()]
    return "\n".join(lines) + "\n"


_DEFAULTS: Mapping[str, Any] = {
    "order": "fcfs",
    "backfill": "easy",
    "estimator": "requested",
    "correction": "requested",
    "correction_steps": OFF,
    "roles": "111",
    "guard_s": OFF,
    "guard_by": "requested-plan",
    "guard_share": 0.0,
    "ageing_s": OFF,
}


def _runs(
    planned: Plan, records: Iterable[Record], cases: Sequence[Case]
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Sort the records by log and case, in the order of their seeds."""
    by_id = {record["id"]: record for record in records}
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell in sorted(planned.cells, key=lambda cell: int(cell.axes["seed"])):
        metrics = by_id[cell.id]["metrics"]
        for case in cases:
            if _runs_in(case, cell.axes):
                found.setdefault((cell.axes["log"], case.name), []).append(metrics)
    return found


def _runs_in(case: Case, axes: Mapping[str, Any]) -> bool:
    """Whether a cell is a case's; what has no effect there is ``None``."""
    wanted = {**_DEFAULTS, **case.axes}
    return all(axes[axis] in (None, value) for axis, value in wanted.items())
