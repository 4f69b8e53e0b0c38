"""The report of the study of Talby & Feitelson 1999."""

from __future__ import annotations

from foretime_studies.frame.report import StudyReport
from foretime_studies.talby1999.claims import claims
from foretime_studies.talby1999.study import Talby1999
from foretime_studies.talby1999.tables import tables


def report(found: Talby1999, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    how = (
        f"Each month is simulated by itself, from an empty machine; copies are {found.repeats}, "
        "each submission moved by up to a minute and ties shuffled. Jobs end at their requests "
        "unless a row says otherwise."
    )
    notes = [how, *(log.note for log in found.logs)]
    made = tables(found)
    if found.papers is None:
        notes.append("The paper's log (KTH, on 128 processors) is not here, so its tables are not.")
    else:
        made.append(claims(found.runs[found.papers.name], found.repeats))
    title = "Talby & Feitelson (1999) again: slack-based backfilling"
    return StudyReport("talby1999", title, command, tuple(notes), tuple(made))
