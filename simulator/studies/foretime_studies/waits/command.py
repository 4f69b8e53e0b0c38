"""``foretime study waits``: every forecast of waits on logs, scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.policy_options import BackfillOption, OrderOption, order_of_log
from foretime_sidecar.cli.options.workload_options import HeadOption, check_head
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.families import parse_backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.scores.moments import LOOKS_S

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Seed, Size, Workers, check_one_log
from foretime_studies.frame.report import StudyReport
from foretime_studies.waits.figures import figures
from foretime_studies.waits.runs import (
    LOGGED,
    LOGGED_NOW_S,
    SIMULATED,
    WARM_UP_SHARE,
    WaitsSettings,
)
from foretime_studies.waits.scores import ScoredRun
from foretime_studies.waits.study import WaitsLog, study
from foretime_studies.waits.tables import tables

RUNS = "runs"
"""Folder of kept runs, in the output folder."""
_DEFAULT = WaitsSettings()


@study_command(shown=("logs", "targets"))
def waits(
    folder: Path,
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Job logs, such as KTH's in SWF.")
    ],
    processors: Size = None,
    head: HeadOption = None,
    order: OrderOption = "fcfs",
    backfill: BackfillOption = "easy",
    submissions: Annotated[
        int, typer.Option(min=1, help="Jobs asked about, drawn evenly along each log.")
    ] = _DEFAULT.submissions,
    first_weeks: Annotated[
        int,
        typer.Option(min=0, help="Jobs of each log's first two weeks asked about, as many or all."),
    ] = _DEFAULT.first_weeks,
    samples: Annotated[
        int, typer.Option(min=1, help="Forward runs at each moment.")
    ] = _DEFAULT.samples,
    seed: Seed = _DEFAULT.seed,
    logged: Annotated[
        bool, typer.Option("--logged", help="Take the waits as logged; else they are simulated.")
    ] = False,
    workers: Workers = 2,
) -> StudyReport:
    """Replay logs, forecast waits by every method, and score the forecasts.

    What has been gone through is kept in the output folder, and not gone through again with the
    same options and the same Foretime; the report is of all that is kept there.

    Example: [bold]foretime study waits KTH-SP2-1996-2.1-cln.swf.gz -o waits[/bold]
    """
    check_head(head)
    check_one_log(processors, logs)
    policy = Policy(order=order_of_log(order), backfill=parse_backfill(backfill))
    settings = WaitsSettings(submissions, first_weeks, samples, seed, policy)
    kind = LOGGED if logged else SIMULATED
    read: list[WaitsLog] = []
    notes: list[str] = []
    for log in logs:
        workload, filtered = workload_of_log(read_log(log), processors=processors)
        notes.append(filtered.text)
        read.append(WaitsLog(workload if head is None else workload.head(head), kind))
    jobs = sum(len(log.workload) for log in read)
    with progress_bar("forecasting", jobs, "jobs") as progress:
        found = study(read, settings, folder / RUNS, workers=workers, progress=progress)
    by = f"kept in {folder / RUNS} by another Foretime, and left out"
    notes += [f"{title}: {by}." for title in found.left_out]
    return report(found.runs, settings, notes)


def report(runs: Sequence[ScoredRun], settings: WaitsSettings, notes: Sequence[str]) -> StudyReport:
    """Put everything together."""
    looks = ", ".join(f"{look / 3_600:g}" for look in LOOKS_S)
    policy = settings.policy
    how = (
        f"Asked about: up to {settings.submissions:,} jobs of a log, one drawn from each of as many"
        f" stretches of equally many submissions (seed {settings.seed}), and up to"
        f" {settings.first_weeks:,} of its first two weeks, at their submission,"
        f" {looks} hours later while they wait, and each midnight of the log's clock. The first"
        f" {WARM_UP_SHARE:.0%} of a log is learned from only. {settings.samples} forward runs."
    )
    where = (
        f"Simulated: {policy.order}, {policy.backfill}, planned with the requested times. Logged:"
        " the waits of the log, the same policy being assumed of its scheduler; a start within"
        f" {LOGGED_NOW_S} s is one at once."
    )
    title = "When will my job start? Forecasts of waits on logs"
    return StudyReport(title, (how, where, *notes), tables(runs), figures(runs))
