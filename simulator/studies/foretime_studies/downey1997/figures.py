"""Figures 1 to 7 of Downey 1997."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foretime_studies.downey1997.study import Downey1997, LogFound
from foretime_studies.frame.plots import both_logarithmic, dress, panels

_TIMES = np.geomspace(1, 4e5, 200)
_DRAWN = 1_500
"""Points of a scatter plot; of more, every so manieth is drawn."""
_COLUMNS = np.geomspace(1, 1e6, 25)
"""Bounds of the columns of figure 4, seconds."""
_LEAST_JOBS = 20
"""Fewer jobs have no mean or median in a figure."""


def figures(found: Downey1997) -> dict[str, Figure]:
    """Draw every figure, by the name of its file."""
    first, others = found.logs[0], found.logs[1:]
    drawn = {
        "figure1": _all_jobs(first),
        "figure2": _remaining(first),
        "figure3": _classes([first]),
        "figure4": _scatter(first),
        "figure5": _stages(first),
        "figure7": _periods(first),
    }
    if others:
        drawn["figure6"] = _classes(others)
    return dict(sorted(drawn.items()))


def _empirical(runtimes: Int64Array) -> Float64Array:
    ordered = np.sort(runtimes)
    return np.asarray(np.searchsorted(ordered, _TIMES) / max(len(ordered), 1))


def _dress_lifetimes(axes: Axes, title: str) -> None:
    axes.set_xscale("log")
    dress(axes, "lifetime, s", "share of jobs that end earlier", title)


def _all_jobs(found: LogFound) -> Figure:
    figure, (axes,) = panels(1, width=6)
    runtimes = found.log.runtimes()
    axes.plot(_TIMES, _empirical(runtimes), label=f"{len(runtimes):,} jobs")
    line = fit_uniform_log(runtimes)
    if line is not None:
        label = f"β0 {line.intercept:.2f}, β1 {line.slope:.2f}, R² {line.r_squared:.3f}"
        axes.plot(_TIMES, line.lifetimes.cdf(_TIMES), color="gray", label=label)
    _dress_lifetimes(axes, found.log.name)
    return figure


def _remaining(found: LogFound) -> Figure:
    figure, (axes,) = panels(1, width=6)
    runtimes = np.sort(found.log.runtimes()).astype(np.float64)
    ages = np.geomspace(10, max(runtimes[-1], 100.0), 120)
    observed = []
    for age in ages.tolist():
        older = runtimes[runtimes > age]
        observed.append(np.median(older) - age if len(older) >= _LEAST_JOBS else np.nan)
    axes.plot(ages / 3_600, np.array(observed) / 3_600, label="observed")
    line = fit_uniform_log(runtimes)
    if line is not None:
        model = [
            line.lifetimes.median_life(age) - age if age < line.t_max else np.nan
            for age in ages.tolist()
        ]
        axes.plot(ages / 3_600, np.array(model) / 3_600, color="gray", label="uniform-log")
    axes.plot(ages / 3_600, ages / 3_600, "k:", linewidth=0.8, label="past repeats")
    both_logarithmic(axes)
    dress(axes, "age, h", "median remaining lifetime, h")
    return figure


def _classes(logs: list[LogFound] | tuple[LogFound, ...]) -> Figure:
    figure, many = panels(len(logs), width=5)
    for found, axes in zip(logs, many, strict=True):
        for name, line in found.lines.items():
            (drawn,) = axes.plot(_TIMES, _empirical(found.log.runtimes(name)), label=name)
            if line is not None:
                axes.plot(_TIMES, line.lifetimes.cdf(_TIMES), color=drawn.get_color(), alpha=0.4)
        _dress_lifetimes(axes, found.log.name)
    return figure


def _scatter(found: LogFound) -> Figure:
    figure, many = panels(2, width=5, height=4.5)
    actual = np.maximum(found.actual_s, 1).astype(np.float64)
    every = -(-len(actual) // _DRAWN) or 1
    told_by = {"Predictor A": found.predicted.by_a, "Predictor B": found.predicted.by_b}
    for (name, values), axes in zip(told_by.items(), many, strict=True):
        told = np.maximum(values, 1.0)
        axes.plot(told[::every], actual[::every], ".", markersize=1.5, alpha=0.4)
        middles, means, medians = [], [], []
        for low, high in pairwise(_COLUMNS.tolist()):
            inside = actual[(told >= low) & (told < high)]
            if len(inside) >= _LEAST_JOBS:
                middles.append(np.sqrt(low * high))
                means.append(inside.mean())
                medians.append(np.median(inside))
        axes.plot(middles, means, "k-", linewidth=1, label="mean")
        axes.plot(middles, medians, "k--", linewidth=1, label="median")
        axes.plot([1, 1e6], [1, 1e6], color="gray", linewidth=0.8)
        both_logarithmic(axes)
        dress(axes, "predicted, s", "real wait at the head, s", name)
        axes.grid(visible=False)
    return figure


def _stages(found: LogFound) -> Figure:
    """Draw the class that a line fits worst."""
    figure, (axes,) = panels(1, width=6)
    fitted = {name: line for name, line in found.lines.items() if line is not None}
    if not fitted:
        return figure
    name = "long" if "long" in fitted else min(fitted, key=lambda key: fitted[key].r_squared)
    axes.plot(_TIMES, _empirical(found.log.runtimes(name)), label=f"{name} jobs")
    axes.plot(_TIMES, fitted[name].lifetimes.cdf(_TIMES), color="gray", label="one stage")
    stages = found.stages[name]
    if stages is not None:
        label = f"{stages.stages} stages, fitted"
        axes.plot(np.exp(stages.log_time), stages.reached, "o-", markersize=3, label=label)
    _dress_lifetimes(axes, found.log.name)
    return figure


def _periods(found: LogFound) -> Figure:
    figure, (axes,) = panels(1, width=6)
    for period in found.periods:
        runtimes = found.log.workload.actual_runtime[period.jobs]
        axes.plot(_TIMES, _empirical(runtimes), label=f"{period.name}: {len(runtimes):,} jobs")
    _dress_lifetimes(axes, found.log.name)
    return figure
