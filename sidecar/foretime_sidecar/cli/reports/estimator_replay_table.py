"""What ``foretime estimators --replay`` shows: what planning by each estimator does to waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from foretime_sidecar.replays.estimator_replay import METRICS, Replayed
from foretime_sidecar.replays.stored_workload import StoredWorkload
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.wording.durations import format_duration


def replay_json(stored: StoredWorkload, found: Sequence[Replayed], used: str) -> dict[str, Any]:
    """Give what was replayed, and what came of it, for JSON."""
    return {
        "jobs": len(stored.workload),
        "history_jobs": 0 if stored.history is None else len(stored.history),
        "machine_processors": stored.workload.machine_processors,
        "in_use": used,
        "estimators": [dataclasses.asdict(one) for one in found],
    }


def replay_heading(stored: StoredWorkload, weeks: int, settings: Settings) -> str:
    """Say what was replayed, and by which scheduler."""
    scheduler = "PBS" if settings.hook.mechanism == "pbs-soft-walltime" else "Slurm"
    return (
        f"{len(stored.workload):,} jobs of {weeks} weeks on {stored.workload.machine_processors:,} "
        f"processors, under {scheduler}'s defaults, {settings.hook.mechanism}; "
        "changes against the requested times"
    )


def replay_table(found: Sequence[Replayed], used: str) -> Table:
    """Draw what each estimator did, a row each; the one in use has a star."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("estimator")
    for name in ("AVEbsld", "", "mean wait", "", "p99 wait", "", "longest", "", "outlived"):
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(*map(Text, _cells(one, used)))
    return table


def _cells(one: Replayed, used: str) -> tuple[str, ...]:
    if one.failure:
        return ("", one.name, one.failure)
    slowdown, *waits = (one.figures[key] for key in METRICS)
    shown = [f"{slowdown:.1f}", *(format_duration(round(wait)) for wait in waits)]
    figures = []
    for key, text in zip(METRICS, shown, strict=True):
        figures += [text, "" if one.name == "requested" else _change(one, key)]
    mark = "*" if one.name == used else ""
    return (mark, one.name, *figures, f"{100 * one.outlived:.1f}%")


def _change(one: Replayed, metric: str) -> str:
    """Say by how much a metric rose, against the requested times; a gain is a fall."""
    interval = one.intervals[metric]
    change = f"{-100 * one.gains[metric]:+.1f}%"
    if interval is not None:
        change += f" [{-100 * interval.high:+.1f} to {-100 * interval.low:+.1f}]"
    return change
