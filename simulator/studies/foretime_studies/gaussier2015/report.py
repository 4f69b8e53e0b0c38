"""The report of the study of Gaussier 2015."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_studies.frame.report import StudyReport
from foretime_studies.gaussier2015.paper import PAPER_LOGS
from foretime_studies.gaussier2015.prediction_tables import prediction_tables
from foretime_studies.gaussier2015.predictions import Predicted
from foretime_studies.gaussier2015.study import Gaussier2015
from foretime_studies.gaussier2015.tables import tables


def report(found: Gaussier2015, predicted: Sequence[Predicted], command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    listed = found.settings.triples
    known = sum(triple.clairvoyant for triple in listed)
    how = (
        f"{len(listed) - known} heuristic triples and {known} clairvoyant ones on each log, FCFS, "
        f"event order {found.settings.event_order}; triples that matter again on "
        f"{found.settings.repeats} jittered copies."
    )
    if found.settings.options:
        how += f" Regressions with {', '.join(found.settings.options)}."
    absent = [log.name for log in PAPER_LOGS if log.name not in found.names]
    notes = [how, *(log.note for log in found.logs)]
    if absent:
        notes.append(f"Not here, of the paper's logs: {', '.join(absent)}.")
    if len(found.logs) == 1:
        notes.append(
            "Of one log nothing can be chosen on others (table 7) and nothing compared (figure 3, "
            "correlations)."
        )
    title = "Gaussier et al. (SC'15) again: learned running times for backfilling"
    made = [*tables(found), *prediction_tables(predicted)]
    return StudyReport("gaussier2015", title, command, tuple(notes), tuple(made))
