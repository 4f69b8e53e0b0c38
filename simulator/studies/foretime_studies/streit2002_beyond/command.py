"""``foretime study streit2002-beyond``: self-tuning by forward runs, against single policies."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import later_progress_bar

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.frame.kept_runs import resumable
from foretime_studies.streit2002.sets import read_sources
from foretime_studies.streit2002_beyond.study import BeyondSettings, study

SHOWN = ("targets", "verdict", "tails", "tuned")
"""Tables that are printed; all are written."""
_DEFAULT = BeyondSettings()


def streit2002_beyond(
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="The paper's logs: CTC-SP2-1996, KTH-SP2-1996, SDSC-SP2-1998; without any, the "
            "PC2-like set alone.",
        ),
    ] = None,
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
    jobs: Annotated[int, typer.Option(min=10, help="Jobs in each set.")] = _DEFAULT.jobs,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("streit2002-beyond"),
    workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Tune by forward runs; judge it by the best of FCFS, SJF and LJF at every load.

    Settings are chosen for each set on other draws of the others. Runs are kept in the output
    folder: what was interrupted goes on where it was.

    Example: [bold]foretime study streit2002-beyond KTH-SP2-1996-2.1-cln.swf.gz -o beyond[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    sources, notes = read_sources(logs or ())
    settings = BeyondSettings(seeds, min(few_seeds, seeds), tuning_seeds, more_seeds, jobs)
    with resumable(output_dir), later_progress_bar("simulating", "runs") as begin:
        found = study(sources, output_dir, settings, workers=workers, notes=notes, begin=begin)
    from foretime_studies.streit2002_beyond.report import figures, report  # matplotlib

    options = (
        ("--seeds", seeds, _DEFAULT.seeds),
        ("--few-seeds", few_seeds, _DEFAULT.few_seeds),
        ("--tuning-seeds", tuning_seeds, _DEFAULT.tuning_seeds),
        ("--more-seeds", more_seeds, _DEFAULT.more_seeds),
        ("--jobs", jobs, _DEFAULT.jobs),
    )
    written = report(found, study_command("streit2002-beyond", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
