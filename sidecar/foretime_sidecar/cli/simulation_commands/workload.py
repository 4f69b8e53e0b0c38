"""``foretime workload``: look at job logs, convert them, generate one."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, repeated_numbers, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.description import describe
from foretime_sim.models.log_model import Arrivals, GapFit, LogModel, Runtimes
from foretime_sim.models.log_model import split_wide as split_wide_jobs
from foretime_sim.models.workload_models import WorkloadModel
from foretime_sim.workloads.job_log import JobLog, count_jobs, log_of_workload
from foretime_sim.workloads.site_clock import site_clock
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.frame.option_groups import OptionGroup, with_option_groups
from foretime_sidecar.cli.frame.output_files import check_outputs, check_swf_name
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.workload_options import (
    ColumnsOption,
    EstimatesOption,
    FormatOption,
    JobsOption,
    LenientOption,
    LoadOption,
    LogArgument,
    LogsArgument,
    LongestEstimateOption,
    MissingRequestOption,
    ProcessorsOption,
    TimeZoneOption,
    WorkloadOptions,
)
from foretime_sidecar.cli.options.workload_source import WorkloadSource, parse_missing_request
from foretime_sidecar.cli.reports import workload_tables
from foretime_sidecar.cli.reports.whole_tables import print_side_by_side, print_whole

app = typer.Typer(
    help="Look at job logs, convert them to SWF, or generate one.\n\n"
    "Example: foretime workload describe log.swf.gz",
    no_args_is_help=True,
)


@dataclass(frozen=True)
class LogReadingOptions(OptionGroup):
    """How a log is read."""

    panel: ClassVar[str] = "Options"

    lenient: LenientOption = False
    log_format: FormatOption = None
    columns: ColumnsOption = None
    time_zone: TimeZoneOption = None

    def read(self, log: Path) -> JobLog:
        """Read a log."""
        return read_log(
            log,
            lenient=self.lenient,
            format=self.log_format,
            columns=self.columns,
            time_zone=self.time_zone,
        )


@dataclass(frozen=True)
class LikenessOptions(OptionGroup):
    """How what is generated is like a log."""

    panel: ClassVar[str] = "Options"

    arrivals: Annotated[
        Arrivals | None,
        typer.Option(
            help="With --like: independent times between submissions, as if not given, or "
            "modulated by the log's hours of the week."
        ),
    ] = None
    fit: Annotated[
        GapFit | None,
        typer.Option(
            help="With --like: how the Weibull distribution of these times is found; by moments "
            "if not given (docs/workloads.md)."
        ),
    ] = None
    runtimes: Annotated[
        Runtimes | None,
        typer.Option(
            help="With --like: runtimes that the log has, as if not given, or drawn within bins."
        ),
    ] = None

    def refuse(self) -> None:
        """Refuse what is given, as there is no log to be like."""
        for name, given in dataclasses.asdict(self).items():
            if given is not None:
                raise InputError(f"--{name} {given}: this is for --like; leave it out")


@app.command("describe")
@with_option_groups
def describe_command(
    logs: LogsArgument,
    *,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw a row of panels for each log (PNG or SVG, by the name's ending): requested "
            "times and runtimes, time between submissions, hours of the week, processors."
        ),
    ] = None,
    processors: ProcessorsOption = None,
    keep_overruns: Annotated[
        bool, typer.Option(help="Keep runtimes beyond the requested time as they are.")
    ] = False,
    missing_request: MissingRequestOption = "drop",
    occupied: Annotated[
        Literal["requested", "allocated"], typer.Option(help="Which processors a job occupies.")
    ] = "requested",
    reading: LogReadingOptions,
    as_json: JsonOption = False,
) -> None:
    """Show what logs hold once the filters are through with them, side by side.

    Example: [bold]foretime workload describe KTH-SP2-1996-2.1-cln.swf.gz --plot kth.png[/bold]
    """
    check_outputs({"--plot": plot}, {f"the log {log.name}": log for log in logs})
    if processors is not None and len(logs) > 1:
        raise InputError(f"--processors {processors}: give one log, not {len(logs)}")
    filters = Filters(
        overruns="keep" if keep_overruns else "cut",
        missing_request=parse_missing_request(missing_request),
        occupied=occupied,
    )
    workloads, clocks, found = [], [], []
    for log in logs:
        job_log = reading.read(log)
        workload, report = workload_of_log(job_log, processors=processors, filters=filters)
        workloads.append(workload)
        clocks.append(site_clock(job_log.time_zone))
        described = describe(workload, clocks[-1])
        found.append(workload_tables.DescribedLog(job_log, report, described))
    if plot is not None:
        from foretime_sim.models.workload_plots import plot_workloads
        from foretime_sim.scores.plots import save  # matplotlib is slow to load

        save(plot_workloads(workloads, clocks), plot)
    if as_json:
        documents = [workload_tables.as_json(of_log) for of_log in found]
        typer.echo(json.dumps({"logs": documents}, indent=2))
        return
    print_side_by_side(workload_tables.facts, found)
    for of_log in found:
        print_whole(workload_tables.distributions(of_log.description))
        say(of_log.report.text)


@app.command("convert")
@with_option_groups
def convert_command(
    log: LogArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT.swf.gz", help="SWF file to write.")],
    *,
    processors: ProcessorsOption = None,
    reading: LogReadingOptions,
) -> None:
    """Write a log of any kind in the Standard Workload Format, unfiltered.

    Example: [bold]foretime workload convert jobs.sacct.txt.xz jobs.swf.gz --processors 512[/bold]
    """
    check_swf_name(out)
    job_log = reading.read(log)
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
    for note in (*job_log.notes, *repeated_numbers(job_log)):
        say(f"{job_log.name}: {note}", err=True)
    say(f"{count_jobs(len(job_log))} written to {out}")


@app.command("generate")
@with_option_groups
def generate_command(
    out: Annotated[Path, typer.Option("--output", "-o", help="SWF file to write.")],
    *,
    model: Annotated[
        WorkloadModel | None, typer.Argument(metavar="[MODEL]", help="The workload model.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="In place of a model: a job log to be like."),
    ] = None,
    jobs: JobsOption = None,
    seed: Annotated[int, typer.Option(help="Seed; the same seed gives the same workload.")] = 1,
    processors: Annotated[
        int | None, typer.Option(help="Size of the machine; the model's or the log's own.")
    ] = None,
    load: LoadOption = None,
    shrink: Annotated[
        float, typer.Option(help="Multiply the times between submissions by this.")
    ] = 1.0,
    split_wide: Annotated[
        int | None,
        typer.Option(metavar="N", help="Split jobs of more processors; the area stays."),
    ] = None,
    by: LikenessOptions,
    estimates: EstimatesOption = None,
    longest_estimate: LongestEstimateOption = None,
    missing_request: MissingRequestOption = "drop",
    reading: LogReadingOptions,
) -> None:
    """Generate a workload by a model, or like a log.

    Example: [bold]foretime workload generate --like KTH-SP2-1996-2.1-cln.swf.gz -o made.swf[/bold]
    """
    check_swf_name(out)
    check_outputs({"--output": out}, {"the log": like})
    options = WorkloadOptions(
        log=like,
        generate=model,
        jobs=jobs,
        load=load,
        processors=processors,
        missing_request=missing_request,
        keep_overruns=True,
        estimates=estimates,
        longest_estimate=longest_estimate,
        **dataclasses.asdict(reading),
    )
    source = WorkloadSource(options, seed)
    if (like is None) == (model is None):
        raise InputError("give a MODEL, or --like LOG, and not both")
    if like is None:
        by.refuse()
        workload = _shrunk(source.read()[0], shrink)
    else:
        workload = _like(like, source, by, shrink)
    if split_wide is not None:
        workload = split_wide_jobs(workload, split_wide)
    comments = [f"Note: {note}" for note in workload.notes]
    write_swf(log_of_workload(workload, comments=comments), out)
    say(f"{count_jobs(len(workload))} written to {out} ({'; '.join(workload.notes)})")


def _shrunk(workload: Workload, factor: float) -> Workload:
    """Multiply the times between submissions, and note it."""
    if factor == 1:
        return workload
    note = f"shrinking factor {factor:g}"
    shrunk = workload.with_interarrival_factor(factor)
    return dataclasses.replace(shrunk, notes=(*workload.notes, note))


def _like(log: Path, source: WorkloadSource, by: LikenessOptions, shrink: float) -> Workload:
    """Generate a workload like a log."""
    asked = source.options
    if asked.load is not None:
        raise InputError(
            f"--load {asked.load:g}: this is for models; a workload like a log has its load: "
            "multiply it with --shrink"
        )
    real, filtered = source.read_log(log)
    say(filtered, err=True)  # a smaller machine's model knows no wider jobs
    made = LogModel.of(real, fit=by.fit or "moments").generate(
        len(real) if asked.jobs is None else asked.jobs,
        seed=source.seed,
        arrivals=by.arrivals or "independent",
        shrink=shrink,
        runtimes=by.runtimes or "exact",
    )
    return source.with_estimates(made)
