"""``foretime study streit2002``: self-tuning dynP on job sets like those of four centres."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import later_progress_bar

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.streit2002.claims import claims_table
from foretime_studies.streit2002.curves import curve_tables
from foretime_studies.streit2002.figures import figures
from foretime_studies.streit2002.one_list import one_list_tables
from foretime_studies.streit2002.sets import JobsOption, PaperLogs, absent_sets, read_sources
from foretime_studies.streit2002.study import Streit2002, StudySettings, study
from foretime_studies.streit2002.tables import tables

_DEFAULT = StudySettings()


@study_command(shown=("table3", "table5", "table6", "figure4", "best", "claims"), kept=True)
def streit2002(
    folder: Path,
    logs: PaperLogs = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Draws of each job set; the first is the paper-like one.")
    ] = _DEFAULT.seeds,
    further_seeds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Draws for exact requests, for qualities ART and MS over shrinking factors, for "
            "other machines, modulated submissions and the logs themselves.",
        ),
    ] = _DEFAULT.further_seeds,
    jobs: JobsOption = _DEFAULT.jobs,
    workers: Workers = 2,
) -> StudyReport:
    """Run all of Streit (JSSPP 2002), sections 4 and 5: tables, figures and what it says of them.

    Runs are kept in the output folder: what was interrupted goes on where it was.

    Example: [bold]foretime study streit2002 KTH-SP2-1996-2.1-cln.swf.gz -o streit2002[/bold]
    """
    sources, notes = read_sources(logs or ())
    settings = StudySettings(seeds, further_seeds, jobs)
    with later_progress_bar("simulating", "runs") as begin:
        found = study(sources, folder, settings, workers=workers, notes=notes, begin=begin)
    return report(found)


def report(found: Streit2002) -> StudyReport:
    """Put everything together."""
    settings = found.settings
    how = (
        f"{len(found.results):,} runs of {settings.jobs:,} jobs: {settings.seeds} draws of each "
        f"set, {settings.further_seeds} for exact requests, qualities ART and MS over shrinking "
        "factors, and what the paper has not. Jobs are killed at their estimate."
    )
    made = (*tables(found), *one_list_tables(found), *curve_tables(found), claims_table(found))
    title = "Streit (JSSPP 2002) again: self-tuning dynP"
    notes = [how, *found.notes, *absent_sets(found.sets)]
    return StudyReport(title, notes, made, figures(found))
