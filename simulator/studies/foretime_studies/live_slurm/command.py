"""``foretime study live-slurm``: live Slurm clusters side by side, and what a replay foretells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.frame.progress_bar import progress_bar

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.live_slurm.arms import ARMS, LOOK_S, version_of
from foretime_studies.live_slurm.checkout import find_checkout
from foretime_studies.live_slurm.foretold import COPIES, JITTER_S, foretold_waits
from foretime_studies.live_slurm.parts import Part, log_of, run_part
from foretime_studies.live_slurm.runs import RunName, kept_runs
from foretime_studies.live_slurm.tables import ArmRuns, by_arm, tables
from foretime_studies.live_slurm.workloads import LiveWorkload, workload_names

RUNS, FORETOLD = "runs", "foretold"
"""Folders in the output folder: of kept runs, and of what replays said."""
_WORKLOADS = ["heavy-1", "heavy-2", "light"]
_ARMS = list(ARMS)


@study_command(shown=("waits", "goals"), kept=True)
def live_slurm(
    folder: Path,
    workload: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Jobs to run; may be given repeatedly."),
    ] = _WORKLOADS,
    arm: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="How to run them; may be given repeatedly."),
    ] = _ARMS,
    release: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELEASE",
            help="Of Slurm, such as 26.05; may be given repeatedly. Else the newest.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Of each arm.")] = 3,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="End after so long; runs that have begun go on by themselves, and the same "
            "command goes on with them. 0: only report. Else when all is done.",
        ),
    ] = None,
    side_by_side: Annotated[int, typer.Option(min=1, help="Clusters at once.")] = 12,
    copies: Annotated[
        int, typer.Option(min=0, help="Copies of the jobs whose replay foretells each arm.")
    ] = COPIES,
    workers: Workers = 2,
) -> StudyReport:
    """Run the same jobs on live Slurm clusters, with Foretime and without, and compare.

    Each run is a cluster of its own in namespaces. Root alone can bring one up, on a machine with
    Slurm, from a checkout of Foretime. What has been run is kept in the output folder, and not run
    again; the report is of all that is kept there, and needs no cluster.

    Example: [bold]foretime study live-slurm --minutes 30 -o live[/bold]
    """
    wanted = _wanted(workload, arm, runs)
    part = Part()
    kept = folder / RUNS
    if minutes != 0:
        part = _run(wanted, release, kept, minutes, side_by_side)
    found = kept_runs(kept)
    foretold = {}
    if copies and found:
        keys = {(run.name.workload, run.name.release, run.name.arm) for run in found}
        with progress_bar("foretelling", copies * len(keys), "copies") as progress:
            foretold = foretold_waits(
                keys, copies, folder / FORETOLD, workers=workers, progress=progress
            )
    return report(by_arm(found, foretold), part, kept, copies)


def _wanted(workloads: list[str], arms: list[str], runs: int) -> list[tuple[str, str, int]]:
    """Give workload, arm and number of each run: a first one of every arm before a second."""
    for name in arms:
        if name not in ARMS:
            raise InputError(f"no arm {name!r}; there are {', '.join(ARMS)}")
    for name in workloads:
        if name not in workload_names():
            raise InputError(f"no workload {name!r}; there are {', '.join(workload_names())}")
    return [
        (workload, arm, number)
        for number in range(1, runs + 1)
        for workload in workloads
        for arm in arms
    ]


def _run(
    wanted: list[tuple[str, str, int]],
    releases: list[str] | None,
    kept: Path,
    minutes: float | None,
    side_by_side: int,
) -> Part:
    checkout = find_checkout()
    ready = checkout.ready_releases()
    for name in releases or ():
        if name not in ready:
            raise InputError(f"no Slurm {name} to bring up; there is {', '.join(ready)}")
    names = [
        RunName(workload, release, arm, number)
        for workload, arm, number in wanted
        for release in releases or ready[:1]
        if version_of(release) >= ARMS[arm].since
    ]
    with progress_bar("running", len(names), "runs") as progress:
        return run_part(
            names,
            kept,
            checkout.begin,
            minutes=math.inf if minutes is None else minutes,
            side_by_side=side_by_side,
            progress=progress,
        )


def report(arms: list[ArmRuns], part: Part, kept: Path, copies: int) -> StudyReport:
    """Put everything together."""
    how = (
        "Each run is a Slurm of ten nodes of ten CPUs with priorities by age. Mean waits are means "
        "of the runs, with the least and the greatest; p90 and longest are means of the runs' own."
        f" The daemon looks every {LOOK_S} s. Foretold is what a replay of the same jobs says, the "
        f"mean and range of {copies} copies whose submissions are moved by up to {JITTER_S} s."
    )
    notes = [how]
    loads = {each.workload.name: each.workload for each in arms}
    notes += [_about(workload) for workload in loads.values()]
    notes += [f"Goes on by itself: {name}." for name in part.going_on]
    notes += [f"Not begun yet: {name}." for name in part.left]
    for name in part.failed:
        said = log_of(name.path(kept))
        notes.append(f"Ended without a result, and is begun anew the next time: {name}; see {said}")
    title = "Live Slurms side by side, with and without Foretime"
    return StudyReport(title, notes, tables(arms))


def _about(workload: LiveWorkload) -> str:
    runtimes = sorted(job.runtime_s for job in workload.jobs)
    return (
        f"{workload.name}: {len(workload.jobs)} jobs in {workload.jobs[-1].submit_s / 60:.0f} min, "
        f"{workload.load:.1f} times what the cluster can do; half of them run longer than "
        f"{runtimes[len(runtimes) // 2]} s. The daemon knows {len(workload.before)} jobs of before."
    )
