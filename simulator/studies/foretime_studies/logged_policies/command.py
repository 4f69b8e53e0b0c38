"""``foretime study logged-policies``: what a plausible policy brings on a log as logged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.workload_options import HeadOption, check_head
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import has_python
from foretime_sim.policies.policy_file import read_policy
from foretime_sim.policies.policy_table import policy_of
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.site_file import read_site
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Seed, Size
from foretime_studies.frame.report import StudyReport
from foretime_studies.logged_policies.study import LoggedStudy, study
from foretime_studies.logged_policies.tables import tables
from foretime_studies.waits.runs import LOGGED_NOW_S, WARM_UP_SHARE


@study_command(shown=("logs", "trust", "beside", "order"))
def logged_policies(
    folder: Path,
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Job logs of one site, with their waits.")
    ],
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What is plausible: a policy's file, or its name."),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What is plausible: a site under Slurm (site.toml)."),
    ] = None,
    processors: Size = None,
    head: HeadOption = None,
    submissions: Annotated[
        int, typer.Option(min=1, help="Jobs asked about, drawn evenly along the log.")
    ] = 1_000,
    samples: Annotated[int, typer.Option(min=1, help="Forward runs at each moment.")] = 100,
    seed: Seed = 1,
    warm_up: Annotated[
        float,
        typer.Option(min=0, max=0.9, help="First part of the jobs, which is not scored."),
    ] = WARM_UP_SHARE,
) -> StudyReport:
    """Forecast a log's waits by a plausible policy, by FCFS and EASY, and by past waits.

    A log does not say how its scheduler was set up. The study says what it brings to assume
    something plausible: how often forward runs are trusted, what forecasts lose, and whether jobs
    start in the policy's order.

    Example: [bold]foretime study logged-policies theta.swf.gz --policy cobalt[/bold]
    """
    check_head(head)
    plausible = _plausible(policy, site)
    workloads = []
    notes = []
    for log in logs:
        workload, filtered = workload_of_log(read_log(log), processors=processors)
        workloads.append(workload if head is None else workload.head(head))
        notes.append(filtered.text)
    found = []
    for workload in workloads:
        with progress_bar(f"forecasting {workload.name}", len(workload), "jobs") as progress:
            found.append(
                study(
                    workload,
                    plausible,
                    submissions=submissions,
                    samples=samples,
                    seed=seed,
                    warm_up=warm_up,
                    progress=progress,
                )
            )
    name = (policy or site or Path()).name
    how = (
        f"The first {warm_up:.0%} of the jobs are learned from only. {samples} forward runs a"
        f" moment. A start within {LOGGED_NOW_S} s is one at once."
    )
    return report(found, [*notes, how, _WHO.format(policy=name)])


_WHO = (
    "generic: forward runs by FCFS and EASY on one pool. generic, held apart: the same without jobs"
    " that are held by something else. plausible: by {policy}, without them, too. past waits: the"
    " better of late of two forecasters that run nothing forward. foretime: the best of late of"
    " these forward runs and past waits, calibrated."
)


def _plausible(policy: Path | None, site: Path | None) -> Policy:
    if policy is not None and site is None:
        given = policy_of(read_policy(policy))
        if has_python(given) or isinstance(given.backfill, Pbs):
            raise InputError(
                f"--policy {policy}: forward runs ask neither Python nor a log's PBS: give a"
                " built-in order and backfilling, or a site under Slurm"
            )
        return given
    if site is not None and policy is None:
        found = read_site(site)
        if not isinstance(found, SlurmSite):
            raise InputError(f"--site {site}: it is under PBS; give a site under Slurm")
        return Policy(backfill=Slurm(found))
    raise InputError("give --policy or --site, one of them: it says what is plausible")


def report(found: Sequence[LoggedStudy], notes: Sequence[str]) -> StudyReport:
    """Put everything together."""
    title = "Logs as logged: forecasts by a plausible policy"
    return StudyReport(title, tuple(notes), tables(found))
