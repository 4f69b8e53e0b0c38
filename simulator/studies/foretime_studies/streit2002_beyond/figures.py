"""The figure of what lies beyond Streit 2002."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from foretime_studies.frame.plots import curves, panels
from foretime_studies.streit2002_beyond.study import RIVALS, Streit2002Beyond


def figures(found: Streit2002Beyond) -> dict[str, Figure]:
    """Draw ARTwW over shrinking factors, relative to the best single policy."""
    figure, drawn_on = panels(len(found.sets), width=3.6)
    for axes, job_set in zip(drawn_on, found.sets, strict=True):
        named = {single: single for single in RIVALS} | {"self-tuned": found.chosen[job_set.name]}
        means = {
            name: np.array(
                [float(found.artww(job_set, f, scheduler).mean()) for f in job_set.factors]
            )
            for name, scheduler in named.items()
        }
        best = np.min([means[single] for single in RIVALS], axis=0)
        relative = {name: values / best for name, values in means.items()}
        curves(axes, job_set.factors, relative, "shrinking factor", "ARTwW / best single's")
        axes.invert_xaxis()
        axes.set_ylim(0.6, 2.0)
        axes.axhline(1.02, color="black", linewidth=0.6, linestyle="--")
        axes.set_title(f"{job_set.name}_syn", fontsize=9)
    return {"targets": figure}
