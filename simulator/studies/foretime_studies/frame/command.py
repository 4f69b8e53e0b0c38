"""One command for every study: a study is a function, and its parameters are the options."""

from __future__ import annotations

import functools
import inspect
import json
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import typer
from foretime_sidecar.cli.frame.interruption import INTERRUPTED, terminable
from foretime_sidecar.cli.frame.output_files import check_folder
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.json_option import JsonTablesOption
from foretime_sidecar.wording.table_widths import console_of_width, table_width
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import StudyTable

_LONGEST_NAME = 40
"""Longer texts are sentences."""
_NOT_TOLD = "workers"
"""An option that changes no result, so the command that gives a report again has it not."""


class Study(Protocol):
    """A published study: its name is the command's, its docstring the help."""

    __name__: str

    def __call__(self, folder: Path, /, *args: Any, **options: Any) -> StudyReport:  # noqa: ANN401
        """Run it.

        Parameters
        ----------
        folder
            Where the report goes, and what is kept of runs.
        args, options
            Every further parameter is annotated as typer reads it (`frame.options` has those that
            studies share) and becomes an argument or an option of the command.
        """
        ...


def study_command(*, shown: Collection[str] = (), kept: bool = False) -> Callable[[Study], Any]:
    """Make a `Study` the command ``foretime study NAME``, an entry point of foretime.studies.

    Parameters
    ----------
    shown
        Keys of the tables that are printed, all if none is named; all are written.
    kept
        Whether runs are kept in the folder, so that what was interrupted goes on where it was.
    """

    def command_of(run: Study) -> Callable[..., None]:
        name = run.__name__.replace("_", "-")
        _, *own = inspect.signature(run, eval_str=True).parameters.values()

        @functools.wraps(run)
        def command(*, output_dir: Path, as_json: bool, **given: object) -> None:
            began = time.perf_counter()
            check_folder("--output-dir", output_dir)
            with _resumable(output_dir) if kept else nullcontext():
                found = run(output_dir, **given)
            words = shlex.join(("foretime", "study", name, *_words(own, given)))
            report = replace(found, name=name, command=words)
            report.write(output_dir)
            if as_json:
                typer.echo(json.dumps(report.to_json(), indent=2))
            else:
                _print(report, shown, output_dir, time.perf_counter() - began)

        told = typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
        keyword = inspect.Parameter.KEYWORD_ONLY
        asked = [
            *(parameter.replace(kind=keyword) for parameter in own),
            inspect.Parameter(
                "output_dir", keyword, default=Path(name), annotation=Annotated[Path, told]
            ),
            inspect.Parameter("as_json", keyword, default=False, annotation=JsonTablesOption),
        ]
        typed = cast(Any, command)
        typed.__signature__ = inspect.Signature(asked)
        typed.__annotations__ = {each.name: each.annotation for each in asked}
        return command

    return command_of


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """End the command when it is interrupted, and say that it goes on where it was."""
    with terminable():
        try:
            yield
        except KeyboardInterrupt:
            say(
                f"foretime: interrupted; what was run is kept in {folder}, run it again to go on",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None


def _words(own: Iterable[inspect.Parameter], given: Mapping[str, object]) -> Iterator[str]:
    """Write arguments, then options that are not at their defaults; folders are left out."""
    options: list[str] = []
    for parameter in own:
        value = given[parameter.name]
        values = value if isinstance(value, list) else [] if value is None else [value]
        texts = [one.name if isinstance(one, Path) else str(one) for one in values]
        metadata = getattr(parameter.annotation, "__metadata__", ())
        if any(isinstance(one, typer.models.ArgumentInfo) for one in metadata):
            yield from texts
        elif value != parameter.default and parameter.name != _NOT_TOLD:
            flag = f"--{parameter.name.replace('_', '-')}"
            options += [flag] if value is True else [w for text in texts for w in (flag, text)]
    yield from options


def _print(report: StudyReport, shown: Collection[str], folder: Path, seconds: float) -> None:
    """Print the notes, the tables of these keys, and where everything was written."""
    tables = [table for table in report.tables if not shown or table.key in shown]
    laid_out = [_shown(table) for table in tables]
    numbers = [laid for table, laid in zip(tables, laid_out, strict=True) if not _has_prose(table)]
    needed = max(map(table_width, numbers), default=0)
    console = console_of_width(max(Console().width, needed))  # a long line, not a number cut short
    for note in report.notes:
        console.print(note, highlight=False, markup=False)
    for laid in laid_out:
        console.print()
        console.print(laid)
    files = "report.md, results.json, tables as CSV"
    files += ", figures as SVG and PNG" if report.figures else ""
    console.print(f"\n{folder}: {files} ({seconds:.0f} s)", highlight=False, markup=False)


def _has_prose(table: StudyTable) -> bool:
    """Whether it has sentences, which are broken into lines where they don't fit."""
    return any(
        isinstance(cell, str) and len(cell) > _LONGEST_NAME for row in table.rows for cell in row
    )


def _shown(table: StudyTable) -> Table:
    """Lay a study's table out for a terminal; a word of a heading is a line."""
    made = Table(title=escape(table.title), title_justify="left", box=None, pad_edge=False)
    for column, number in zip(table.columns, table.numbers, strict=True):
        made.add_column(
            escape(column.title.replace(" ", "\n")),
            justify="right" if number else "left",
            vertical="bottom",
        )
    for row in table.written:
        made.add_row(*map(escape, row))
    return made
