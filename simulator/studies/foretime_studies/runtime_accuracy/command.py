"""``foretime study runtime-accuracy``: estimators by the measures of other papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Logs
from foretime_studies.frame.report import StudyReport
from foretime_studies.gaussier2015.paper import paper_log
from foretime_studies.runtime_accuracy.study import ESTIMATORS, report, study


@study_command()
def runtime_accuracy(
    folder: Path,
    logs: Logs,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Compare this one instead of the usual; may be given repeatedly."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Only so many jobs of each log, the first.")
    ] = None,
) -> StudyReport:
    """Compare how well estimators predict runtimes: accuracy, share underestimated, errors.

    Example: [bold]foretime study runtime-accuracy KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    names = tuple(estimator or ESTIMATORS)
    for name in names:
        parse_estimator(name, actual_runtimes={})  # a wrong one is refused before logs are read
    workloads = []
    for path in logs:
        printed = paper_log(path.name)
        size = None if printed is None else printed[1]["processors"]
        workload, _ = workload_of_log(read_log(path), processors=size)
        workloads.append(workload if jobs is None else workload.head(jobs))
    with progress_bar("predicting", sum(map(len, workloads)), "jobs") as progress:
        return report(study(workloads, names, progress))
