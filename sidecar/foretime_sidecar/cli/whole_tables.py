"""Tables on the terminal, none of whose values is cut short, and reports where there is none."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table


def print_whole(table: Table) -> None:
    """Print a table; where it is wider than the terminal, in long lines."""
    needed = Console(width=1_000).measure(table).maximum
    Console(width=max(Console().width, needed), highlight=False).print(table)


def report_console(width: int) -> Console:
    """Give what prints a report: as wide as the terminal, or as COLUMNS says, or else so wide."""
    console = Console()
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(width=width)
