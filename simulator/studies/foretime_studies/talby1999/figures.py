"""Figures of the study of Talby & Feitelson 1999."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.policies.slack import InsertionOrder
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from foretime_studies.frame.plots import bars, curves, gain_bars, panels
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.cases import CONSERVATIVE, PLAIN, SLACK, Case, Estimates
from foretime_studies.talby1999.runs import LogRuns, Talby1999
from foretime_studies.talby1999.tables import SHOWN


def figures(found: Talby1999) -> dict[str, Figure]:
    """Draw every figure, by the key of the table that has its numbers."""
    made: dict[str, Figure] = {}
    if found.papers is not None:
        runs = found.runs[found.papers.name]
        made |= {
            "months": _months(runs),
            "slack-factor": _slack_factor(runs),
            "orders": _orders(runs),
            "gap": _gap(runs),
            "estimates": _estimates(runs),
            "loads": _loads(runs),
        }
    if len(found.logs) > (found.papers is not None):
        made["logs"] = _logs(found)
    return made


def _months(runs: LogRuns) -> Figure:
    figure, axes = panels(2, width=5.5)
    for panel, name, case in zip(
        axes, ("conservative", "priority"), (CONSERVATIVE, SLACK), strict=True
    ):
        run = runs[case.name, 0]
        ours = dict(zip(run.months, run.wait_s, strict=True))
        listed = [month for month in run.months if month in paper.MONTHS]
        series = {
            "paper": [paper.MONTHS[month][name] for month in listed],
            "ours": [ours[month] for month in listed],
        }
        bars(panel, [month[2:] for month in listed], series, "mean wait, s")
        panel.tick_params(axis="x", rotation=60)
        panel.set_title(name, fontsize=9)
    return figure


def _slack_factor(runs: LogRuns) -> Figure:
    figure, axes = panels(3)
    factors = named.SLACK_FACTORS
    listed = [named.with_slack_factor(factor) for factor in factors]
    single = [runs[case.name, 0] for case in listed]

    def of_runs(name: str, unit_s: float = 1) -> Float64Array:
        return np.array([(getattr(run, name) or 0) / unit_s for run in single])

    copies = [
        np.mean([run.mean_wait_s for run in runs.repeats(case.name)] or [np.nan]) for case in listed
    ]
    wait = {"the log as it is": of_runs("mean_wait_s"), "mean over copies": np.array(copies)}
    curves(axes[0], factors, wait, "slack factor", "mean wait, s")
    known = list(paper.GAIN_BY_SLACK_FACTOR)
    gains = np.array([paper.GAIN_BY_SLACK_FACTOR[factor] for factor in known])
    base = runs[CONSERVATIVE.name, 0].mean_wait_s
    axes[0].plot(known, base * (1 - gains), "x", label="the paper's gain")
    axes[0].legend(fontsize=7)
    tail = {"p99": of_runs("p99_wait_s", 3_600), "longest": of_runs("longest_wait_s", 3_600)}
    curves(axes[1], factors, tail, "slack factor", "wait, h")
    starts = {
        "promised latest start": of_runs("promised_wait_s", 3_600),
        "first planned start": of_runs("planned_wait_s", 3_600),
        "start": of_runs("mean_wait_s", 3_600),
    }
    curves(axes[2], factors, starts, "slack factor", "mean after submission, h")
    return figure


def _orders(runs: LogRuns) -> Figure:
    figure, axes = panels(2, width=5)
    base = runs[CONSERVATIVE.name, 0].mean_wait_s
    gaps = {"equal": 0.0, "unequal": named.GAPS[-1]}
    for panel, (name, gap) in zip(axes, gaps.items(), strict=True):
        ours = [runs[named.ordered(InsertionOrder(o), gap).name, 0] for o in paper.ORDERS]
        told = [printed[name] for printed in paper.ORDERS.values()]
        series = {
            "paper": [1 - wait / paper.YEAR["conservative"] for wait in told],
            "ours": [1 - run.mean_wait_s / base for run in ours],
        }
        names = [order.upper() for order in paper.ORDERS]
        bars(panel, names, series, "gain in mean wait on conservative")
        panel.yaxis.set_major_locator(MultipleLocator(0.05))
        panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
        panel.set_title(f"{name} priorities", fontsize=9)
    return figure


def _gap(runs: LogRuns) -> Figure:
    listed = [named.with_gap(SLACK, gap) for gap in named.GAPS]
    shown = {"the log as it is": [[runs[case.name, 0]] for case in listed]}
    if runs.repeats(SLACK.name):
        shown["mean over copies"] = [runs.repeats(case.name) for case in listed]
    figure, axes = panels(len(shown))
    waits = {"all": "", "every fifth": "fifth_", "others": "others_"}
    for panel, (title, found) in zip(axes, shown.items(), strict=True):
        series = {
            name: np.array(
                [np.mean([getattr(run, f"{which}mean_wait_s") for run in some]) for some in found]
            )
            for name, which in waits.items()
        }
        across = "user plus political priority of every fifth job"
        curves(panel, named.GAPS, series, across, "mean wait, s")
        panel.set_title(title, fontsize=9)
    return figure


def _estimates(runs: LogRuns) -> Figure:
    figure, axes = panels(2)
    for panel, kind in zip(axes, Estimates, strict=True):
        across = f"planned with {kind.value} times"
        _slowdowns(panel, runs, named.ESTIMATE_FACTORS, partial(_estimated, kind), across)
        panel.set_xscale("log", base=2)
    return figure


def _estimated(kind: Estimates, case: Case, factor: float) -> Case:
    return named.estimated(case, kind, factor)


def _loads(runs: LogRuns) -> Figure:
    figure, axes = panels(1, width=5)
    _slowdowns(axes[0], runs, named.LOADS, named.loaded, "interarrival times x")
    axes[0].invert_xaxis()
    return figure


def _slowdowns(
    panel: Axes,
    runs: LogRuns,
    factors: Sequence[float],
    case_of: Callable[[Case, float], Case],
    across: str,
) -> None:
    series = {
        case.name: np.array([runs[case_of(case, f).name, 0].bounded_slowdown for f in factors])
        for case in PLAIN
    }
    curves(panel, factors, series, across, "mean bounded slowdown")


def _logs(found: Talby1999) -> Figure:
    figure, axes = panels(1, width=7)
    titles = ("EASY", "priority, SF 3", "priority, SF 9", "priority, AWT learned")
    gains = {
        title: [found.runs[log.name].gain(CONSERVATIVE.name, case.name) for log in found.logs]
        for title, case in zip(titles, SHOWN.values(), strict=True)
    }
    names = [log.name.split("-cln")[0] for log in found.logs]
    gain_bars(axes[0], names, gains, "gain in mean wait on conservative")
    return figure
