"""``foretime study mira2018``: a real Blue Gene's waits beside study ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions

from foretime_studies.frame.command import study_command
from foretime_studies.frame.report import StudyReport
from foretime_studies.mira2018 import study as mira
from foretime_studies.mira2018.figures import figures
from foretime_studies.mira2018.tables import tables


@study_command(shown=("weeks", "waits", "queues"))
def mira2018(
    folder: Path,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="Cobalt event logs, such as mira-2018-wk1.cobalt.log.gz."
        ),
    ],
    machine: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Cobalt's configuration of the machine (XML)."),
    ],
    schedulable: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Names of the partitions to take of Cobalt's."),
    ] = None,
) -> StudyReport:
    """Replay Mira's weeks of 2018 from their real state on, and compare waits with the logged ones.

    Example: [bold]foretime study mira2018 mira-2018-wk*.gz --machine mira-partitions.xml.gz[/bold]
    """
    described = read_cobalt_partitions(machine, schedulable)
    weeks = mira.read_weeks(logs)
    with progress_bar("simulating", len(weeks) * len(mira.ORDERS), "runs") as progress:
        return report(mira.study(weeks, described, progress))


def report(found: mira.Mira2018) -> StudyReport:
    """Put everything together."""
    moved = sum(done.moved for done in found.replays[next(iter(found.replays))])
    machine = found.machine
    where = (
        f"{len(found.weeks)} weeks on {machine.name}: {machine.nodes:,} nodes, "
        f"{len(machine.bgp_partitions)} partitions."
    )
    how = (
        "Jobs are planned with what they asked for; the head job drains the partition that is "
        "free first (Tang 2010, section II.C); the queue is looked at every "
        f"{mira.INTERVAL_S} s."
    )
    scored = (
        "Scored: jobs submitted in the seven days after the two that prepare the machine, without "
        "those of reservations' queues."
    )
    notes = [where, how, scored]
    if moved:
        notes.append(f"{moved} running at the beginning had a partition that is not there.")
    return StudyReport("Mira's four weeks of 2018 again", notes, tables(found), figures(found))
