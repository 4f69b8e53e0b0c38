"""``foretime study tang2010-beyond``: how much of perfect knowledge's gain an estimator reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import later_progress_bar
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.models import intrepid_like
from foretime_sim.scores.metrics import ScoredSpan, scored_span
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.bgp_jobs import with_bgp_machine

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Seed, Size, Workers, check_one_log
from foretime_studies.frame.report import StudyReport
from foretime_studies.tang2010_beyond import study as beyond


@study_command()
def tang2010_beyond(
    folder: Path,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[LOG...]", help="Job logs; without any, a generated workload."),
    ] = None,
    processors: Size = None,
    warm_up_share: Annotated[
        float, typer.Option(min=0, max=0.9, help="First part of a log's jobs, not scored.")
    ] = 0.1,
    repeat: Annotated[int, typer.Option(min=1, help="Jittered copies of each log.")] = 10,
    seed: Seed = 1,
    workers: Workers = 2,
) -> StudyReport:
    """Compare the estimator `similar` with perfect knowledge: Tang 2010, section VI, under WFP.

    Example: [bold]foretime study tang2010-beyond KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    check_one_log(processors, logs or ())
    notes: list[str] = []
    inputs = []
    for log in logs or ():
        workload, filtered = workload_of_log(read_log(log), processors=processors)
        span = scored_span(workload, warm_up_share=warm_up_share)
        inputs.append(beyond.BeyondInput(workload.name, workload, span))
        notes.append(filtered.text)
    if not inputs:
        made = with_bgp_machine(intrepid_like.generate(seed=seed), intrepid())
        inputs.append(beyond.BeyondInput("Intrepid-like", made, ScoredSpan(intrepid_like.SPLIT_S)))
        notes.append(
            f"The workload is generated (intrepid-like, seed {seed}); its jobs from July on are "
            "scored."
        )
    with later_progress_bar("simulating", "jobs") as begin:
        found = beyond.run(inputs, Repeats(repeat, seed=seed, workers=workers), begin)
    return beyond.report(found, notes)
