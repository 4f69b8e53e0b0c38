"""Pictures of Mira's four weeks: waits by nodes and by queue, logged and simulated."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from foretime_studies.frame.plots import bars, curves, panels
from foretime_studies.frame.tables import StudyTable
from foretime_studies.mira2018.study import ORDERS, Mira2018
from foretime_studies.mira2018.tables import NAMES, queues_table, sizes_table

_SHARES = np.linspace(0, 1, 201)
_LEAST_JOBS = 20
"""Groups of fewer jobs are in the tables only."""


def figures(found: Mira2018) -> dict[str, Figure]:
    """Draw every figure, by the name of its file."""
    return {
        "waits": _curves(found),
        "sizes": _means(sizes_table(found)),
        "queues": _means(queues_table(found)),
    }


def _curves(found: Mira2018) -> Figure:
    """Draw the share of each week's jobs that wait longer than so many hours."""
    figure, axes = panels(len(found.weeks))
    for place, (week, panel) in enumerate(zip(found.weeks, axes, strict=True)):
        series = {
            NAMES[order]: np.quantile(found.waits(order)[place], _SHARES) / 3_600
            for order in (None, *ORDERS)
        }
        curves(panel, _SHARES, series, "share of jobs that wait at most", "hours")
        panel.set_yscale("symlog", linthresh=0.1)
        panel.set_title(week.name, fontsize=9)
    return figure


def _means(table: StudyTable) -> Figure:
    """Draw a table's mean waits as bars."""
    rows = [row for row in table.rows if int(row[1] or 0) >= _LEAST_JOBS]
    titles = [column.title for column in table.columns]
    series = {
        name: [float(row[titles.index(f"mean, {name}, h")] or 0) for row in rows]
        for name in NAMES.values()
    }
    figure, (axes,) = panels(1, width=7)
    bars(axes, [str(row[0]) for row in rows], series, "mean wait, h")
    return figure
