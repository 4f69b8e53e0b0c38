"""``foretime study streit2002``: self-tuning dynP on job sets like those of four centres."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import later_progress_bar

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.frame.kept_runs import resumable
from foretime_studies.streit2002.runs import StudySettings
from foretime_studies.streit2002.sets import read_sources
from foretime_studies.streit2002.study import study

SHOWN = ("table3", "table5", "table6", "figure4", "best", "claims")
"""Tables that are printed; all are written."""
_DEFAULT = StudySettings()


def streit2002(
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="The paper's logs: CTC-SP2-1996, KTH-SP2-1996, SDSC-SP2-1998; without any, the "
            "PC2-like set alone.",
        ),
    ] = None,
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
    jobs: Annotated[int, typer.Option(min=10, help="Jobs in each set.")] = _DEFAULT.jobs,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("streit2002"),
    workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Run all of Streit (JSSPP 2002), sections 4 and 5: tables, figures and what it says of them.

    Runs are kept in the output folder: what was interrupted goes on where it was.

    Example: [bold]foretime study streit2002 KTH-SP2-1996-2.1-cln.swf.gz -o streit2002[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    sources, notes = read_sources(logs or ())
    settings = StudySettings(seeds, further_seeds, jobs)
    with resumable(output_dir), later_progress_bar("simulating", "runs") as begin:
        found = study(sources, output_dir, settings, workers=workers, notes=notes, begin=begin)
    from foretime_studies.streit2002.figures import figures  # matplotlib is slow to load
    from foretime_studies.streit2002.report import report

    options = (
        ("--seeds", seeds, _DEFAULT.seeds),
        ("--further-seeds", further_seeds, _DEFAULT.further_seeds),
        ("--jobs", jobs, _DEFAULT.jobs),
    )
    written = report(found, study_command("streit2002", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
