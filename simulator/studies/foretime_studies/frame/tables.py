"""Tables of a study: the same numbers as Markdown, CSV and JSON."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeAlias

import pandas as pd
from foretime_estimators.jobs.errors import InputError
from pydantic import TypeAdapter

Cell: TypeAlias = str | int | float | None
Entry: TypeAlias = tuple[str, Cell] | tuple[str, Cell, str]
"""A cell of a row with its column's heading and the format of its numbers."""
Row: TypeAlias = Sequence[Entry]
Rows: TypeAlias = Generator[Row, None, None]
NotedRows: TypeAlias = Generator[Row, None, str]
"""Rows of a table; the note below them is returned at the end."""
Asked = ParamSpec("Asked")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how its numbers are written.

    Attributes
    ----------
    title
        Heading.
    form
        Format of its numbers, such as ``,.1f`` or ``+.1%``.
    """

    title: str
    form: str = ""

    def write(self, cell: Cell) -> str:
        """Write a cell as people read it; where there is no finite number as a dash."""
        told = _finite(cell)
        if told is None:
            return "–"
        return told if isinstance(told, str) else format(told, self.form)


def _finite(cell: Cell) -> Cell:
    """Give a cell, ``None`` for NaN and infinity, which JSON can't hold."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


@dataclass(frozen=True, slots=True)
class StudyTable:
    """A table.

    Attributes
    ----------
    key
        Its name in files and pages, such as ``table3``.
    title
        Heading.
    columns, rows
        What stands in it, numbers unrounded.
    note
        A sentence below it.

    Examples
    --------
    >>> from foretime_studies.frame.tables import StudyTable
    >>> table = StudyTable.of("waits", "Mean waits", [[("order", "fcfs"), ("wait", 90.0)]])
    >>> table.numbers
    [False, True]
    >>> table.written
    [['fcfs', '90.0']]
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.key}: {len(row)} cells in {len(self.columns)} columns")

    @classmethod
    def of(cls, key: str, title: str, rows: Iterable[Row], note: str = "") -> StudyTable:
        """Make a table of rows, each cell with its heading; all rows have the first one's.

        Without any row there is no column either.
        """
        listed = [list(row) for row in rows]
        first = listed[0] if listed else []
        columns = tuple(Column(heading, *form) for heading, _, *form in first)
        return cls(key, title, columns, tuple(tuple(e[1] for e in row) for row in listed), note)

    @property
    def numbers(self) -> list[bool]:
        """Whether a column has no words, so that it stands to the right."""
        cells = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return [not any(isinstance(cell, str) for cell in column) for column in cells]

    @property
    def written(self) -> list[list[str]]:
        """The rows as people read them."""
        return [
            [column.write(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def _frame(self, rows: Sequence[Sequence[Cell]]) -> pd.DataFrame:
        return pd.DataFrame(rows, columns=[column.title for column in self.columns], dtype=object)

    def to_markdown(self) -> str:
        """Write it as Markdown, numbers to the right."""
        sides = ["right" if number else "left" for number in self.numbers]
        text = self._frame(self.written).to_markdown(
            index=False, colalign=sides, disable_numparse=True
        )
        return text + ("\n\n" + self.note if self.note else "")

    def to_csv(self) -> str:
        """Write it as CSV, numbers unrounded; empty where there is no value."""
        rows = [list(map(_finite, row)) for row in self.rows]
        return self._frame(rows).to_csv(index=False, lineterminator="\n")

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON can hold it; NaN and infinity become null."""
        return {
            "key": self.key,
            "title": self.title,
            "columns": [{"title": column.title, "form": column.form} for column in self.columns],
            "rows": [list(map(_finite, row)) for row in self.rows],
            "note": self.note,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> StudyTable:
        """Take what `to_json` gave."""
        return TypeAdapter(cls).validate_python(document)


def study_table(
    key: str, title: str, note: str = ""
) -> Callable[[Callable[Asked, Rows | NotedRows]], Callable[Asked, StudyTable]]:
    """Make a function that yields the rows of a table give the table.

    Examples
    --------
    >>> from foretime_studies.frame.tables import NotedRows, study_table
    >>> @study_table("waits", "Mean waits")
    ... def waits(copies: int) -> NotedRows:
    ...     yield [("order", "fcfs"), ("wait, s", 90.0, ",.0f")]
    ...     return f"Means over {copies} copies."
    >>> waits(3).note
    'Means over 3 copies.'
    """

    def table_of(rows_of: Callable[Asked, Rows | NotedRows]) -> Callable[Asked, StudyTable]:
        @functools.wraps(rows_of)
        def table(*args: Asked.args, **named: Asked.kwargs) -> StudyTable:
            returned: list[str | None] = []

            def rows() -> Rows:
                returned.append((yield from rows_of(*args, **named)))

            made = StudyTable.of(key, title, rows())
            return replace(made, note=returned[0] or note)

        return table

    return table_of


def fill_page(page: str, tables: Iterable[StudyTable]) -> str:
    """Put tables into a page between ``<!-- key -->`` and ``<!-- /key -->``.

    Raises
    ------
    InputError
        If the page names a table that there is not, or does not end one.
    """
    by_key = {table.key: table for table in tables}
    done: list[str] = []
    lines = iter(page.splitlines())
    for line in lines:
        done.append(line)
        if not (line.startswith("<!-- ") and line.endswith(" -->")):
            continue
        key = line[5:-4]
        if key not in by_key:
            raise InputError(f"the page asks for a table {key!r}; there are: {', '.join(by_key)}")
        done += ["", by_key[key].to_markdown(), "", f"<!-- /{key} -->"]
        for skipped in lines:
            if skipped == f"<!-- /{key} -->":
                break
        else:
            raise InputError(f"the page does not end its table {key!r} with <!-- /{key} -->")
    return "\n".join(done) + "\n"
