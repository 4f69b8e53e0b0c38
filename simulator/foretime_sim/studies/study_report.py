"""What a study writes: a report in Markdown, each table as CSV, all of them as JSON, pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretime_estimators.errors import InputError
from matplotlib import rc_context
from matplotlib.figure import Figure

from foretime_sim.studies.study_tables import StudyTable

PICTURES = ("svg", "png")


@dataclass(frozen=True, slots=True)
class StudyReport:
    """A study's results, ready to be written.

    Attributes
    ----------
    name
        The study's.
    title
        Heading of the report.
    command
        What gives the same report again.
    notes
        What the reader has to know first, such as that the workload is generated.
    tables
        In order.
    """

    name: str
    title: str
    command: str
    notes: tuple[str, ...]
    tables: tuple[StudyTable, ...]

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
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
            document["study"],
            document["title"],
            document["command"],
            tuple(document["notes"]),
            tuple(StudyTable.from_json(table) for table in document["tables"]),
        )

    def to_markdown(self, pictures: Sequence[str] = ()) -> str:
        """Write the report; ``pictures`` are the keys of those that lie beside it as SVG."""
        parts = [f"# {self.title}", f"```\n{self.command}\n```", "\n".join(self.notes)]
        for table in self.tables:
            parts.append(f"## {table.title}")
            if table.key in pictures:
                parts.append(f"![{table.title}]({table.key}.svg)")
            parts.append(table.to_markdown())
        return "\n\n".join(part for part in parts if part) + "\n"

    def write(self, folder: Path, figures: Mapping[str, Figure]) -> None:
        """Write report.md, results.json, a CSV file a table, and each figure as SVG and PNG.

        Raises
        ------
        InputError
            If a file can't be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.md").write_text(self.to_markdown(tuple(figures)), encoding="utf-8")
            document = json.dumps(self.to_json(), indent=1, allow_nan=False)
            (folder / "results.json").write_text(document + "\n", encoding="utf-8")
            for table in self.tables:
                (folder / f"{table.key}.csv").write_text(table.to_csv(), encoding="utf-8")
            # The same figure is the same file: no date, no random ids, text as text.
            with rc_context({"svg.hashsalt": self.name, "svg.fonttype": "none"}):
                for key, figure in figures.items():
                    figure.savefig(folder / f"{key}.svg", metadata={"Date": None})
                    figure.savefig(folder / f"{key}.png", dpi=120)
        except OSError as error:
            raise InputError(f"{folder}: can't be written: {error.strerror}") from error
