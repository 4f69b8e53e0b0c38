"""``foretime study downey1997``: Downey's predictors of queue times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sim.logs.log_files import read_log

from foretime_studies.downey1997 import study as downey
from foretime_studies.downey1997.figures import figures
from foretime_studies.downey1997.logs import STANDBY, StudiedLog, studied_log, without_standby
from foretime_studies.downey1997.tables import tables
from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Seed
from foretime_studies.frame.report import StudyReport


@study_command(shown=("table1-4", "predictions", "correlations", "obsolete"))
def downey1997(
    folder: Path,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            help="Job logs; the first is that of figures 1 to 5 and 7. SDSC-Par-1996 and "
            "CTC-SP2-1996 are simulated as in the paper, others on their own machine.",
        ),
    ],
    asked: Annotated[
        int, typer.Option(min=1, help="Jobs of each log whose whole wait is predicted.")
    ] = 300,
    malleable_jobs: Annotated[
        int, typer.Option(min=1, help="Generated jobs that choose their sizes.")
    ] = 1_000,
    seed: Seed = 1,
) -> StudyReport:
    """Run all of Downey (IPPS 1997): queue times predicted from how long jobs have run already.

    Example: [bold]foretime study downey1997 SDSC-Par-1996-3.1-cln.swf.gz[/bold]
    """
    studied: list[StudiedLog] = []
    for path in logs:
        studied.append(studied_log(read_log(path), path.name))
        if STANDBY in studied[-1].class_names:
            studied.append(without_standby(studied[-1]))
    steps = downey.STEPS_PER_LOG * len(studied) + downey.LAST_STEPS
    with progress_bar("predicting", steps, "steps") as progress:
        found = downey.study(
            studied, progress, asked=asked, malleable_jobs=malleable_jobs, seed=seed
        )
    return report(found)


def report(found: downey.Downey1997) -> StudyReport:
    """Put everything together."""
    notes = [note for each in found.logs for note in each.log.notes]
    notes.append("Schedules are strictly first come, first served, unless a table says otherwise.")
    title = "Downey 1997 again: predicting queue times"
    return StudyReport(title, notes, tables(found), figures(found))
