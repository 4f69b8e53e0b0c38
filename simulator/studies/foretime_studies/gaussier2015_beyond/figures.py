"""Figures of the study beyond Gaussier 2015."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from foretime_studies.frame.plots import bars, dress, panels
from foretime_studies.gaussier2015_beyond.cases import Kind
from foretime_studies.gaussier2015_beyond.study import GAP, P99, P99_9, Beyond


def figures(found: Beyond) -> dict[str, Figure]:
    """Draw the gap closed by each practical case, and what that costs in long waits."""
    cases = found.of_kind(Kind.PRACTICAL)
    gap = found.matrix(cases, GAP)
    by_log, (axes,) = panels(1, width=11, height=4)
    names = [log.name for log in found.logs]
    bars(
        axes,
        names,
        {case.name: gap[:, place].clip(-0.5).tolist() for place, case in enumerate(cases)},
        "share of the gap closed",
    )
    price, each = panels(2, width=5.2, height=4)
    for axes, target in zip(each, (P99, P99_9), strict=True):
        worst = found.matrix(cases, target).max(axis=0)
        axes.plot(worst, gap.mean(axis=0), "o")
        for case, across, up in zip(cases, worst, gap.mean(axis=0), strict=True):
            axes.annotate(case.name, (across, up), fontsize=6)
        if target.most is not None:
            axes.axvline(target.most, color="black", linewidth=0.6, linestyle="--")
        if GAP.least_mean is not None:
            axes.axhline(GAP.least_mean, color="black", linewidth=0.6, linestyle="--")
        axes.set_xscale("log")
        dress(axes, f"{target.title}, worst log", "share of the gap closed, mean")
        axes.set_ylim(min(0.0, float(np.min(gap.mean(axis=0)))) - 0.05, 1.05)
    return {"ablation": by_log, "targets-gap": price}
