"""Tables of forecast waits: targets of every log, and every method's scores log by log."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from foretime_sim.scores.intervals import Interval
from foretime_sim.waits.block_sums import Figure
from foretime_sim.waits.forecaster import MEDIAN
from foretime_sim.waits.wait_scores import AT, ForecastOutcomes, log10_s

from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Column, Entry, Row, Rows, StudyTable, study_table
from foretime_studies.waits.day_coverage import FEWEST_JOBS, DayCoverage
from foretime_studies.waits.runs import FORWARD, ORACLES, OURS
from foretime_studies.waits.scores import ScoredRun, targets

_SCORES, _LATER = (
    tuple(
        (score, row["heading"], row["form"])
        for score, row in published(__package__, "scores").items()
        if row["of"] in (of, "both")
    )
    for of in ("first", "later")
)
"""Of first answers and of later ones: score, heading, form of its numbers."""
_OF_ENDS = tuple(
    shown
    for shown in _LATER
    if shown[0].startswith(("waiting_coverage", "pinball", "within_double", "within_triple"))
    or shown[0] == "log10_error"
)
_NOTE = (
    "Bounds are of the jobs that a method did not forecast to start at once; within [t/2, 2t] and"
    " all after it of waits above ten minutes. A method marked * is told the future."
)


def tables(runs: Sequence[ScoredRun]) -> tuple[StudyTable, ...]:
    """Give every table, a log's own after those of all logs."""
    found = [
        logs_table(runs),
        targets_table(runs),
        first_weeks_table(runs),
        days_table(runs),
        ends_table(runs),
        runtimes_table(runs),
    ]
    for scored in runs:
        key = f"{scored.run.name}-{scored.run.kind}"
        found += [
            methods_table(
                f"{key}-submission",
                f"{scored.run.title}: {scored.first_answers:,} jobs at their submission",
                scored.at_submission,
                _SCORES,
                scored,
            ),
            methods_table(
                f"{key}-later",
                f"{scored.run.title}: {scored.later_answers:,} later looks",
                scored.later,
                _LATER,
                None,
            ),
            intervals_table(f"{key}-intervals", scored),
            slices_table(f"{key}-slices", scored),
        ]
    return tuple(found)


@study_table("logs", "The logs")
def logs_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give what was asked of which log."""
    for scored in runs:
        run = scored.run
        waits = scored.waits_s
        yield [
            ("log", run.name),
            ("waits", run.kind),
            ("jobs", run.jobs, ",d"),
            ("asked at submission", scored.first_answers, ",d"),
            ("later looks", scored.later_answers, ",d"),
            ("started at once", float((waits <= run.now_within_s).mean()), ".1%"),
            ("waited over 10 min", float((waits > 600).mean()), ".1%"),
        ]


@study_table("targets", "Targets", "From, to: 95% interval of a bootstrap over weeks.")
def targets_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give every target on every log."""
    for scored in runs:
        for target in targets(scored):
            yield [
                ("log", scored.run.title),
                ("target", target.name),
                ("wanted", target.wanted),
                ("found", target.value, ".3f"),
                *_ends(target.interval, ".3f"),
                ("met", "met" if target.met else "**missed**"),
                ("note", target.note),
            ]


@study_table(
    "first_weeks",
    "The first two weeks",
    "First answers about jobs not forecast to start at once; pinball loss of all. Outcomes known:"
    " starts of jobs asked about, the median at submission. Width: 95% bound / median, geometric"
    " mean, each at least a minute. From, to: 95% interval, whole days drawn.",
)
def first_weeks_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give our scores in each log's first two weeks, beside those of the whole log."""
    for scored in runs:
        for part, chosen in (
            ("first two weeks", scored.first_weeks),
            ("whole log", scored.after_warm_up),
        ):
            for method in (FORWARD, OURS):
                rows = scored.outcomes(method, chosen)
                of = scored.early(method) if part == "first two weeks" else None
                figures = of or scored.at_submission[method]
                days = DayCoverage.of(rows)
                yield [
                    ("log", scored.run.title),
                    ("jobs of", part),
                    ("method", method),
                    ("jobs", int(days.jobs.sum()), ",d"),
                    ("outcomes known", scored.outcomes_known(chosen), ",.0f"),
                    ("95% bound holds", days.overall, ".1%"),
                    *_ends(days.interval, ".1%"),
                    ("width", _width(rows), ".2f"),
                    ("pinball, s", figures["pinball_s"].value, ",.0f"),
                    ("pinball, log10", figures["pinball_log"].value, ".4f"),
                ]


def _width(rows: ForecastOutcomes) -> float:
    """Give the geometric mean of 95% bound / median, of jobs not forecast to start at once."""
    told = log10_s(rows.forecasts.wait_s[rows.forecast_to_wait])
    if not len(told):
        return math.nan
    return float(10 ** (told[:, AT[0.95]] - told[:, MEDIAN]).mean())


@study_table(
    "days",
    "Day by day",
    f"Days with {FEWEST_JOBS} jobs and more that are asked about and not forecast to start at once,"
    " each with its first answer of the day. By chance: independent jobs, each bound holding with"
    " 95%; worst day: the median of a thousand draws. Variance: of the days' misses, as a multiple"
    " of that of independent jobs.",
)
def days_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give on how many days our bound held, and what chance alone would give."""
    for scored, early in itertools.product(runs, (True, False)):
        days = scored.days(first_weeks=early).of_enough()
        row: list[Entry] = [
            ("log", scored.run.title),
            ("jobs of", "first two weeks" if early else "whole log"),
            ("days", len(days), ",d"),
        ]
        chance = days.by_chance() if len(days) else None
        for least in (0.8, 0.85, 0.9):
            row += [
                (f"hold {least:.0%}", days.share_from(least) if chance else None, ".1%"),
                (f"{least:.0%} by chance", chance.share_from(least) if chance else None, ".1%"),
            ]
        yield [
            *row,
            ("worst day", days.worst if chance else None, ".1%"),
            ("worst by chance", chance.worst if chance else None, ".1%"),
            ("variance", days.beyond_chance if chance else None, ".1f"),
        ]


@study_table(
    "ends",
    "When jobs will have ended",
    "Within [t/2, 2t] and all after it of ends more than ten minutes ahead. A method marked * is"
    " told that part of the future. From, to: 95% interval of the 95% bound, weeks drawn whole.",
)
def ends_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give how well ends were forecast."""
    for scored in runs:
        for (asked, method), figures in scored.ends.items():
            covered = figures["waiting_coverage_95"].interval
            yield [
                ("log", scored.run.title),
                ("asked", asked),
                ("method", method),
                *((heading, figures[name].value, form) for name, heading, form in _OF_ENDS),
                *_ends(covered, ".1%"),
            ]


@study_table(
    "runtimes",
    "How well runtimes are known",
    "Of the jobs asked about, at their submission: the share whose median runtime is so near.",
)
def runtimes_table(runs: Sequence[ScoredRun]) -> Rows:
    """Give how near forecast runtimes are; what that allows of waits is on the page."""
    for scored in runs:
        if scored.run.runtimes is not None:
            runtimes = scored.run.runtimes.take(scored.after_warm_up)
            factor = np.exp(np.abs(np.log(runtimes.median_s / runtimes.runtime_s)))
            yield [
                ("log", scored.run.title),
                ("jobs", len(factor), ",d"),
                *(
                    (f"within a factor of {most:g}", float((factor <= most).mean()), ".1%")
                    for most in (1.1, 1.35, 2, 3)
                ),
            ]


def methods_table(
    key: str,
    title: str,
    found: Mapping[str, Mapping[str, Figure]],
    shown: Sequence[tuple[str, str, str]],
    scored: ScoredRun | None,
) -> StudyTable:
    """Give a row a method; with tightness beside QBETS where ``scored`` is given."""
    rows = []
    for method, figures in found.items():
        row: list[Entry] = [("method", f"{method}*" if method in ORACLES else method)]
        row += [(heading, figures[name].value, form) for name, heading, form in shown]
        if scored is not None:
            beside = scored.tightness[method]
            row += [
                ("95% bound / QBETS'", beside.ratio.value, ".2f"),
                ("the same, means", beside.mean_ratio.value, ".2f"),
            ]
        rows.append(row)
    return StudyTable.of(key, title, rows, _NOTE)


def intervals_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give our scores at submission with their intervals."""
    first, later = scored.at_submission[OURS], scored.later[OURS]
    shown = [*((first, score) for score in _SCORES), *((later, score) for score in _LATER[-2:])]
    rows: list[Row] = [
        [
            ("score", title),
            (OURS, figures[name].value, ",.4g"),
            *_ends(figures[name].interval, ",.4g"),
        ]
        for figures, (name, title, _) in shown
    ]
    title = f"{scored.run.title}: {OURS} with 95% intervals over weeks"
    return StudyTable.of(key, title, rows)


def slices_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give how often our 95% bound holds in each slice; there may be none."""
    columns = (
        Column("slice by"),
        Column("slice"),
        Column("jobs", ",d"),
        *(Column(title, ".1%") for title in ("95% bound holds", "from", "to")),
    )
    rows = tuple(
        (part.by, part.name, part.rows, part.coverage, *(end[1] for end in _ends(part.interval)))
        for part in scored.slices
    )
    title = f"{scored.run.title}: the 95% bound in slices"
    note = "Of jobs not forecast to start at once; slices of at least 100 of them."
    return StudyTable(key, title, columns, rows, note)


def _ends(interval: Interval | None, form: str = "") -> Row:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return [("from", low, form), ("to", high, form)]
