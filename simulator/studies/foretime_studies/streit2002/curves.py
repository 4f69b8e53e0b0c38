"""What Streit 2002 draws: figures 1 to 8 as tables, and what this study puts beside them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Entry, NotedRows, Row, Rows, StudyTable, study_table
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.measures import RUNTIME_CLASSES
from foretime_studies.streit2002.sets import TABLE_FACTOR, JobSet, Kind, Width
from foretime_studies.streit2002.study import (
    ADVANCED,
    BASIC,
    BESIDE,
    DECIDERS,
    FCFS,
    FIVE,
    KEPT,
    QUALITIES,
    SIMPLE,
    SINGLES,
    CaseResult,
    Figure,
    Requests,
    Streit2002,
    self_tuning,
)

SELF_TUNING = tuple(self_tuning(decider, quality) for quality in QUALITIES for decider in DECIDERS)
"""Those of figures 2 and 3."""
TIMES_S = (60, 300, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 64_800, 86_400, 604_800)
"""At which figure 1 is told."""


def measured(name: str) -> Figure:
    """Give what takes one of `Measures` of a run."""

    def of(result: CaseResult) -> float:
        return float(getattr(result.measures, name))

    return of


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure: one measure over shrinking factors, a curve for each scheduler."""

    key: str
    title: str
    measure: str  # one of `Measures`
    label: str
    form: str
    schedulers: tuple[str, ...]
    sets: tuple[str, ...] | None = None  # only these; ``None`` for all
    requests: Requests = "real"  # as estimated or exact

    def shown(self, found: Streit2002) -> list[JobSet]:
        """Give the sets that it shows."""
        return [given for given in found.sets if self.sets is None or given.name in self.sets]

    def means(self, found: Streit2002, job_set: JobSet, factor: float) -> list[float]:
        """Give a mean for each scheduler, over the draws that all of them have; NaN without any."""
        runs = [
            found.runs(job_set.name, scheduler, factor, requests=self.requests)
            for scheduler in self.schedulers
        ]
        return _means_on_common_draws(runs, measured(self.measure))

    def table(self, found: Streit2002) -> StudyTable:
        """Give the means behind the picture."""
        rows: list[Row] = []
        for job_set, factor in points(self.shown(found)):
            means = zip(self.schedulers, self.means(found, job_set, factor), strict=True)
            told: Row = [(scheduler, mean, self.form) for scheduler, mean in means]
            rows.append([*point(job_set, factor), *told])
        most, few = found.settings.seeds, found.settings.further_seeds
        every = self.requests == "real" and set(self.schedulers) <= {*FIVE, SIMPLE}
        note = f"Means over {most if every else min(most, few)} draws."
        return StudyTable.of(self.key, self.title, rows, note)


def points(sets: Iterable[JobSet]) -> Iterator[tuple[JobSet, float]]:
    """Give the points of a figure, sets and factors."""
    return ((job_set, factor) for job_set in sets for factor in job_set.factors)


def point(job_set: JobSet, factor: float) -> Row:
    """Begin the row of a point."""
    return [("set", job_set.name), ("factor", factor, ".2f")]


def _means_on_common_draws(runs: Sequence[Sequence[CaseResult]], of: Figure) -> list[float]:
    """Give the mean of each, over the draws that all of them have; NaN without any."""
    draws = min(map(len, runs))
    if not draws:
        return [math.nan] * len(runs)
    return [Spread.of([of(result) for result in some[:draws]]).mean for some in runs]


_SCHEDULERS = {
    "self-tuning": SELF_TUNING,
    "five": FIVE,
    "singles and advanced": (*SINGLES, ADVANCED),
}
CURVES = tuple(
    Curves(
        key,
        row["title"],
        row["measure"],
        row["label"],
        row["form"],
        _SCHEDULERS[row["schedulers"]],
        None if row["sets"] is None else tuple(row["sets"].split()),
        row["requests"],
    )
    for key, row in published(__package__, "figures").items()
)


def curve_tables(found: Streit2002) -> list[StudyTable]:
    """Make the tables behind figures 1 to 8, and those that the paper has not, if of any set."""
    return [
        _figure_1(found),
        *(curves.table(found) for curves in CURVES if curves.shown(found)),
        _intervals(found),
        _classes(found),
        _against_best(found),
        *_machines(found),
        *_kinds(found),
        _plans(found),
    ]


def shares_up_to(times: Int64Array, bounds_s: Sequence[int]) -> list[float]:
    """Give the share of times that are at most each bound."""
    return [float((times <= bound).mean()) for bound in bounds_s]


def _figure_1(found: Streit2002) -> StudyTable:
    shares: dict[str, list[float]] = {}
    for job_set in found.sets:
        jobs = found.jobs(job_set)
        shares[f"{job_set.name} estimated"] = shares_up_to(jobs.requested_time, TIMES_S)
        shares[f"{job_set.name} actual"] = shares_up_to(jobs.actual_runtime, TIMES_S)
    rows: list[Row] = [
        [
            ("up to, s", time_s, ","),
            *((title, values[place], ".1%") for title, values in shares.items()),
        ]
        for place, time_s in enumerate(TIMES_S)
    ]
    title = "Figure 1: estimated and actual runtimes of the generated sets"
    return StudyTable.of("figure1", title, rows, "Share of the jobs, first draw.")


_SHOWN = (
    ("artww_s", ",.0f"),
    ("sldww_60", ",.2f"),
    ("sldww_300", ",.2f"),
    ("utilization", ".2%"),
    ("loss_of_capacity", ".4f"),
    ("longest_wait_s", ",.0f"),
)
"""Measures of the table of intervals."""
_WITH_EXACT: tuple[Requests, tuple[str, ...]] = ("exact", (*SINGLES, ADVANCED))


@study_table(
    "intervals",
    "Every point, with 95% intervals of its mean",
    "Student's intervals over the draws.",
)
def _intervals(found: Streit2002) -> Rows:
    real = tuple(dict.fromkeys((*FIVE, *SELF_TUNING, KEPT)))
    every: tuple[tuple[Requests, tuple[str, ...]], ...] = (("real", real), _WITH_EXACT)
    for job_set in found.sets:
        for factor in dict.fromkeys((TABLE_FACTOR, *job_set.factors)):
            for requests, scheduler in ((asked, one) for asked, some in every for one in some):
                draws = len(found.runs(job_set.name, scheduler, factor, requests=requests))
                row = [
                    *point(job_set, factor),
                    ("requests", requests),
                    ("scheduler", scheduler),
                    ("draws", draws, ","),
                ]
                for name, form in _SHOWN:
                    spread = found.spread(
                        measured(name), job_set.name, scheduler, factor, requests=requests
                    )
                    mean, low, high = (None,) * 3 if spread is None else (spread.mean, *spread.ends)
                    row += [(name, mean, form), ("from", low, form), ("to", high, form)]
                yield row


@study_table("classes", "SLDwW, bound 60 s, by actual runtime")
def _classes(found: Streit2002) -> NotedRows:
    every: tuple[tuple[Requests, tuple[str, ...]], ...] = (("real", FIVE), _WITH_EXACT)
    for job_set in found.sets:
        for factor in (job_set.factors[0], job_set.factors[-1]):
            for requests, scheduler in ((asked, one) for asked, some in every for one in some):
                every_run = found.runs(job_set.name, scheduler, factor, requests=requests)
                runs = every_run[: found.settings.further_seeds]
                yield [
                    *point(job_set, factor),
                    ("requests", requests),
                    ("scheduler", scheduler),
                    *(
                        (
                            name,
                            _mean([r.measures.slowdown_of_class[place] for r in runs]),
                            ",.1f",
                        )
                        for place, name in enumerate(RUNTIME_CLASSES)
                    ),
                ]
    return (
        f"Means over {min(found.settings.seeds, found.settings.further_seeds)} draws. The paper "
        "names the classes and shows no numbers of them. " + _class_shares(found)
    )


def _class_shares(found: Streit2002) -> str:
    told = []
    for job_set in found.sets:
        jobs = np.array(found.runs(job_set.name, FCFS)[0].measures.jobs_of_class)
        told.append(f"{job_set.name} {', '.join(f'{share:.0%}' for share in jobs / jobs.sum())}")
    return f"Shares of the jobs in these classes: {'; '.join(told)}."


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def best_single(found: Streit2002, name: str, factor: float, measure: str) -> str:
    """Give the single policy with the lowest mean of a measure."""
    means = {
        scheduler: spread.mean
        for scheduler in SINGLES
        if (spread := found.spread(measured(measure), name, scheduler, factor)) is not None
    }
    return min(means, key=lambda scheduler: means[scheduler])


@study_table(
    "best",
    "ARTwW over that of the best single policy",
    "The best single policy is that with the lowest mean; ratios are draw by draw, then averaged.",
)
def _against_best(found: Streit2002) -> Rows:
    """Compare with section 6's desired curve: never above the best single policy."""
    for job_set, factor in points(found.sets):
        best = best_single(found, job_set.name, factor, "artww_s")
        base = [run.measures.artww_s for run in found.runs(job_set.name, best, factor)]
        row: list[Entry] = [*point(job_set, factor), ("best single", best)]
        for scheduler in (*SINGLES, BASIC, SIMPLE, ADVANCED):
            runs = found.runs(job_set.name, scheduler, factor)
            ratios = [run.measures.artww_s / of for run, of in zip(runs, base, strict=True)]
            row.append((scheduler, Spread.of(ratios).mean if ratios else None, ".2f"))
        yield row


def _beside(
    found: Streit2002,
    key: str,
    title: str,
    first: str,
    variants: Mapping[str, tuple[Kind, Width]],
    sets: Sequence[JobSet],
    note: str,
) -> list[StudyTable]:
    """Give ARTwW and utilization of each variant, where it was run, over as many draws of each."""
    rows: list[Row] = []
    for job_set, (variant, (kind, width)) in itertools.product(sets, variants.items()):
        for factor in job_set.some_factors:
            runs = [
                found.runs(job_set.name, name, factor, kind=kind, width=width)[
                    : found.settings.further_seeds
                ]
                for name in BESIDE
            ]
            if all(runs):
                artww, util = (
                    zip(BESIDE, _means_on_common_draws(runs, measured(measure)), strict=True)
                    for measure in ("artww_s", "utilization")
                )
                rows.append(
                    [
                        ("set", job_set.name),
                        (first, variant),
                        ("factor", factor, ".2f"),
                        ("draws", len(runs[0])),
                        *((f"{name} ARTwW", mean, ",.0f") for name, mean in artww),
                        *((f"{name} UTIL", mean, ".1%") for name, mean in util),
                    ]
                )
    return [StudyTable.of(key, title, rows, note)] if rows else []


def _machines(found: Streit2002) -> list[StudyTable]:
    return _beside(
        found,
        "machines",
        "Machines as in the paper's tables (430, 352 processors) and as in the logs (338, 128)",
        "machine",
        {"as printed": ("independent", "printed"), "as in the log": ("independent", "log")},
        [given for given in found.sets if given.printed_processors != given.log_processors],
        "On the log's machine gaps are multiplied by more, so that the load is the same; the "
        "factor is that on the printed machine.",
    )


def _kinds(found: Streit2002) -> list[StudyTable]:
    return _beside(
        found,
        "kinds",
        "Independent and modulated submissions, and the logs themselves",
        "jobs",
        {
            "independent": ("independent", "printed"),
            "modulated": ("modulated", "printed"),
            "log": ("log", "printed"),
            "log, its own machine": ("log", "log"),
        },
        [job_set for job_set in found.sets if job_set.log is not None],
        f"The first {found.settings.jobs:,} jobs of a log and the following ones are its draws; "
        "independent gaps are denser than the log's (table 2).",
    )


@study_table("plans", "FCFS planned anew in each step, and with reservations that are kept")
def _plans(found: Streit2002) -> NotedRows:
    heads = {
        "artww_s": ("ARTwW", ",.0f"),
        "sldww_60": ("SLDwW_60", ",.1f"),
        "utilization": ("UTIL", ".1%"),
        "loss_of_capacity": ("LOC", ".3f"),
    }
    for job_set in found.sets:
        for factor in dict.fromkeys((TABLE_FACTOR, *job_set.factors)):
            runs = [found.runs(job_set.name, scheduler, factor) for scheduler in (FCFS, KEPT)]
            row: list[Entry] = [*point(job_set, factor)]
            for measure, (head, form) in heads.items():
                anew, kept = _means_on_common_draws(runs, measured(measure))
                row += [(f"{head} anew", anew, form), (f"{head} kept", kept, form)]
            yield row
    return (
        f"Means over {found.settings.seeds} draws at 1.00, over {found.settings.further_seeds} "
        "elsewhere."
    )
