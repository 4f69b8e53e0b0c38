"""Tables of a study: the same numbers as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError

Cell: TypeAlias = str | int | float | None


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
        """Write a cell as people read it; ``None`` and NaN as a dash."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return "–"
        return cell if isinstance(cell, str) else format(cell, self.form)


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

    def to_markdown(self) -> str:
        """Write it as Markdown, numbers to the right."""
        texts = [
            [column.write(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        right = [
            not any(isinstance(row[place], str) for row in self.rows)
            for place in range(len(self.columns))
        ]
        lines = [
            "| " + " | ".join(column.title for column in self.columns) + " |",
            "|" + "|".join("---:" if number else "---" for number in right) + "|",
            *("| " + " | ".join(row) + " |" for row in texts),
        ]
        return "\n".join(lines) + ("\n\n" + self.note if self.note else "")

    def to_csv(self) -> str:
        """Write it as CSV, numbers unrounded; empty where there is no value."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.title for column in self.columns])
        writer.writerows(self.rows)
        return text.getvalue()

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON can hold it; NaN becomes null."""
        return {
            "key": self.key,
            "title": self.title,
            "columns": [{"title": column.title, "form": column.form} for column in self.columns],
            "rows": [
                [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
                for row in self.rows
            ],
            "note": self.note,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> StudyTable:
        """Take what `to_json` gave."""
        return cls(
            document["key"],
            document["title"],
            tuple(Column(column["title"], column["form"]) for column in document["columns"]),
            tuple(tuple(row) for row in document["rows"]),
            document["note"],
        )


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
