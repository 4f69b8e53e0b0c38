"""What ``foretime brought`` and ``foretime status`` say of what Foretime has brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretime_estimators.time_units import HOUR_S
from rich.table import Table
from rich.text import Text

from foretime_sidecar.wording.counts import counted

_TITLES = {"user": "user", "size": "processors", "week": "week"}


def brought_line(row: Mapping[str, Any], *, would: bool = False) -> str:
    """Say in a line what Foretime has brought, or would bring."""
    says = "would have saved" if would else "saved"
    if row["saved_hours"] < 0:
        says = "would have cost" if would else "cost"
    line = f"{says} {_hours(abs(row['saved_hours']))} of waiting"
    if row["without_hours"] > 0:
        line += f" ({-100 * row['saved_hours'] / row['without_hours']:+.0f}%)"
    if row["low_hours"] is not None:
        line += f", between {_hours(row['low_hours'])} and {_hours(row['high_hours'])}"
    return f"{line}; {counted(row['jobs'], 'job')} on {counted(row['days'], 'day')}"


def brought_notes(answer: Mapping[str, Any]) -> list[str]:
    """Say how sure it is, and what is missing."""
    model, standing = answer["model"], answer["standing"]
    notes = []
    if standing["why_not"]:
        notes.append(f"The plain scheduler is not run beside now: {standing['why_not']}.")
    if model["bias_percent"] is None:
        notes.append("How far the model is from the scheduler is not known yet.")
    else:
        spread = model["spread_percent"]
        by_day = "" if spread is None else f", and {spread:.0f}% more or less from day to day"
        notes.append(
            f"The model's waits were {model['bias_percent']:+.1f}% off the real ones{by_day} "
            f"({counted(model['jobs'], 'job')} on {counted(model['days'], 'day')})."
        )
    if standing["model_is_off"]:
        notes.append(
            "That is over a tenth: nobody counts as late by the model. queue_order.protect_after_s "
            "holds in the place of beside.most_late_s and beside.most_behind_s."
        )
    if answer["left_out_jobs"]:
        notes.append(f"{counted(answer['left_out_jobs'], 'job')} could not be compared yet.")
    if standing["late_jobs"]:
        jobs = counted(standing["late_jobs"], "job")
        notes.append(f"{jobs} now wait longer than beside.most_late_s over the plain scheduler.")
    if standing["is_behind"]:
        work = _hours(standing["behind_s"] / HOUR_S)
        notes.append(
            f"Jobs that would have started without Foretime have {work} of work for the nodes that "
            "they wait for, over beside.most_behind_s: only late jobs are raised there now."
        )
    return notes


def brought_tables(answer: Mapping[str, Any]) -> list[tuple[str, Table]]:
    """Give the tables with what is above each; those without jobs are left out."""
    tables = []
    for kind, would in (("brought", False), ("would_bring", True)):
        if not answer[kind]["jobs"]:
            continue
        said = "Without Foretime at work it " if would else "Foretime "
        heading = f"{said}{brought_line(answer[kind], would=would)}."
        rows = answer[f"{kind}_rows"]
        tables.append((heading, _table(_TITLES[answer["by"]], rows)))
    return tables


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title, box=None, pad_edge=False)
    for name in ("jobs", "hours without", "with", "saved", "at least", "at most"):
        table.add_column(name, justify="right")
    for row in rows:
        hours = ("without_hours", "with_hours", "saved_hours", "low_hours", "high_hours")
        shown = ("-" if row[key] is None else f"{row[key]:,.1f}" for key in hours)
        table.add_row(Text(row["name"]), Text(f"{row['jobs']:,}"), *map(Text, shown))
    return table


def _hours(hours: float) -> str:
    return f"{hours:,.1f} h" if abs(hours) < 100 else f"{hours:,.0f} h"
