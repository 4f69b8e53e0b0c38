"""Scores by the size and length of jobs: four classes of each, as Tang 2010 (IV.A) has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.schedule import StartedBy
from foretime_sim.scores.metrics import (
    METRICS,
    Distribution,
    ScheduleLike,
    ScoredSpan,
    ScoreSettings,
    job_metrics,
    starved,
)
from foretime_sim.workloads.workload import Workload

SIZES = ("very small", "small", "large", "very large")
LENGTHS = ("very short", "short", "long", "very long")
ALL = "all"

CLASS_METRICS = (
    "jobs",
    "wait_mean_s",
    "wait_p50_s",
    "wait_p99_s",
    "wait_max_s",
    "unitless_wait_mean",
    "slowdown_mean",
    "bounded_slowdown_mean",
    "turnaround_time_mean_s",
    "backfilled_jobs",
    "outlived_jobs",
    "starved_jobs",
)
"""Those of `METRICS` that are told for each class."""


@dataclass(frozen=True, slots=True)
class JobClasses:
    """Where the classes end; each bound belongs to the class below it.

    The paper's own bounds are in figures that can't be read; these put Intrepid's 512-node jobs
    into the first size class and its 32 and 40 racks into the last.

    Attributes
    ----------
    size_shares
        Three shares of the machine's processors, increasing.
    length_s
        Three requested times, seconds, increasing.
    """

    size_shares: tuple[float, float, float] = (1 / 64, 1 / 16, 1 / 4)
    length_s: tuple[int, int, int] = (1_800, 7_200, 21_600)

    def __post_init__(self) -> None:
        for name, bounds in (("size_shares", self.size_shares), ("length_s", self.length_s)):
            if len(bounds) != 3 or bounds[0] <= 0 or not bounds[0] < bounds[1] < bounds[2]:
                raise InputError(
                    f"job classes: {name} is {bounds}: give three increasing bounds above 0"
                )

    def size(self, workload: Workload) -> Int64Array:
        """Index into `SIZES` for each job, by processors / machine's processors."""
        bounds = np.array(self.size_shares) * workload.machine_processors
        return np.searchsorted(bounds, workload.processors).astype(np.int64)

    def length(self, workload: Workload) -> Int64Array:
        """Index into `LENGTHS` for each job, by requested time."""
        return np.searchsorted(np.array(self.length_s), workload.requested_time).astype(np.int64)


def scores_by_class(
    workload: Workload,
    schedule: ScheduleLike,
    classes: JobClasses | None = None,
    settings: ScoreSettings | None = None,
    span: ScoredSpan | None = None,
) -> pd.DataFrame:
    """Score each class of size and length, and each size and each length by itself.

    Returns
    -------
    pandas.DataFrame
        25 rows indexed by (size_class, length_class), either of which may be ``all``; columns
        `CLASS_METRICS`, NaN where a class has no job.
    """
    classes, settings = classes or JobClasses(), settings or ScoreSettings()
    scored = (span or ScoredSpan()).among(schedule.start_time).select(workload)
    values = job_metrics(workload, schedule, settings)
    counted = {
        "backfilled_jobs": schedule.started_by == StartedBy.BACKFILLED,
        "outlived_jobs": schedule.outlived,
        "starved_jobs": starved(values["wait"], workload.requested_time, settings),
    }
    size, length = classes.size(workload), classes.length(workload)
    rows = []
    for size_code, size_class in enumerate((*SIZES, ALL)):
        for length_code, length_class in enumerate((*LENGTHS, ALL)):
            chosen = scored.copy()
            if size_class != ALL:
                chosen &= size == size_code
            if length_class != ALL:
                chosen &= length == length_code
            row: dict[str, object] = {"size_class": size_class, "length_class": length_class}
            row["jobs"] = int(chosen.sum())
            if row["jobs"]:
                wait = Distribution.of(values["wait"][chosen], settings.top_share)
                row |= {
                    "wait_mean_s": wait.mean,
                    "wait_p50_s": wait.p50,
                    "wait_p99_s": wait.p99,
                    "wait_max_s": wait.max,
                    "unitless_wait_mean": float(values["unitless_wait"][chosen].mean()),
                    "slowdown_mean": float(values["slowdown"][chosen].mean()),
                    "bounded_slowdown_mean": float(values["bounded_slowdown"][chosen].mean()),
                    "turnaround_time_mean_s": float(values["turnaround_time"][chosen].mean()),
                }
            row |= {key: int(flag[chosen].sum()) for key, flag in counted.items()}
            rows.append(row)
    table = pd.DataFrame(rows).set_index(["size_class", "length_class"])
    return table.reindex(columns=[key for key in METRICS if key in CLASS_METRICS])
