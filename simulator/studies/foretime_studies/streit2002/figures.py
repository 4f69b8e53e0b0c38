"""Figures 1 to 8 of Streit 2002, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foretime_studies.frame.plots import curves, panels
from foretime_studies.streit2002.curves import CURVES, Curves
from foretime_studies.streit2002.study import Streit2002


def figures(found: Streit2002) -> dict[str, Figure]:
    """Draw every figure, by the name of its file."""
    return {"figure1": _figure_1(found)} | {
        drawn.key: _over_factors(found, drawn) for drawn in CURVES if drawn.shown(found)
    }


def _figure_1(found: Streit2002) -> Figure:
    figure, drawn_on = panels(len(found.sets), width=3.6)
    times = np.geomspace(1, 1_000_000, 400)
    for axes, job_set in zip(drawn_on, found.sets, strict=True):
        jobs = found.jobs(job_set)
        series = {
            "estimated": _distribution(jobs.requested_time, times),
            "actual": _distribution(jobs.actual_runtime, times),
        }
        curves(axes, times, series, "runtime, s", "share of jobs up to it")
        axes.set_xscale("log")
        axes.set_title(f"{job_set.name}_syn", fontsize=9)
    return figure


def _distribution(values: Int64Array, times: Float64Array) -> Float64Array:
    return np.asarray(np.searchsorted(np.sort(values), times, side="right") / len(values))


def _over_factors(found: Streit2002, drawn: Curves) -> Figure:
    shown = drawn.shown(found)
    figure, drawn_on = panels(len(shown), width=3.6)
    for axes, job_set in zip(drawn_on, shown, strict=True):
        points = np.array([drawn.means(found, job_set, factor) for factor in job_set.factors])
        means = dict(zip(drawn.schedulers, points.T, strict=True))
        _falling(axes, job_set.factors, means, drawn.label)
        axes.set_title(f"{job_set.name}_syn", fontsize=9)
    return figure


def _falling(
    axes: Axes, factors: Sequence[float], means: Mapping[str, Float64Array], label: str
) -> None:
    """Draw curves over factors that fall to the right, as the load rises."""
    curves(axes, factors, means, "shrinking factor", label)
    for line in axes.get_lines():
        line.set_marker(".")
    axes.invert_xaxis()
