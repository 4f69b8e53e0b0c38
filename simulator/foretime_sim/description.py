"""What a workload looks like in figures: load, people, and how sizes and times are distributed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretime_sim.workload import Labels, Workload

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean, maximum, and the `QUANTILES` in their order."""

    mean: float
    maximum: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """Figures of a workload.

    Attributes
    ----------
    name, jobs, machine_processors
        Of the workload.
    first_submission, last_submission
        Dates (UTC), or days where the log does not say when it started.
    span_s
        Seconds between the two.
    offered_load
        Processor-seconds of all jobs / (processors x span); ``None`` for a span of 0.
    users, projects, queues
        How many distinct ones; ``None`` where the log has none at all.
    size, runtime_s, requested_time_s, accuracy
        Distributions over jobs; accuracy is R = runtime / requested time.
    at_limit
        Share of jobs that ran for their requested time or longer.
    """

    name: str
    jobs: int
    machine_processors: int
    first_submission: str
    last_submission: str
    span_s: int
    offered_load: float | None
    users: int | None
    projects: int | None
    queues: int | None
    size: Distribution
    runtime_s: Distribution
    requested_time_s: Distribution
    accuracy: Distribution
    at_limit: float


def describe(workload: Workload) -> Description:
    """Work out the figures of a workload."""
    first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
    work = float(workload.processors.astype(np.float64) @ workload.actual_runtime)
    accuracy = workload.actual_runtime / workload.requested_time
    return Description(
        name=workload.name,
        jobs=len(workload),
        machine_processors=workload.machine_processors,
        first_submission=workload.moment(first),
        last_submission=workload.moment(last),
        span_s=last - first,
        offered_load=work / (workload.machine_processors * (last - first))
        if last > first
        else None,
        users=_distinct(workload.users),
        projects=_distinct(workload.projects),
        queues=_distinct(workload.queues),
        size=_distribution(workload.processors),
        runtime_s=_distribution(workload.actual_runtime),
        requested_time_s=_distribution(workload.requested_time),
        accuracy=_distribution(accuracy),
        at_limit=float(np.mean(accuracy >= 1)),
    )


def _distinct(labels: Labels | None) -> int | None:
    """Count the names that occur."""
    return None if labels is None else len(np.unique(labels.codes[~labels.mask]))


def _distribution(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> Distribution:
    quantiles = np.quantile(values, QUANTILES)
    return Distribution(float(values.mean()), float(values.max()), tuple(quantiles.tolist()))
