"""The report of what lies beyond Streit 2002, and its figure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from foretime_studies.frame.plots import curves, panels
from foretime_studies.frame.report import StudyReport
from foretime_studies.streit2002.sets import JOB_SETS
from foretime_studies.streit2002_beyond.study import (
    FIRST_DRAW,
    FIRST_TUNING_DRAW,
    RIVALS,
    Streit2002Beyond,
)
from foretime_studies.streit2002_beyond.tables import tables


def report(found: Streit2002Beyond, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    settings = found.settings
    how = (
        f"{len(found.results):,} runs of {settings.jobs:,} jobs. Judged on draws {FIRST_DRAW} to "
        f"{FIRST_DRAW + settings.seeds - 1}; settings chosen on draws {FIRST_TUNING_DRAW} to "
        f"{FIRST_TUNING_DRAW + settings.tuning_seeds - 1} of the other sets. Machines as printed; "
        "jobs are killed at their estimate."
    )
    notes = [how, *found.notes]
    absent = [job_set.name for job_set in JOB_SETS if job_set not in found.sets]
    if absent:
        notes.append(f"Not here, for want of their logs: {', '.join(absent)}.")
    return StudyReport(
        "streit2002-beyond",
        "Beyond Streit 2002: self-tuning by forward runs",
        command,
        tuple(notes),
        tuple(tables(found)),
    )


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
