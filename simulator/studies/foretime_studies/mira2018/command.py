"""``foretime study mira2018``: a real Blue Gene's waits beside simulated ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.mira2018 import study as mira

SHOWN = ("weeks", "waits", "queues")
"""Tables that are printed; all are written."""


def mira2018(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Cobalt event logs, such as mira-2018-wk1.cobalt.log.gz."
        ),
    ],
    machine: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Cobalt's configuration of the machine (XML)."),
    ],
    schedulable: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Names of the bgp_partitions to take of Cobalt's."),
    ] = None,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("mira2018"),
    as_json: JsonOption = False,
) -> None:
    """Replay Mira's weeks of 2018 from their real state on, and compare waits with the logged ones.

    Example: [bold]foretime study mira2018 mira-2018-wk*.gz --machine mira-partitions.xml.gz[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    described = read_cobalt_partitions(machine, schedulable)
    weeks = mira.read_weeks(logs)
    runs = len(weeks) * len(mira.ORDERS)
    with progress_bar("simulating", runs, "runs") as progress:
        found = mira.study(weeks, described, progress)
    from foretime_studies.mira2018.figures import figures  # matplotlib is slow to load
    from foretime_studies.mira2018.report import report

    options = (
        ("--machine", machine.name, None),
        ("--schedulable", None if schedulable is None else schedulable.name, None),
    )
    written = report(found, study_command("mira2018", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
