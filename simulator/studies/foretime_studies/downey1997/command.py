"""``foretime study downey1997``: Downey's predictors of queue times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sim.logs.log_files import read_log

from foretime_studies.downey1997 import study as downey
from foretime_studies.downey1997.logs import (
    STANDBY,
    StudiedLog,
    studied_log,
    without_standby,
)
from foretime_studies.frame.command_output import print_report, study_command

ASKED, MALLEABLE_JOBS, SEED = 300, 1_000, 1
SHOWN = ("table1-4", "predictions", "correlations", "obsolete")
"""Tables that are printed; all are written."""


def downey1997(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            help="Job logs; the first is that of figures 1 to 5 and 7. SDSC-Par-1996 and "
            "CTC-SP2-1996 are simulated as in the paper, others on their own machine.",
        ),
    ],
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("downey1997"),
    asked: Annotated[
        int, typer.Option(min=1, help="Jobs of each log whose whole wait is predicted.")
    ] = ASKED,
    malleable_jobs: Annotated[
        int, typer.Option(min=1, help="Generated jobs that choose their sizes.")
    ] = MALLEABLE_JOBS,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = SEED,
    as_json: JsonOption = False,
) -> None:
    """Run all of Downey (IPPS 1997): queue times predicted from how long jobs have run already.

    Example: [bold]foretime study downey1997 SDSC-Par-1996-3.1-cln.swf.gz[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
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
    from foretime_studies.downey1997.figures import figures  # matplotlib is slow to load
    from foretime_studies.downey1997.report import report

    options = (
        ("--asked", asked, ASKED),
        ("--malleable-jobs", malleable_jobs, MALLEABLE_JOBS),
        ("--seed", seed, SEED),
    )
    written = report(found, study_command("downey1997", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
