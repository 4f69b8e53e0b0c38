"""``foretime campaign``: many simulations from one TOML file."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer
from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_sim.campaigns.cells import Plan, plan
from foretime_sim.campaigns.execution import Executor, LocalProcesses, Outcome, to_do
from foretime_sim.campaigns.file import read_campaign
from foretime_sim.campaigns.runs import Record, UsedLog, log_facts
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.campaigns.timing import TimeEstimate, told

from foretime_sidecar.cli.frame.campaign_progress import run_cells
from foretime_sidecar.cli.frame.interruption import INTERRUPTED, terminable
from foretime_sidecar.cli.frame.option_groups import OptionGroup, with_option_groups
from foretime_sidecar.cli.frame.output_files import check_folder, check_no_file
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.reports.campaign_tables import (
    cells_table,
    counts,
    failure_json,
    failure_lines,
    logs_table,
    state_table,
)
from foretime_sidecar.cli.reports.whole_tables import print_uncut, print_whole
from foretime_sidecar.wording.counts import counted

_NEEDED = ("pandas", "matplotlib", "pyarrow")

app = typer.Typer(
    help="Run many simulations from one TOML file, and report them.\n\n"
    "Example: foretime campaign run campaign.toml",
    no_args_is_help=True,
)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="The campaign: a TOML file (docs/campaigns.md).")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of the results; what the file says if not given."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(metavar="LOG", help="Take the cells of this log only; may be given repeatedly."),
]


@dataclass(frozen=True)
class WorkerOptions(OptionGroup):
    """What runs the cells: processes of this machine, or Dask workers."""

    panel: ClassVar[str] = "Options"

    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes, or Dask workers to submit; one for each physical core."
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    ] = None
    dask_jobqueue: Annotated[
        Literal["slurm", "pbs"] | None,
        typer.Option(
            help="Submit --workers Dask workers to this batch system; the file's jobqueue table "
            "says how."
        ),
    ] = None

    def verify(self) -> None:
        """Refuse what does not go together."""
        if self.dask is not None and self.dask_jobqueue is not None:
            raise InputError("give --dask or --dask-jobqueue, not both")
        if self.dask is not None and self.workers is not None:
            raise InputError(
                "--workers is for local processes and --dask-jobqueue; Dask has its own"
            )
        if self.dask_jobqueue is not None and self.workers is None:
            raise InputError("--dask-jobqueue needs --workers: how many to submit")

    def executor(
        self, planned: Plan, stack: ExitStack, *, quiet: bool
    ) -> tuple[Executor, int | None]:
        """Give what runs the cells until the stack ends, and how many at once if that is known."""
        if self.dask is None and self.dask_jobqueue is None:
            local = LocalProcesses(self.workers)
            return local, local.workers
        missing = [name for name in ("distributed", "dask_jobqueue") if find_spec(name) is None]
        if self.dask_jobqueue is None:
            missing = [name for name in missing if name != "dask_jobqueue"]
        if missing:
            raise ForetimeError(f"this needs {', '.join(missing)}: pip install 'foretime[dask]'")
        from foretime_sim.campaigns.on_dask import DaskWorkers, submitted_cluster

        cluster: Any = self.dask
        if self.dask_jobqueue is not None:
            jobqueue = planned.campaign.jobqueue
            cluster = submitted_cluster(self.dask_jobqueue, jobqueue, self.workers or 1)
        dask = stack.enter_context(DaskWorkers(cluster, idle=None if quiet else _tell_idle))
        say(f"Dask's dashboard: {dask.dashboard}", err=True)
        return dask, self.workers


@app.command("run")
@with_option_groups
def run_command(
    file: FileArgument,
    by: WorkerOptions,
    output: OutputOption = None,
    only: OnlyOption = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again that failed before.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run what a campaign still lacks, and write its tables and its report.

    A run that was interrupted goes on where it was. Exit codes: 0, 1 if a cell failed, 2 for wrong
    input, 130 if interrupted.

    Example: [bold]foretime campaign run contrib/campaigns/generated.toml --workers 2[/bold]
    """
    _check_packages()
    by.verify()
    whole = plan(read_campaign(file))
    planned = whole.of_logs(only or ())
    store = _writable_store(planned, output)
    before = store.records()
    began = time.perf_counter()
    outcome = _run(planned, store, by, retry_failed=retry_failed, quiet=as_json)
    _, report = _written(whole, store)
    wall_clock_s = time.perf_counter() - began
    if as_json:
        document = {
            **counts(planned, outcome.records),
            "executed": outcome.executed,
            "output": str(store.folder),
            "report": str(report),
            "wall_clock_s": wall_clock_s,
            "failures": [failure_json(record) for record in outcome.failed],
        }
        typer.echo(json.dumps(document, indent=2))
    else:
        done = len(outcome.records) - len(outcome.failed)
        say(
            f"{done:,} of {counted(len(planned.cells), 'cell')} done, "
            f"{outcome.executed:,} of them now, in {told(wall_clock_s)}; report: {report}"
        )
    _tell_failures(planned, outcome.failed, before)
    if outcome.failed:
        raise typer.Exit(1)


def _run(
    planned: Plan, store: CampaignStore, by: WorkerOptions, *, retry_failed: bool, quiet: bool
) -> Outcome:
    """Run the cells; if interrupted, say how many are kept and leave."""
    with ExitStack() as stack:
        stack.enter_context(terminable())
        try:
            executor, count = by.executor(planned, stack, quiet=quiet)
            return run_cells(planned, store, executor, workers=count, retry_failed=retry_failed)
        except KeyboardInterrupt:
            kept = len(planned.cells) - len(to_do(planned, store.records()))
            planned_cells = counted(len(planned.cells), "cell")
            say(
                f"foretime: interrupted with {kept:,} of {planned_cells} kept in {store.folder}; "
                "run it again to go on",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None


def _written(planned: Plan, store: CampaignStore) -> tuple[list[Path], Path]:
    """Write the tables and the report; give their files."""
    # pandas and matplotlib are slow to load.
    from foretime_sim.campaigns.report import write_report
    from foretime_sim.campaigns.results import write_tables

    records = store.records()
    tables = write_tables(planned, records, store.folder)
    return tables, write_report(planned, records, store.folder)


def _tell_failures(planned: Plan, failed: Sequence[Record], before: Mapping[str, Record]) -> None:
    """Say which cells failed, and how many had failed before this run."""
    for line in failure_lines(planned, failed):
        say(f"foretime: {line}", err=True)
    earlier = sum(before.get(record["id"]) == record for record in failed)
    if earlier:
        say(
            f"foretime: {earlier:,} of these failed in an earlier run; --retry-failed runs such "
            "cells again",
            err=True,
        )


@app.command("status")
def status_command(
    file: FileArgument,
    output: OutputOption = None,
    only: OnlyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how far a campaign is, and what failed; it may be running.

    Example: [bold]foretime campaign status contrib/campaigns/generated.toml[/bold]
    """
    planned = plan(read_campaign(file)).of_logs(only or ())
    store = _store(planned, output)
    records = store.records()
    estimate = TimeEstimate()
    failures = []
    for cell in planned.cells:
        if (record := records.get(cell.id)) is not None:
            estimate.learn(cell, record)
            if record["status"] == "failed":
                failures.append(record)
    remaining_s = estimate.remaining(to_do(planned, records), 1)
    if as_json:
        document = {
            **counts(planned, records),
            "output": str(store.folder),
            "remaining_worker_s": remaining_s,
            "failures": [failure_json(record) for record in failures],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    print_whole(state_table(planned, records))
    if any(cell.id not in records for cell in planned.cells):
        say(f"about {told(remaining_s)} of one worker's time to go")
    for line in failure_lines(planned, failures):
        say(line)
    if failures:
        say("foretime campaign run --retry-failed runs them again")


@app.command("report")
def report_command(
    file: FileArgument,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the tables and the report anew from what has been run, finished or not.

    Example: [bold]foretime campaign report contrib/campaigns/generated.toml[/bold]
    """
    _check_packages()
    planned = plan(read_campaign(file))
    store = _store(planned, output)
    records = store.records()
    if all(cell.id not in records for cell in planned.cells):
        raise InputError(
            f"{store.folder}: none of the campaign's {counted(len(planned.cells), 'cell')} has "
            "been run; foretime campaign run runs them"
        )
    tables, report = _written(planned, store)
    if as_json:
        files = {"tables": [str(path) for path in tables], "report": str(report)}
        typer.echo(json.dumps({**counts(planned, records), **files}, indent=2))
    else:
        say(str(report))


@app.command("check")
def check_command(
    file: FileArgument,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Estimate the time for so many; one for each physical core."),
    ] = None,
    output: OutputOption = None,
    only: OnlyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a campaign, read its logs, and list its cells, without running them.

    Example: [bold]foretime campaign check contrib/campaigns/generated.toml[/bold]
    """
    planned = plan(read_campaign(file)).of_logs(only or ())
    campaign = planned.campaign
    store = _writable_store(planned, output)
    records = store.records()
    names = list(dict.fromkeys(cell.axes["log"] for cell in planned.cells))
    sites = tuple(campaign.sites.values())
    logs = {
        name: log_facts(
            UsedLog(campaign.logs[name], campaign.scoring, sites, campaign.unknown_users)
        )
        for name in names
    }
    estimate = TimeEstimate({name: facts.simulated_jobs for name, facts in logs.items()})
    for cell in planned.cells:
        if cell.id in records:
            estimate.learn(cell, records[cell.id])
    waiting = to_do(planned, records)
    count = workers or LocalProcesses().workers
    remaining_s = estimate.remaining(waiting, count)
    if as_json:
        document = {
            **counts(planned, records),
            "output": str(store.folder),
            "logs": {name: facts._asdict() for name, facts in logs.items()},
            "notes": list(planned.notes),
            "baseline": planned.baseline,
            "workers": count,
            "remaining_s": remaining_s,
            "list": [{"id": cell.id, **cell.axes} for cell in planned.cells],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    policies = len({tuple(cell.policy.values()) for cell in planned.cells})
    say(
        f"{campaign.name}: {counted(len(planned.cells), 'cell')}, {policies:,} "
        f"{'policy' if policies == 1 else 'policies'}"
    )
    print_uncut(cells_table(planned))
    print_whole(logs_table(logs))
    for note in planned.notes:
        say(note)
    if not waiting:
        say(f"all of them have been run, into {store.folder}")
        return
    say(
        f"{counted(len(waiting), 'cell')} to run, {len(planned.cells) - len(waiting):,} done; "
        f"roughly {told(remaining_s)} on {count} worker{'' if count == 1 else 's'}"
    )


def _check_packages() -> None:
    """Refuse at once what could only be refused after all simulations otherwise."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ForetimeError(f"this needs {', '.join(missing)}: pip install 'foretime[campaign]'")


def _store(planned: Plan, output: Path | None) -> CampaignStore:
    folder = planned.campaign.output if output is None else output
    check_no_file(_output_told(planned, output), folder)
    return CampaignStore(folder)


def _writable_store(planned: Plan, output: Path | None) -> CampaignStore:
    store = _store(planned, output)
    check_folder(_output_told(planned, output), store.folder)
    return store


def _output_told(planned: Plan, output: Path | None) -> str:
    return f"{planned.campaign.path}: output" if output is None else "--output"


def _tell_idle(waited_s: float) -> None:
    so_far = f" (for {told(waited_s)} so far)" if waited_s >= 1 else ""
    say(f"Dask has no workers: the cells wait until one connects{so_far}.", err=True)
