"""The report of Downey 1997."""

from __future__ import annotations

from foretime_studies.downey1997.study import Downey1997
from foretime_studies.downey1997.tables import tables
from foretime_studies.frame.report import StudyReport


def report(found: Downey1997, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    notes = [note for each in found.logs for note in each.log.notes]
    notes.append("Schedules are strictly first come, first served, unless a table says otherwise.")
    title = "Downey 1997 again: predicting queue times"
    return StudyReport("downey1997", title, command, tuple(notes), tables(found))
