"""Tables on the terminal, none of whose values is cut short, and reports where there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.table import Table

Thing = TypeVar("Thing")
_ANY_WIDTH = 1_000


def print_whole(table: Table) -> None:
    """Print a table; where it is wider than the terminal, in long lines."""
    Console(width=max(Console().width, _needed(table)), highlight=False).print(table)


def print_side_by_side(
    table_of: Callable[[Sequence[Thing]], Table], things: Sequence[Thing]
) -> None:
    """Print a table with a column for each thing, in as many parts as the terminal's width asks.

    What is no terminal, and was given no width (``COLUMNS``), gets one table, however wide.
    """
    width = report_console(_ANY_WIDTH).width
    part: list[Thing] = []
    for thing in things:
        if part and _needed(table_of([*part, thing])) > width:
            print_whole(table_of(part))
            part = []
        part.append(thing)
    print_whole(table_of(part))


def report_console(width: int) -> Console:
    """Give what prints a report: as wide as the terminal, or as COLUMNS says, or else so wide."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=width)


def _needed(table: Table) -> int:
    """Give the width of a table none of whose values is cut short."""
    return Console(width=_ANY_WIDTH).measure(table).maximum
