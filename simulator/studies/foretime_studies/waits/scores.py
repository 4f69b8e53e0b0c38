"""Scores of a gone-through log: every method at submissions and later, and the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_sim.scores.intervals import Interval, Weeks
from foretime_sim.waits.block_sums import Blocks, Figure, combined
from foretime_sim.waits.forecaster import LEVELS
from foretime_sim.waits.scores.bound_tightness import Tightness, tightness
from foretime_sim.waits.scores.coverage_slices import CoverageSlice, coverage_slices
from foretime_sim.waits.wait_scores import AT, ForecastOutcomes, order_score, passed_bound, scores

from foretime_studies.frame.claims import keeps
from foretime_studies.waits.day_coverage import DayCoverage
from foretime_studies.waits.end_scores import end_outcomes
from foretime_studies.waits.runs import (
    FIRST_S,
    FORWARD,
    ORACLES,
    OURS,
    PERFECT,
    PLAN,
    QBETS,
    WaitsRun,
)

COVERED = Interval(0.93, 0.97)
"""What the 95% bound is to hold."""
GAPS: Mapping[str, str] = {
    "within_10min": "within 10 min",
    "within_double": "within [t/2, 2t]",
    "within_triple": "within [t/3, 3t]",
    "log10_error": "log10 error",
}
"""Scores whose gap between the plan on t_req and perfect runtimes is to be closed."""
_SEED = 6


@dataclass(frozen=True, slots=True)
class Target:
    """One target on one log."""

    name: str  # what is asked
    wanted: str  # in words
    # value, interval: what was found; a share or a ratio
    value: float
    interval: Interval | None
    met: bool  # whether the value is as wanted
    note: str = ""  # what else the reader has to know


class ScoredRun:
    """A run's scores, each worked out when first asked for."""

    def __init__(self, run: WaitsRun) -> None:
        self.run = run
        self.methods = run.records.methods
        self._weeks = Weeks.of(run.submit_time[run.submit_time >= run.scored_from], _SEED)
        self._scored = run.submit_time >= run.scored_from
        if run.evenly is not None:
            self._scored &= run.evenly
        self._first = self._scored & (run.records.after_s == 0)
        self._later = self._scored & (run.records.after_s > 0)
        self._outcomes = {
            method: ForecastOutcomes.of(run.records, method, run.now_within_s)
            for method in self.methods
        }

    @cached_property
    def at_submission(self) -> dict[str, dict[str, Figure]]:
        """Scores of first answers, by method."""
        return self._scores(self._first)

    @cached_property
    def later(self) -> dict[str, dict[str, Figure]]:
        """Scores of later answers, with the order of starts and the bounds that were passed."""
        found = self._scores(self._later)
        for method in self.methods:
            rows, blocks = self._part(method, self._scored)
            found[method] |= {
                "order": order_score(rows, blocks),
                "passed_bound": passed_bound(rows, blocks),
            }
        return found

    @property
    def first_weeks(self) -> BoolArray:
        """Which records are first answers of the log's first two weeks, warm-up or not."""
        early = self.run.submit_time < self.run.first_submit + FIRST_S
        return np.asarray(early & (self.run.records.after_s == 0))

    @property
    def after_warm_up(self) -> BoolArray:
        """Which records are the first answers that are scored of the whole log."""
        chosen: BoolArray = self._first
        return chosen

    def early(self, method: str) -> dict[str, Figure]:
        """Give a method's scores in the first two weeks, which are too few for intervals."""
        rows = self.outcomes(method, self.first_weeks)
        return scores(rows, Blocks.of(None, rows.made_at))

    def outcomes(self, method: str, chosen: BoolArray) -> ForecastOutcomes:
        """Give some of a method's answers."""
        return self._outcomes[method].take(chosen)

    def days(self, *, first_weeks: bool = False) -> DayCoverage:
        """Give how often our bound held day by day, at submission and later looks."""
        early = self.run.submit_time < self.run.first_submit + FIRST_S
        return DayCoverage.of(self.outcomes(OURS, early if first_weeks else self._scored))

    @cached_property
    def ends(self) -> dict[tuple[str, str], dict[str, Figure]]:
        """Scores of forecasts of ends, by when they were made and by method."""
        found = {}
        for asked, chosen in (("at submission", self._first), ("later looks", self._later)):
            blocks = Blocks.of(self._weeks, self.run.submit_time[chosen])
            for method, rows in end_outcomes(self.run, chosen).items():
                found[asked, method] = scores(rows, blocks)
        return found

    @cached_property
    def started_after_bound(self) -> tuple[float, float]:
        """Share of the jobs asked about again that started after their first 95% bound.

        Of these a later median passes the bound with reason. And the share if the bound held
        exactly 95% of all jobs: who is asked about again has waited, so it is more than 5%.
        """
        rows = self.outcomes(OURS, self._scored)
        _, first, count = np.unique(rows.job, return_index=True, return_counts=True)
        again = rows.take(first[count > 1])
        if not len(again):
            return math.nan, math.nan
        late = again.wait_s > again.forecasts.wait_s[:, AT[0.95]]
        return float(late.mean()), min((1 - 0.95) * len(first) / len(again), 1.0)

    def outcomes_known(self, chosen: BoolArray) -> float:
        """Give the median number of outcomes that were known when some answers were given.

        One for each job asked about that had started.
        """
        records = self.run.records
        _, first = np.unique(records.job, return_index=True)
        starts = np.sort((records.made_at + records.waited_s)[first])
        return float(np.median(np.searchsorted(starts, records.made_at[chosen])))

    @property
    def waits_s(self) -> Int64Array:
        """Waits of the scored jobs that were asked about at their submission, seconds."""
        waits: Int64Array = self.run.records.waited_s[self._first]
        return waits

    @property
    def first_answers(self) -> int:
        """Submissions scored."""
        return int(self._first.sum())

    @property
    def later_answers(self) -> int:
        """Later looks scored."""
        return int(self._later.sum())

    @cached_property
    def tightness(self) -> dict[str, Tightness]:
        """The 95% bounds of first answers beside QBETS', by method."""
        other, blocks = self._part(QBETS, self._first)
        return {
            method: tightness(self._part(method, self._first)[0], other, blocks)
            for method in self.methods
        }

    @cached_property
    def slices(self) -> list[CoverageSlice]:
        """Slices of our first answers' 95% bounds."""
        rows, blocks = self._part(OURS, self._first)
        queues = self.run.queues
        return coverage_slices(rows, blocks, None if queues is None else queues.take(self._first))

    def reliability(self, method: str) -> Float64Array:
        """Give the share of first answers' waits up to each level's quantile, shape (levels,).

        Of the jobs that the method did not forecast to start at once.
        """
        rows, _ = self._part(method, self._first)
        waiting = rows.forecast_to_wait
        if not waiting.any():
            return np.full(len(LEVELS), np.nan)
        held = rows.wait_s[waiting, np.newaxis] <= rows.forecasts.wait_s[waiting]
        return np.asarray(held.mean(axis=0))

    def gap_closed(self, score: str) -> Figure:
        """Give how much of the way from the plan on t_req to perfect runtimes we are.

        NaN where there is no way: on a short log both may score the same.
        """
        ours, plan, perfect = (self.at_submission[name][score] for name in (OURS, PLAN, PERFECT))

        def share(one: Float64Array, base: Float64Array, best: Float64Array) -> Float64Array:
            return (one - base) / (best - base)

        found = combined(share, ours, plan, perfect)
        return found if math.isfinite(found.value) else Figure(math.nan, None)

    def pinball_beside_best(self, score: str) -> tuple[str, Figure]:
        """Give the best honest method but ours, and our loss as a share of its, on common rows."""
        ratios: dict[str, Figure] = {}
        for method in self.methods:
            answered = self._part(method, self._first)[0].forecasts.answered
            if method in (OURS, FORWARD) or method in ORACLES or not answered.any():
                continue
            ratios[method] = self.ratio(score, OURS, method)
        best = max(ratios, key=lambda method: ratios[method].value)
        return best, ratios[best]

    def ratio(self, score: str, one: str, other: str, *, later: bool = False) -> Figure:
        """Give a score of one method as a share of another's, on rows that both answered."""
        chosen = self._later if later else self._first
        mine, blocks = self._part(one, chosen)
        theirs, _ = self._part(other, chosen)
        both = mine.forecasts.answered & theirs.forecasts.answered
        figures = (scores(rows.take(both), blocks.take(both))[score] for rows in (mine, theirs))
        return combined(lambda first, second: first / second, *figures)

    def _part(self, method: str, chosen: BoolArray) -> tuple[ForecastOutcomes, Blocks]:
        rows = self._outcomes[method].take(chosen)
        return rows, Blocks.of(self._weeks, self.run.submit_time[chosen])

    def _scores(self, chosen: BoolArray) -> dict[str, dict[str, Figure]]:
        return {method: scores(*self._part(method, chosen)) for method in self.methods}


def targets(scored: ScoredRun) -> list[Target]:
    """Give every target of a run, met or not."""
    ours, later = scored.at_submission[OURS], scored.later[OURS]

    def target(name: str, wanted: str, rule: str, figure: Figure, note: str = "") -> Target:
        return Target(name, wanted, figure.value, figure.interval, keeps(figure.value, rule), note)

    covered = f"{COVERED.low} to {COVERED.high}"
    found = [
        target(name, "93 to 97%", covered, of["waiting_coverage_95"])
        for name, of in {"95% bound holds": ours, "the same, later looks": later}.items()
    ]
    early = DayCoverage.of(scored.outcomes(OURS, scored.first_weeks))
    found.append(
        Target(
            "95% bound holds, first two weeks",
            "93 to 97%",
            early.overall,
            early.interval,
            keeps(early.overall, covered),
            f"{early.jobs.sum():,} jobs; interval over days",
        )
    )
    for by in ("forecast wait", "queue", "week"):
        parts = [part for part in scored.slices if part.by == by]
        if parts:
            found.append(_slices_target(by, parts))
    beside = scored.tightness[OURS]
    note = f"mean bound: {beside.mean_ratio.value:.2f}; of {beside.rows:,} jobs"
    found.append(target("95% bound / QBETS'", "at most 0.80", "<= 0.8", beside.ratio, note))
    for score, unit in (("pinball_s", "seconds"), ("pinball_log", "log10")):
        other, ratio = scored.pinball_beside_best(score)
        name = f"pinball loss, {unit}, / best other's"
        found.append(target(name, "below 1", "< 1", ratio, f"best other: {other}"))
    found += [
        target(f"gap closed, {name}", "at least 40%", ">= 0.4", scored.gap_closed(score))
        for score, name in GAPS.items()
    ]
    passed = later["passed_bound"]
    late, exact = scored.started_after_bound
    note = f"{late:.1%} of them started after it; bounds exact of all jobs: up to {exact:.1%}"
    found.append(target("first 95% bound passed later", "at most 10%", "<= 0.1", passed, note))
    for asked in ("at submission", "later looks"):
        if (asked, OURS) in scored.ends:
            figure = scored.ends[asked, OURS]["coverage_95"]
            found.append(
                target(f"95% bound of the end holds, {asked}", "93 to 97%", covered, figure)
            )
    answered = min(ours["answered"].value, later["answered"].value)
    found.append(Target("answered", "100%", answered, None, answered == 1))
    return found


def _slices_target(by: str, parts: list[CoverageSlice]) -> Target:
    """Judge slices: every one is to be covered; a share of them is shown."""
    inside = [COVERED.low <= part.coverage <= COVERED.high for part in parts]
    possible = [
        part.interval is None
        or (part.interval.low <= COVERED.high and part.interval.high >= COVERED.low)
        for part in parts
    ]
    worst = min(part.coverage for part in parts)
    return Target(
        f"slices by {by} that hold 93 to 97%",
        "all",
        sum(inside) / len(parts),
        None,
        all(inside),
        f"{sum(inside)} of {len(parts)}; intervals reach it in {sum(possible)}; least {worst:.1%}",
    )
