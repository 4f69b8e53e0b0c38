"""``foretime study gaussier2015``: learned running times for backfilling."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sim.policies.policy import EventOrder

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.frame.kept_runs import kept_runs, resumable
from foretime_studies.frame.machine_sizes import SizesOption
from foretime_studies.gaussier2015.logs import studied_logs
from foretime_studies.gaussier2015.predictions import predictions, runs_in_all
from foretime_studies.gaussier2015.study import StudySettings, study

SHOWN = ("table1", "table6", "table7", "selection", "jittered", "table8")
"""Tables that are printed; all are written."""
_DEFAULT = StudySettings()


def gaussier2015(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."
        ),
    ],
    processors: SizesOption = None,
    event_order: Annotated[
        EventOrder, typer.Option(help="Event order; per-event is that of the paper's simulator.")
    ] = _DEFAULT.event_order,
    recent_half_life: Annotated[
        float | None,
        typer.Option(
            metavar="JOBS",
            help="Weigh recent jobs more (footnote 2): one this many jobs ago counts for half.",
        ),
    ] = None,
    clip_negative: Annotated[
        bool,
        typer.Option(
            "--clip-negative",
            help="Take a negative prediction as 1 s, as the paper's text suggests; else without "
            "its sign, as its simulator does.",
        ),
    ] = False,
    repeat: Annotated[
        int, typer.Option(min=0, help="Jittered copies of each log for the intervals.")
    ] = _DEFAULT.repeats,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("gaussier2015"),
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Run all of Gaussier et al. (SC'15): its 128 heuristic triples a log, tables and figures.

    Runs are kept in the output folder: what was interrupted goes on where it was.

    Example: [bold]foretime study gaussier2015 KTH-SP2-1996-2.1-cln.swf.gz -o gaussier2015[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    studied = studied_logs(logs, processors or ())
    variant = ("clipped",) * clip_negative
    if recent_half_life is not None:
        variant += (f"half-life={recent_half_life:g}",)
    settings = StudySettings(repeat, event_order, options=variant)
    parse_estimator(settings.paper_choice.prediction)  # a wrong half-life is refused here
    with resumable(output_dir):
        found = study(studied, output_dir, kept_runs(output_dir, workers), settings)
        with progress_bar("predicting", runs_in_all(studied), "runs") as progress:
            predicted = predictions(studied, settings, workers=workers, progress=progress)
    from foretime_studies.gaussier2015.figures import figures  # matplotlib is slow to load
    from foretime_studies.gaussier2015.report import report

    options = (
        ("--processors", processors or None, None),
        ("--event-order", event_order, _DEFAULT.event_order),
        ("--recent-half-life", recent_half_life, None),
        ("--repeat", repeat, _DEFAULT.repeats),
        ("--clip-negative", clip_negative, False),
    )
    written = report(found, predicted, study_command("gaussier2015", logs, options))
    written.write(output_dir, figures(found, predicted))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
