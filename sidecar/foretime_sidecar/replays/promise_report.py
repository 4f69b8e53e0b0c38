"""Promised starts as tables and lines for a terminal, for `foretime simulate` and `replay`."""

from __future__ import annotations

from collections.abc import Iterable

from foretime_sim.scores.start_promises import PROMISE_METRICS, StartPromises
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.numbers import format_count, format_value
from foretime_sidecar.wording.table_widths import table_width

_SHOWN = {
    "promised_jobs": "jobs\npromised",
    "promised_waiting_jobs": "that\nwaited",
    "promises_kept": "kept",
    "promise_margin_p50_s": "early by,\nmedian",
    "promise_margin_p95_s": "\np95",
    "promised_wait_p50_s": "promised wait,\nmedian",
    "promised_wait_p95_s": "\np95",
    "promise_latest_by_s": "late by\nat most",
}
"""Columns, in this order."""


def promises_table(
    promises: Iterable[tuple[str, StartPromises | None]], *, width: int
) -> RenderableType:
    """Tabulate how promised starts fared, by the name of what promised them.

    Whoever promises nothing is left out. Where columns are few the last figures are, too, and said
    to be.

    Parameters
    ----------
    promises
        By name.
    width
        Columns that there are.
    """
    named = [(name, promised) for name, promised in promises if promised is not None]
    shown = list(_SHOWN)
    while len(shown) > 1 and table_width(_table(named, shown)) > width:
        shown.pop()
    table = _table(named, shown)
    if len(shown) == len(_SHOWN):
        return table
    return Group(table, Text("The other figures need more columns, or --json.", "dim"))


def _table(promises: Iterable[tuple[str, StartPromises]], shown: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.title = "Start no later than: promised when a job comes; early by, of those that waited"
    table.title_justify, table.title_style = "left", "bold"
    table.add_column("\npolicy", overflow="fold")
    for key in shown:
        table.add_column(_SHOWN[key], justify="right", no_wrap=True)
    for name, promised in promises:
        figures = promised.to_dict()
        table.add_row(name, *(format_value(figures[key], PROMISE_METRICS[key]) for key in shown))
    return table


def broken_promises(promises: Iterable[tuple[str, StartPromises | None]]) -> list[Text]:
    """Say for each that broke promises why."""
    lines = []
    for name, promised in promises:
        if promised is None or not promised.broken:
            continue
        outlived = promised.promise_outlived_jobs
        lines.append(
            Text(
                f"{name}: {format_count(promised.broken)} of"
                f" {counted(round(promised.promised_jobs), 'promised job')} started late, because"
                f" {format_count(outlived)} ran longer than they were planned for.",
                "yellow",
            )
        )
    return lines
