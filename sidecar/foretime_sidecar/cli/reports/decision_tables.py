"""The audit on the terminal: decisions on jobs, and dynP's on the queue's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from foretime_sidecar.ordering.order_words import said_value
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.wording.clocks import dated_clock
from foretime_sidecar.wording.durations import format_duration


def switch_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Draw when the queue was put in which order."""
    table = Table(box=None, pad_edge=False)
    for name in ("time", "order", "before"):
        table.add_column(name)
    table.add_column("waiting", justify="right")
    table.add_column("case")
    for order in found[-1]["qualities"]:
        table.add_column(order.upper(), justify="right")
    for one in found:
        before, qualities = one["instead_of"], one["qualities"]
        table.add_row(
            dated_clock(one["happened_at"]),
            one["order"],
            before or "-",
            "-" if before is None else str(one["waiting_jobs"]),
            one["case"] or "-",
            *(said_value(one["quality"], qualities.get(name)) for name in found[-1]["qualities"]),
        )
    return table


def decision_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Draw what each job was planned with."""
    table = Table(box=None, pad_edge=False)
    for name in ("time", "job", "user", "account", "queue", "decision"):
        table.add_column(name)
    for name in ("old", "new"):
        table.add_column(name, justify="right")
    table.add_column("reason")
    table.add_column("table", justify="right")
    for one in found:
        new, generation = one["scheduled_time_s"], one["generation"]
        words = (
            dated_clock(one["made_at"]),
            one["job_id"],
            one["user"] or "-",
            one["project"] or "-",
            one["queue"] or "-",
            one["action"],
            format_duration(one["requested_time_s"]),
            "-" if new is None else format_duration(new),
            one["reason"],
            "-" if generation is None else str(generation),
        )
        table.add_row(*map(Text, words))
    return table


def reason_lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the reasons in `decision_table` mean, each once."""
    reasons = [name for name in dict.fromkeys(one["reason"] for one in found) if name in REASONS]
    wide = max(map(len, reasons), default=0)
    return [f"{name:{wide}}  {REASONS[name]}" for name in reasons]
