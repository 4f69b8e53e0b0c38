"""The report of the study of Tang 2010."""

from __future__ import annotations

from foretime_studies.frame.report import StudyReport
from foretime_studies.tang2010.claims import claims_table
from foretime_studies.tang2010.study import Tang2010
from foretime_studies.tang2010.tables import tables


def report(found: Tang2010, command: str, machine: str) -> StudyReport:
    """Make the report.

    Parameters
    ----------
    found
        What the study found.
    command
        What gives it again.
    machine
        What it ran on.
    """
    main = found.main
    history = 0 if main.history is None else len(main.history)
    workload = (
        f"Workload: {main.test.name}; {history:,} jobs to learn from, {len(main.test):,} simulated "
        f"on {machine}."
    )
    correction = (
        "A job that outlives t_sched is planned with its request from then on; the table of "
        "corrections has the other rules."
    )
    notes = (
        workload,
        *(f"{note[0].upper()}{note[1:].removesuffix('.')}." for note in found.notes),
        correction,
        f"Seed {found.seed}; {found.repeats} jittered copies.",
    )
    title = "Tang et al. (IPDPS 2010) again" + (", on a generated workload" * found.generated)
    made = tables(found)
    return StudyReport("tang2010", title, command, notes, (*made, claims_table(found)))
