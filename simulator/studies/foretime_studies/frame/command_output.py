"""What ``foretime study`` prints of a study's report, and the command that gives it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import StudyTable

_LONGEST_NAME = 40
"""Longer texts are sentences."""


def study_command(
    study: str, logs: Sequence[Path] | None, options: Iterable[tuple[str, object, object]] = ()
) -> str:
    """Write the command that gives a report again.

    Parameters
    ----------
    study
        Its name.
    logs
        What it reads; folders are left out.
    options
        Each with its value and its default, with which it is left out; the values of an option that
        is given repeatedly in a list.
    """
    words = ["foretime", "study", study, *(log.name for log in logs or ())]
    for option, value, default in options:
        if value == default:
            continue
        for one in value if isinstance(value, list) else (value,):
            words += [option] if one is True else [option, str(one)]
    return shlex.join(words)


def print_report(
    written: StudyReport,
    keys: Collection[str],
    folder: Path,
    seconds: float,
    *,
    as_json: bool,
    figures: bool = True,
) -> None:
    """Print the notes, the tables of these keys, and where everything was written."""
    if as_json:
        typer.echo(json.dumps(written.to_json(), indent=2))
        return
    tables = [table for table in written.tables if table.key in keys]
    shown = [_shown(table) for table in tables]
    numbers = [laid for table, laid in zip(tables, shown, strict=True) if not _has_prose(table)]
    needed = max((Console(width=1_000).measure(laid).maximum for laid in numbers), default=0)
    console = Console(width=max(Console().width, needed))  # a long line, not a number cut short
    for note in written.notes:
        console.print(note, highlight=False, markup=False)
    for table in shown:
        console.print()
        console.print(table)
    files = "report.md, results.json, tables as CSV" + figures * ", figures as SVG and PNG"
    console.print(
        f"\n{folder}: {files} ({seconds:.0f} s)",
        highlight=False,
        markup=False,
    )


def _has_prose(table: StudyTable) -> bool:
    """Whether it has sentences, which are broken into lines where they don't fit."""
    return any(
        isinstance(cell, str) and len(cell) > _LONGEST_NAME for row in table.rows for cell in row
    )


def _shown(table: StudyTable) -> Table:
    """Lay a study's table out for a terminal; a word of a heading is a line."""
    made = Table(title=escape(table.title), title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(table.columns):
        number = not any(isinstance(row[place], str) for row in table.rows)
        made.add_column(
            escape(column.title.replace(" ", "\n")),
            justify="right" if number else "left",
            vertical="bottom",
        )
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        made.add_row(*(escape(column.write(cell)) for column, cell in cells))
    return made
