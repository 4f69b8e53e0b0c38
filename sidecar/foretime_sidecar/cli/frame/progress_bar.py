"""A progress bar on stderr, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Show(Protocol):
    """Called with how much is done, and of how much where that has only become known."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show it."""
        ...


@contextmanager
def progress_bar(doing: str, total: int | None, unit: str) -> Iterator[Show]:
    """Show a bar while the block runs; what it gives is called with how much is done."""
    console = Console(stderr=True)
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(doing, total=total)

        def show(done: int, total: int | None = None) -> None:
            progress.update(task, completed=done, total=total)  # None leaves the total as it is

        yield show


@contextmanager
def later_progress_bar(doing: str, unit: str) -> Iterator[Callable[[int], Show]]:
    """Give what begins a bar within the block, once it is known of how much."""
    with ExitStack() as bar:

        def begin(total: int) -> Show:
            return bar.enter_context(progress_bar(doing, total, unit))

        yield begin
