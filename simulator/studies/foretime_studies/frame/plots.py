"""Pictures of a study: bars in groups, shares on top of each other, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foretime_studies.frame.runs import Gain

_GROUP = 0.8
"""Width that the bars of a group have together."""


def panels(count: int, width: float = 4.2, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """Make a figure of so many panels side by side."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    return figure, list(axes)


def bars(
    axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], label: str
) -> None:
    """Draw groups of bars, a colour for each series."""
    for number, (name, values) in enumerate(series.items()):
        axes.bar(_places(len(groups), len(series), number), values, _width(series), label=name)
    _dress(axes, groups, label)
    if len(series) > 1:
        axes.legend(fontsize=7)


def gain_bars(
    axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[Gain]], label: str = "gain"
) -> None:
    """Draw gains of the log as it is as bars, and the repeats' intervals as lines over them."""
    for number, (name, gains) in enumerate(series.items()):
        places = _places(len(groups), len(series), number)
        heights = [np.nan if gain.single is None else gain.single for gain in gains]
        axes.bar(places, heights, _width(series), label=name)
        for place, gain in zip(places, gains, strict=True):
            if gain.interval is not None:
                axes.plot([place] * 2, [gain.interval.low, gain.interval.high], "k-", linewidth=1)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    _dress(axes, groups, label)
    if len(series) > 1:
        axes.legend(fontsize=7)


def share_bars(axes: Axes, groups: Sequence[str], parts: Mapping[str, Sequence[float]]) -> None:
    """Draw what each group is made of, as bars from 0 to 100%."""
    base = np.zeros(len(groups))
    for name, values in parts.items():
        axes.bar(range(len(groups)), values, 0.7, bottom=base, label=name)
        base += np.asarray(values)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    _dress(axes, groups, "share of jobs")
    axes.set_ylim(0, 1)
    axes.legend(fontsize=7, loc="lower left")


def curves(
    axes: Axes,
    places: Sequence[float] | Float64Array,
    series: Mapping[str, Float64Array],
    across: str,
    label: str,
) -> None:
    """Draw a curve for each series."""
    for name, values in series.items():
        axes.plot(places, values, label=name, linewidth=1.2)
    dress(axes, across, label)


def dress(axes: Axes, across: str, up: str, title: str = "") -> None:
    """Write what the axes and the panel are, draw a grid, and name what has a name."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title, fontsize=9)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)


def both_logarithmic(axes: Axes) -> None:
    """Draw both axes by powers of ten."""
    axes.set_xscale("log")
    axes.set_yscale("log")


def _places(groups: int, series: int, number: int) -> Float64Array:
    return np.asarray(np.arange(groups) + (number - (series - 1) / 2) * _GROUP / series)


def _width(series: Mapping[str, object]) -> float:
    return _GROUP / len(series)


def _dress(axes: Axes, groups: Sequence[str], label: str) -> None:
    tilt = 30 if max(len(group) for group in groups) > 9 else 0
    axes.set_xticks(range(len(groups)), groups, rotation=tilt, fontsize=8)
    axes.set_ylabel(label)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
