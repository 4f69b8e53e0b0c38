"""``foretime study runtime-accuracy``: estimators by the measures of other papers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.gaussier2015.paper import paper_log


def runtime_accuracy(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."
        ),
    ],
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Compare this one instead of the usual; may be given repeatedly."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Only so many jobs of each log, the first.")
    ] = None,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report and tables.")
    ] = Path("runtime-accuracy"),
    as_json: JsonOption = False,
) -> None:
    """Compare how well estimators predict runtimes: accuracy, share underestimated, errors.

    Example: [bold]foretime study runtime-accuracy KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    from foretime_studies.runtime_accuracy.study import ESTIMATORS, report, study

    names = tuple(estimator or ESTIMATORS)
    for name in names:
        parse_estimator(name, actual_runtimes={})  # a wrong one is refused before logs are read
    workloads = []
    for path in logs:
        printed = paper_log(path.name)
        size = None if printed is None else printed.processors
        workload, _ = workload_of_log(read_log(path), processors=size)
        workloads.append(workload if jobs is None else workload.head(jobs))
    with progress_bar("predicting", sum(map(len, workloads)), "jobs") as progress:
        found = study(workloads, names, progress)
    options = (("--estimator", estimator or None, None), ("--jobs", jobs, None))
    written = report(found, study_command("runtime-accuracy", logs, options))
    written.write(output_dir, {})
    seconds = time.perf_counter() - began
    shown = [table.key for table in written.tables]
    print_report(written, shown, output_dir, seconds, as_json=as_json, figures=False)
