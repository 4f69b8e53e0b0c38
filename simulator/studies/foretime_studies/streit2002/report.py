"""The report of the study of Streit 2002."""

from __future__ import annotations

from foretime_studies.frame.report import StudyReport
from foretime_studies.streit2002.claims import claims_table
from foretime_studies.streit2002.curves import curve_tables
from foretime_studies.streit2002.one_list import one_list_tables
from foretime_studies.streit2002.sets import JOB_SETS
from foretime_studies.streit2002.study import Streit2002
from foretime_studies.streit2002.tables import tables


def report(found: Streit2002, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    settings = found.settings
    how = (
        f"{len(found.results):,} runs of {settings.jobs:,} jobs: {settings.seeds} draws of each "
        f"set, {settings.further_seeds} for exact requests, qualities ART and MS over shrinking "
        "factors, and what the paper has not. Jobs are killed at their estimate."
    )
    notes = [how, *found.notes]
    absent = [job_set.name for job_set in JOB_SETS if job_set not in found.sets]
    if absent:
        notes.append(f"Not here, for want of their logs: {', '.join(absent)}.")
    return StudyReport(
        "streit2002",
        "Streit (JSSPP 2002) again: self-tuning dynP",
        command,
        tuple(notes),
        (*tables(found), *one_list_tables(found), *curve_tables(found), claims_table(found)),
    )
