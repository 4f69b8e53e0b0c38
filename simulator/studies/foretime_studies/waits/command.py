"""``foretime study waits``: every forecast of waits on logs, scored."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.policy_options import BackfillOption, OrderOption, order_of_log
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sidecar.cli.run_options import HeadOption, check_head
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.families import parse_backfill
from foretime_sim.policies.policy import Policy

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.waits.runs import LOGGED, SIMULATED, WaitsSettings
from foretime_studies.waits.study import WaitsLog, study

SHOWN = ("logs", "targets")
"""Tables that are printed; all are written."""
RUNS = "runs"
"""Folder of kept runs, in the output folder."""
_DEFAULT = WaitsSettings()


def waits(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Job logs, such as KTH's in SWF.")
    ],
    processors: Annotated[
        int | None, typer.Option(help="Size of the log's machine; the log's own if not given.")
    ] = None,
    logged: Annotated[
        bool, typer.Option("--logged", help="Take the waits as logged; else they are simulated.")
    ] = False,
    head: HeadOption = None,
    order: OrderOption = "fcfs",
    backfill: BackfillOption = "easy",
    submissions: Annotated[
        int, typer.Option(min=1, help="Jobs asked about, drawn evenly along each log.")
    ] = _DEFAULT.submissions,
    samples: Annotated[
        int, typer.Option(min=1, help="Forward runs at each moment.")
    ] = _DEFAULT.samples,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the jobs asked about, and of the samples.")
    ] = _DEFAULT.seed,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("waits"),
    workers: Annotated[int, typer.Option(min=1, help="Logs gone through at once.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Replay logs, forecast waits by every method, and score the forecasts.

    What has been gone through is kept in the output folder, and not gone through again with the
    same options and the same Foretime; the report is of all that is kept there.

    Example: [bold]foretime study waits KTH-SP2-1996-2.1-cln.swf.gz -o waits[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    check_head(head)
    if processors is not None and len(logs) != 1:
        raise InputError("--processors is for a single log: run each by itself")
    policy = Policy(order=order_of_log(order), backfill=parse_backfill(backfill))
    settings = WaitsSettings(submissions, samples, seed, policy)
    kind = LOGGED if logged else SIMULATED
    read: list[WaitsLog] = []
    notes: list[str] = []
    for log in logs:
        workload, filtered = workload_of_log(read_log(log), processors=processors)
        notes.append(filtered.text)
        read.append(WaitsLog(workload if head is None else workload.head(head), kind))
    jobs = sum(len(log.workload) for log in read)
    with progress_bar("forecasting", jobs, "jobs") as progress:
        found = study(read, settings, output_dir / RUNS, workers=workers, progress=progress)
    runs = found.runs
    by = f"kept in {output_dir / RUNS} by another Foretime, and left out"
    notes += [f"{title}: {by}." for title in found.left_out]
    from foretime_studies.waits.figures import figures  # matplotlib is slow to load
    from foretime_studies.waits.report import report

    options = (
        ("--processors", processors, None),
        ("--head", head, None),
        ("--order", order, "fcfs"),
        ("--backfill", backfill, "easy"),
        ("--submissions", submissions, _DEFAULT.submissions),
        ("--samples", samples, _DEFAULT.samples),
        ("--seed", seed, _DEFAULT.seed),
        ("--logged", logged, False),
    )
    written = report(runs, settings, notes, study_command("waits", logs, options))
    written.write(output_dir, figures(runs))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)
