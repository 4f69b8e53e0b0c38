"""``foretime study graham2021``: the published benchmark of waits at a real Slurm site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sim.waits.forecaster import LEVELS

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Workers
from foretime_studies.frame.plots import curves, panels
from foretime_studies.frame.report import StudyReport
from foretime_studies.graham2021 import study as graham
from foretime_studies.graham2021.forests import LEARNED_DAYS
from foretime_studies.graham2021.polls import read_noon_polls
from foretime_studies.graham2021.tables import reliability, tables


@study_command(shown=("published", "online", "bounds", "ablations"))
def graham2021(
    folder: Path,
    archive: Annotated[
        Path,
        typer.Argument(
            metavar="ARCHIVE", help="Noon polls: DRAC-Graham-2021-noon-pending.csv.tar.xz."
        ),
    ],
    workers: Workers = 2,
) -> StudyReport:
    """Forecast how long jobs pending at Graham's noons of 2021 wait, beside a published network.

    Example: [bold]foretime study graham2021 DRAC-Graham-2021-noon-pending.csv.tar.xz[/bold]
    """
    with progress_bar("reading", None, "polls") as progress:
        polls = read_noon_polls(archive, progress)
    with progress_bar("growing", None, "forests") as progress:
        return report(graham.study(polls, progress, workers=workers))


def report(found: graham.Graham2021) -> StudyReport:
    """Put everything together."""
    polls = found.polls
    what = (
        f"{len(polls):,} jobs that were pending at {len(polls.polls)} noons; each is in one of "
        "them. Forecast is how much longer each waits."
    )
    how = (
        f"The first {graham.SETTLING_POLLS} noons are only learned from. A forest learns from the "
        f"waits of {LEARNED_DAYS} days, those that have not ended as lower bounds."
    )
    figure, (axes,) = panels(1)
    curves(axes, LEVELS, reliability(found), "level", "share of waits up to the quantile")
    title = "Waits at Graham, noon by noon"
    return StudyReport(title, (what, how), tables(found), {"reliability": figure})
