"""Downey's predictors for whole queues, asked about jobs as they are submitted.

Section 7.1 of Downey 1997 announces this. Beside the extension of his predictors stands his model
of runtimes pushed through forward runs, which follow the policy as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_estimators.distributions.uniform_log_classes import LifetimeClasses, parse_classifiers
from foretime_estimators.distributions.uniform_log_runtimes import UniformLogRuntimes
from foretime_estimators.time_units import MINUTE_S
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey_forecaster import CLASSES, SMALL_NEEDS, DowneyForecaster
from foretime_sim.waits.forecaster import MEDIAN, WaitForecaster
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.scores.moments import Asking, ask_forecasters
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.workload import Workload

from foretime_studies.downey1997.heads import correlation
from foretime_studies.frame.tables import Cell, Column

POLICIES: dict[str, Policy] = {
    "FCFS": Policy(backfill=Backfill.NONE),
    "FCFS with EASY": Policy(),
    "WFP with EASY": Policy(Order.WFP),
}
_JOBS = 8_000
"""Jobs of a log that take part; those asked about are of the second half."""
_SAMPLES = 100


COLUMNS = (
    Column("log"),
    Column("policy"),
    Column("method"),
    Column("waited", ",d"),
    Column("answered", ".0%"),
    Column("correlation, seconds", ".2f"),
    Column("correlation, ln", ".2f"),
    Column("within [t/2, 2t]", ".0%"),
    Column("median error, min", ",.0f"),
)
"""What is told of a method; but for the first two numbers, of the jobs that had an answer."""


def whole_queues(workload: Workload, asked: int, seed: int) -> list[tuple[Cell, ...]]:
    """Ask about jobs of a log at their submission, under several policies; rows of `COLUMNS`."""
    jobs = workload.head(_JOBS)
    half = len(jobs) // 2
    chosen = np.zeros(len(jobs), dtype=np.bool_)
    rng = np.random.default_rng(seed)
    chosen[half + rng.choice(len(jobs) - half, min(asked, len(jobs) - half), replace=False)] = True
    rows: list[tuple[Cell, ...]] = []
    for name, policy in POLICIES.items():
        methods: Sequence[WaitForecaster] = [
            *(DowneyForecaster(kind) for kind in SMALL_NEEDS),
            ForwardForecaster("forward runs", _runtimes(), samples=_SAMPLES, seed=seed),
        ]
        records = ask_forecasters(SimulatedWaits(jobs, policy), methods, Asking(jobs=chosen))
        waited = records.waited_s > 0
        actual = records.waited_s[waited]
        for method in records.methods:
            told = records.of(method).wait_s[waited, MEDIAN]
            has = ~np.isnan(told)
            ratio = np.maximum(told[has], 1.0) / actual[has]
            error = np.abs(told[has] - actual[has])
            rows.append(
                (
                    workload.name,
                    name,
                    method,
                    int(waited.sum()),
                    int(has.sum()) / max(int(waited.sum()), 1),
                    correlation(told, actual),
                    correlation(told, actual, log=True),
                    float(((ratio >= 0.5) & (ratio <= 2)).mean()) if has.any() else np.nan,
                    float(np.median(error)) / MINUTE_S if has.any() else np.nan,
                )
            )
    return rows


def _runtimes() -> UniformLogRuntimes:
    return UniformLogRuntimes(LifetimeClasses(parse_classifiers(CLASSES)))
