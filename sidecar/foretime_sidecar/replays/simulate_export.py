"""What `foretime simulate` found, for programs (JSON) and spreadsheets (CSV rows).

docs/outputs.md says what every key and column means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.policy_switching import TABLE_1_CASES
from foretime_sim.policies.site_machine import site_of
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.policy_comparison import PolicyCase, PolicyComparison
from foretime_sim.scores.start_promises import PROMISE_METRICS

from foretime_sidecar.replays.never_ran_report import never_ran_key

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

JSON_FORMAT = 1
"""Version of `to_json`; grows when a key changes its meaning or goes."""

CSV_COLUMNS = (
    "policy",
    "order",
    "backfill",
    "depth",
    "compression",
    "slack",
    "slurm",
    "pbs",
    "estimator",
    "metric",
    "unit",
    "better",
    "value",
    "value_low",
    "value_high",
    "gain",
    "gain_low",
    "gain_high",
)


@dataclass(frozen=True, slots=True)
class SimulateResult:
    """All that tables, JSON and CSV tell of a simulation.

    Attributes
    ----------
    workload_name, machine_processors, simulated_jobs, workload_notes
        Which jobs ran on which machine, and what the filters did to them.
    options
        The options that all policies share, as a person would write them.
    comparison
        The policies' scores.
    checked
        Whether the conservation laws were checked.
    wall_clock_s, peak_memory_bytes
        What it took, reading included.
    blue_gene
        The machine, if it is one.
    """

    workload_name: str
    machine_processors: int
    simulated_jobs: int
    workload_notes: tuple[str, ...]
    options: Mapping[str, str]
    comparison: PolicyComparison
    checked: bool
    wall_clock_s: float
    peak_memory_bytes: int | None = None
    blue_gene: BgpMachine | None = None


def to_json(result: SimulateResult) -> dict[str, JsonValue]:
    """Give the whole result as plain values; keys are stable within a `JSON_FORMAT`."""
    comparison = result.comparison
    repeats = comparison.repeats
    return {
        "format": JSON_FORMAT,
        "workload": {
            "name": result.workload_name,
            "machine_processors": result.machine_processors,
            "simulated_jobs": result.simulated_jobs,
            "scored_jobs": comparison.runs[0][0].scores.jobs,
            "notes": list(result.workload_notes),
        },
        "options": dict(result.options),
        "repeats": repeats.count,
        "seed": repeats.seed,
        "jitter_s": repeats.jitter_s if repeats.vary else 0,
        "level": repeats.level,
        "interval_method": comparison.interval_method,
        "scored_from_s": comparison.span.start_time,
        "scored_until_s": comparison.span.end_time,
        "settings": dict(asdict(comparison.settings)),
        "checked": result.checked,
        "policies": [_policy(result, case) for case in range(len(comparison.cases))],
        "wall_clock_s": result.wall_clock_s,
        "peak_memory_bytes": result.peak_memory_bytes,
    }


def _policy(result: SimulateResult, case: int) -> dict[str, JsonValue]:
    comparison = result.comparison
    described = comparison.cases[case]
    return {
        "name": described.name,
        **describe(described),
        "metrics": {key: _metric(comparison, case, key) for key in METRICS},
        "promises": _promises(comparison, case),
        "never_ran_jobs": dict(comparison.never_ran(case)),
        "classes": [dict(value._asdict()) for value in comparison.by_class(case)],
        "bgp_partitions": _bgp_partitions(result, case),
        "guard_activations": sum(run[case].guard_activations for run in comparison.runs)
        / len(comparison.runs),
        "switching": _switching(comparison.switching(case)),
        "jobs_per_s": comparison.jobs_per_s(case),
    }


def _promises(comparison: PolicyComparison, case: int) -> dict[str, JsonValue] | None:
    promises = comparison.promises(case)
    return None if promises is None else dict(promises.to_dict())


def _switching(counted: Sequence[SwitchingCounters]) -> dict[str, JsonValue] | None:
    """Give means over the repeats."""
    if not counted:
        return None
    runs = len(counted)
    tries = sum(one.tries for one in counted)
    waiting = sum(one.waiting_at_tries for one in counted)
    cases = [one.cases for one in counted if one.cases is not None]
    return {
        "tries": tries / runs,
        "mean_backlog": waiting / tries if tries else None,
        "same_policy": sum(one.same_policy for one in counted) / runs,
        "orders": [
            {
                "order": str(order),
                "jobs_started": sum(int(one.jobs_started[place]) for one in counted) / runs,
                "switches": sum(one.switches[place] for one in counted) / runs,
            }
            for place, order in enumerate(counted[0].orders)
        ],
        "cases": {case: sum(one[case] for one in cases) / runs for case in TABLE_1_CASES}
        if cases
        else None,
    }


def _bgp_partitions(result: SimulateResult, case: int) -> list[JsonValue]:
    used = result.comparison.bgp_use(case)
    if used is None or result.blue_gene is None:
        return []
    return [
        {"name": part.name, "nodes": part.nodes, "jobs": jobs, "busy_s": busy_s}
        for part, jobs, busy_s in zip(
            result.blue_gene.bgp_partitions, *(column.tolist() for column in used), strict=True
        )
    ]


def describe(case: PolicyCase) -> dict[str, str | int | None]:
    """Give what a policy is; settings that its backfilling does not have are at their defaults.

    A site's scheduler has neither an order nor settings of backfilling: they are ``None``.
    """
    of_site = site_of(case.policy) is not None
    shown: dict[str, str | int | None] = {
        "depth": None if of_site else 1,
        "compression": None if of_site else "reservation-order",
        "slack": None,
        "slurm": None,
        "pbs": None,
    }
    return {
        "order": None if of_site else case.policy.order_name,
        "backfill": str(case.policy.backfill),
        **shown,
        **case.policy.backfill.shown,
        "estimator": case.estimator,
    }


def _metric(comparison: PolicyComparison, case: int, key: str) -> dict[str, JsonValue]:
    metric = METRICS[key]
    figures = _figures(comparison, case, key)
    runs: list[JsonValue] = [run[case].scores.to_dict()[key] for run in comparison.runs]
    return {"unit": metric.unit, "better": metric.better.value, **figures, "runs": runs}


def _figures(comparison: PolicyComparison, case: int, key: str) -> dict[str, float | None]:
    """Give value and gain with their intervals; the first policy has no gain over itself."""
    figure = comparison.figure(case, key)
    interval = figure.interval
    gain = gain_interval = None
    if case > 0:
        compared = comparison.gain(case, key)
        gain, gain_interval = compared.gain, compared.interval
    return {
        "value": figure.mean,
        "value_low": None if interval is None else interval.low,
        "value_high": None if interval is None else interval.high,
        "gain": gain,
        "gain_low": None if gain_interval is None else gain_interval.low,
        "gain_high": None if gain_interval is None else gain_interval.high,
    }


def csv_rows(result: SimulateResult) -> list[dict[str, float | str | None]]:
    """One CSV row a policy and metric, with `CSV_COLUMNS`; what is not defined is ``None``.

    Policies that promise starts have rows of `PROMISE_METRICS` after the others', and those that
    never ran some jobs a row for each reason.
    """
    comparison = result.comparison
    promises = [comparison.promises(place) for place in range(len(comparison.cases))]
    rows: list[dict[str, float | str | None]] = [
        {
            "policy": case.name,
            **describe(case),
            "metric": key,
            "unit": metric.unit,
            "better": metric.better.value,
            **_figures(comparison, place, key),
        }
        for place, case in enumerate(comparison.cases)
        for key, metric in METRICS.items()
    ]
    rows += [
        {
            "policy": case.name,
            **describe(case),
            "metric": key,
            "unit": metric.unit,
            "better": metric.better.value,
            "value": promised.to_dict()[key],
        }
        for case, promised in zip(comparison.cases, promises, strict=True)
        if promised is not None
        for key, metric in PROMISE_METRICS.items()
    ]
    rows += [
        {
            "policy": case.name,
            **describe(case),
            "metric": never_ran_key(why),
            "unit": "jobs",
            "better": "smaller",
            "value": jobs,
        }
        for place, case in enumerate(comparison.cases)
        for why, jobs in comparison.never_ran(place).items()
    ]
    return rows
