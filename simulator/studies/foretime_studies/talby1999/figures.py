"""Figures of the study of Talby & Feitelson 1999."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from foretime_sim.policies.slack import InsertionOrder
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from foretime_studies.frame.plots import bars, curves, gain_bars, panels
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    EASY,
    PLAIN,
    SLACK,
    AverageWait,
    Case,
    Estimates,
)
from foretime_studies.talby1999.runs import LogRuns
from foretime_studies.talby1999.study import Talby1999


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
    ours, old = runs[SLACK.name, 0], runs[CONSERVATIVE.name, 0]
    printed = {month.month: month for month in paper.MONTHS}
    listed = [month for month in ours.months if month in printed]
    places = [ours.months.index(month) for month in listed]
    for panel, name, run in ((axes[0], "conservative", old), (axes[1], "priority", ours)):
        told = [getattr(printed[month], name) for month in listed]
        bars(
            panel,
            [month[2:] for month in listed],
            {"paper": told, "ours": [run.wait_s[place] for place in places]},
            "mean wait, s",
        )
        panel.tick_params(axis="x", rotation=60)
        panel.set_title(name, fontsize=9)
    return figure


def _slack_factor(runs: LogRuns) -> Figure:
    figure, axes = panels(3)
    factors = named.SLACK_FACTORS
    listed = [named.with_slack_factor(factor) for factor in factors]
    single = [runs[case.name, 0] for case in listed]
    copies = [
        np.mean([run.mean_wait_s for run in runs.repeats(case.name)] or [np.nan]) for case in listed
    ]
    curves(
        axes[0],
        factors,
        {
            "the log as it is": np.array([run.mean_wait_s for run in single]),
            "mean over copies": np.array(copies),
        },
        "slack factor",
        "mean wait, s",
    )
    known = list(paper.GAIN_BY_SLACK_FACTOR)
    gains = np.array([paper.GAIN_BY_SLACK_FACTOR[factor] for factor in known])
    base = runs[CONSERVATIVE.name, 0].mean_wait_s
    axes[0].plot(known, base * (1 - gains), "x", label="the paper's gain")
    axes[0].legend(fontsize=7)
    curves(
        axes[1],
        factors,
        {
            "p99": np.array([run.p99_wait_s for run in single]) / 3_600,
            "longest": np.array([run.longest_wait_s for run in single]) / 3_600,
        },
        "slack factor",
        "wait, h",
    )
    curves(
        axes[2],
        factors,
        {
            "promised latest start": np.array(
                [(run.promised_wait_s or 0) / 3_600 for run in single]
            ),
            "first planned start": np.array([(run.planned_wait_s or 0) / 3_600 for run in single]),
            "start": np.array([run.mean_wait_s / 3_600 for run in single]),
        },
        "slack factor",
        "mean after submission, h",
    )
    return figure


def _orders(runs: LogRuns) -> Figure:
    figure, axes = panels(2, width=5)
    orders = [InsertionOrder(name) for name in paper.ORDERS]
    gaps = {"equal": 0.0, "unequal": named.GAPS[-1]}
    for panel, (name, gap) in zip(axes, gaps.items(), strict=True):
        told = [getattr(paper.ORDERS[order.value], name) for order in orders]
        bars(
            panel,
            [order.value.upper() for order in orders],
            {
                "paper": [1 - wait / paper.CONSERVATIVE_S for wait in told],
                "ours": [
                    1
                    - runs[named.ordered(order, gap).name, 0].mean_wait_s
                    / runs[CONSERVATIVE.name, 0].mean_wait_s
                    for order in orders
                ],
            },
            "gain in mean wait on conservative",
        )
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
    for panel, (title, found) in zip(axes, shown.items(), strict=True):
        curves(
            panel,
            named.GAPS,
            {
                "all": np.array([np.mean([run.mean_wait_s for run in some]) for some in found]),
                "every fifth": np.array(
                    [np.mean([run.fifth_mean_wait_s for run in some]) for some in found]
                ),
                "others": np.array(
                    [np.mean([run.others_mean_wait_s for run in some]) for some in found]
                ),
            },
            "user plus political priority of every fifth job",
            "mean wait, s",
        )
        panel.set_title(title, fontsize=9)
    return figure


def _estimates(runs: LogRuns) -> Figure:
    figure, axes = panels(2)
    for panel, kind in zip(axes, Estimates, strict=True):
        _slowdowns(
            panel,
            runs,
            named.ESTIMATE_FACTORS,
            partial(_estimated, kind),
            f"planned with {kind.value} times",
        )
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
    curves(
        panel,
        factors,
        {
            case.name: np.array([runs[case_of(case, f).name, 0].bounded_slowdown for f in factors])
            for case in PLAIN
        },
        across,
        "mean bounded slowdown",
    )


def _logs(found: Talby1999) -> Figure:
    figure, axes = panels(1, width=7)
    learned = named.with_average_wait(AverageWait.GIVEN)
    shown: dict[str, Case] = {
        "EASY": EASY,
        "priority, SF 3": SLACK,
        "priority, SF 9": named.with_slack_factor(9.0),
        "priority, AWT learned": learned,
    }
    gain_bars(
        axes[0],
        [log.name.split("-cln")[0] for log in found.logs],
        {
            title: [found.runs[log.name].gain(CONSERVATIVE.name, case.name) for log in found.logs]
            for title, case in shown.items()
        },
        "gain in mean wait on conservative",
    )
    return figure
