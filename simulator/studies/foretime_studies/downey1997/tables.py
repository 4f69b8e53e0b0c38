"""Tables of Downey 1997, the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_sim.waits.downey import SMALL_NEED

from foretime_studies.downey1997 import clusters, queues
from foretime_studies.downey1997.heads import Predicted, correlation
from foretime_studies.downey1997.logs import PARAGON, known_log
from foretime_studies.downey1997.study import Downey1997, LogFound, Period, Variant
from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Entry, NotedRows, Row, Rows, StudyTable, study_table

PAPER_LINES = published(__package__, "lines", keys=2)
"""Tables 1 and 4, by log and class."""
PAPER_LOGS, PAPER_MEDIANS = (published(__package__, name) for name in ("logs", "medians"))
PAPER_OBSOLETE = (0.60, 0.57, 0.62)
"""Correlations of A, B and both on the Paragon with the four months before (section 6.1)."""
PAPER_PERIODS = tuple(PAPER_MEDIANS["all jobs"])
NEEDS = (1, 8, 16, 32, 64, 128)
"""Where ranges of n' begin."""
THRESHOLDS = (0, 8, 16, 32, 64, 128, np.inf)


def tables(found: Downey1997) -> list[StudyTable]:
    """Make every table."""
    return [
        _lines_table(found),
        _lifetimes_table(found.logs[0]),
        _heads_table(found),
        _periods_table(found),
        _predictions_table(found),
        _correlations_table(found),
        _ranges_table(found),
        _thresholds_table(found),
        _obsolete_table(found),
        _variants_table(found),
        _stages_table(found),
        _queues_table(found),
        _greedy_table(found),
        _clusters_table(found),
    ]


def _paper(log: str) -> dict[str, Any]:
    """Give what the paper says of a log, nothing where it does not know it."""
    return PAPER_LOGS.get(known_log(log), {})


@study_table(
    "table1-4",
    "Tables 1 and 4: uniform-log lines",
    "Least squares on the empirical cdf without the outer 10% on each side.",
)
def _lines_table(found: Downey1997) -> Rows:
    for each in found.logs:
        for name, line in each.lines.items():
            printed = PAPER_LINES.get((known_log(each.log.name), name), {})
            yield [
                ("log", each.log.name),
                ("class", name),
                ("jobs", int((each.log.classes == name).sum()), ",d"),
                ("paper β0", printed.get("beta0"), ".2f"),
                ("paper β1", printed.get("beta1"), ".2f"),
                ("paper R²", printed.get("r_squared"), ".3f"),
                ("β0", None if line is None else line.intercept, ".2f"),
                ("β1", None if line is None else line.slope, ".3f"),
                ("R²", None if line is None else line.r_squared, ".3f"),
                ("t_min, s", None if line is None else line.t_min, ",.1f"),
                ("t_max, h", None if line is None else line.t_max / 3_600, ",.1f"),
            ]


@study_table("table2", "Table 2: lifetimes and sizes")
def _lifetimes_table(found: LogFound) -> NotedRows:
    workload = found.log.workload
    headings = ("mean", "CV", "25%", "median", "75%")
    for name, values in (
        ("lifetime, s: paper", (9_020.0, 1.74, 77.0, 720.0, 14_500.0)),
        ("lifetime, s: ours", _spread(workload.actual_runtime)),
        ("cluster size: paper", (25.0, 1.47, 1.0, 16.0, 32.0)),
        ("cluster size: ours", _spread(workload.processors)),
    ):
        yield [
            ("", name),
            *(
                (heading, value, ".2f" if heading == "CV" else ",.0f")
                for heading, value in zip(headings, values, strict=True)
            ),
        ]
    return f"Ours: {found.log.name}, {len(workload):,} jobs; the paper: 24,906 jobs of 1995."


def _spread(values: Int64Array) -> tuple[float, float, float, float, float]:
    quarter, median, three = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return float(values.mean()), float(values.std() / values.mean()), quarter, median, three


@study_table(
    "table3",
    "Table 3: what is needed",
    "When jobs have to wait at the head; benefactors hold at least n' each.",
)
def _heads_table(found: Downey1997) -> Rows:
    listed: list[tuple[str, str, tuple[float, ...]]] = [
        ("paper", "n'", (30.6, 7.0, 16.0, 45.0)),
        ("paper", "benefactors", (8.1, 3.0, 6.0, 11.0)),
    ]
    for each in found.logs:
        for name, values in (("n'", each.heads.needed), ("benefactors", each.heads.benefactors())):
            mean, _, *quartiles = _spread(values) if len(values) else (np.nan,) * 5
            listed.append((each.log.name, name, (mean, *quartiles)))
    for log, name, (mean, quarter, median, three) in listed:
        yield [
            ("log", log),
            ("", name),
            ("mean", mean, ".1f"),
            ("25%", quarter, ".0f"),
            ("median", median, ".0f"),
            ("75%", three, ".0f"),
        ]


@study_table("table5", "Table 5: median lifetimes by four months")
def _periods_table(found: Downey1997) -> NotedRows:
    """Table 5: medians of the fitted lines by thirds of years, on the first log."""
    first = found.logs[0]

    def median(name: str, period: Period) -> float | None:
        if name == "all jobs":
            return float(np.median(first.log.workload.actual_runtime[period.jobs]))
        line = period.lines[name]
        return None if line is None else line.lifetimes.median_life()

    for name in (*first.log.class_names, "all jobs"):
        printed = PAPER_MEDIANS.get(name, dict.fromkeys(PAPER_PERIODS))
        of_paper: Row = [(f"paper {when}", value, ",.0f") for when, value in printed.items()]
        ours: Row = [(period.name, median(name, period), ",.0f") for period in first.periods]
        yield [("class", name), *of_paper, *ours]
    return f"Seconds; ours: {first.log.name}. Medians of the lines, of all jobs that of the jobs."


@study_table(
    "predictions",
    "How many predictions",
    "B always has an answer. Overdue: running jobs that had outlived t_max. In the paper A had "
    "none for 393 of 8,545 (4.6%).",
)
def _predictions_table(found: Downey1997) -> Rows:
    for each in found.logs:
        printed = _paper(each.log.name)
        by_a, heads = int((each.heads.benefactors() > 0).sum()), len(each.heads.moments)
        yield [
            ("log", each.log.name),
            ("processors", each.log.workload.machine_processors, ",d"),
            ("paper: jobs", printed.get("jobs"), ",d"),
            ("paper: waited at the head", printed.get("heads"), ",d"),
            ("paper: by A", printed.get("predicted_a"), ",d"),
            ("paper: by B", printed.get("predicted_b"), ",d"),
            ("jobs", len(each.log.workload), ",d"),
            ("waited at the head", heads, ",d"),
            ("by A", by_a, ",d"),
            ("by B", heads, ",d"),
            ("A without answer", 1 - by_a / heads if heads else None, ".1%"),
            ("overdue", each.predicted.overdue, ".1%"),
        ]


def _correlated(
    told: Mapping[str, Float64Array], actual: Int64Array, units: Sequence[str] = ("seconds", "ln")
) -> Row:
    """Give the correlations of predictors, by name, with the real waits."""
    return [
        (f"{name}, {unit}", correlation(values, actual, log=unit == "ln"), ".2f")
        for unit in units
        for name, values in told.items()
    ]


def _by_predictor(told: Predicted) -> dict[str, Float64Array]:
    return {"A": told.by_a, "B": told.by_b, "both": told.combined}


@study_table(
    "correlations",
    "Coefficients of correlation",
    "Only jobs that waited at the head. The paper does not say whether its coefficients are of "
    "seconds or of their logarithms, in which its figure 4 is drawn: both stand here. The last "
    "two: predictor A and the exact median that it approximates, at the same few moments. Of "
    "more than 9,000 moments every second (third, ...) is predicted.",
)
def _correlations_table(found: Downey1997) -> Rows:
    """Coefficients of correlation at the head, with the lines of the whole log."""
    for each in found.logs:
        printed, actual, at = _paper(each.log.name), each.actual_s, each.exact_at
        few = {"A": each.predicted.by_a[at], "exact median": each.exact_s}
        near = _correlated(few, actual[at], ["ln"])
        yield [
            ("log", each.log.name),
            ("moments", len(actual), ",d"),
            *((f"paper {name}", printed.get(key), ".2f") for name, key in _PRINTED.items()),
            *_correlated(_by_predictor(each.predicted), actual),
            *((f"{heading}, at some", value, ".2f") for heading, value, *_ in near),
        ]


_PRINTED = {"A": "by_a", "B": "by_b", "both": "both"}


@study_table("ranges", "By ranges of n'")
def _ranges_table(found: Downey1997) -> Rows:
    """Which predictor does better, by ranges of n'."""
    for each in found.logs:
        for low, high in zip(NEEDS, [*NEEDS[1:], None], strict=True):
            of = (each.needed >= low) & (each.needed < (np.inf if high is None else high))
            actual = each.actual_s[of]
            told = {"A": each.predicted.by_a[of], "B": each.predicted.by_b[of]}
            no_a = float(np.isnan(told["A"]).mean()) if of.any() else None
            yield [
                ("log", each.log.name),
                ("n'", f"from {low}" if high is None else f"{low}-{high - 1}"),
                ("jobs", int(of.sum()), ",d"),
                ("A without answer", no_a, ".1%"),
                *_correlated(told, actual),
                *(
                    (f"{name}: median of predicted / real", _bias(values, actual), ".2f")
                    for name, values in told.items()
                ),
            ]


def _bias(told: Float64Array, actual: Int64Array) -> float:
    has = ~np.isnan(told)
    return float(np.median(told[has] / actual[has])) if has.any() else np.nan


@study_table("thresholds", "The threshold of n'")
def _thresholds_table(found: Downey1997) -> NotedRows:
    names = {0: "B alone", np.inf: "A alone"}
    for each in found.logs:
        told = each.predicted
        for unit in ("seconds", "ln"):
            row: list[Entry] = [("log", each.log.name), ("of", unit)]
            for threshold in THRESHOLDS:
                use_a = (each.needed < threshold) & ~np.isnan(told.by_a)
                both = np.where(use_a, told.by_a, told.by_b)
                at = correlation(both, each.actual_s, log=unit == "ln")
                row.append((names.get(threshold, f"{threshold:.0f}"), at, ".2f"))
            yield row
    return f"The paper's is {SMALL_NEED}; B stands in where A has no answer."


def _of_variant(variant: Variant) -> Row:
    moments: Entry = ("moments", len(variant.actual_s), ",d")
    return [moments, *_correlated(_by_predictor(variant.predicted), variant.actual_s)]


@study_table(
    "obsolete",
    "Obsolete parameters",
    "At the same moments; periods with less than 3% of a log's jobs are left out. The paper "
    "does not say of what its coefficients are: they stand with the logarithms, which they are "
    "nearer to.",
)
def _obsolete_table(found: Downey1997) -> Rows:
    """Section 6.1: parameters of the four months before, by period."""

    def paper(when: str, lines: str, printed: Sequence[float]) -> Row:
        unknown: Row = [(f"{name}, seconds", None, ".2f") for name in _PRINTED]
        known: Row = [(f"{name}, ln", p, ".2f") for name, p in zip(_PRINTED, printed, strict=True)]
        head: Row = [("log", "paper"), ("when", when), ("lines of", lines), ("moments", None, ",d")]
        return [*head, *unknown, *known]

    for each in found.logs:
        if each.log.name.startswith(PARAGON):
            whole = [PAPER_LOGS[PARAGON][key] for key in _PRINTED.values()]
            yield paper("1995", "the whole year", whole)
            yield paper("5/95-4/96", "four months before", PAPER_OBSOLETE)
        for period, variants in each.by_period.items():
            for variant in variants:
                head: Row = [("log", each.log.name), ("when", period)]
                yield [*head, ("lines of", variant.name), *_of_variant(variant)]


@study_table(
    "variants",
    "Models and classes",
    "Past only: fitted to the last 5,000 finished jobs of each class, with back-off to coarser "
    "classes below 50 jobs. Jobs that outlived t_max: the past repeats, unless said otherwise.",
)
def _variants_table(found: Downey1997) -> Rows:
    for each in found.logs:
        for variant in each.variants:
            yield [("log", each.log.name), ("lifetimes", variant.name), *_of_variant(variant)]


@study_table(
    "stages",
    "Section 5.4: stages",
    "Off by: root mean square distance from the empirical cdf, over all jobs. As few stages as "
    "come within 1%, at most six.",
)
def _stages_table(found: Downey1997) -> Rows:
    """How near lines and stages come to the empirical cdf."""
    for each in found.logs:
        for name in each.log.class_names:
            line, stages = each.lines[name], each.stages[name]
            runtimes = np.maximum(np.sort(each.log.runtimes(name)), 1)
            of_line = None if line is None else _distance(line.lifetimes, runtimes)
            of_stages = None if stages is None else _distance(stages, runtimes)
            yield [
                ("log", each.log.name),
                ("class", name),
                ("jobs", len(runtimes), ",d"),
                ("line: off by", of_line, ".1%"),
                ("stages", None if stages is None else stages.stages, "d"),
                ("stages: off by", of_stages, ".1%"),
            ]


def _distance(model: Lifetimes, runtimes: Int64Array) -> float:
    reached = (np.arange(len(runtimes)) + 0.5) / len(runtimes)
    return float(np.sqrt(((model.cdf(runtimes) - reached) ** 2).mean()))


def _queues_table(found: Downey1997) -> StudyTable:
    note = (
        "Whole waits, asked about at submission, of those that waited among the jobs asked about; "
        "parameters of the past only. Forward runs: Downey's lifetimes, drawn 100 times."
    )
    title = "Whole queues, and other policies"
    return StudyTable("queues", title, queues.COLUMNS, found.queues, note)


def _greedy_table(found: Downey1997) -> StudyTable:
    note = "Generated malleable jobs on 128 processors, FCFS; load: their work on one processor."
    return StudyTable.of("greedy", "Greedy choices of size", found.greedy, note)


def _clusters_table(found: Downey1997) -> StudyTable:
    note = (
        "The machines of the logs with requests side by side, FCFS; a week of each log's jobs, "
        "which run equally long everywhere. Lifetimes are those of what has ended in that week."
    )
    title = "Choices of the cluster"
    return StudyTable("clusters", title, clusters.COLUMNS, found.clusters, note)
