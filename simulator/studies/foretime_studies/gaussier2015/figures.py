"""Figures 3, 4 and 5 of Gaussier 2015."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from foretime_studies.frame.plots import both_logarithmic, curves, panels
from foretime_studies.gaussier2015.predictions import ERRORS_S, PREDICTED_S, Predicted, drawn
from foretime_studies.gaussier2015.study import (
    CLAIRVOYANT_SJBF,
    EASY,
    EASY_PLUS_PLUS,
    Gaussier2015,
)

_MARKED = (
    ("EASY", EASY, "s"),
    ("EASY++", EASY_PLUS_PLUS, "D"),
    ("clairvoyant EASY-SJBF", CLAIRVOYANT_SJBF, "P"),
)
_PER_ROW = 4


def figures(found: Gaussier2015, predicted: Sequence[Predicted]) -> dict[str, Figure]:
    """Draw all of them; figure 3 with two logs or more."""
    hours, seconds = ERRORS_S / 3_600, np.asarray(PREDICTED_S, np.float64)
    made = {
        "figure4": _distribution(predicted, "errors", hours, "prediction less runtime, h"),
        "figure5": _distribution(predicted, "predictions", seconds, "predicted, s"),
    }
    made["figure5"].axes[0].set_xscale("log")
    return made if len(found.logs) < 2 else {"figure3": figure_3(found), **made}


def figure_3(found: Gaussier2015) -> Figure:
    """Scatter the triples' AVEbsld on one log over that on another, for every couple of logs."""
    couples = list(itertools.combinations(range(len(found.logs)), 2))
    across = min(_PER_ROW, len(couples))
    down = math.ceil(len(couples) / across)
    figure = Figure(figsize=(3.2 * across, 3.0 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    by_backfill = {
        backfill: found.matrix([t for t in found.candidates if t.backfill == backfill])
        for backfill in ("easy", "easy-sjbf")
    }
    marked = [
        (title, found.matrix([triple])[:, 0], marker)
        for title, triple, marker in (
            *_MARKED,
            ("paper's choice", found.settings.paper_choice, "*"),
        )
        if (found.names[0], triple, 0) in found.runs
    ]
    for place, (a, b) in zip(axes, couples, strict=False):
        for backfill, values in by_backfill.items():
            place.scatter(values[a], values[b], s=8, alpha=0.6, label=backfill)
        for title, value, marker in marked:
            place.scatter(value[a], value[b], s=60, marker=marker, edgecolors="black", label=title)
        _dress(place, found.names[a], found.names[b])
    for place in axes[len(couples) :]:
        place.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def _dress(axes: Axes, across: str, up: str) -> None:
    both_logarithmic(axes)
    for axis, log in ((axes.xaxis, across), (axes.yaxis, up)):
        axis.set_label_text(f"AVEbsld, {log}", fontsize=8)
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.3)


def _distribution(
    predicted: Sequence[Predicted], of: str, places: Float64Array, across: str
) -> Figure:
    """Draw how errors (figure 4) or predictions (figure 5) are distributed."""
    figure, (axes,) = panels(1, 6.0, 3.6)
    shown = drawn(predicted)
    series = {name: getattr(one, of) for name, one in shown.items()}
    curves(axes, places, series, across, "share of jobs")
    axes.set_title(next(iter(shown.values())).log, fontsize=9)
    return figure
