"""``foretime study gaussier2015``: learned running times for backfilling."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.errors import InputError
from foretime_estimators.registry import parse_estimator
from foretime_sim.campaign_cells import Plan
from foretime_sim.campaign_execution import LocalProcesses, Outcome
from foretime_sim.campaign_store import CampaignStore
from foretime_sim.filters import workload_of_log
from foretime_sim.log_files import read_log
from foretime_sim.policy import EventOrder
from foretime_sim.studies.gaussier2015 import StudiedLog, StudySettings, study
from foretime_sim.studies.gaussier2015_paper import paper_log
from foretime_sim.studies.gaussier2015_predictions import predictions, runs_in_all

from foretime_sidecar.cli.campaign_progress import INTERRUPTED, run_cells, terminable
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sidecar.cli.study_output import print_report

SHOWN = ("table1", "table6", "table7", "selection", "jittered", "table8")
"""Tables that are printed; all are written."""
_DEFAULT = StudySettings()
_DAY_S = 86_400


def gaussier2015(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."
        ),
    ],
    processors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOG=COUNT",
            help="Size of a log's machine, the log by the beginning of its file's name; may be "
            "given repeatedly. Else the paper's for its logs, and the log's own for others.",
        ),
    ] = None,
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
    studied = _studied(logs, _sizes(processors or (), logs))
    options = ("clipped",) * clip_negative
    if recent_half_life is not None:
        options += (f"half-life={recent_half_life:g}",)
    settings = StudySettings(repeat, event_order, options=options)
    parse_estimator(settings.paper_choice.prediction)  # a wrong half-life is refused here
    store = CampaignStore(output_dir)
    executor = LocalProcesses(workers)

    def execute(plan: Plan) -> Outcome:
        return run_cells(plan, store, executor, workers=workers, retry_failed=True)

    with ExitStack() as stack:
        stack.enter_context(terminable())
        try:
            found = study(studied, output_dir, execute, settings)
            progress = stack.enter_context(progress_bar("predicting", runs_in_all(studied), "runs"))
            predicted = predictions(studied, settings, workers=workers, progress=progress)
        except KeyboardInterrupt:
            typer.echo(
                f"foretime: interrupted; what was run is kept in {output_dir}, run it again to go "
                "on",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None
    from foretime_sim.studies.gaussier2015_figures import figures  # matplotlib is slow to load
    from foretime_sim.studies.gaussier2015_report import report

    words = ["foretime", "study", "gaussier2015", *(log.name for log in logs)]
    for given in processors or ():
        words += ["--processors", given]
    for option, value, default in (
        ("--event-order", str(event_order), str(_DEFAULT.event_order)),
        ("--recent-half-life", recent_half_life, None),
        ("--repeat", repeat, _DEFAULT.repeats),
    ):
        words += [] if value == default else [option, str(value)]
    words += ["--clip-negative"] if clip_negative else []
    written = report(found, predicted, shlex.join(words))
    written.write(output_dir, figures(found, predicted))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)


def _sizes(given: list[str] | tuple[()], logs: list[Path]) -> dict[str, int]:
    """Read what ``--processors`` says, by file name."""
    sizes: dict[str, int] = {}
    for text in given:
        name, _, count = text.partition("=")
        hit = [log.name for log in logs if log.name.startswith(name)]
        if not name or not count.isdecimal() or int(count) < 1:
            raise InputError(
                f"--processors {text}: write a log and its size, such as CEA-Curie=80640"
            )
        if len(hit) != 1:
            told = "none of the logs begins" if not hit else f"{len(hit)} logs begin"
            raise InputError(
                f"--processors {text}: {told} so; there are {', '.join(log.name for log in logs)}"
            )
        sizes[hit[0]] = int(count)
    return sizes


def _studied(logs: list[Path], sizes: dict[str, int]) -> list[StudiedLog]:
    """Read the logs once, so that one that can't be simulated is refused before all runs."""
    studied: list[StudiedLog] = []
    for path in logs:
        printed = paper_log(path.name)
        size = sizes.get(path.name, None if printed is None else printed.processors)
        workload, filtered = workload_of_log(read_log(path), processors=size)
        name = workload.name if printed is None else printed.name
        if name in [other.name for other in studied]:
            raise InputError(f"{path}: another log is called {name}, too; give each once")
        days = float(workload.submit_time[-1] - workload.submit_time[0]) / _DAY_S
        studied.append(
            StudiedLog(
                name,
                path,
                workload.machine_processors,
                filtered.jobs_read,
                len(workload),
                days,
                filtered.text,
            )
        )
    return studied
