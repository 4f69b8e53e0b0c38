"""What ``foretime study`` prints of a study's report."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection
from pathlib import Path

import typer
from foretime_sim.studies.study_report import StudyReport
from foretime_sim.studies.study_tables import StudyTable
from rich.console import Console
from rich.table import Table


def print_report(
    written: StudyReport,
    keys: Collection[str],
    folder: Path,
    seconds: float,
    *,
    as_json: bool,
) -> None:
    """Print the notes, the tables of these keys, and where everything was written."""
    if as_json:
        typer.echo(json.dumps(written.to_json(), indent=2))
        return
    shown = [_shown(table) for table in written.tables if table.key in keys]
    needed = max(Console(width=1_000).measure(table).minimum for table in shown)
    console = Console(width=max(Console().width, needed))  # a long line, not a number cut short
    for note in written.notes:
        console.print(note, highlight=False, markup=False)
    for table in shown:
        console.print()
        console.print(table)
    console.print(
        f"\n{folder}: report.md, results.json, tables as CSV, figures as SVG and PNG "
        f"({seconds:.0f} s)",
        highlight=False,
        markup=False,
    )


def _shown(table: StudyTable) -> Table:
    """Lay a study's table out for a terminal; headings of several words take several lines."""
    made = Table(title=table.title, title_justify="left", box=None, pad_edge=False)
    texts = [
        [column.write(cell) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    for place, column in enumerate(table.columns):
        number = not any(isinstance(row[place], str) for row in table.rows)
        width = max(len(word) for word in (*column.title.split(), *(row[place] for row in texts)))
        made.add_column(
            "\n".join(textwrap.wrap(column.title, width)),
            justify="right" if number else "left",
            vertical="bottom",
            no_wrap=True,
        )
    for row in texts:
        made.add_row(*row)
    return made
