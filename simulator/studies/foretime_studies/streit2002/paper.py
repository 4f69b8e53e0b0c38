"""What Streit 2002 prints: tables 2 to 6, and its misprints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from foretime_sim.models.weibull import Weibull
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.published import published

SETS = ("CTC", "KTH", "PC2", "SDSC")
"""In the order of the paper's columns."""
TABLE_2, TABLE_3 = (published(__package__, name) for name in ("table2", "table3"))
"""Of logs and of generated sets, by property and set."""
TABLE_4 = published(__package__, "table4", keys=3)
"""By set, quality and decider."""
TABLE_5, TABLE_6 = (published(__package__, name) for name in ("table5", "table6"))
"""By figure and set; cases by set."""
TABLE_6_ROWS = tuple(TABLE_6)


def _as_share(row: dict[str, Any], columns: Sequence[str]) -> None:
    row.update({column: row[column] / 100 for column in columns})


for _printed in TABLE_4.values():
    _as_share(_printed, ["utilization"])
for _title, _printed in TABLE_5.items():
    if _title.startswith(("switches to", "same policy")):
        _as_share(_printed, SETS)

WAIT_OVER_RUNTIME = {"CTC": 0.35, "KTH": 0.84, "PC2": 0.91, "SDSC": 0.007}
"""Average wait over average runtime in the text on table 5, whose own are 29, 76, 103 and 0.7%."""
TABLE_6_TOTALS = {"CTC": 16_946, "KTH": 18_840, "PC2": 15_552, "SDSC": 509}
"""Printed below the counts: all but case 10b, which is in the sums of the other two rows."""
DIFFERENT = ("1", "6b", "8c", "10c")
"""Cases of the last row but one; the deciders agree in case 1 where FCFS is the current order."""
PRINTED_DIFFERENT = {"CTC": 13_218, "KTH": 15_357, "PC2": 13_658, "SDSC": 421}
CURRENT = ("1", "6a", "6b", "8a", "8c", "10b", "10c")
"""Cases in which the advanced decider keeps the current order for being that. The last row has case
5 (with 4b) too, in which it takes LJF, whatever was before."""
PRINTED_CURRENT = {"CTC": 14_858, "KTH": 15_932, "PC2": 14_076, "SDSC": 462}
"""KTH's is 15,991 by the counts above it."""


def summed(name: str, cases: Sequence[str]) -> int:
    """Add up printed counts of a set."""
    return sum(TABLE_6[case][name] for case in cases)


def set_figures(workload: Workload, interarrival: Weibull) -> dict[str, float]:
    """Give the properties of tables 2 and 3 of a workload of at least two jobs."""
    found = {
        "number of jobs": float(len(workload)),
        "maximum job width": float(workload.processors.max()),
        "width of machine": float(workload.machine_processors),
        "average requested resources": float(workload.processors.mean()),
        "actual > estimated runtime": float(
            (workload.actual_runtime > workload.requested_time).sum()
        ),
        "Weibull alpha": interarrival.alpha,
        "Weibull beta, s": interarrival.beta_s,
    }
    for title, values in (
        ("estimated runtime", workload.requested_time),
        ("actual runtime", workload.actual_runtime),
        ("interarrival time", np.diff(workload.submit_time)),
    ):
        found[f"{title}, avg, s"] = float(values.mean())
        found[f"{title}, min, s"] = float(values.min())
        found[f"{title}, max, s"] = float(values.max())
    return found
