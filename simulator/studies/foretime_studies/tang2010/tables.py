"""Tables I and III of Tang 2010, and a table for each of its figures 2 to 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.job_classes import LENGTHS, SIZES
from foretime_sim.scores.metrics import Direction
from foretime_sim.workloads.labels import Labels

from foretime_studies.frame.published import published
from foretime_studies.frame.runs import METRICS, Gain, RunFigures
from foretime_studies.frame.tables import Entry, Row, Rows, StudyTable, study_table
from foretime_studies.tang2010.study import (
    BLENDS,
    CLASSES,
    MAIN,
    OLD_BASELINES,
    SELECTIVE,
    Tang2010,
    case_name,
)

PAPER_TABLE_1, PAPER_GAINS = (published(__package__, name) for name in ("table1", "gains"))
PAPER_TABLE_3 = published(__package__, "table3", keys=2)
ACCURACIES = published(__package__, "figure3")
"""What the text says of figure 3, by ranges of R."""
TITLES = {"wait": "wait", "unitless_wait": "uwait", "slowdown": "slowdown"}
_SHARE, _GAIN = ".1%", "+.1%"
_FRACTIONS = {1.0: "all", 0.99: "below p99"}


def tables(found: Tang2010) -> list[StudyTable]:
    """Give every table of the study, in the paper's order, then our own."""
    on, wfp = found.on_projects, Order.WFP
    made = [
        _table_1(found),
        _figure_2(found),
        _figure_3(found),
        table_3(found),
        *_blend_tables(found, Order.FCFS, "4"),
        *_blend_tables(found, wfp, "5"),
        _figure_6(found),
        _started_table(
            found,
            [(MAIN, wfp, name) for name in ("requested", *SELECTIVE)],
            "figure7",
            "Figure 7. How jobs started under the selective methods (WFP)",
        ),
        _gain_table(
            found,
            [(on, wfp, scheme) for scheme in found.schemes],
            "figure8",
            "Figure 8(a, b). Schemes that learn from history (WFP)",
            paper=PAPER_GAINS,
        ),
        _started_table(
            found,
            [(on, wfp, name) for name in ("requested", *found.schemes)],
            "figure8c",
            "Figure 8(c). How jobs started (WFP)",
        ),
        _class_table(
            found, "figure9", "Figure 9. By job size (WFP)", SIZES, lambda run: run.by_size
        ),
        _class_table(
            found, "figure10", "Figure 10. By job length (WFP)", LENGTHS, lambda run: run.by_length
        ),
        _gain_table(
            found,
            [(on, Order.FCFS, scheme) for scheme in found.schemes],
            "schemes-fcfs",
            "The schemes of section V under FCFS",
        ),
        _gain_table(
            found,
            [(MAIN, order, name) for order in (Order.FCFS, wfp) for name in OLD_BASELINES],
            "old-baselines",
            "Requests doubled and randomised (section III)",
            with_order=True,
        ),
        _corrections(found),
    ]
    return [*made, _months(found)] if found.months else made


def _single(found: Tang2010, on: str, order: Order, treatment: str) -> RunFigures:
    return found.runs[case_name(on, order, treatment)].single


@study_table("table1", "Table I. The workloads")
def _table_1(found: Tang2010) -> Rows:
    for name, part in (("WL-I", found.main.history), ("WL-II", found.main.test)):
        if part is not None:
            begin, end = (part.moment(int(part.submit_time[at]))[:10] for at in (0, -1))
            ours = (len(part), _distinct(part.users), _distinct(part.projects))
            row: list[Entry] = [("workload", name), ("submitted", f"{begin} to {end}")]
            for (what, printed), here in zip(PAPER_TABLE_1[name].items(), ours, strict=True):
                row += [(what, here, ",d"), ("paper", printed, ",d")]
            yield row


def _distinct(labels: Labels | None) -> int | None:
    return None if labels is None else len(np.unique(labels.codes[~labels.mask]))


@study_table(
    "figure2",
    "Figure 2. Jobs of WL-II by size and requested time",
    "The paper's bounds stand in its figure, which can't be read; these are ours.",
)
def _figure_2(found: Tang2010) -> Rows:
    test, classes = found.main.test, CLASSES
    sizes = [share * test.machine_processors for share in classes.size_shares]
    minutes = [length_s / 60 for length_s in classes.length_s]
    unit = "processors" if test.machine is None else "nodes"
    for kind, names, bounds, code, of in (
        ("size", SIZES, sizes, classes.size(test), unit),
        ("length", LENGTHS, minutes, classes.length(test), "min"),
    ):
        for place, name in enumerate(names):
            jobs = int((code == place).sum())
            yield [
                ("by", kind),
                ("class", name),
                (
                    "bound",
                    f"up to {bounds[place]:,.0f} {of}" if place < len(bounds) else "above",
                ),
                ("jobs", jobs, ",d"),
                ("share", jobs / len(test), _SHARE),
            ]


@study_table("figure3", "Figure 3. Accuracy R of requests")
def _figure_3(found: Tang2010) -> Rows:
    parts = {"WL-I": found.main.history, "WL-II": found.main.test}
    ratios = {
        name: part.actual_runtime / part.requested_time
        for name, part in parts.items()
        if part is not None
    }
    for name, printed in ACCURACIES.items():
        within = {
            part: float(np.mean((ratio >= printed["low"]) & (ratio < printed["high"])))
            for part, ratio in ratios.items()
        }
        shares: Row = [(part, share, _SHARE) for part, share in within.items()]
        yield [("R", name), *shares, ("paper", printed["paper"] or "")]


@study_table("table3", "Table III. Baseline: scheduling on requested times")
def table_3(found: Tang2010) -> Rows:
    """Give waits under both policies on requested times."""
    for (order, fraction), printed in PAPER_TABLE_3.items():
        runs = found.runs[case_name(MAIN, Order(order), "requested")]
        single = runs.single
        jittered = [run.mean("wait", fraction) / 60 for run in runs.repeats]
        backfilled = single.started_jobs[2] if fraction == 1 else None
        yield [
            ("policy", f"{order}/backfill"),
            ("jobs", _FRACTIONS[fraction]),
            ("wait, min", single.mean("wait", fraction) / 60, ".1f"),
            ("... jittered", float(np.mean(jittered)) if jittered else None, ".1f"),
            ("paper", printed["wait"], ".1f"),
            ("uwait", single.mean("unitless_wait", fraction), ".2f"),
            ("paper", printed["unitless_wait"], ".2f"),
            ("slowdown", single.mean("slowdown", fraction), ".2f"),
            ("paper", printed["slowdown"], ".2f"),
            ("backfilled", backfilled, ",d"),
            ("paper", printed["backfilled"], ",d"),
        ]


def _blend_tables(found: Tang2010, order: Order, number: str) -> list[StudyTable]:
    """Gains and starts with synthetic accuracy (figures 4 and 5)."""
    under = str(order).upper()
    return [
        _gain_table(
            found,
            [(MAIN, order, name) for name in BLENDS],
            f"figure{number}",
            f"Figure {number}(a, b). Gains with synthetic accuracy ({under})",
        ),
        _started_table(
            found,
            [(MAIN, order, name) for name in ("requested", *BLENDS)],
            f"figure{number}c",
            f"Figure {number}(c). How jobs started ({under})",
        ),
    ]


def _gain_table(
    found: Tang2010,
    wanted: Sequence[tuple[str, Order, str]],
    key: str,
    title: str,
    *,
    with_order: bool = False,
    paper: dict[str, dict[str, Any]] | None = None,
) -> StudyTable:
    """Gains over the requested times, of all jobs and below the 99th percentile."""
    rows = []
    for on, order, treatment in wanted:
        for fraction, jobs in _FRACTIONS.items():
            label = f"{order} {treatment}" if with_order else treatment
            row: list[Entry] = [("t_sched", label), ("jobs", jobs)]
            for metric in METRICS:
                gain = gain_of(found, on, order, treatment, metric, fraction)
                row += [(TITLES[metric], gain.single, _GAIN), ("... jittered", _with_half(gain))]
                if paper:
                    printed = paper.get(treatment, {}) if fraction == 1 else {}
                    row.append(("paper", printed.get(metric), _GAIN))
            rows.append(row)
    note = "Gain = (V_base - V_new) / V_base, the base being requested times; positive is better."
    if found.repeats:
        note += f" Jittered: mean of {found.repeats} copies, with 95% intervals."
    return StudyTable.of(key, title, rows, note)


def gain_of(
    found: Tang2010, on: str, order: Order, treatment: str, metric: str, fraction: float
) -> Gain:
    """Gain of a treatment over the requested times in one metric."""
    return found.runs.gain(
        case_name(on, order, "requested"),
        case_name(on, order, treatment),
        lambda run: run.mean(metric, fraction),
    )


def _with_half(gain: Gain) -> str | None:
    if gain.mean is None:
        return None
    if gain.interval is None:
        return f"{gain.mean:+.1%}"
    return f"{gain.mean:+.1%} ± {(gain.interval.high - gain.interval.low) / 2:.1%}"


def _started_table(
    found: Tang2010, wanted: Sequence[tuple[str, Order, str]], key: str, title: str
) -> StudyTable:
    rows: list[Row] = []
    for on, order, treatment in wanted:
        run = _single(found, on, order, treatment)
        head, out_of_order, backfilled = run.started
        rows.append(
            [
                ("t_sched", treatment),
                ("from the head", head, _SHARE),
                ("out of order", out_of_order, _SHARE),
                ("backfilled", backfilled, _SHARE),
                ("backfilled jobs", run.started_jobs[2], ",d"),
                ("outlived t_sched", run.outlived, _SHARE),
            ]
        )
    return StudyTable.of(key, title, rows)


@study_table("figure6", "Figure 6. Selective methods (WFP)")
def _figure_6(found: Tang2010) -> Rows:
    for fraction in (1.0, 0.99, 0.97, 0.95, 0.9):
        for name, treatment in {"S000": "requested", **{one: one for one in SELECTIVE}}.items():
            run = _single(found, MAIN, Order.WFP, treatment)
            yield [
                ("fraction of jobs", fraction, ".2f"),
                ("method", name),
                ("wait, min", run.mean("wait", fraction) / 60, ".1f"),
                ("uwait", run.mean("unitless_wait", fraction), ".3f"),
                ("slowdown", run.mean("slowdown", fraction), ".2f"),
            ]


def _class_table(
    found: Tang2010,
    key: str,
    title: str,
    names: Sequence[str],
    of: Callable[[RunFigures], dict[str, np.ndarray]],
) -> StudyTable:
    """Means by class, for the baseline, combined and selective (figures 9 and 10)."""
    runs = {
        name: of(_single(found, found.on_projects, Order.WFP, name))
        for name in ("requested", *shown_schemes(found))
    }
    rows: list[Row] = []
    for metric in METRICS:
        told, scale = ("wait, min", 60) if metric == "wait" else (TITLES[metric], 1)
        for place, name in enumerate(names):
            values = {scheme: float(run[metric][place]) / scale for scheme, run in runs.items()}
            base = values["requested"]
            means: Row = [(scheme, value, ".2f") for scheme, value in values.items()]
            gains: Row = [
                (f"gain, {scheme}", _gain(base, value), _GAIN)
                for scheme, value in values.items()
                if scheme != "requested"
            ]
            rows.append([("metric", told), ("class", name), *means, *gains])
    return StudyTable.of(key, title, rows)


def _gain(base: float, new: float) -> float | None:
    return relative_gain(base, new, Direction.SMALLER) if np.isfinite(base) else None


def shown_schemes(found: Tang2010) -> tuple[str, ...]:
    """Schemes that figures 9 and 10 compare; without projects the user-based one."""
    return tuple(name for name in found.schemes if name in ("combined", "selective")) or ("user",)


@study_table(
    "corrections",
    "What a job that outlives t_sched is planned with (WFP)",
    "The paper does not say; everywhere else here it is the request (`requested`). Blends and "
    "the methods of table II are never outlived: they are at least t_act. The selective scheme "
    "drains on requests, so that no rule changes it.",
)
def _corrections(found: Tang2010) -> Rows:
    """Gains of whatever jobs outlive, under each rule for jobs that outlive t_sched."""
    wanted = [*((found.on_projects, scheme) for scheme in found.schemes), (MAIN, "randomised")]
    for on, treatment in wanted:
        base = _single(found, on, Order.WFP, "requested")
        for correction in Correction:
            run = found.runs[case_name(on, Order.WFP, treatment, str(correction))].single
            row: list[Entry] = [("t_sched", treatment), ("correction", str(correction))]
            for fraction, suffix in ((1.0, ""), (0.99, ", below p99")):
                for metric in METRICS:
                    gain = _gain(base.mean(metric, fraction), run.mean(metric, fraction))
                    row.append((TITLES[metric] + suffix, gain, _GAIN))
            yield [*row, ("outlived t_sched", run.outlived, _SHARE)]


def _months(found: Tang2010) -> StudyTable:
    """Give the schemes on other generated months: how much depends on the month."""
    rows: list[list[Entry]] = []
    for on in (MAIN, *found.months):
        fcfs, base = (_single(found, on, order, "requested") for order in (Order.FCFS, Order.WFP))
        row: list[Entry] = [
            ("workload", found.inputs[on].name),
            ("wait FCFS, min", fcfs.mean("wait") / 60, ".1f"),
            ("wait WFP, min", base.mean("wait") / 60, ".1f"),
        ]
        for name in ("S111", *found.schemes):
            run = _single(found, on, Order.WFP, name)
            for title, metric in ((f"{name}: wait", "wait"), ("slowdown", "slowdown")):
                row.append((title, _gain(base.mean(metric), run.mean(metric)), _GAIN))
        rows.append(row)
    means: list[Entry] = [("workload", "mean")]
    for heading, *values in zip(*rows, strict=True):
        known = [entry[1] for entry in (heading, *values) if isinstance(entry[1], float)]
        if heading[0] != "workload":
            means.append((heading[0], float(np.mean(known))))
    return StudyTable.of(
        "months",
        "Other months of the same model (WFP; gains over requested times)",
        [*rows, means],
        "Each seed is another July, with another half year before it: what a single month's result "
        "is worth.",
    )
