"""A campaign's results as tables: a row for each cell, and what the seeds say together.

docs/campaigns.md has every column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
from foretime_estimators.jobs.errors import InputError
from pandas.api.extensions import ExtensionArray

from foretime_sim.campaigns.campaign import CONDITION_AXES, NONE
from foretime_sim.campaigns.cells import Plan
from foretime_sim.campaigns.runs import Record
from foretime_sim.files.whole_files import write_whole
from foretime_sim.policies.policy_values import LEARNED, OFF
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.intervals import Interval, t_interval
from foretime_sim.scores.metrics import METRICS, Direction
from foretime_sim.scores.repeats import FEWEST_REPEATS

_Dtype: TypeAlias = Literal["Int64", "Float64", "boolean", "string"]

RUN_COLUMNS = (
    "simulated_jobs",
    "machine_processors",
    "offered_load",
    "guard_activations",
    "deepest_queue_jobs",
    "never_ran_jobs",
    "simulation_s",
)
"""What a cell's record says of its run, besides the metrics."""
ORIGIN_COLUMNS = ("wall_clock_s", "host", "foretime", "finished_at")
_DTYPES: dict[str, _Dtype] = {
    "learn": "boolean",
    "depth": "Int64",
    "guard_share": "Float64",
    "slack_factor": "Float64",
    "seed": "Int64",
    "interarrival_factor": "Float64",
    "simulated_jobs": "Int64",
    "machine_processors": "Int64",
    "offered_load": "Float64",
    "guard_activations": "Int64",
    "deepest_queue_jobs": "Int64",
    "never_ran_jobs": "Int64",
    "simulation_s": "Float64",
    "wall_clock_s": "Float64",
    "seeds": "Int64",
    "mean": "Float64",
    "mean_low": "Float64",
    "mean_high": "Float64",
    "gain": "Float64",
    "gain_low": "Float64",
    "gain_high": "Float64",
    "best": "boolean",
    "like_best": "boolean",
}
"""Types of columns that are neither metrics nor text."""


def results_frame(plan: Plan, records: Mapping[str, Record]) -> pd.DataFrame:
    """Give one row for each cell that is done, in the plan's order.

    Columns: ``id``, every axis (empty where it has no effect), `RUN_COLUMNS`, every metric of
    docs/outputs.md, and `ORIGIN_COLUMNS`.
    """
    rows = []
    for cell in plan.cells:
        record = records.get(cell.id)
        if record is None or record["status"] != "done":
            continue
        rows.append(
            {
                "id": cell.id,
                **cell.axes,
                **{column: record["run"].get(column) for column in RUN_COLUMNS},
                **{key: record["metrics"].get(key) for key in METRICS},
                **{column: record[column] for column in ORIGIN_COLUMNS},
            }
        )
    axes = list(plan.campaign.axes)
    return _table(rows, ["id", *axes, *RUN_COLUMNS, *METRICS, *ORIGIN_COLUMNS])


def failures_frame(plan: Plan, records: Mapping[str, Record]) -> pd.DataFrame:
    """Give one row for each cell that failed: ``id``, the axes, ``error`` and ``traceback``."""
    rows = [
        {"id": cell.id, **cell.axes, "error": record["error"], "traceback": record["traceback"]}
        for cell in plan.cells
        if (record := records.get(cell.id)) is not None and record["status"] == "failed"
    ]
    return _table(rows, ["id", *plan.campaign.axes, "error", "traceback"])


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Give each column one type, whatever is missing or how few rows, so that Parquet has it."""
    return pd.DataFrame({name: _column(name, [row[name] for row in rows]) for name in columns})


def _column(name: str, values: list[Any]) -> ExtensionArray:
    if name in METRICS:
        whole = METRICS[name].unit == "jobs" or name == "makespan_s"
        return pd.array(values, dtype="Int64" if whole else "Float64")
    if name in ("guard_s", "ageing_s", "average_wait_s", "correction_steps"):
        return pd.array([None if v in (OFF, LEARNED) else v for v in values], dtype="Int64")
    return pd.array(values, dtype=_DTYPES.get(name, "string"))


@dataclass(frozen=True)
class Summary:
    """One metric of one policy on one log at one load, over the seeds.

    Attributes
    ----------
    log, interarrival_factor, offered_load
        What the policy was tried on; the load is the seeds' mean.
    policy
        Its axes' values.
    label
        Those of them that vary in the campaign, as one text.
    metric
        Key in `METRICS`.
    seeds
        How many runs there are.
    mean, interval
        Over the seeds; no interval below three.
    gain, gain_interval
        Mean of (base - new) / base over the seeds that both have, as in `comparison.compare`;
        ``None`` for the baseline itself, and where it is not defined.
    best
        Whether the mean is the best of this log and load.
    like_best
        Whether it is the best, or the interval of its difference to the best, seed by seed, holds
        0: then the seeds don't tell them apart.
    """

    log: str
    interarrival_factor: float
    offered_load: float | None
    policy: Mapping[str, Any]
    label: str
    metric: str
    seeds: int
    mean: float | None
    interval: Interval | None
    gain: float | None
    gain_interval: Interval | None
    best: bool
    like_best: bool


def summaries(
    plan: Plan, records: Mapping[str, Record], metrics: Sequence[str] = tuple(METRICS)
) -> list[Summary]:
    """Summarise each policy on each log and load, in the plan's order."""
    level = plan.campaign.report.level
    groups: dict[tuple[str, float], dict[str, dict[int, Record]]] = {}
    policies: dict[str, dict[str, Any]] = {}
    for cell in plan.cells:
        record = records.get(cell.id)
        if record is None or record["status"] != "done":
            continue
        label = policy_label(plan, cell.policy)
        policies[label] = cell.policy
        condition = (cell.axes["log"], cell.axes["interarrival_factor"])
        groups.setdefault(condition, {}).setdefault(label, {})[cell.axes["seed"]] = record
    baseline = policy_label(plan, plan.baseline)
    return [
        summary
        for condition, group in groups.items()
        for metric in metrics
        for summary in _summarised(condition, group, metric, policies, baseline, level)
    ]


def policy_label(plan: Plan, policy: Mapping[str, Any]) -> str:
    """Name a policy by what varies in the campaign; order and backfilling if nothing does."""
    axes = plan.varying or (("order", "backfill") if policy["site"] == NONE else ("site",))
    told = []
    for axis in axes:
        value = policy[axis]
        if value is None:
            continue
        match axis:
            case "guard_s":
                told.append("no guard" if value == OFF else f"guard {value} s")
            case "ageing_s":
                told.append("no ageing" if value == OFF else f"ageing {value} s")
            case "correction_steps":
                told.append("any steps" if value == OFF else f"steps {value}")
            case "guard_by":
                told.append(f"by {value}")
            case "guard_share":
                told.append(f"less {value:g} of the wait")
            case "slack_factor":
                told.append(f"SF {value:g}")
            case "average_wait_s":
                told.append("wait learned" if value == LEARNED else f"wait {value} s")
            case "depth":
                told.append(f"depth {value}")
            case "site":
                told.append("no site" if value == NONE else Path(value).stem)
            case "reservations":
                told.append("no reservations" if value == NONE else str(value))
            case "learn":
                told.append("learning" if value else "history only")
            case "roles":
                told.append(f"S{value}")
            case _:
                told.append(str(value))
    return " / ".join(told)


def _summarised(
    condition: tuple[str, float],
    group: Mapping[str, Mapping[int, Record]],
    metric: str,
    policies: Mapping[str, Mapping[str, Any]],
    baseline: str,
    level: float,
) -> Iterator[Summary]:
    """Summarise one metric for every policy of one log and load."""
    better = METRICS[metric].better
    values: dict[str, dict[int, float]] = {
        label: {
            seed: float(record["metrics"][metric])
            for seed, record in runs.items()
            if record["metrics"][metric] is not None
        }
        for label, runs in group.items()
    }
    means = {label: math.fsum(v.values()) / len(v) for label, v in values.items() if v}
    best = None
    if means and better is not Direction.NEITHER:
        choose = min if better is Direction.SMALLER else max
        best = choose(means, key=lambda label: means[label])
    for label, runs in group.items():
        own = values[label]
        gain, gain_interval = None, None
        if label != baseline and baseline in values:
            gain, gain_interval = _gain(values[baseline], own, better, level)
        loads = [run["run"]["offered_load"] for run in runs.values()]
        known = [load for load in loads if load is not None]
        yield Summary(
            log=condition[0],
            interarrival_factor=condition[1],
            offered_load=sum(known) / len(known) if known else None,
            policy=policies[label],
            label=label,
            metric=metric,
            seeds=len(runs),
            mean=means.get(label),
            interval=_interval(list(own.values()), level),
            gain=gain,
            gain_interval=gain_interval,
            best=best is not None and means.get(label) == means[best],
            like_best=best is not None and _alike(values[best], own, level),
        )


def _interval(samples: Sequence[float], level: float) -> Interval | None:
    return t_interval(samples, level) if len(samples) >= FEWEST_REPEATS else None


def _gain(
    baseline: Mapping[int, float], own: Mapping[int, float], better: Direction, level: float
) -> tuple[float | None, Interval | None]:
    """Mean gain over the seeds that both have, and its interval."""
    gains = [relative_gain(baseline[seed], own[seed], better) for seed in own if seed in baseline]
    known = [gain for gain in gains if gain is not None]
    if not known or len(known) < len(gains):
        return None, None
    return math.fsum(known) / len(known), _interval(known, level)


def _alike(best: Mapping[int, float], own: Mapping[int, float], level: float) -> bool:
    """Whether the seeds can't tell two policies apart, or they are the same."""
    differences = [own[seed] - best[seed] for seed in own if seed in best]
    if not differences:
        return False
    if not any(differences):
        return True
    interval = _interval(differences, level)
    return interval is not None and interval.low <= 0 <= interval.high


def summary_frame(plan: Plan, found: Sequence[Summary]) -> pd.DataFrame:
    """Give the summaries as a table: a row for each log, load, policy and metric."""
    rows = [
        {
            "log": summary.log,
            "interarrival_factor": summary.interarrival_factor,
            "offered_load": summary.offered_load,
            **summary.policy,
            "policy": summary.label,
            "metric": summary.metric,
            "unit": METRICS[summary.metric].unit,
            "better": METRICS[summary.metric].better.value,
            "seeds": summary.seeds,
            "mean": summary.mean,
            "mean_low": summary.interval.low if summary.interval else None,
            "mean_high": summary.interval.high if summary.interval else None,
            "gain": summary.gain,
            "gain_low": summary.gain_interval.low if summary.gain_interval else None,
            "gain_high": summary.gain_interval.high if summary.gain_interval else None,
            "best": summary.best,
            "like_best": summary.like_best,
        }
        for summary in found
    ]
    policy_axes = [axis for axis in plan.campaign.axes if axis not in CONDITION_AXES]
    columns = [
        "log", "interarrival_factor", "offered_load", *policy_axes, "policy", "metric", "unit",
        "better", "seeds", "mean", "mean_low", "mean_high", "gain", "gain_low", "gain_high", "best",
        "like_best",
    ]  # fmt: skip
    return _table(rows, columns)


def write_tables(plan: Plan, records: Mapping[str, Record], folder: Path) -> list[Path]:
    """Write results, summary and failures as Parquet and CSV; the files' paths.

    Raises
    ------
    InputError
        If the folder can't be written.
    """
    tables = {
        "results": results_frame(plan, records),
        "summary": summary_frame(plan, summaries(plan, records)),
        "failures": failures_frame(plan, records),
    }
    written = []
    try:
        for name, table in tables.items():
            for suffix in ("parquet", "csv"):
                path = folder / f"{name}.{suffix}"
                if suffix == "csv":
                    write_whole(path, table.to_csv(index=False).encode())
                else:
                    write_whole(path, table.to_parquet(index=False))
                written.append(path)
    except OSError as error:
        raise InputError(f"{folder}: can't write the results: {error.strerror}") from error
    return written
