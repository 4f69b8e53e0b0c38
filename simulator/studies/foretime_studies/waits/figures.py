"""Pictures of forecast waits: how often each quantile holds, and how far the gap is closed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_sim.waits.forecaster import LEVELS
from matplotlib.figure import Figure

from foretime_studies.frame.plots import bars, dress, panels
from foretime_studies.waits.runs import FORWARD, OURS, PERFECT, PLAN, QBETS
from foretime_studies.waits.scores import GAPS, ScoredRun

_DRAWN = (PLAN, QBETS, FORWARD, OURS)


def figures(runs: Sequence[ScoredRun]) -> dict[str, Figure]:
    """Draw every figure, by the name of its file."""
    return {"reliability": _reliability(runs), "gaps": _gaps(runs)}


def _reliability(runs: Sequence[ScoredRun]) -> Figure:
    """Draw how often the quantile at each level holds, of jobs not forecast to start at once."""
    figure, axes = panels(len(runs), width=3.4, height=3.4)
    for scored, panel in zip(runs, axes, strict=True):
        panel.plot([0, 1], [0, 1], color="black", linewidth=0.6)
        for method in _DRAWN:
            held = scored.reliability(method)
            if not np.isnan(held).all():
                panel.plot(LEVELS, held, label=method, linewidth=1.2)
        dress(panel, "level of the quantile", "share of waits up to it")
        panel.set_title(scored.run.title, fontsize=8)
    return figure


def _gaps(runs: Sequence[ScoredRun]) -> Figure:
    """Draw the scores whose gap between the plan on t_req and perfect runtimes is to be closed."""
    figure, axes = panels(len(GAPS), width=3.6)
    for (score, name), panel in zip(GAPS.items(), axes, strict=True):
        series = {
            method: [scored.at_submission[method][score].value for scored in runs]
            for method in (PLAN, OURS, PERFECT)
        }
        bars(panel, [scored.run.title.split("-")[0] for scored in runs], series, name)
    return figure
