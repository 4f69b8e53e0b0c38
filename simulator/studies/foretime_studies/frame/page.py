"""Puts a study's tables into its page: ``python -m`` this module, with the page's path.

Beside docs/studies/NAME.md lies a folder NAME with what ``foretime study`` wrote (``results.json``,
pictures) and, for logs, further ``*.json``. A test compares, so that no number can be typed in.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import StudyTable, fill_page


def page_tables(folder: Path) -> list[StudyTable]:
    """Give every table in a folder's results; those of ``log.json`` are called ``log/key``."""
    tables = []
    for path in sorted(folder.glob("*.json")):
        report = StudyReport.from_json(json.loads(path.read_text(encoding="utf-8")))
        before = "" if path.stem == "results" else f"{path.stem}/"
        tables += [replace(table, key=before + table.key) for table in report.tables]
    return tables


def main(page: Path) -> None:
    """Write a page anew with the tables of the folder beside it."""
    text = page.read_text(encoding="utf-8")
    page.write_text(fill_page(text, page_tables(page.with_suffix(""))), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
