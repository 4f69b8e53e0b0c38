"""One metric of two runs compared over repeats: the gain, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_sim.scores.intervals import Interval, Weeks, percentile_interval, t_interval
from foretime_sim.scores.metrics import Direction, Metric, ScoreSettings, starved
from foretime_sim.scores.repeats import FEWEST_REPEATS
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric in both runs.

    Attributes
    ----------
    metric
        What it is.
    baseline, adjusted
        Means over the repeats, ``None`` where a repeat has no value.
    gain
        Mean over the repeats of (base - new) / base (Tang 2010, IV.C), or (new - base) / base where
        larger is better: positive is better. ``None`` where neither is, or where a base is 0.
    interval
        Of the gain; ``None`` where there is none.
    """

    metric: Metric
    baseline: float | None
    adjusted: float | None
    gain: float | None
    interval: Interval | None

    @property
    def ratio(self) -> float | None:
        """Adjusted / baseline, the way tails are told; ``None`` where either is missing or 0."""
        if self.baseline is None or self.adjusted is None or self.baseline == 0:
            return None
        return self.adjusted / self.baseline


def compare_metric(
    metric: Metric,
    baseline: Sequence[float | None],
    adjusted: Sequence[float | None],
    resampled_gains: Sequence[Mapping[str, Float64Array]],
    level: float,
) -> MetricComparison:
    """Compare one metric of two runs.

    Parameters
    ----------
    metric
        Which one.
    baseline, adjusted
        Its values, one a repeat.
    resampled_gains
        What `foretime_sim.scores.intervals.gains` gave, one a repeat; empty where none were
        resampled.
    level
        Of the interval.
    """
    gains = [
        relative_gain(before, after, metric.better)
        for before, after in zip(baseline, adjusted, strict=True)
    ]
    known = [gain for gain in gains if gain is not None]
    gain = sum(known) / len(known) if len(known) == len(gains) else None
    interval = None
    if gain is not None:
        if len(gains) >= FEWEST_REPEATS:
            interval = t_interval(known, level)
        elif all(metric.key in gains_of for gains_of in resampled_gains):
            resampled = np.mean([gains_of[metric.key] for gains_of in resampled_gains], axis=0)
            interval = percentile_interval(resampled, level)
    return MetricComparison(metric, mean(baseline), mean(adjusted), gain, interval)


def resampled_figures(
    weeks: Weeks,
    workload: Workload,
    values: Mapping[str, Int64Array | Float64Array],
    settings: ScoreSettings,
) -> dict[str, Float64Array]:
    """Give each metric of a run that weeks can tell something of; see `Weeks.figures`.

    Parameters
    ----------
    weeks
        How they are drawn.
    workload
        The scored jobs alone.
    values
        Their `JOB_METRICS`, shape (jobs,) each.
    settings
        What makes a job starved.
    """
    processors = workload.processors
    return weeks.figures(
        workload.submit_time,
        values,
        {
            "bounded_slowdown_weighted_mean": processors * values["bounded_slowdown"],
            "turnaround_time_weighted_mean_s": processors * values["turnaround_time"],
            "starved_jobs": starved(values["wait"], workload.requested_time, settings),
        },
    )


def relative_gain(
    baseline: float | None, adjusted: float | None, better: Direction
) -> float | None:
    """Give (base - new) / base, negated where larger is better; ``None`` where undefined."""
    if baseline is None or adjusted is None or baseline == 0 or better is Direction.NEITHER:
        return None
    gain = (baseline - adjusted) / baseline
    return gain if better is Direction.SMALLER else -gain


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of one value a repeat; ``None`` where a repeat has none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
