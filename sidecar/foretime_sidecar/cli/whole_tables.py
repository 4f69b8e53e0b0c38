"""Tables on the terminal, none of whose values is cut short."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.table import Table

Thing = TypeVar("Thing")


def print_whole(table: Table) -> None:
    """Print a table; where it is wider than the terminal, in long lines."""
    Console(width=max(Console().width, _needed(table)), highlight=False).print(table)


def print_side_by_side(
    table_of: Callable[[Sequence[Thing]], Table], things: Sequence[Thing]
) -> None:
    """Print a table with a column for each thing, in as many parts as the terminal's width asks.

    What is no terminal, and was given no width (``COLUMNS``), gets one table, however wide.
    """
    console = Console()
    width = console.width if console.is_terminal or "COLUMNS" in os.environ else None
    part: list[Thing] = []
    for thing in things:
        if part and width is not None and _needed(table_of([*part, thing])) > width:
            print_whole(table_of(part))
            part = []
        part.append(thing)
    print_whole(table_of(part))


def _needed(table: Table) -> int:
    """Give the width of a table none of whose values is cut short."""
    return Console(width=1_000).measure(table).maximum
