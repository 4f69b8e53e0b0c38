"""Tables of Downey 1997, the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_sim.waits.downey import SMALL_NEED

from foretime_studies.downey1997.heads import correlation
from foretime_studies.downey1997.logs import CTC, PARAGON
from foretime_studies.downey1997.study import Downey1997, LogFound, Variant
from foretime_studies.frame.tables import Cell, Column, StudyTable

PAPER_LINES: dict[str, dict[str, tuple[float, float, float]]] = {
    PARAGON: {
        "sequential": (-0.65, 0.21, 0.99),
        "short": (-0.30, 0.15, 0.97),
        "medium": (-0.50, 0.14, 0.99),
        "long": (-0.73, 0.13, 0.74),
    },
    CTC: {
        "short": (-0.6, 0.23, 0.999),
        "medium": (-0.58, 0.17, 0.995),
        "long": (-0.65, 0.13, 0.84),
    },
}
"""Tables 1 and 4: beta_0, beta_1, R^2."""
PAPER_CORRELATIONS: dict[str, tuple[float | None, float | None, float]] = {
    PARAGON: (0.63, 0.61, 0.65),
    CTC: (None, None, 0.72),
}
"""Predictor A, B, combined (sections 5.1 to 5.3 and 6)."""
PAPER_OBSOLETE = (0.60, 0.57, 0.62)
"""The same on the Paragon with the parameters of the four months before (section 6.1)."""
PAPER_HEADS: dict[str, tuple[int, int | None, int, int]] = {
    PARAGON: (24_906, 8_545, 8_152, 8_545),
    CTC: (50_862, None, 4_026, 4_156),
}
"""Jobs, those that waited at the head, predictions of A and of B (of the latter all, on the
Paragon, as far as the paper says)."""
PAPER_MEDIANS: dict[str, tuple[float, ...]] = {
    "sequential": (250, 238, 314, 244),
    "short": (446, 169, 92, 98),
    "medium": (903, 1_182, 1_023, 5_797),
    "long": (9_209, 14_161, 9_601, 17_995),
    "all jobs": (1_332, 491, 903, 2_250),
}
"""Table 5, seconds."""
PAPER_PERIODS = ("1-4/95", "5-8/95", "9-12/95", "1-4/96")
NEEDS = (1, 8, 16, 32, 64, 128)
"""Where ranges of n' begin."""
THRESHOLDS = (0, 8, 16, 32, 64, 128, np.inf)


def tables(found: Downey1997) -> tuple[StudyTable, ...]:
    """Make every table."""
    return (
        lines_table(found),
        lifetimes_table(found.logs[0]),
        heads_table(found),
        periods_table(found),
        predictions_table(found),
        correlations_table(found),
        ranges_table(found),
        thresholds_table(found),
        obsolete_table(found),
        variants_table(found),
        stages_table(found),
        queues_table(found),
        greedy_table(found),
        clusters_table(found),
    )


def _paper(
    name: str, of: Mapping[str, tuple[float | None, ...]]
) -> tuple[float | None, ...] | None:
    """Give what the paper says of a log, ``None`` where it does not know it."""
    return next((values for key, values in of.items() if name.startswith(key)), None)


def lines_table(found: Downey1997) -> StudyTable:
    """Tables 1 and 4: the line of each class."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        said = next(
            (lines for key, lines in PAPER_LINES.items() if each.log.name.startswith(key)), {}
        )
        for name, line in each.lines.items():
            paper: tuple[Cell, ...] = said.get(name, (None,) * 3)
            jobs = int((each.log.classes == name).sum())
            ours: tuple[Cell, ...] = (None,) * 5
            if line is not None:
                ours = (line.intercept, line.slope, line.r_squared, line.t_min, line.t_max / 3_600)
            rows.append((each.log.name, name, jobs, *paper, *ours))
    columns = (
        Column("log"), Column("class"), Column("jobs", ",d"),
        Column("paper β0", ".2f"), Column("paper β1", ".2f"), Column("paper R²", ".3f"),
        Column("β0", ".2f"), Column("β1", ".3f"), Column("R²", ".3f"),
        Column("t_min, s", ",.1f"), Column("t_max, h", ",.1f"),
    )  # fmt: skip
    note = "Least squares on the empirical cdf without the outer 10% on each side."
    return StudyTable("table1-4", "Tables 1 and 4: uniform-log lines", columns, tuple(rows), note)


def lifetimes_table(found: LogFound) -> StudyTable:
    """Table 2: lifetimes and sizes."""
    workload = found.log.workload
    rows: list[tuple[Cell, ...]] = [
        ("lifetime, s: paper", 9_020.0, 1.74, 77.0, 720.0, 14_500.0),
        ("lifetime, s: ours", *_spread(workload.actual_runtime)),
        ("cluster size: paper", 25.0, 1.47, 1.0, 16.0, 32.0),
        ("cluster size: ours", *_spread(workload.processors)),
    ]
    columns = (
        Column(""), Column("mean", ",.0f"), Column("CV", ".2f"), Column("25%", ",.0f"),
        Column("median", ",.0f"), Column("75%", ",.0f"),
    )  # fmt: skip
    note = f"Ours: {found.log.name}, {len(workload):,} jobs; the paper: 24,906 jobs of 1995."
    return StudyTable("table2", "Table 2: lifetimes and sizes", columns, tuple(rows), note)


def _spread(values: Int64Array) -> tuple[float, float, float, float, float]:
    quarter, median, three = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return float(values.mean()), float(values.std() / values.mean()), quarter, median, three


def heads_table(found: Downey1997) -> StudyTable:
    """Table 3: processors needed and benefactors."""
    rows: list[tuple[Cell, ...]] = [
        ("paper", "n'", 30.6, 7.0, 16.0, 45.0),
        ("paper", "benefactors", 8.1, 3.0, 6.0, 11.0),
    ]
    for each in found.logs:
        for name, values in (("n'", each.heads.needed), ("benefactors", each.heads.benefactors())):
            mean, _, *quartiles = _spread(values) if len(values) else (np.nan,) * 5
            rows.append((each.log.name, name, mean, *quartiles))
    columns = (
        Column("log"), Column(""), Column("mean", ".1f"), Column("25%", ".0f"),
        Column("median", ".0f"), Column("75%", ".0f"),
    )  # fmt: skip
    note = "When jobs have to wait at the head; benefactors hold at least n' each."
    return StudyTable("table3", "Table 3: what is needed", columns, tuple(rows), note)


def periods_table(found: Downey1997) -> StudyTable:
    """Table 5: medians of the fitted lines by thirds of years, on the first log."""
    first = found.logs[0]
    names = [*first.log.class_names, "all jobs"]
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        medians: list[Cell] = []
        for period in first.periods:
            if name == "all jobs":
                medians.append(float(np.median(first.log.workload.actual_runtime[period.jobs])))
            else:
                line = period.lines[name]
                medians.append(None if line is None else line.lifetimes.median_life())
        rows.append((name, *PAPER_MEDIANS.get(name, (None,) * 4), *medians))
    columns = (
        Column("class"),
        *(Column(f"paper {name}", ",.0f") for name in PAPER_PERIODS),
        *(Column(f"{period.name}", ",.0f") for period in first.periods),
    )
    note = f"Seconds; ours: {first.log.name}. Medians of the lines, of all jobs that of the jobs."
    title = "Table 5: median lifetimes by four months"
    return StudyTable("table5", title, columns, tuple(rows), note)


def predictions_table(found: Downey1997) -> StudyTable:
    """How many predictions there were."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        said = _paper(each.log.name, PAPER_HEADS) or (None,) * 4
        by_a = int((each.heads.benefactors() > 0).sum())
        heads = len(each.heads.moments)
        rows.append(
            (
                each.log.name,
                each.log.workload.machine_processors,
                said[0],
                said[1],
                said[2],
                said[3],
                len(each.log.workload),
                heads,
                by_a,
                heads,
                1 - by_a / heads if heads else None,
                each.predicted.overdue,
            )
        )
    columns = (
        Column("log"), Column("processors", ",d"),
        Column("paper: jobs", ",d"), Column("paper: waited at the head", ",d"),
        Column("paper: by A", ",d"), Column("paper: by B", ",d"),
        Column("jobs", ",d"), Column("waited at the head", ",d"), Column("by A", ",d"),
        Column("by B", ",d"), Column("A without answer", ".1%"), Column("overdue", ".1%"),
    )  # fmt: skip
    note = (
        "B always has an answer. Overdue: running jobs that had outlived t_max. In the paper A had "
        "none for 393 of 8,545 (4.6%)."
    )
    return StudyTable("predictions", "How many predictions", columns, tuple(rows), note)


def correlations_table(found: Downey1997) -> StudyTable:
    """Coefficients of correlation at the head, with the lines of the whole log."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        paper = _paper(each.log.name, PAPER_CORRELATIONS) or (None,) * 3
        actual = each.actual_s
        p = each.predicted
        raw = [correlation(told, actual) for told in (p.by_a, p.by_b, p.combined)]
        logs = [correlation(told, actual, log=True) for told in (p.by_a, p.by_b, p.combined)]
        at = each.exact_at
        near = (
            [correlation(told, actual[at], log=True) for told in (p.by_a[at], each.exact_s)]
            if len(at)
            else [np.nan, np.nan]
        )
        rows.append((each.log.name, len(actual), *paper, *raw, *logs, *near))
    columns = (
        Column("log"), Column("moments", ",d"), Column("paper A", ".2f"), Column("paper B", ".2f"),
        Column("paper both", ".2f"),
        Column("A, seconds", ".2f"), Column("B, seconds", ".2f"), Column("both, seconds", ".2f"),
        Column("A, ln", ".2f"), Column("B, ln", ".2f"), Column("both, ln", ".2f"),
        Column("A, ln, at some", ".2f"), Column("exact median, ln, at some", ".2f"),
    )  # fmt: skip
    note = (
        "Only jobs that waited at the head. The paper does not say whether its coefficients are of "
        "seconds or of their logarithms, in which its figure 4 is drawn: both stand here. The last "
        "two: predictor A and the exact median that it approximates, at the same few moments. Of "
        "more than 9,000 moments every second (third, ...) is predicted."
    )
    return StudyTable("correlations", "Coefficients of correlation", columns, tuple(rows), note)


def ranges_table(found: Downey1997) -> StudyTable:
    """Which predictor does better, by ranges of n'."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        needed, actual = each.needed, each.actual_s
        for low, high in zip(NEEDS, [*NEEDS[1:], None], strict=True):
            of = (needed >= low) & (needed < (np.inf if high is None else high))
            told = [each.predicted.by_a[of], each.predicted.by_b[of]]
            name = f"from {low}" if high is None else f"{low}-{high - 1}"
            no_a = float(np.isnan(told[0]).mean()) if of.any() else None
            rows.append(
                (
                    each.log.name,
                    name,
                    int(of.sum()),
                    no_a,
                    *(correlation(values, actual[of]) for values in told),
                    *(correlation(values, actual[of], log=True) for values in told),
                    *(_bias(values, actual[of]) for values in told),
                )
            )
    columns = (
        Column("log"), Column("n'"), Column("jobs", ",d"), Column("A without answer", ".1%"),
        Column("A, seconds", ".2f"), Column("B, seconds", ".2f"),
        Column("A, ln", ".2f"), Column("B, ln", ".2f"),
        Column("A: median of predicted / real", ".2f"),
        Column("B: median of predicted / real", ".2f"),
    )  # fmt: skip
    return StudyTable("ranges", "By ranges of n'", columns, tuple(rows))


def _bias(told: Float64Array, actual: Int64Array) -> float:
    has = ~np.isnan(told)
    return float(np.median(told[has] / actual[has])) if has.any() else np.nan


def thresholds_table(found: Downey1997) -> StudyTable:
    """Show what another threshold between A and B would do."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        needed, actual, told = each.needed, each.actual_s, each.predicted
        for log in (False, True):
            found_at = []
            for threshold in THRESHOLDS:
                use_a = (needed < threshold) & ~np.isnan(told.by_a)
                both = np.where(use_a, told.by_a, told.by_b)
                found_at.append(correlation(both, actual, log=log))
            rows.append((each.log.name, "ln" if log else "seconds", *found_at))
    names = [("B alone" if at == 0 else "A alone" if at == np.inf else f"{at:.0f}")
             for at in THRESHOLDS]  # fmt: skip
    columns = (Column("log"), Column("of"), *(Column(name, ".2f") for name in names))
    note = f"The paper's is {SMALL_NEED}; B stands in where A has no answer."
    return StudyTable("thresholds", "The threshold of n'", columns, tuple(rows), note)


def _of_variant(variant: Variant) -> list[Cell]:
    told = (variant.predicted.by_a, variant.predicted.by_b, variant.predicted.combined)
    raw = [correlation(values, variant.actual_s) for values in told]
    return [*raw, *(correlation(values, variant.actual_s, log=True) for values in told)]


_SIX = (
    Column("A, seconds", ".2f"), Column("B, seconds", ".2f"), Column("both, seconds", ".2f"),
    Column("A, ln", ".2f"), Column("B, ln", ".2f"), Column("both, ln", ".2f"),
)  # fmt: skip


def obsolete_table(found: Downey1997) -> StudyTable:
    """Section 6.1: parameters of the four months before, by period."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        if each.log.name.startswith(PARAGON):
            whole: tuple[Cell, ...] = (*(None,) * 3, *PAPER_CORRELATIONS[PARAGON])
            rows.append(("paper", "1995", "the whole year", None, *whole))
            paper: tuple[Cell, ...] = (*(None,) * 3, *PAPER_OBSOLETE)
            rows.append(("paper", "5/95-4/96", "four months before", None, *paper))
        for period in each.by_period:
            for variant in (period.own, period.before):
                if variant is not None:
                    moments = len(variant.actual_s)
                    cells = _of_variant(variant)
                    rows.append((each.log.name, period.name, variant.name, moments, *cells))
    columns = (
        Column("log"), Column("when"), Column("lines of"), Column("moments", ",d"), *_SIX,
    )  # fmt: skip
    note = (
        "At the same moments; periods with less than 3% of a log's jobs are left out. The paper "
        "does not say of what its coefficients are: they stand with the logarithms, which they are "
        "nearer to."
    )
    return StudyTable("obsolete", "Obsolete parameters", columns, tuple(rows), note)


def variants_table(found: Downey1997) -> StudyTable:
    """Other models, rules and classes."""
    rows: list[tuple[Cell, ...]] = [
        (each.log.name, variant.name, len(variant.actual_s), *_of_variant(variant))
        for each in found.logs
        for variant in each.variants
    ]
    columns = (Column("log"), Column("lifetimes"), Column("moments", ",d"), *_SIX)
    note = (
        "Past only: fitted to the last 5,000 finished jobs of each class, with back-off to coarser "
        "classes below 50 jobs. Jobs that outlived t_max: the past repeats, unless said otherwise."
    )
    return StudyTable("variants", "Models and classes", columns, tuple(rows), note)


def stages_table(found: Downey1997) -> StudyTable:
    """How near lines and stages come to the empirical cdf."""
    rows: list[tuple[Cell, ...]] = []
    for each in found.logs:
        for name in each.log.class_names:
            line, stages = each.lines[name], each.stages[name]
            runtimes = np.maximum(np.sort(each.log.runtimes(name)), 1)
            rows.append(
                (
                    each.log.name,
                    name,
                    len(runtimes),
                    None if line is None else _distance(line.lifetimes, runtimes),
                    None if stages is None else stages.stages,
                    None if stages is None else _distance(stages, runtimes),
                )
            )
    columns = (
        Column("log"), Column("class"), Column("jobs", ",d"),
        Column("line: off by", ".1%"), Column("stages", "d"), Column("stages: off by", ".1%"),
    )  # fmt: skip
    note = (
        "Off by: root mean square distance from the empirical cdf, over all jobs. As few stages as "
        "come within 1%, at most six."
    )
    return StudyTable("stages", "Section 5.4: stages", columns, tuple(rows), note)


def _distance(model: Lifetimes, runtimes: Int64Array) -> float:
    reached = (np.arange(len(runtimes)) + 0.5) / len(runtimes)
    return float(np.sqrt(((model.cdf(runtimes) - reached) ** 2).mean()))


def queues_table(found: Downey1997) -> StudyTable:
    """Section 7.1: whole queues."""
    rows: list[tuple[Cell, ...]] = [
        (
            row.log,
            row.policy,
            row.method,
            row.waited,
            row.answered / max(row.waited, 1),
            row.raw,
            row.log_log,
            row.within_factor_2,
            row.median_error_s / 60,
        )
        for row in found.queues
    ]
    columns = (
        Column("log"), Column("policy"), Column("method"), Column("waited", ",d"),
        Column("answered", ".0%"), Column("correlation, seconds", ".2f"),
        Column("correlation, ln", ".2f"), Column("within [t/2, 2t]", ".0%"),
        Column("median error, min", ",.0f"),
    )  # fmt: skip
    note = (
        "Whole waits, asked about at submission, of those that waited among the jobs asked about; "
        "parameters of the past only. Forward runs: Downey's lifetimes, drawn 100 times."
    )
    return StudyTable("queues", "Whole queues, and other policies", columns, tuple(rows), note)


def greedy_table(found: Downey1997) -> StudyTable:
    """Show what greedy choices of size do to everybody."""
    rows: list[tuple[Cell, ...]] = [
        (
            row.load,
            row.rule,
            row.turnaround_s / 3_600,
            row.median_s / 3_600,
            row.processors,
            row.busy,
        )
        for row in found.greedy
    ]
    columns = (
        Column("load", ".1f"), Column("size"), Column("mean turnaround, h", ",.2f"),
        Column("median turnaround, h", ",.2f"), Column("mean size", ".1f"), Column("busy", ".0%"),
    )  # fmt: skip
    note = "Generated malleable jobs on 128 processors, FCFS; load: their work on one processor."
    return StudyTable("greedy", "Greedy choices of size", columns, tuple(rows), note)


def clusters_table(found: Downey1997) -> StudyTable:
    """Show what choices of the cluster do to everybody."""
    rows: list[tuple[Cell, ...]] = [
        (
            row.rule,
            row.jobs,
            row.away,
            row.wait_s / 3_600,
            row.median_s / 60,
            row.turnaround_s / 3_600,
        )
        for row in found.clusters
    ]
    columns = (
        Column("cluster"), Column("jobs", ",d"), Column("elsewhere", ".0%"),
        Column("mean wait, h", ",.2f"), Column("median wait, min", ",.1f"),
        Column("mean turnaround, h", ",.2f"),
    )  # fmt: skip
    note = (
        "The machines of the logs with requests side by side, FCFS; a week of each log's jobs, "
        "which run equally long everywhere. Lifetimes are those of what has ended in that week."
    )
    return StudyTable("clusters", "Choices of the cluster", columns, tuple(rows), note)
