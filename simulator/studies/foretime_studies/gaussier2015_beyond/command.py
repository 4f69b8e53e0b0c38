"""``foretime study gaussier2015-beyond``: what predictions bring, and cost in long waits."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.frame.kept_runs import kept_runs, resumable
from foretime_studies.frame.machine_sizes import SizesOption
from foretime_studies.gaussier2015.logs import studied_logs
from foretime_studies.gaussier2015_beyond.cases import BOOSTED, CASES
from foretime_studies.gaussier2015_beyond.study import study

SHOWN = (
    "logs",
    "targets-gap",
    "targets-waits",
    "targets-all",
    "ablation",
    "predictors",
    "corrections",
    "oracles",
    "orders",
)
"""Tables that are printed; all are written."""
REPEATS = 10


def gaussier2015_beyond(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."
        ),
    ],
    processors: SizesOption = None,
    repeat: Annotated[int, typer.Option(min=1, help="Jittered copies of each log.")] = REPEATS,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("gaussier2015-beyond"),
    boosted: Annotated[
        bool,
        typer.Option(
            "--boosted",
            help="Run boosted trees, too, on one copy: milliseconds a job; needs the extra learn.",
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Close the gap to clairvoyant EASY-SJBF: estimators, orders of candidates, guards, oracles.

    Everything is chosen for each log on the others. Runs are kept in the output folder: what was
    interrupted goes on where it was.

    Example: [bold]foretime study gaussier2015-beyond KTH-SP2-1996-2.1-cln.swf.gz -o beyond[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    studied = studied_logs(logs, processors or ())
    with resumable(output_dir):
        found = study(
            studied,
            output_dir,
            kept_runs(output_dir, workers),
            repeats=repeat,
            cases=(*CASES, BOOSTED) if boosted else CASES,
        )
    from foretime_studies.gaussier2015_beyond.report import figures, report  # matplotlib

    options = (
        ("--processors", processors or None, None),
        ("--repeat", repeat, REPEATS),
        ("--boosted", boosted, False),
    )
    written = report(found, study_command("gaussier2015-beyond", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
