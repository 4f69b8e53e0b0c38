"""Pictures of a campaign: policies against each other, against the load, and in the tail."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from foretime_sim.campaigns.cells import Plan
from foretime_sim.campaigns.results import Summary
from foretime_sim.scores.intervals import Interval
from foretime_sim.scores.metrics import METRICS, Direction

MOST_POLICIES = 48
"""More policies than these make no readable picture; the first by the metric are drawn."""
_MOST_FACETS = 6
_MARKERS = "osD^vPX*<>ph"
_TIMES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_TIME_TICKS_S = tuple(
    count * size
    for size, counts in (
        (1, (1, 2, 5, 10, 20, 30)),
        (60, (1, 2, 5, 10, 20, 30)),
        (3_600, (1, 2, 3, 6, 12)),
        (86_400, (1, 2, 4, 7, 14, 30, 60, 120, 365, 730)),
    )
    for count in counts
)
_FAR = 4.0
"""From so many times the best (or the baseline) on, pictures only say that it is far worse."""


def written(value: float | None, unit: str) -> str:
    """Write a value for people: 3 digits, and times in the largest unit that has at least 1."""
    if value is None or not math.isfinite(value):
        return "–"
    if unit == "share":
        return f"{100 * value:.1f}%"
    if unit == "jobs":
        return f"{value:,.0f}"
    suffix = ""
    if unit == "s":
        size, suffix = next(((s, f" {name}") for s, name in _TIMES if abs(value) >= s), (1, " s"))
        value /= size
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{suffix}"


def _tick(value: float, unit: str) -> str:
    """Write a value of an axis: as short as it can be."""
    text = re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", written(value, unit))
    return re.sub(r"\.(?=\D|$)", "", text)


def ratio_to_baseline(summary: Summary) -> tuple[float, Interval | None] | None:
    """Give new / base as the gain tells it, with its interval; ``None`` where there is no gain."""
    if summary.gain is None:
        return None
    sign = -1.0 if METRICS[summary.metric].better is Direction.SMALLER else 1.0
    interval = summary.gain_interval
    ends = None
    if interval is not None:
        low, high = sorted((1 + sign * interval.low, 1 + sign * interval.high))
        ends = Interval(low, high)
    return 1 + sign * summary.gain, ends


def matrix_axes(plan: Plan) -> tuple[str, str] | None:
    """Choose the two axes that the heat maps cross: order and backfilling if both vary."""
    varying = list(plan.varying)
    if "order" in varying and "backfill" in varying:
        return "order", "backfill"
    values = {axis: len({cell.axes[axis] for cell in plan.cells}) for axis in varying}
    most = sorted(varying, key=lambda axis: -values[axis])[:2]
    return (most[0], most[1]) if len(most) == 2 else None


def plot_matrix(plan: Plan, found: Sequence[Summary], log: str, factor: float) -> Figure | None:
    """Heat map of two axes for the report's first two metrics on one log at one load.

    A row of maps for each combination of the other axes, at most six. ``None`` if fewer than two
    axes vary.
    """
    crossed = matrix_axes(plan)
    if crossed is None:
        return None
    own = [s for s in found if s.log == log and s.interarrival_factor == factor]
    metrics = plan.campaign.report.metrics[:2]
    others = [axis for axis in plan.varying if axis not in crossed]
    facets = list(dict.fromkeys(tuple(s.policy[axis] for axis in others) for s in own))
    facets = facets[:_MOST_FACETS]
    rows, columns = (_in_order(plan, own, axis) for axis in crossed)
    figure = Figure(
        figsize=(
            (1.35 * len(columns) + 2.2) * len(metrics),
            (0.62 * len(rows) + 1.35) * len(facets),
        ),
        layout="constrained",
    )
    grid = figure.subplots(len(facets), len(metrics), squeeze=False)
    for column, metric in enumerate(metrics):
        norm = _norm(
            [s.mean for s in own if s.metric == metric and s.mean is not None],
            larger=METRICS[metric].better is Direction.LARGER,
        )
        for row, facet in enumerate(facets):
            shown = {
                (s.policy[crossed[0]], s.policy[crossed[1]]): s
                for s in own
                if s.metric == metric and tuple(s.policy[axis] for axis in others) == facet
            }
            title = METRICS[metric].title
            if others:
                title += "\n" + ", ".join(f"{a} {v}" for a, v in zip(others, facet, strict=True))
            _matrix(grid[row][column], shown, rows, columns, crossed, norm, title)
    figure.suptitle(_condition(plan, log, factor))
    return figure


def _matrix(
    axes: Axes,
    shown: Mapping[tuple[Any, Any], Summary],
    rows: Sequence[Any],
    columns: Sequence[Any],
    crossed: tuple[str, str],
    norm: Normalize,
    title: str,
) -> None:
    first = next(iter(shown.values()), None)
    larger = first is not None and METRICS[first.metric].better is Direction.LARGER
    colors = mpl.colormaps["viridis" if larger else "viridis_r"]
    values = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            summary = shown.get((row, column))
            if summary is None or summary.mean is None:
                continue
            values[i, j] = summary.mean
            text = written(summary.mean, METRICS[summary.metric].unit)
            if summary.interval is not None and summary.mean:
                spread = (summary.interval.high - summary.interval.low) / 2 / abs(summary.mean)
                text += f"\n± {100 * spread:.1f}%"
            red, green, blue, _ = colors(norm(summary.mean))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            axes.text(
                j, i, text, ha="center", va="center", fontsize=8,
                color="white" if dark else "black",
                fontweight="bold" if summary.like_best else "normal",
            )  # fmt: skip
    axes.imshow(values, cmap=colors, norm=norm, aspect="auto")
    axes.set_xticks(range(len(columns)), [_value(value) for value in columns])
    axes.set_yticks(range(len(rows)), [_value(value) for value in rows])
    axes.tick_params(length=0)
    axes.set_ylabel(crossed[0])
    axes.set_xlabel(crossed[1])
    axes.set_title(title, fontsize=10)


def _norm(values: Sequence[float], *, larger: bool) -> Normalize:
    """Give a scale of colours in which what is far worse than the best does not hide the rest."""
    if not values or min(values) == max(values):
        return Normalize(0, 1)
    low, high, middle = min(values), max(values), statistics.median(values)
    if larger:
        return Normalize(max(low, min(high / _FAR, middle / 2)), high, clip=True)
    if low > 0:
        return LogNorm(low, min(high, max(_FAR * low, 2 * middle)), clip=True)
    return Normalize(low, high)


def plot_gains(plan: Plan, found: Sequence[Summary], log: str, factor: float) -> Figure | None:
    """Each policy as a multiple of the baseline, with its interval, best first.

    What is more than four times the baseline stands at the edge, as a number.
    """
    metrics = plan.campaign.report.metrics[:2]
    own = [s for s in found if s.log == log and s.interarrival_factor == factor]
    told = {
        metric: {s.label: r for s in own if s.metric == metric and (r := ratio_to_baseline(s))}
        for metric in metrics
    }
    first = told[metrics[0]]
    if not first:
        return None
    larger = METRICS[metrics[0]].better is Direction.LARGER
    labels = sorted(first, key=lambda label: first[label][0], reverse=larger)[:MOST_POLICIES]
    figure = Figure(
        figsize=(4.2 * len(metrics) + 2, 0.26 * len(labels) + 1.6), layout="constrained"
    )
    panels = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    colors = _colors(plan)
    policies = {s.label: s.policy for s in own}
    for axes, metric in zip(panels, metrics, strict=True):
        for place, label in enumerate(labels):
            if label not in told[metric]:
                continue
            ratio, interval = told[metric][label]
            color = colors(policies[label])
            if ratio > _FAR:
                axes.plot(_FAR, place, ">", color=color, markersize=6, clip_on=False)
                axes.text(_FAR / 1.06, place, f"{ratio:,.0f}×", ha="right", va="center", fontsize=8)
                continue
            if interval is not None:
                # On a logarithmic axis an end at or below 0 has no place.
                axes.plot(
                    (max(interval.low, ratio / 100), interval.high),
                    (place, place),
                    color=color,
                    linewidth=2,
                    alpha=0.5,
                )
            axes.plot(ratio, place, "o", color=color, markersize=5)
        axes.axvline(1, color="black", linewidth=1)
        _ratio_scale(axes, [told[metric][label] for label in labels if label in told[metric]])
        axes.set_title(METRICS[metric].title, fontsize=10)
        axes.set_xlabel("multiple of the baseline's")
        axes.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(labels)), labels, fontsize=8)
    panels[0].invert_yaxis()
    figure.suptitle(_condition(plan, log, factor))
    return figure


def _ratio_scale(axes: Axes, ratios: Sequence[tuple[float, Interval | None]]) -> None:
    """Scale an axis of multiples: logarithmic, with ticks that read 0.5x, 1x, 2x."""
    ends = [1.0]
    for ratio, interval in ratios:
        ends += (
            [ratio] if interval is None else [ratio, max(interval.low, ratio / 3), interval.high]
        )
    positive = [end for end in ends if end > 0]
    low, high = min(positive), min(max(positive), _FAR)
    margin = 1 if high == _FAR else (high / low) ** 0.05
    low, high = low / (high / low) ** 0.05, high * margin
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    fine = [round(1 + step / 20, 2) for step in range(-10, 11)]
    steps = fine if high / low < 1.7 else [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4]
    ticks = [tick for tick in steps if low <= tick <= high * 1.001]
    while len(ticks) > 8:
        ticks = [tick for place, tick in enumerate(ticks) if (place - ticks.index(1)) % 2 == 0]
    axes.set_xticks(ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}×"))


def _value_scale(axis: Axis, values: Sequence[float], unit: str, *, far: float = 5.0) -> None:
    """Scale an axis of a metric: logarithmic where values lie far apart; times in times' units."""
    low, high = min(values), max(values)
    logarithmic = low > 0 and high > far * low
    if logarithmic:
        set_scale = axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale
        set_scale("log")
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, unit)))
    if not logarithmic:
        if unit == "s":
            # Round times: the smallest step of those that people count in.
            step = next((tick for tick in _TIME_TICKS_S if high - low <= 6 * tick), 10**8)
            first = math.floor(low / step)
            axis.set_ticks([step * n for n in range(first, math.ceil(high / step) + 1)])
        return
    if unit == "s":
        ticks = [tick for tick in _TIME_TICKS_S if low / 1.5 <= tick <= high * 1.5]
        while len(ticks) > 9:
            ticks = ticks[::2]
        if len(ticks) >= 2:
            axis.set_ticks(ticks)
            axis.set_minor_locator(NullLocator())
            return
    axis.set_minor_formatter(NullFormatter())


def plot_load(plan: Plan, found: Sequence[Summary], metric: str) -> Figure | None:
    """One metric against the interarrival factor, a panel for each log, a line for each policy.

    The axis runs from light to heavy load; below each factor stands the offered load. ``None`` if
    the campaign has one factor only.
    """
    own = [s for s in found if s.metric == metric and s.mean is not None]
    logs = list(dict.fromkeys(s.log for s in own))
    if len({s.interarrival_factor for s in own}) < 2:
        return None
    columns = min(3, len(logs))
    rows = -(-len(logs) // columns)
    figure = Figure(figsize=(4.6 * columns + 2.2, 3.9 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    colors, styles = _colors(plan), _styles(plan)
    lines: dict[str, Any] = {}
    for place, log in enumerate(logs):
        axes = grid[place // columns][place % columns]
        here = [s for s in own if s.log == log]
        loads = {s.interarrival_factor: s.offered_load for s in here}
        for label in list(dict.fromkeys(s.label for s in here))[:MOST_POLICIES]:
            line = sorted(
                (s for s in here if s.label == label), key=lambda s: s.interarrival_factor
            )
            x = [s.interarrival_factor for s in line]
            color, (style, marker) = colors(line[0].policy), styles(line[0].policy)
            (lines[label],) = axes.plot(
                x, [s.mean or 0.0 for s in line], color=color, linestyle=style, marker=marker,
                markersize=4, linewidth=1.4, label=label,
            )  # fmt: skip
            bands = [s.interval for s in line]
            if all(band is not None for band in bands):
                low, high = ([getattr(band, end) for band in bands] for end in ("low", "high"))
                axes.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0)
        _value_scale(axes.yaxis, [s.mean or 0.0 for s in here], METRICS[metric].unit)
        factors = sorted(loads)
        axes.set_xticks(
            factors,
            [f"{f:g}" + (f"\n{100 * (loads[f] or 0):.0f}%" if loads[f] else "") for f in factors],
            fontsize=8,
        )
        axes.invert_xaxis()
        axes.set_title(log, fontsize=10)
        axes.grid(alpha=0.3)
    for place in range(len(logs), rows * columns):
        grid[place // columns][place % columns].set_axis_off()
    figure.supxlabel("interarrival factor; below it the offered load", fontsize=9)
    figure.suptitle(METRICS[metric].title)
    figure.legend(lines.values(), lines.keys(), loc="outside right upper", fontsize=8)
    return figure


def plot_tail(plan: Plan, found: Sequence[Summary], log: str, factor: float) -> Figure | None:
    """Mean wait against the wait of the unluckiest thousandth: what the many gain, the few pay.

    Policies whose mean wait is more than four times the best are left out.
    """
    own = [s for s in found if s.log == log and s.interarrival_factor == factor]
    tails = {s.label: s for s in own if s.metric == "wait_p99_9_s"}
    points = [
        (s, tails[s.label], s.mean, tails[s.label].mean or 0.0)
        for s in own
        if s.metric == "wait_mean_s" and s.mean is not None and s.label in tails
    ]
    best = min((mean for _, _, mean, _ in points), default=0.0)
    points = [point for point in points if point[2] <= _FAR * best][:MOST_POLICIES]
    if len(points) < 2:
        return None
    figure = Figure(figsize=(8.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    colors, styles = _colors(plan), _styles(plan)
    for summary, tail, x, y in points:
        axes.errorbar(
            x, y, xerr=_half(summary), yerr=_half(tail), color=colors(summary.policy),
            marker=styles(summary.policy)[1], linestyle="none", markersize=7, elinewidth=1,
            alpha=0.9, label=summary.label,
        )  # fmt: skip
    _value_scale(axes.xaxis, [x for _, _, x, _ in points], "s")
    _value_scale(axes.yaxis, [y for _, _, _, y in points], "s")
    axes.tick_params(labelsize=8)
    axes.set_xlabel("mean wait")
    axes.set_ylabel("p99.9 of the wait")
    axes.grid(alpha=0.3)
    axes.set_title(_condition(plan, log, factor), fontsize=11)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _half(summary: Summary) -> float | None:
    interval = summary.interval
    return None if interval is None else (interval.high - interval.low) / 2


def _in_order(plan: Plan, found: Sequence[Summary], axis: str) -> list[Any]:
    """Values of an axis in the order of the file, then what [[include]] has added."""
    seen = list(dict.fromkeys(s.policy[axis] for s in found))
    declared = [value for value in plan.campaign.axes[axis] if value in seen]
    return declared + [value for value in seen if value not in declared]


def _value(value: object) -> str:
    return "no effect" if value is None else str(value)


def _condition(plan: Plan, log: str, factor: float) -> str:
    several = len({cell.axes["interarrival_factor"] for cell in plan.cells}) > 1
    return f"{log}, interarrival factor {factor:g}" if several else log


def _colors(plan: Plan) -> Callable[[Mapping[str, Any]], Any]:
    """Colour policies by the first axis that varies."""
    axis = plan.varying[0] if plan.varying else "order"
    values = list(dict.fromkeys(cell.axes[axis] for cell in plan.cells))
    palette = mpl.colormaps["tab10" if len(values) <= 10 else "tab20"]
    return lambda policy: palette(values.index(policy[axis]) % palette.N)


def _styles(plan: Plan) -> Callable[[Mapping[str, Any]], tuple[str, str]]:
    """Tell policies of one colour apart by line and marker: by the axes that vary besides."""
    axes = plan.varying[1:]
    keys = list(dict.fromkeys(tuple(cell.axes[axis] for axis in axes) for cell in plan.cells))
    lines = [style for style, _ in zip(cycle(("-", "--", "-.", ":")), keys, strict=False)]
    marks = [mark for mark, _ in zip(cycle(_MARKERS), keys, strict=False)]

    def style(policy: Mapping[str, Any]) -> tuple[str, str]:
        place = keys.index(tuple(policy[axis] for axis in axes))
        return lines[place], marks[place]

    return style
