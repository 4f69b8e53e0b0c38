"""How wide tables are, and consoles that print as wide as they are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from foretime_sidecar.wording.printable import printable

_ANY_WIDTH = 1_000
_FOLDED_WIDTH = 8
"""Columns that a folded name keeps."""
_HEIGHT = 25
"""Of no use here, but without it rich takes every terminal with TERM=dumb for 80 columns wide."""


class _PrintableConsole(Console):
    """Escapes control characters of what it prints, as names in logs may have some."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as rich has it
        return super().render_str(printable(text), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))


def console_of_width(width: int, *, highlight: bool = True) -> Console:
    """Give a console that is so wide on every terminal; ``highlight`` colours numbers."""
    return _PrintableConsole(width=width, height=_HEIGHT, highlight=highlight)


def table_width(table: Table) -> int:
    """Give the columns that a table needs to have each of its rows on one line."""
    return console_of_width(_ANY_WIDTH).measure(table).maximum


def uncut_width(part: RenderableType) -> int:
    """Give the columns that the tables of a report need: where words wrap, and no figure is cut.

    Examples
    --------
    >>> from rich.table import Table
    >>> from foretime_sidecar.wording.table_widths import uncut_width
    >>> table = Table(box=None, padding=0)
    >>> table.add_column("", no_wrap=True)
    >>> table.add_column("", overflow="fold")
    >>> table.add_row("12,345 jobs", "two words")
    >>> uncut_width(table)
    16
    """
    if isinstance(part, Group):
        return max(map(uncut_width, part.renderables), default=0)
    if not isinstance(part, Table):
        return 0
    console = console_of_width(_ANY_WIDTH)
    foldable = 0
    for column in part.columns:
        cells = (column.header, *column.cells)
        if column.no_wrap:  # rich would shorten these, too
            column.min_width = max(console.measure(cell).maximum for cell in cells)
        elif column.overflow == "fold":  # also within a word
            longest = max(console.measure(cell).minimum for cell in cells)
            foldable += max(longest - _FOLDED_WIDTH, 0)
    return console.measure(part).minimum - foldable
