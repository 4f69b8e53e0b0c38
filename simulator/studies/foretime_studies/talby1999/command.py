"""``foretime study talby1999``: slack-based backfilling, by months of logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import later_progress_bar

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.frame.kept_runs import resumable
from foretime_studies.frame.machine_sizes import SizesOption, sizes_of
from foretime_studies.talby1999.months import read_months
from foretime_studies.talby1999.study import study

SHOWN = ("months", "baselines", "orders", "gap", "logs", "claims")
"""Tables that are printed; all are written."""
REPEATS, SEED = 10, 1


def talby1999(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."
        ),
    ],
    processors: SizesOption = None,
    repeat: Annotated[
        int, typer.Option(min=0, help="Jittered copies of each log for the intervals.")
    ] = REPEATS,
    seed: Annotated[int, typer.Option(min=0, help="Of the jittered copies.")] = SEED,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("talby1999"),
    workers: Annotated[int, typer.Option(min=1, help="Threads.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Run all of Talby & Feitelson (1999): EASY, conservative and slack-based backfilling.

    KTH's log runs on the paper's 128 processors, with everything that the paper varies; other
    logs run the main comparisons, on their own machines. Runs are kept in the output folder: what
    was interrupted goes on where it was.

    Example: [bold]foretime study talby1999 KTH-SP2-1996-2.1-cln.swf.gz -o talby1999[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    sizes = sizes_of(processors or (), logs)
    read = [read_months(path, sizes.get(path.name)) for path in logs]
    with resumable(output_dir), later_progress_bar("simulating", "jobs") as begin:
        found = study(read, output_dir, repeats=repeat, seed=seed, workers=workers, begin=begin)
    from foretime_studies.talby1999.figures import figures  # matplotlib is slow to load
    from foretime_studies.talby1999.report import report

    options = (
        ("--processors", processors or None, None),
        ("--repeat", repeat, REPEATS),
        ("--seed", seed, SEED),
    )
    written = report(found, study_command("talby1999", logs, options))
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
