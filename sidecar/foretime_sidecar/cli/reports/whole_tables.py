"""Tables on the terminal, none of whose values is cut short, and reports where there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.table import Table

from foretime_sidecar.wording.table_widths import console_of_width, table_width, uncut_width

Thing = TypeVar("Thing")
_ANY_WIDTH = 1_000


def print_whole(table: Table) -> None:
    """Print a table; where it is wider than the terminal, in long lines."""
    console_of_width(max(Console().width, table_width(table)), highlight=False).print(table)


def print_uncut(part: RenderableType, width: int | None = None) -> None:
    """Print a report: words wrap, and where a figure would be cut, lines are long.

    ``width`` counts in place of the terminal's.
    """
    width = Console().width if width is None else width
    console_of_width(max(width, uncut_width(part))).print(part)


def print_side_by_side(
    table_of: Callable[[Sequence[Thing]], Table], things: Sequence[Thing]
) -> None:
    """Print a table with a column for each thing, in as many parts as the terminal's width asks.

    What is no terminal, and was given no width (``COLUMNS``), gets one table, however wide.
    """
    width = report_width(_ANY_WIDTH)
    part: list[Thing] = []
    for thing in things:
        if part and table_width(table_of([*part, thing])) > width:
            print_whole(table_of(part))
            part = []
        part.append(thing)
    print_whole(table_of(part))


def report_width(width: int) -> int:
    """Give the columns that a report has: the terminal's, or what COLUMNS says, or else so many."""
    console = Console()
    return console.width if console.is_terminal or "COLUMNS" in os.environ else width
