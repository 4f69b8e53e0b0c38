"""``foretime study gaussier2015``: learned running times for backfilling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sim.policies.policy import EventOrder

from foretime_studies.frame.command import study_command
from foretime_studies.frame.kept_runs import kept_runs
from foretime_studies.frame.options import Copies, Logs, Sizes, Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.gaussier2015.figures import figures
from foretime_studies.gaussier2015.logs import studied_logs
from foretime_studies.gaussier2015.paper import PAPER_LOGS
from foretime_studies.gaussier2015.predictions import (
    Predicted,
    prediction_tables,
    predictions,
    runs_in_all,
)
from foretime_studies.gaussier2015.study import Gaussier2015, StudySettings, study
from foretime_studies.gaussier2015.tables import tables

_DEFAULT = StudySettings()


@study_command(shown=("table1", "table6", "table7", "selection", "jittered", "table8"), kept=True)
def gaussier2015(
    folder: Path,
    logs: Logs,
    processors: Sizes = None,
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
    repeat: Copies = _DEFAULT.repeats,
    clip_negative: Annotated[
        bool,
        typer.Option(
            "--clip-negative",
            help="Take a negative prediction as 1 s, as the paper's text suggests; else without "
            "its sign, as its simulator does.",
        ),
    ] = False,
    workers: Workers = 2,
) -> StudyReport:
    """Run all of Gaussier et al. (SC'15): its 128 heuristic triples a log, tables and figures.

    Runs are kept in the output folder: what was interrupted goes on where it was.

    Example: [bold]foretime study gaussier2015 KTH-SP2-1996-2.1-cln.swf.gz -o gaussier2015[/bold]
    """
    studied = studied_logs(logs, processors)
    variant = ("clipped",) * clip_negative
    if recent_half_life is not None:
        variant += (f"half-life={recent_half_life:g}",)
    settings = StudySettings(repeat, event_order, options=variant)
    parse_estimator(settings.paper_choice.prediction)  # a wrong half-life is refused here
    found = study(studied, folder, kept_runs(folder, workers), settings)
    with progress_bar("predicting", runs_in_all(studied), "runs") as progress:
        predicted = predictions(studied, settings, workers=workers, progress=progress)
    return report(found, predicted)


def report(found: Gaussier2015, predicted: Sequence[Predicted]) -> StudyReport:
    """Put everything together."""
    listed = found.settings.triples
    known = sum(triple.clairvoyant for triple in listed)
    how = (
        f"{len(listed) - known} heuristic triples and {known} clairvoyant ones on each log, FCFS, "
        f"event order {found.settings.event_order}; triples that matter again on "
        f"{found.settings.repeats} jittered copies."
    )
    if found.settings.options:
        how += f" Regressions with {', '.join(found.settings.options)}."
    absent = [name for name in PAPER_LOGS if name not in found.names]
    notes = [how, *(log.note for log in found.logs)]
    if absent:
        notes.append(f"Not here, of the paper's logs: {', '.join(absent)}.")
    if len(found.logs) == 1:
        notes.append(
            "Of one log nothing can be chosen on others (table 7) and nothing compared (figure 3, "
            "correlations)."
        )
    title = "Gaussier et al. (SC'15) again: learned running times for backfilling"
    made = [*tables(found), *prediction_tables(predicted)]
    return StudyReport(title, notes, made, figures(found, predicted))
