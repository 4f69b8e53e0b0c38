"""What ``foretime campaign`` says of a campaign: its cells, its logs, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from foretime_sim.campaigns.cells import Plan
from foretime_sim.campaigns.failures import causes
from foretime_sim.campaigns.runs import LogFacts, Record
from rich.table import Table


def state_table(planned: Plan, records: Mapping[str, Record]) -> Table:
    """Show how far the cells of each log are."""
    table = Table(title=planned.campaign.name, title_justify="left")
    for heading in ("log", "cells", "done", "failed", "to run"):
        table.add_column(heading, justify="left" if heading == "log" else "right")
    for log in dict.fromkeys(cell.axes["log"] for cell in planned.cells):
        own = [records.get(cell.id) for cell in planned.cells if cell.axes["log"] == log]
        done = sum(record is not None and record["status"] == "done" for record in own)
        missing = sum(record is None for record in own)
        table.add_row(
            log, *(f"{n:,}" for n in (len(own), done, len(own) - done - missing, missing))
        )
    return table


def cells_table(planned: Plan) -> Table:
    """List the cells: a row for each policy, with how often it runs."""
    runs: dict[tuple[Any, ...], Counter[str]] = {}
    for cell in planned.cells:
        runs.setdefault(tuple(cell.policy.values()), Counter())[cell.axes["log"]] += 1
    axes = list(planned.cells[0].policy)
    shown = [axis for axis in axes if axis in planned.varying] or ["order", "backfill"]
    conditions = {a: {cell.axes[a] for cell in planned.cells} for a in planned.campaign.axes}
    factors, seeds = sorted(conditions["interarrival_factor"]), sorted(conditions["seed"])
    table = Table(
        caption=f"interarrival factors {_listed(factors)}; seeds {_listed(seeds)}",
        caption_justify="left",
    )
    for axis in shown:
        table.add_column(axis)
    logs = list(dict.fromkeys(cell.axes["log"] for cell in planned.cells))
    for log in logs:
        table.add_column(f"cells on {log}", justify="right")
    for policy, by_log in runs.items():
        named = dict(zip(axes, policy, strict=True))
        table.add_row(
            *("–" if named[axis] is None else str(named[axis]) for axis in shown),
            *(f"{by_log[log]:,}" for log in logs),
        )
    return table


def _listed(values: Sequence[float]) -> str:
    some = [f"{value:g}" for value in values]
    return ", ".join(some if len(some) <= 8 else [*some[:3], "...", some[-1]])


def logs_table(logs: Mapping[str, LogFacts]) -> Table:
    """Show the logs as they will be run."""
    table = Table()
    headings = ("log", "jobs", "scored", "processors", "offered load")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "log" else "right")
    for name, facts in logs.items():
        load = "–" if facts.offered_load is None else f"{facts.offered_load:.1%}"
        numbers = (facts.simulated_jobs, facts.scored_jobs, facts.machine_processors)
        table.add_row(name, *(f"{count:,}" for count in numbers), load)
    return table


def counts(planned: Plan, records: Mapping[str, Record]) -> dict[str, int]:
    """Count the cells by what has become of them."""
    states = Counter(
        "missing" if (record := records.get(cell.id)) is None else record["status"]
        for cell in planned.cells
    )
    return {
        "cells": len(planned.cells),
        "done": states["done"],
        "failed": states["failed"],
        "to_run": states["missing"],
    }


def failure_json(record: Record) -> dict[str, Any]:
    """Give a cell that failed for JSON."""
    return {"id": record["id"], **record["axes"], "error": record["error"]}


def failure_lines(planned: Plan, failed: Iterable[Record]) -> Iterator[str]:
    """Give a line for each cause; JSON and the report have every cell with every axis."""
    axes = planned.campaign.axes
    varying = [a for a in axes if len({cell.axes[a] for cell in planned.cells}) > 1]
    for cells, example in causes(failed):
        told_axes = (
            f"{axis} {value}"
            for axis, value in example["axes"].items()
            if value is not None and (axis == "log" or axis in varying)
        )
        some = "1 cell failed" if cells == 1 else f"{cells:,} cells failed"
        such = "it is" if cells == 1 else "one of them is"
        yield f"{some}: {example['error']} ({such} {', '.join(told_axes)})"
