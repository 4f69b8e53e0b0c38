"""What a study writes: a report in Markdown, each table as CSV, all of them as JSON, pictures."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.whole_files import write_whole
from matplotlib import rc_context
from matplotlib.figure import Figure

from foretime_studies.frame.tables import StudyTable


@dataclass(frozen=True, slots=True)
class StudyReport:
    """A study's results, ready to be written.

    Attributes
    ----------
    title
        Heading of the report.
    notes
        What the reader has to know first, such as that the workload is generated.
    tables
        In order.
    figures
        By the name of the file; one with the key of a table stands with it.
    name, command
        The study's name, and what gives the same report again; its command fills them in.

    Examples
    --------
    >>> from foretime_studies.frame.report import StudyReport
    >>> from foretime_studies.frame.tables import StudyTable
    >>> table = StudyTable.of("waits", "Mean waits", [[("order", "fcfs"), ("wait", 90.0)]])
    >>> report = StudyReport("Orders", ["The workload is generated."], [table])
    >>> StudyReport.from_json(report.to_json()).title
    'Orders'
    """

    title: str
    notes: Sequence[str]
    tables: Sequence[StudyTable]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    name: str = ""
    command: str = ""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON can hold it, without the figures."""
        return {
            "study": self.name,
            "title": self.title,
            "command": self.command,
            "notes": list(self.notes),
            "tables": [table.to_json() for table in self.tables],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> StudyReport:
        """Take what `to_json` gave."""
        return cls(
            document["title"],
            document["notes"],
            [StudyTable.from_json(table) for table in document["tables"]],
            name=document["study"],
            command=document["command"],
        )

    def to_markdown(self) -> str:
        """Write the report; figures lie beside it as SVG."""
        parts = [f"# {self.title}", f"```\n{self.command}\n```", "\n".join(self.notes)]
        for table in self.tables:
            parts.append(f"## {table.title}")
            if table.key in self.figures:
                parts.append(f"![{table.title}]({table.key}.svg)")
            parts.append(table.to_markdown())
        return "\n\n".join(part for part in parts if part) + "\n"

    def write(self, folder: Path) -> None:
        """Write report.md, results.json, a CSV file a table, and each figure as SVG and PNG.

        Raises
        ------
        InputError
            If a file can't be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / "report.md", self.to_markdown().encode())
            write_whole(folder / "results.json", (to_lines(self.to_json()) + "\n").encode())
            for table in self.tables:
                write_whole(folder / f"{table.key}.csv", table.to_csv().encode())
            # The same figure is the same file: no date, no random ids, text as text.
            with (
                rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none"}),
                warnings.catch_warnings(),
            ):
                # Matplotlib says so where a busy machine took more than a second for a legend.
                warnings.filterwarnings("ignore", "Creating legend with loc")
                for key, figure in self.figures.items():
                    drawn, dots = io.BytesIO(), io.BytesIO()
                    figure.savefig(drawn, format="svg", metadata={"Date": None})
                    write_whole(folder / f"{key}.svg", drawn.getvalue())
                    figure.savefig(dots, format="png", dpi=120)
                    write_whole(folder / f"{key}.png", dots.getvalue())
        except OSError as error:
            raise InputError(f"{folder}: can't be written: {error.strerror}") from error


def to_lines(value: object, indent: str = "") -> str:
    """Write JSON with a line for each list or object that holds no other, such as a table's row."""
    deeper = indent + " "
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(one, dict | list) for one in held):
        return json.dumps(value, allow_nan=False)
    lines = [to_lines(one, deeper) for one in held]
    begins, ends = "[]"
    if isinstance(value, dict):
        begins, ends = "{}"
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    return f"{begins}\n{deeper}" + f",\n{deeper}".join(lines) + f"\n{indent}{ends}"
