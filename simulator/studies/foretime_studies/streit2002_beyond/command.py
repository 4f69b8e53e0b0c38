"""``foretime study streit2002-beyond``: self-tuning by forward runs, against single policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import later_progress_bar

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.streit2002.sets import JobsOption, PaperLogs, absent_sets, read_sources
from foretime_studies.streit2002_beyond.figures import figures
from foretime_studies.streit2002_beyond.study import (
    FIRST_DRAW,
    FIRST_TUNING_DRAW,
    BeyondSettings,
    Streit2002Beyond,
    study,
)
from foretime_studies.streit2002_beyond.tables import tables

_DEFAULT = BeyondSettings()


@study_command(shown=("targets", "verdict", "tails", "tuned"), kept=True)
def streit2002_beyond(
    folder: Path,
    logs: PaperLogs = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Draws of each job set that are judged.")
    ] = _DEFAULT.seeds,
    few_seeds: Annotated[
        int,
        typer.Option(
            min=1, help="Draws for LJF and the steps from dynP to this; parts of each log."
        ),
    ] = _DEFAULT.few_seeds,
    tuning_seeds: Annotated[
        int, typer.Option(min=1, help="Other draws, on which settings are chosen.")
    ] = _DEFAULT.tuning_seeds,
    more_seeds: Annotated[
        int, typer.Option(min=0, help="Further draws of the PC2-like set, told beside.")
    ] = _DEFAULT.more_seeds,
    jobs: JobsOption = _DEFAULT.jobs,
    workers: Workers = 2,
) -> StudyReport:
    """Tune by forward runs; judge it by the best of FCFS, SJF and LJF at every load.

    Settings are chosen for each set on other draws of the others. Runs are kept in the output
    folder: what was interrupted goes on where it was.

    Example: [bold]foretime study streit2002-beyond KTH-SP2-1996-2.1-cln.swf.gz -o beyond[/bold]
    """
    sources, notes = read_sources(logs or ())
    settings = BeyondSettings(seeds, min(few_seeds, seeds), tuning_seeds, more_seeds, jobs)
    with later_progress_bar("simulating", "runs") as begin:
        found = study(sources, folder, settings, workers=workers, notes=notes, begin=begin)
    return report(found)


def report(found: Streit2002Beyond) -> StudyReport:
    """Put everything together."""
    settings = found.settings
    how = (
        f"{len(found.results):,} runs of {settings.jobs:,} jobs. Judged on draws {FIRST_DRAW} to "
        f"{FIRST_DRAW + settings.seeds - 1}; settings chosen on draws {FIRST_TUNING_DRAW} to "
        f"{FIRST_TUNING_DRAW + settings.tuning_seeds - 1} of the other sets. Machines as printed; "
        "jobs are killed at their estimate."
    )
    notes = [how, *found.notes, *absent_sets(found.sets)]
    title = "Beyond Streit 2002: self-tuning by forward runs"
    return StudyReport(title, notes, tables(found), figures(found))
