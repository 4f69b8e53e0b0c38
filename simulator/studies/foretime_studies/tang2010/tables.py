"""Tables I and III of Tang 2010, and a table for each of its figures 2 to 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.job_classes import LENGTHS, SIZES
from foretime_sim.scores.metrics import Direction
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.runs import METRICS, Gain, RunFigures
from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.tang2010.study import (
    BLENDS,
    CLASSES,
    MAIN,
    OLD_BASELINES,
    SELECTIVE,
    Tang2010,
    case_name,
)

TITLES = {"wait": "wait", "unitless_wait": "uwait", "slowdown": "slowdown"}
PAPER_TABLE_3 = {
    ("fcfs", 1.0): (80.9, 1.92, 10.14, 1791),
    ("fcfs", 0.99): (65.5, 1.18, 5.79, None),
    ("wfp", 1.0): (62.9, 0.96, 6.36, 1293),
    ("wfp", 0.99): (50.9, 0.64, 3.65, None),
}
"""Wait in minutes, unitless wait, slowdown, backfilled jobs: of all jobs, and below p99."""
PAPER_GAINS = {"combined": (0.100, 0.177, 0.200), "selective": (0.102, 0.2021, 0.123)}
"""Section V.B: gains of all jobs in wait, unitless wait and slowdown under WFP."""
_ACCURACIES = (
    ("below 0.2", -np.inf, 0.2, "more than 20%"),
    ("0.2 to 0.5", 0.2, 0.5, "below 0.5 in all: most"),
    ("0.5 to 0.9", 0.5, 0.9, ""),
    ("0.9 to 1, accurate", 0.9, 1.0, "11 to 13%"),
    ("1 and above", 1.0, np.inf, "20%"),
)
_SHARES_FORM = ".1%"


def tables(found: Tang2010) -> list[StudyTable]:
    """Give every table of the study, in the paper's order, then our own."""
    made = [
        table_1(found),
        figure_2(found),
        figure_3(found),
        table_3(found),
        *blend_tables(found, Order.FCFS, "figure4"),
        *blend_tables(found, Order.WFP, "figure5"),
        figure_6(found),
        started_table(
            found,
            MAIN,
            Order.WFP,
            ("requested", *SELECTIVE),
            "figure7",
            "Figure 7. How jobs started under the selective methods (WFP)",
        ),
        *scheme_tables(found),
        class_table(
            found, "figure9", "Figure 9. By job size (WFP)", SIZES, lambda run: run.by_size
        ),
        class_table(
            found, "figure10", "Figure 10. By job length (WFP)", LENGTHS, lambda run: run.by_length
        ),
        gain_table(
            found,
            [(found.on_projects, Order.FCFS, scheme) for scheme in found.schemes],
            "schemes-fcfs",
            "The schemes of section V under FCFS",
        ),
        gain_table(
            found,
            [(MAIN, order, name) for order in (Order.FCFS, Order.WFP) for name in OLD_BASELINES],
            "old-baselines",
            "Requests doubled and randomised (section III)",
            with_order=True,
        ),
        corrections(found),
    ]
    if found.months:
        made.append(months(found))
    return made


def table_1(found: Tang2010) -> StudyTable:
    """Jobs, users and projects of both parts."""
    given = found.main
    rows: list[tuple[Cell, ...]] = []
    paper = {"WL-I": (48_056, 207, 84), "WL-II": (10_479, 103, 61)}
    for name, part in (("WL-I", given.history), ("WL-II", given.test)):
        if part is not None:
            span = f"{part.moment(int(part.submit_time[0]))[:10]} to "
            span += part.moment(int(part.submit_time[-1]))[:10]
            here = (len(part), _distinct(part.users), _distinct(part.projects))
            both = [cell for pair in zip(here, paper[name], strict=True) for cell in pair]
            rows.append((name, span, *both))
    columns = [Column("workload"), Column("submitted")]
    for what in ("jobs", "users", "projects"):
        columns += [Column(what, ",d"), Column("paper", ",d")]
    return StudyTable("table1", "Table I. The workloads", tuple(columns), tuple(rows))


def _distinct(labels: Labels | None) -> int | None:
    return None if labels is None else len(np.unique(labels.codes[~labels.mask]))


def figure_2(found: Tang2010) -> StudyTable:
    """Jobs of WL-II by size and by length."""
    test, classes = found.main.test, CLASSES
    rows: list[tuple[Cell, ...]] = []
    sizes = [share * test.machine_processors for share in classes.size_shares]
    for kind, names, bounds, code, unit in (
        ("size", SIZES, sizes, classes.size(test), _unit(test)),
        ("length", LENGTHS, [s / 60 for s in classes.length_s], classes.length(test), "min"),
    ):
        for place, name in enumerate(names):
            upper = f"up to {bounds[place]:,.0f} {unit}" if place < len(bounds) else "above"
            jobs = int((code == place).sum())
            rows.append((kind, name, upper, jobs, jobs / len(test)))
    columns = (
        Column("by"),
        Column("class"),
        Column("bound"),
        Column("jobs", ",d"),
        Column("share", _SHARES_FORM),
    )
    note = "The paper's bounds stand in its figure, which can't be read; these are ours."
    return StudyTable(
        "figure2", "Figure 2. Jobs of WL-II by size and requested time", columns, tuple(rows), note
    )


def _unit(test: Workload) -> str:
    return "processors" if test.machine is None else "nodes"


def figure_3(found: Tang2010) -> StudyTable:
    """How R is distributed in both parts."""
    parts = [part for part in (found.main.history, found.main.test) if part is not None]
    ratios = [part.actual_runtime / part.requested_time for part in parts]
    rows: list[tuple[Cell, ...]] = []
    for name, low, high, paper in _ACCURACIES:
        shares = [float(np.mean((ratio >= low) & (ratio < high))) for ratio in ratios]
        rows.append((name, *shares, paper))
    names = ("WL-I", "WL-II")[-len(parts) :]
    columns = (Column("R"), *(Column(name, _SHARES_FORM) for name in names), Column("paper"))
    return StudyTable("figure3", "Figure 3. Accuracy R of requests", columns, tuple(rows))


def table_3(found: Tang2010) -> StudyTable:
    """Give waits under both policies on requested times."""
    rows: list[tuple[Cell, ...]] = []
    for order in (Order.FCFS, Order.WFP):
        runs = found.runs[case_name(MAIN, order, "requested")]
        for fraction, jobs in ((1.0, "all"), (0.99, "below p99")):
            wait, uwait, slow, backfilled = PAPER_TABLE_3[str(order), fraction]
            single = runs.single
            rows.append(
                (
                    f"{order}/backfill",
                    jobs,
                    single.mean("wait", fraction) / 60,
                    _mean([run.mean("wait", fraction) / 60 for run in runs.repeats]),
                    wait,
                    single.mean("unitless_wait", fraction),
                    uwait,
                    single.mean("slowdown", fraction),
                    slow,
                    single.started_jobs[2] if fraction == 1 else None,
                    backfilled,
                )
            )
    columns = (
        Column("policy"),
        Column("jobs"),
        Column("wait, min", ".1f"),
        Column("... jittered", ".1f"),
        Column("paper", ".1f"),
        Column("uwait", ".2f"),
        Column("paper", ".2f"),
        Column("slowdown", ".2f"),
        Column("paper", ".2f"),
        Column("backfilled", ",d"),
        Column("paper", ",d"),
    )
    return StudyTable(
        "table3", "Table III. Baseline: scheduling on requested times", columns, tuple(rows)
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def blend_tables(found: Tang2010, order: Order, key: str) -> list[StudyTable]:
    """Gains and starts with synthetic accuracy (figures 4 and 5)."""
    number = key.removeprefix("figure")
    gains = gain_table(
        found,
        [(MAIN, order, name) for name in BLENDS],
        key,
        f"Figure {number}(a, b). Gains with synthetic accuracy ({str(order).upper()})",
    )
    started = started_table(
        found,
        MAIN,
        order,
        ("requested", *BLENDS),
        f"{key}c",
        f"Figure {number}(c). How jobs started ({str(order).upper()})",
    )
    return [gains, started]


def gain_table(
    found: Tang2010,
    wanted: Sequence[tuple[str, Order, str]],
    key: str,
    title: str,
    *,
    with_order: bool = False,
    paper: dict[str, tuple[float, float, float]] | None = None,
) -> StudyTable:
    """Gains over the requested times, of all jobs and below the 99th percentile."""
    paper = paper or {}
    rows: list[tuple[Cell, ...]] = []
    for on, order, treatment in wanted:
        for fraction, jobs in ((1.0, "all"), (0.99, "below p99")):
            label = f"{order} {treatment}" if with_order else treatment
            row: list[Cell] = [label, jobs]
            for place, metric in enumerate(METRICS):
                gain = gain_of(found, on, order, treatment, metric, fraction)
                row += [gain.single, _with_interval(gain)]
                if paper:
                    told = paper.get(treatment) if fraction == 1 else None
                    row.append(None if told is None else told[place])
            rows.append(tuple(row))
    columns = [Column("t_sched"), Column("jobs")]
    for metric in METRICS:
        columns += [Column(TITLES[metric], "+.1%"), Column("... jittered")]
        if paper:
            columns.append(Column("paper", "+.1%"))
    note = "Gain = (V_base - V_new) / V_base, the base being requested times; positive is better."
    if found.repeats:
        note += f" Jittered: mean of {found.repeats} copies, with 95% intervals."
    return StudyTable(key, title, tuple(columns), tuple(rows), note)


def gain_of(
    found: Tang2010, on: str, order: Order, treatment: str, metric: str, fraction: float
) -> Gain:
    """Gain of a treatment over the requested times in one metric."""
    return found.runs.gain(
        case_name(on, order, "requested"),
        case_name(on, order, treatment),
        lambda run: run.mean(metric, fraction),
    )


def _with_interval(gain: Gain) -> str | None:
    if gain.mean is None:
        return None
    if gain.interval is None:
        return f"{gain.mean:+.1%}"
    return f"{gain.mean:+.1%} ± {(gain.interval.high - gain.interval.low) / 2:.1%}"


def started_table(
    found: Tang2010,
    on: str,
    order: Order,
    treatments: Sequence[str],
    key: str,
    title: str,
) -> StudyTable:
    """Shares of jobs started from the head, out of order, by backfilling."""
    rows: list[tuple[Cell, ...]] = []
    for treatment in treatments:
        run = found.runs[case_name(on, order, treatment)].single
        rows.append((treatment, *run.started, run.started_jobs[2], run.outlived))
    columns = (
        Column("t_sched"),
        Column("from the head", _SHARES_FORM),
        Column("out of order", _SHARES_FORM),
        Column("backfilled", _SHARES_FORM),
        Column("backfilled jobs", ",d"),
        Column("outlived t_sched", _SHARES_FORM),
    )
    return StudyTable(key, title, columns, tuple(rows))


def figure_6(found: Tang2010) -> StudyTable:
    """Means over fractions of the jobs under the selective methods."""
    rows: list[tuple[Cell, ...]] = []
    for fraction in (1.0, 0.99, 0.97, 0.95, 0.9):
        for treatment in ("requested", *SELECTIVE):
            run = found.runs[case_name(MAIN, Order.WFP, treatment)].single
            name = "S000" if treatment == "requested" else treatment
            rows.append(
                (
                    fraction,
                    name,
                    run.mean("wait", fraction) / 60,
                    run.mean("unitless_wait", fraction),
                    run.mean("slowdown", fraction),
                )
            )
    columns = (
        Column("fraction of jobs", ".2f"),
        Column("method"),
        Column("wait, min", ".1f"),
        Column("uwait", ".3f"),
        Column("slowdown", ".2f"),
    )
    return StudyTable("figure6", "Figure 6. Selective methods (WFP)", columns, tuple(rows))


def scheme_tables(found: Tang2010) -> list[StudyTable]:
    """Gains and starts under the schemes of section V (figure 8)."""
    on = found.on_projects
    return [
        gain_table(
            found,
            [(on, Order.WFP, scheme) for scheme in found.schemes],
            "figure8",
            "Figure 8(a, b). Schemes that learn from history (WFP)",
            paper=PAPER_GAINS,
        ),
        started_table(
            found,
            on,
            Order.WFP,
            ("requested", *found.schemes),
            "figure8c",
            "Figure 8(c). How jobs started (WFP)",
        ),
    ]


def class_table(
    found: Tang2010,
    key: str,
    title: str,
    names: Sequence[str],
    of: Callable[[RunFigures], dict[str, np.ndarray]],
) -> StudyTable:
    """Means by class, for the baseline, combined and selective (figures 9 and 10)."""
    on = found.on_projects
    shown = shown_schemes(found)
    rows: list[tuple[Cell, ...]] = []
    for metric in METRICS:
        scale = 60 if metric == "wait" else 1
        for place, name in enumerate(names):
            values = [
                float(of(found.runs[case_name(on, Order.WFP, treatment)].single)[metric][place])
                / scale
                for treatment in ("requested", *shown)
            ]
            gains = [_gain(values[0], value) for value in values[1:]]
            told = "wait, min" if metric == "wait" else TITLES[metric]
            rows.append((told, name, *values, *gains))
    columns = (
        Column("metric"),
        Column("class"),
        Column("requested", ".2f"),
        *(Column(name, ".2f") for name in shown),
        *(Column(f"gain, {name}", "+.1%") for name in shown),
    )
    return StudyTable(key, title, columns, tuple(rows))


def _gain(base: float, new: float) -> float | None:
    return relative_gain(base, new, Direction.SMALLER) if np.isfinite(base) else None


def shown_schemes(found: Tang2010) -> tuple[str, ...]:
    """Schemes that figures 9 and 10 compare; without projects the user-based one."""
    return tuple(name for name in found.schemes if name in ("combined", "selective")) or ("user",)


def corrections(found: Tang2010) -> StudyTable:
    """Gains of whatever jobs outlive, under each rule for jobs that outlive t_sched."""
    on = found.on_projects
    rows: list[tuple[Cell, ...]] = []
    wanted = [(on, scheme) for scheme in found.schemes]
    wanted.append((MAIN, "randomised"))
    for given, treatment in wanted:
        for correction in Correction:
            base = found.runs[case_name(given, Order.WFP, "requested")].single
            run = found.runs[case_name(given, Order.WFP, treatment, str(correction))].single
            gains = [
                _gain(base.mean(metric, fraction), run.mean(metric, fraction))
                for fraction in (1.0, 0.99)
                for metric in METRICS
            ]
            rows.append((treatment, str(correction), *gains, run.outlived))
    columns = (
        Column("t_sched"),
        Column("correction"),
        *(Column(TITLES[metric], "+.1%") for metric in METRICS),
        *(Column(f"{TITLES[metric]}, below p99", "+.1%") for metric in METRICS),
        Column("outlived t_sched", _SHARES_FORM),
    )
    return StudyTable(
        "corrections",
        "What a job that outlives t_sched is planned with (WFP)",
        columns,
        tuple(rows),
        "The paper does not say; everywhere else here it is the request (`requested`). Blends and "
        "the methods of table II are never outlived: they are at least t_act. The selective scheme "
        "drains on requests, so that no rule changes it.",
    )


def months(found: Tang2010) -> StudyTable:
    """Give the schemes on other generated months: how much depends on the month."""
    rows: list[tuple[Cell, ...]] = []
    treatments = ("S111", *found.schemes)
    for on in (MAIN, *found.months):
        base = found.runs[case_name(on, Order.WFP, "requested")].single
        fcfs = found.runs[case_name(on, Order.FCFS, "requested")].single
        row: list[Cell] = [found.inputs[on].name, fcfs.mean("wait") / 60, base.mean("wait") / 60]
        for name in treatments:
            run = found.runs[case_name(on, Order.WFP, name)].single
            row += [_gain(base.mean(key), run.mean(key)) for key in ("wait", "slowdown")]
        rows.append(tuple(row))
    columns = [Column("workload"), Column("wait FCFS, min", ".1f"), Column("wait WFP, min", ".1f")]
    for name in treatments:
        columns += [Column(f"{name}: wait", "+.1%"), Column("slowdown", "+.1%")]
    means: list[Cell] = ["mean"]
    for place in range(1, len(columns)):
        values = [row[place] for row in rows]
        means.append(float(np.mean([v for v in values if isinstance(v, float)])))
    rows.append(tuple(means))
    return StudyTable(
        "months",
        "Other months of the same model (WFP; gains over requested times)",
        tuple(columns),
        tuple(rows),
        "Each seed is another July, with another half year before it: what a single month's result "
        "is worth.",
    )
