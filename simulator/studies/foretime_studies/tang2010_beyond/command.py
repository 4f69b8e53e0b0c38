"""``foretime study tang2010-beyond``: how much of perfect knowledge's gain an estimator reaches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import later_progress_bar
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.models import intrepid_like
from foretime_sim.scores.metrics import ScoredSpan, scored_span
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.bgp_jobs import with_bgp_machine

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.tang2010_beyond import study as beyond


def tang2010_beyond(
    logs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[LOG...]", help="Job logs; without any, a generated workload."),
    ] = None,
    processors: Annotated[
        int | None, typer.Option(help="Size of the log's machine; the log's own if not given.")
    ] = None,
    warm_up_share: Annotated[
        float, typer.Option(min=0, max=0.9, help="First part of a log's jobs, not scored.")
    ] = 0.1,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report and tables.")
    ] = Path("tang2010-beyond"),
    repeat: Annotated[int, typer.Option(min=1, help="Jittered copies of each log.")] = 10,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the generated workload and the jittered copies.")
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Compare the estimator `similar` with perfect knowledge: Tang 2010, section VI, under WFP.

    Example: [bold]foretime study tang2010-beyond KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    if processors is not None and len(logs or ()) != 1:
        raise InputError("--processors is for a single log: run each by itself")
    notes: list[str] = []
    inputs = []
    for log in logs or ():
        workload, report = workload_of_log(read_log(log), processors=processors)
        span = scored_span(workload, warm_up_share=warm_up_share)
        inputs.append(beyond.BeyondInput(workload.name, workload, span))
        notes.append(report.text)
    if not inputs:
        made = with_bgp_machine(intrepid_like.generate(seed=seed), intrepid())
        inputs.append(beyond.BeyondInput("Intrepid-like", made, ScoredSpan(intrepid_like.SPLIT_S)))
        notes.append(
            f"The workload is generated (intrepid-like, seed {seed}); its jobs from July on are "
            "scored."
        )
    with later_progress_bar("simulating", "jobs") as begin:
        found = beyond.run(inputs, Repeats(repeat, seed=seed, workers=workers), begin)
    options = (
        ("--processors", processors, None),
        ("--warm-up-share", warm_up_share, 0.1),
        ("--repeat", repeat, 10),
        ("--seed", seed, 1),
    )
    written = beyond.report(found, study_command("tang2010-beyond", logs, options), notes)
    written.write(output_dir, {})
    keys = [table.key for table in written.tables]
    seconds = time.perf_counter() - began
    print_report(written, keys, output_dir, seconds, as_json=as_json, figures=False)
