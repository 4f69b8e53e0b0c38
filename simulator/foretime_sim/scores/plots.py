"""Pictures of comparisons: how waits are distributed, and who gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError
from matplotlib.figure import Figure

from foretime_sim.files.whole_files import write_whole
from foretime_sim.scores.comparison import Comparison
from foretime_sim.scores.policy_comparison import PolicyComparison
from foretime_sim.scores.wait_curve import WAIT_CURVE_SHARES

FORMATS = (".png", ".svg")
TICKS_S = {
    1: "≤ 1 s",
    60: "1 min",
    600: "10 min",
    3_600: "1 h",
    21_600: "6 h",
    86_400: "1 day",
    604_800: "1 week",
    2_592_000: "30 days",
}


_WIDTH = 1.8
"""Of a curve, points."""
_DASH = 5
"""How long a piece of a curve is seen where it coincides with others, in widths."""


def plot_waits(
    comparison: Comparison, title: str = "", *, beside: Mapping[str, Comparison] | None = None
) -> Figure:
    """Share of jobs that wait longer than x, without and with adjustment, mean of the repeats.

    ``beside``: estimators in the hook's place, by name; a further curve each.
    """
    curves = {
        "without Foretime": [repeat.baseline_wait_curve for repeat in comparison.repeats],
        "with Foretime": [repeat.adjusted_wait_curve for repeat in comparison.repeats],
    }
    for name, other in (beside or {}).items():
        curves[f"{name} in its place"] = [repeat.adjusted_wait_curve for repeat in other.repeats]
    return _plot_wait_curves(curves, comparison.repeats[0].baseline.jobs, title)


def plot_policy_waits(comparison: PolicyComparison, title: str = "") -> Figure:
    """Share of jobs that wait longer than x under each policy, mean of the repeats."""
    curves = {
        case.name: [run[place].wait_curve for run in comparison.runs]
        for place, case in enumerate(comparison.cases)
    }
    return _plot_wait_curves(curves, comparison.runs[0][0].scores.jobs, title)


def _plot_wait_curves(
    curves: Mapping[str, Sequence[Float64Array]], jobs: int, title: str
) -> Figure:
    """Draw waits by label, one curve a repeat, of so many jobs.

    Both axes are logarithmic, so that the tail, where people complain, is as visible as the rest.
    Waits below a second are drawn at a second. Curves that coincide in part are drawn a second time
    in dashes over the others, each with its own period: there their colours take turns.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    longer = 1 - WAIT_CURVE_SHARES
    shown = longer >= 1 / jobs
    waits = {
        label: np.maximum(1.0, np.mean(of_repeats, axis=0)) for label, of_repeats in curves.items()
    }
    longest = max(float(wait.max()) for wait in waits.values())
    for place, (label, wait) in enumerate(waits.items()):
        curve = (wait[shown], longer[shown])
        (line,) = axes.plot(*curve, label=label, drawstyle="steps-post", linewidth=_WIDTH)
        near = sum(_coincide(wait[shown], other[shown]) for other in waits.values())
        if near > 1:
            axes.plot(
                *curve,
                color=line.get_color(),
                drawstyle="steps-post",
                linewidth=_WIDTH,
                linestyle=(_DASH * place, (_DASH, _DASH * (near - 1) + 0.7 * place)),
                dash_capstyle="butt",
                zorder=line.get_zorder() + 0.5,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [s for s in TICKS_S if s <= longest * 2]
    axes.set_xticks(ticks, [TICKS_S[s] for s in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    axes.set_xlabel("wait")
    axes.set_ylabel("share of jobs that wait longer")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _coincide(one: Float64Array, other: Float64Array) -> bool:
    """Whether two curves can't be told apart along a quarter of their waits above a second."""
    waiting = (one > 1) | (other > 1)
    return bool(np.isclose(one, other, rtol=0.05)[waiting].sum() >= waiting.sum() / 4)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by the file's ending."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: can't draw {path.suffix or 'that'}: end it in .png or .svg")
    try:
        drawn = BytesIO()
        figure.savefig(drawn, dpi=150, format=path.suffix.lower().removeprefix("."))
        write_whole(path, drawn.getvalue())
    except OSError as error:
        raise InputError(f"{path}: can't write: {error.strerror}") from error
