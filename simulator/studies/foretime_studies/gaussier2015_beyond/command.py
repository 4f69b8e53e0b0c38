"""``foretime study gaussier2015-beyond``: what predictions bring, and cost in long waits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foretime_studies.frame.command import study_command
from foretime_studies.frame.kept_runs import kept_runs
from foretime_studies.frame.options import Logs, Sizes, Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.gaussier2015.logs import studied_logs
from foretime_studies.gaussier2015_beyond.cases import BOOSTED, CASES
from foretime_studies.gaussier2015_beyond.figures import figures
from foretime_studies.gaussier2015_beyond.study import Beyond, Rule, study
from foretime_studies.gaussier2015_beyond.tables import tables

_TARGETS = tuple(f"targets-{rule.value}" for rule in Rule)


@study_command(
    shown=("logs", *_TARGETS, "ablation", "predictors", "corrections", "oracles", "orders"),
    kept=True,
)
def gaussier2015_beyond(
    folder: Path,
    logs: Logs,
    processors: Sizes = None,
    repeat: Annotated[int, typer.Option(min=1, help="Jittered copies of each log.")] = 10,
    boosted: Annotated[
        bool,
        typer.Option(
            "--boosted",
            help="Run boosted trees, too, on one copy: milliseconds a job; needs the extra learn.",
        ),
    ] = False,
    workers: Workers = 2,
) -> StudyReport:
    """Close the gap to clairvoyant EASY-SJBF: estimators, orders of candidates, guards, oracles.

    Everything is chosen for each log on the others. Runs are kept in the output folder: what was
    interrupted goes on where it was.

    Example: [bold]foretime study gaussier2015-beyond KTH-SP2-1996-2.1-cln.swf.gz -o beyond[/bold]
    """
    studied = studied_logs(logs, processors)
    cases = (*CASES, BOOSTED) if boosted else CASES
    execute = kept_runs(folder, workers)
    return report(study(studied, folder, execute, repeats=repeat, cases=cases))


def report(found: Beyond) -> StudyReport:
    """Put everything together."""
    notes = [log.note for log in found.logs]
    return StudyReport("Beyond Gaussier 2015", notes, tables(found), figures(found))
