"""Figures 2 to 10 of Tang 2010, drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sim.policies.order import Order
from foretime_sim.scores.job_classes import LENGTHS, SIZES
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foretime_studies.frame.plots import bars, curves, dress, gain_bars, panels, share_bars
from foretime_studies.frame.runs import FRACTIONS, METRICS, RunFigures
from foretime_studies.tang2010.study import (
    BLENDS,
    CLASSES,
    MAIN,
    SELECTIVE,
    Tang2010,
    case_name,
)
from foretime_studies.tang2010.tables import TITLES, gain_of, shown_schemes

STARTED = ("from the head", "out of order", "backfilled")
_LABELS = {"wait": "wait, min", "unitless_wait": "uwait", "slowdown": "slowdown"}
_R_BINS = np.linspace(0.0, 1.1, 23)
_FINE_R_BINS = np.linspace(0.0, 1.1, 111)


def figures(found: Tang2010) -> dict[str, Figure]:
    """Draw every figure, by the name of its file."""
    on = found.on_projects
    shown = ("requested", *shown_schemes(found))
    return {
        "figure2": _figure_2(found),
        "figure3": _figure_3(found),
        "figure4": _gains(found, MAIN, Order.FCFS, BLENDS),
        "figure5": _gains(found, MAIN, Order.WFP, BLENDS),
        "figure6": _figure_6(found),
        "figure7": _started(found, MAIN, ("requested", *SELECTIVE)),
        "figure8": _gains(found, on, Order.WFP, found.schemes),
        "figure9": _by_class(found, on, shown, SIZES, lambda run: run.by_size),
        "figure10": _by_class(found, on, shown, LENGTHS, lambda run: run.by_length),
    }


def _titled(figure: Figure, found: Tang2010, on: str = MAIN) -> Figure:
    """Say in the picture itself what it is of."""
    figure.suptitle(found.inputs[on].test.name, fontsize=8)
    return figure


def _figure_2(found: Tang2010) -> Figure:
    test, classes = found.main.test, CLASSES
    figure, (left, right) = panels(2)
    for axes, names, code in (
        (left, SIZES, classes.size(test)),
        (right, LENGTHS, classes.length(test)),
    ):
        shares = np.bincount(code, minlength=len(names)) / len(test)
        bars(axes, names, {"jobs": shares.tolist()}, "share of jobs")
    return _titled(figure, found)


def _figure_3(found: Tang2010) -> Figure:
    figure, (left, right) = panels(2)
    parts = {"WL-I": found.main.history, "WL-II": found.main.test}
    for axes, cumulative in ((left, False), (right, True)):
        for name, part in parts.items():
            if part is None:
                continue
            ratio = np.minimum(part.actual_runtime / part.requested_time, _R_BINS[-1])
            axes.hist(
                ratio,
                (_FINE_R_BINS if cumulative else _R_BINS).tolist(),
                weights=np.full(len(ratio), 1 / len(ratio)),
                histtype="step",
                cumulative=cumulative,
                label=name,
            )
        dress(axes, "R = t_act / t_req", "jobs up to R" if cumulative else "share of jobs")
        axes.legend(fontsize=7, loc="upper left")
    return _titled(figure, found)


def _gains(found: Tang2010, on: str, order: Order, treatments: Sequence[str]) -> Figure:
    figure, (all_jobs, below, started) = panels(3)
    for axes, fraction, title in ((all_jobs, 1.0, "all jobs"), (below, 0.99, "below p99")):
        series = {
            TITLES[metric]: [
                gain_of(found, on, order, treatment, metric, fraction) for treatment in treatments
            ]
            for metric in METRICS
        }
        gain_bars(axes, treatments, series)
        axes.set_title(f"({'a' if fraction == 1 else 'b'}) {title}", fontsize=9)
    _draw_started(started, found, on, order, ("requested", *treatments))
    started.set_title("(c) how jobs started", fontsize=9)
    return _titled(figure, found, on)


def _draw_started(
    axes: Axes, found: Tang2010, on: str, order: Order, treatments: Sequence[str]
) -> None:
    runs = [found.runs[case_name(on, order, treatment)].single for treatment in treatments]
    parts = {name: [run.started[place] for run in runs] for place, name in enumerate(STARTED)}
    share_bars(axes, treatments, parts)


def _started(found: Tang2010, on: str, treatments: Sequence[str]) -> Figure:
    figure, (axes,) = panels(1, width=6)
    _draw_started(axes, found, on, Order.WFP, treatments)
    return _titled(figure, found, on)


def _figure_6(found: Tang2010) -> Figure:
    figure, all_axes = panels(3)
    for axes, metric in zip(all_axes, METRICS, strict=True):
        scale = 60 if metric == "wait" else 1
        series: Mapping[str, Float64Array] = {
            "S000" if name == "requested" else name: found.runs[
                case_name(MAIN, Order.WFP, name)
            ].single.below[metric]
            / scale
            for name in ("requested", *SELECTIVE)
        }
        curves(axes, FRACTIONS, series, "fraction of jobs", _LABELS[metric])
    return _titled(figure, found)


def _by_class(
    found: Tang2010,
    on: str,
    treatments: Sequence[str],
    names: Sequence[str],
    of: Callable[[RunFigures], dict[str, Float64Array]],
) -> Figure:
    figure, all_axes = panels(3)
    for axes, metric in zip(all_axes, METRICS, strict=True):
        scale = 60 if metric == "wait" else 1
        series = {
            name: (of(found.runs[case_name(on, Order.WFP, name)].single)[metric] / scale).tolist()
            for name in treatments
        }
        bars(axes, names, series, _LABELS[metric])
    return _titled(figure, found, on)
