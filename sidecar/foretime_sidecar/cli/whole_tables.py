"""Tables on the terminal, none of whose values is cut short."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def print_whole(table: Table) -> None:
    """Print a table; where it is wider than the terminal, in long lines."""
    needed = Console(width=1_000).measure(table).maximum
    Console(width=max(Console().width, needed), highlight=False).print(table)
