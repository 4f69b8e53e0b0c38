"""``foretime study graham2021``: the published benchmark of waits at a real Slurm site."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.graham2021 import study as graham
from foretime_studies.graham2021.polls import read_noon_polls

SHOWN = ("published", "online", "bounds", "ablations")
"""Tables that are printed; all are written."""


def graham2021(
    archive: Annotated[
        Path,
        typer.Argument(
            metavar="ARCHIVE", help="Noon polls: DRAC-Graham-2021-noon-pending.csv.tar.xz."
        ),
    ],
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("graham2021"),
    workers: Annotated[int, typer.Option(min=1, help="Processes that grow forests.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Forecast how long jobs pending at Graham's noons of 2021 wait, beside a published network.

    Example: [bold]foretime study graham2021 DRAC-Graham-2021-noon-pending.csv.tar.xz[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    with progress_bar("reading", None, "polls") as progress:
        polls = read_noon_polls(archive, progress)
    with progress_bar("growing", None, "forests") as progress:
        found = graham.study(polls, progress, workers=workers)
    from foretime_studies.graham2021.report import figures, report  # matplotlib is slow to load

    written = report(found, study_command("graham2021", [archive]))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
