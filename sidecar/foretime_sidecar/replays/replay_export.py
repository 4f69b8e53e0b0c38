"""What a replay found, for programs (JSON) and spreadsheets (CSV rows).

Pure functions of a `ReplayResult`; docs/outputs.md says what every key and column means.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict
from typing import TypeAlias

import numpy as np
from foretime_sim.scores.comparison import PAIRED_METRICS, Comparison
from foretime_sim.scores.gains import MetricComparison
from foretime_sim.scores.job_classes import ALL, CLASS_METRICS, LENGTHS, SIZES
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.replay_result import ReplayResult
from foretime_sim.scores.start_promises import PROMISE_METRICS

from foretime_sidecar.replays.never_ran_report import never_ran_key

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

JSON_FORMAT = 1
"""Version of `to_json`; grows when a key changes its meaning or goes."""

CSV_COLUMNS = (
    "metric",
    "unit",
    "better",
    "baseline",
    "adjusted",
    "ratio",
    "gain",
    "gain_low",
    "gain_high",
)
CLASS_CSV_COLUMNS = (
    "size_class",
    "length_class",
    "jobs",
    "metric",
    "unit",
    "baseline",
    "adjusted",
    "gain",
)


def to_json(result: ReplayResult) -> dict[str, JsonValue]:
    """Give the whole result as plain values; keys are stable within a `JSON_FORMAT`."""
    comparison = result.comparison
    return {
        "format": JSON_FORMAT,
        "workload": {
            "name": result.workload_name,
            "machine_processors": result.machine_processors,
            "simulated_jobs": result.simulated_jobs,
            "scored_jobs": comparison.repeats[0].baseline.jobs,
            "notes": list(result.workload_notes),
        },
        "options": dict(result.options),
        "repeats": len(comparison.repeats),
        "seed": comparison.seed,
        "jitter_s": comparison.jitter_s,
        "level": comparison.level,
        "interval_method": comparison.interval_method,
        "scored_from_s": comparison.span.start_time,
        "scored_until_s": comparison.span.end_time,
        "settings": dict(asdict(comparison.settings)),
        "class_bounds": {
            "size_shares": list(comparison.classes.size_shares),
            "length_s": list(comparison.classes.length_s),
        },
        "metrics": {key: _json_metric(comparison, key) for key in METRICS},
        "beside": {
            name: {key: _json_metric(other, key) for key in METRICS}
            for name, other in result.beside.items()
        },
        "paired": {key: comparison.paired(key) for key in PAIRED_METRICS},
        "classes": [
            {column: _plain(value) for column, value in row.items()} for row in class_rows(result)
        ],
        "users": [
            {"user": str(user), "jobs": jobs, "baseline": before, "adjusted": after}
            for user, jobs, before, after in comparison.by_user().itertuples()
        ],
        "shortening": dict(asdict(result.shortening)),
        "ordering": None if result.ordering is None else dataclasses.asdict(result.ordering),
        "hook": None
        if result.hook is None
        else {
            "submissions": result.hook.submissions,
            "adjusted": result.hook.adjusted,
            "errors": result.hook.errors,
            "table_generations": result.hook.table_generations,
        },
        "promises": {
            name: None if promised is None else dict(promised.to_dict())
            for name, promised in zip(("baseline", "adjusted"), result.promises, strict=True)
        },
        "never_ran_jobs": {
            name: dict(by_reason)
            for name, by_reason in zip(("baseline", "adjusted"), result.never_ran, strict=True)
        },
        "guard_activations": result.guard_activations,
        "wall_clock_s": result.wall_clock_s,
        "jobs_per_s": result.jobs_per_s,
        "peak_memory_bytes": result.peak_memory_bytes,
    }


def _json_metric(comparison: Comparison, key: str) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {
        column: _plain(value)
        for column, value in _row(comparison[key]).items()
        if column != "metric"
    }
    row["baseline_runs"] = [_plain(r.baseline.to_dict()[key]) for r in comparison.repeats]
    row["adjusted_runs"] = [_plain(r.adjusted.to_dict()[key]) for r in comparison.repeats]
    return row


def _plain(value: float | str | None) -> float | str | None:
    """JSON has no NaN: what is not defined is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def metric_rows(result: ReplayResult) -> list[dict[str, float | str | None]]:
    """One CSV row a metric, with `CSV_COLUMNS`; what is not defined is ``None``."""
    rows = [_row(compared) for compared in result.comparison.metrics.values()]
    return rows + _promise_rows(result) + _never_ran_rows(result)


def _never_ran_rows(result: ReplayResult) -> list[dict[str, float | str | None]]:
    """Give a row for each reason for which jobs never ran."""
    baseline, adjusted = result.never_ran
    return [
        {
            "metric": never_ran_key(why),
            "unit": "jobs",
            "better": "smaller",
            "baseline": baseline.get(why, 0),
            "adjusted": adjusted.get(why, 0),
        }
        for why in {**baseline, **adjusted}
    ]


def _promise_rows(result: ReplayResult) -> list[dict[str, float | str | None]]:
    """Give rows of `PROMISE_METRICS`, if anything was promised."""
    without, adjusted = result.promises
    if without is None or adjusted is None:
        return []
    before, after = without.to_dict(), adjusted.to_dict()
    return [
        {
            "metric": key,
            "unit": metric.unit,
            "better": metric.better.value,
            "baseline": before[key],
            "adjusted": after[key],
        }
        for key, metric in PROMISE_METRICS.items()
    ]


def _row(compared: MetricComparison) -> dict[str, float | str | None]:
    interval = compared.interval
    return {
        "metric": compared.metric.key,
        "unit": compared.metric.unit,
        "better": compared.metric.better.value,
        "baseline": compared.baseline,
        "adjusted": compared.adjusted,
        "ratio": compared.ratio,
        "gain": compared.gain,
        "gain_low": None if interval is None else interval.low,
        "gain_high": None if interval is None else interval.high,
    }


def class_rows(result: ReplayResult) -> list[dict[str, float | str | None]]:
    """One CSV row a class and metric, with `CLASS_CSV_COLUMNS`."""
    classes = [(size, length) for size in (*SIZES, ALL) for length in (*LENGTHS, ALL)]
    rows: list[dict[str, float | str | None]] = []
    for metric in CLASS_METRICS:
        if metric == "jobs":
            continue
        compared = result.comparison.by_class(metric)
        values = compared[["jobs", "baseline", "adjusted", "gain"]].to_numpy(dtype=np.float64)
        rows.extend(
            {
                "size_class": size_class,
                "length_class": length_class,
                "jobs": float(row[0]),
                "metric": metric,
                "unit": METRICS[metric].unit,
                "baseline": _number(row[1]),
                "adjusted": _number(row[2]),
                "gain": _number(row[3]),
            }
            for (size_class, length_class), row in zip(classes, values, strict=True)
        )
    return rows


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
