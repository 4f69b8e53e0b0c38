"""``foretime workload``: look at job logs, convert them, generate one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from foretime_estimators.errors import InputError
from foretime_sim.description import QUANTILES, Description, describe
from foretime_sim.filters import FilterReport, Filters, workload_of_log
from foretime_sim.job_log import count_jobs, log_of_workload
from foretime_sim.log_files import read_log
from foretime_sim.swf import write_swf
from foretime_sim.workload_models import WorkloadModel, generate
from rich.console import Console
from rich.table import Table

from foretime_sidecar.cli.output_files import check_swf_name
from foretime_sidecar.cli.workload_source import (
    ColumnsOption,
    FormatOption,
    JobsOption,
    LenientOption,
    LoadOption,
    LogArgument,
    ProcessorsOption,
    TimeZoneOption,
    parse_missing_request,
)
from foretime_sidecar.figures import counted

app = typer.Typer(
    help="Look at job logs, convert them to SWF, or generate one.", no_args_is_help=True
)


@app.command("describe")
def describe_command(
    log: LogArgument,
    processors: ProcessorsOption = None,
    keep_overruns: Annotated[
        bool, typer.Option(help="Keep runtimes beyond the requested time as they are.")
    ] = False,
    missing_request: Annotated[
        str,
        typer.Option(
            metavar="drop|runtime|TIME",
            help="What jobs without requested time get: dropped, their runtime, or a time limit "
            "as for sbatch (12:00:00).",
        ),
    ] = "drop",
    occupied: Annotated[
        Literal["requested", "allocated"], typer.Option(help="Which processors a job occupies.")
    ] = "requested",
    lenient: LenientOption = False,
    log_format: FormatOption = None,
    columns: ColumnsOption = None,
    time_zone: TimeZoneOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a log holds once the filters are through with it.

    Example: [bold]foretime workload describe KTH-SP2-1996-2.1-cln.swf.gz[/bold]
    """
    job_log = read_log(
        log, lenient=lenient, format=log_format, columns=columns, time_zone=time_zone
    )
    filters = Filters(
        overruns="keep" if keep_overruns else "cut",
        missing_request=parse_missing_request(missing_request),
        occupied=occupied,
    )
    workload, report = workload_of_log(job_log, processors=processors, filters=filters)
    description = describe(workload)
    if as_json:
        typer.echo(json.dumps(_as_json(description, report), indent=2))
        return
    console = Console()
    console.print(_facts(description))
    console.print(_distributions(description))
    console.print(report.text, highlight=False, markup=False)


@app.command("convert")
def convert_command(
    log: LogArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT.swf.gz", help="SWF file to write.")],
    processors: ProcessorsOption = None,
    lenient: LenientOption = False,
    log_format: FormatOption = None,
    columns: ColumnsOption = None,
    time_zone: TimeZoneOption = None,
) -> None:
    """Write a log of any kind in the Standard Workload Format, unfiltered.

    Example: [bold]foretime workload convert jobs.sacct.txt.xz jobs.swf.gz --processors 512[/bold]
    """
    check_swf_name(out)
    job_log = read_log(
        log, lenient=lenient, format=log_format, columns=columns, time_zone=time_zone
    )
    if out.resolve() == log.resolve():
        raise InputError(f"{out}: this is the log itself; name another file")
    if processors is not None:
        if job_log.machine_processors not in (None, processors):
            raise InputError(
                f"--processors {processors}: the log's header says {job_log.machine_processors:,}; "
                "leave the option out, and give it when you replay"
            )
        job_log = dataclasses.replace(job_log, machine_processors=processors)
    write_swf(job_log, out)
    for note in job_log.notes:
        typer.echo(f"{job_log.name}: {note}", err=True)
    typer.echo(f"{count_jobs(len(job_log))} written to {out}")


@app.command("generate")
def generate_command(
    model: Annotated[WorkloadModel, typer.Argument(help="The workload model.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="SWF file to write.")],
    jobs: JobsOption = None,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same workload.")] = 1,
    processors: Annotated[
        int | None, typer.Option(help="Size of the machine; 256 (intrepid-like: 40,960 nodes).")
    ] = None,
    load: LoadOption = None,
) -> None:
    """Generate a workload by a model, with requested times and users.

    Example: [bold]foretime workload generate lublin2003 --jobs 10000 -o made.swf.gz[/bold]
    """
    check_swf_name(out)
    workload = generate(
        model, jobs=jobs, processors=processors, seed=seed, load=load, overruns="keep"
    )
    comments = [f"Note: {note}" for note in workload.notes]
    write_swf(log_of_workload(workload, comments=comments), out)
    typer.echo(f"{count_jobs(len(workload))} written to {out} ({workload.notes[0]})")


def _as_json(description: Description, report: FilterReport) -> dict[str, object]:
    """Give description and filter report as one JSON object; quantiles named p10, p50, ..."""
    document = dataclasses.asdict(description)
    for distribution in ("size", "runtime_s", "requested_time_s", "accuracy"):
        values = document[distribution].pop("quantiles")
        document[distribution].update(
            {f"p{round(q * 100)}": value for q, value in zip(QUANTILES, values, strict=True)}
        )
    document["filters"] = {
        "jobs_read": report.jobs_read,
        "jobs_kept": report.jobs_kept,
        "dropped": [{"reason": reason, "jobs": jobs} for reason, jobs in report.dropped],
        "changed": [{"reason": reason, "jobs": jobs} for reason, jobs in report.changed],
        "notes": list(report.notes),
    }
    return document


def _facts(description: Description) -> Table:
    """Lay out what is one number each."""
    table = Table(title=description.name, title_justify="left", show_header=False)

    def count(number: int | None) -> str:
        return "none in the log" if number is None else f"{number:,}"

    load = description.offered_load
    for name, value in (
        ("jobs", f"{description.jobs:,}"),
        ("submitted", f"{description.first_submission} to {description.last_submission}"),
        ("span", f"{description.span_s / 86_400:,.1f} days"),
        ("machine", counted(description.machine_processors, "processor")),
        ("offered load", "-" if load is None else f"{load:.1%}"),
        ("users", count(description.users)),
        ("projects", count(description.projects)),
        ("queues", count(description.queues)),
        ("ran to their limit", f"{description.at_limit:.1%} of jobs"),
    ):
        table.add_row(name, value)
    return table


def _distributions(description: Description) -> Table:
    """Lay out the distributions, a column each."""
    table = Table("")
    columns: list[list[str]] = []
    for heading, values, form in (
        ("processors", description.size, ",.0f"),
        ("runtime, s", description.runtime_s, ",.0f"),
        ("requested, s", description.requested_time_s, ",.0f"),
        ("R = runtime/requested", description.accuracy, ".3f"),
    ):
        table.add_column(heading, justify="right")
        numbers = (values.mean, *values.quantiles, values.maximum)
        columns.append([format(number, form) for number in numbers])
    names = ("mean", *(f"p{round(q * 100)}" for q in QUANTILES), "max")
    for name, *cells in zip(names, *columns, strict=True):
        table.add_row(name, *cells)
    return table
