"""``foretime replay``: what Foretime would have done to a log."""

from __future__ import annotations

import csv
import datetime
import enum
import json
import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from foretime_estimators.accuracy import AccuracySettings
from foretime_estimators.errors import InputError
from foretime_sim import lublin2003
from foretime_sim.comparison import Comparison, compare
from foretime_sim.filters import Filters, workload_of_log
from foretime_sim.job_classes import CLASS_METRICS
from foretime_sim.job_log import log_of_workload
from foretime_sim.log_files import read_log
from foretime_sim.machine_file import read_machine
from foretime_sim.metrics import ScoredSpan, ScoreSettings, scored_span
from foretime_sim.mock_slurm import Mechanism
from foretime_sim.policy import Backfill, Correction, EventOrder, Order, Policy, Roles
from foretime_sim.replay_result import ReplayResult
from foretime_sim.resource_requests import with_machine
from foretime_sim.swf import write_swf
from foretime_sim.workload import Workload
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from foretime_sidecar.cli.workload import (
    ColumnsOption,
    FormatOption,
    LenientOption,
    ProcessorsOption,
    TimeZoneOption,
    parse_missing_request,
)
from foretime_sidecar.durations import format_duration, parse_duration
from foretime_sidecar.replay import (
    TABLE_SCHEMES,
    AdjustedStatistics,
    Replay,
    mechanism_policy,
    oracle_share,
)
from foretime_sidecar.replay_export import CSV_COLUMNS, metric_rows, to_json
from foretime_sidecar.report import WIDTH, render
from foretime_sidecar.settings import AccuracySection, read_settings

Rule = Literal["production", "tang2010"]


class Learn(enum.Enum):
    """When finished jobs are learned."""

    CONTINUOUSLY = "continuously"
    HISTORY_ONLY = "history-only"


def replay(
    log: Annotated[
        Path | None,
        typer.Argument(metavar="[LOG]", help="SWF, sacct or CSV file; plain, gz or xz."),
    ] = None,
    generate: Annotated[
        Literal["lublin2003"] | None,
        typer.Option(help="Generate a workload by this model in place of LOG."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="How many jobs to generate; 5,000 if not given.")
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load of what is generated; 0.7 if not given.")
    ] = None,
    processors: ProcessorsOption = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Run on the nodes and slurm_partitions that this TOML file describes, not on a "
            "flat pool; jobs that could never run there are left out.",
        ),
    ] = None,
    log_format: FormatOption = None,
    columns: ColumnsOption = None,
    time_zone: TimeZoneOption = None,
    lenient: LenientOption = False,
    missing_request: Annotated[
        str,
        typer.Option(
            metavar="drop|runtime|TIME",
            help="What jobs without requested time get: dropped, their runtime, or a limit.",
        ),
    ] = "drop",
    keep_overruns: Annotated[
        bool,
        typer.Option(help="Keep runtimes beyond the requested time; jobs are killed at it."),
    ] = False,
    head: Annotated[int | None, typer.Option(help="Replay the first jobs only.")] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="requested|user|project|combined|actual|blend:a",
            help="Whose history decides t_sched; actual and blend:a know the true runtimes. "
            "combined if neither this nor --settings says.",
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take the accuracy rule from the daemon's settings."),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="How history becomes A: as a site runs it (production, the default), or as in "
            "the paper."
        ),
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(help="Percentile of past R, 0 to 1; the rule's if not given.")
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(help="Finished submissions that a history needs; the rule's if not given."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Another log: its jobs that ended before this one begins are learned."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="DATE|DAYS", help="Learn what was submitted before, replay the rest."),
    ] = None,
    learn: Annotated[
        Learn, typer.Option(help="Learn jobs as they finish, or the history alone (the paper).")
    ] = Learn.CONTINUOUSLY,
    order: Annotated[Order, typer.Option(help="Queue order.")] = Order.FCFS,
    backfill: Annotated[Backfill, typer.Option(help="Backfilling.")] = Backfill.EASY,
    mechanism: Annotated[
        Mechanism,
        typer.Option(help="How t_sched reaches the scheduler; sets correction and roles."),
    ] = Mechanism.SLURM_SOFT_LIMIT,
    correction: Annotated[
        Correction | None, typer.Option(help="What a job that outlives t_sched is planned with.")
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(metavar="QBD", help="Where t_sched is used: queue, backfill, drain (111)."),
    ] = None,
    guard: Annotated[
        str,
        typer.Option(
            metavar="TIME|off",
            help="Plan on t_req while the head job waits longer than this over its t_req plan.",
        ),
    ] = "6:00:00",
    event_order: Annotated[
        EventOrder, typer.Option(help="Event order; per-event is what other simulators do.")
    ] = EventOrder.PER_TIMESTEP,
    publish_interval: Annotated[
        str, typer.Option(metavar="TIME", help="How often a table may be written.")
    ] = "1:00:00",
    warm_up: Annotated[
        str, typer.Option(metavar="TIME", help="Jobs of this first time are not scored.")
    ] = "7-00:00:00",
    repeat: Annotated[
        int, typer.Option(help="Runs with jittered submissions and shuffled ties; 1: as logged.")
    ] = 1,
    workers: Annotated[int, typer.Option(help="Processes for the repeats.")] = 1,
    tau: Annotated[int, typer.Option(min=1, help="Bound of the bounded slowdown, seconds.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the generated workload and the repeats.")] = 1,
    lua: Annotated[
        Literal["5.1", "5.2", "5.3", "5.4", "luajit"],
        typer.Option(help="Which Lua runs the hook; Debian's Slurm has 5.1."),
    ] = "5.1",
    state_dir: Annotated[
        Path | None, typer.Option(help="Keep the sidecar's store and table here, in new folders.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="Show this metric by job size and length, too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    csv_out: Annotated[
        Path | None, typer.Option("--csv", help="Write every metric as CSV.")
    ] = None,
    swf_out: Annotated[
        Path | None, typer.Option(help="Write the adjusted schedule as SWF (single repeat).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the waits without and with Foretime (PNG or SVG).")
    ] = None,
) -> None:
    """Replay a log without and with Foretime: the real hook, sidecar and engine.

    Example: [bold]foretime replay KTH-SP2-1996-2.1-cln.swf.gz --repeat 5[/bold]
    """
    began = time.perf_counter()
    accuracy = _accuracy(settings, rule, percentile, threshold)
    scheme = accuracy.scheme if scheme is None else scheme
    if scheme not in TABLE_SCHEMES:
        oracle_share(scheme)
    if order is Order.PRIORITY:
        raise InputError("--order priority: a log has no priorities; take another order")
    if classes is not None and classes not in CLASS_METRICS:
        raise InputError(f"--classes {classes}: take one of {', '.join(CLASS_METRICS)}")
    _check_outputs(
        {"--csv": csv_out, "--swf-out": swf_out, "--plot": plot},
        {"the log": log, "--history": history, "--settings": settings, "--machine": machine},
    )
    if swf_out is not None and repeat != 1:
        raise InputError(f"--swf-out writes one schedule, not {repeat}: give --repeat 1")
    described = None if machine is None else read_machine(machine)
    if described is not None:
        if processors is not None:
            raise InputError("--machine says how large the machine is: leave --processors out")
        processors = described.cpus
    filters = Filters(
        overruns="keep" if keep_overruns else "cut",
        missing_request=parse_missing_request(missing_request),
    )

    def workload_of(path: Path) -> tuple[Workload, str]:
        job_log = read_log(
            path, lenient=lenient, format=log_format, columns=columns, time_zone=time_zone
        )
        workload, report = workload_of_log(job_log, processors=processors, filters=filters)
        return workload, report.text

    if (log is None) == (generate is None):
        raise InputError("give a log, or --generate lublin2003, and not both")
    if jobs is not None and generate is None:
        raise InputError("--jobs is for --generate; to replay a log's first jobs give --head")
    if load is not None and generate is None:
        raise InputError("--load is for --generate; a log has the load that it has")
    if log is None:
        workload = lublin2003.generate(
            5_000 if jobs is None else jobs,
            processors=256 if processors is None else processors,
            seed=seed,
            load=0.7 if load is None else load,
        )
        notes = workload.notes
    else:
        workload, text = workload_of(log)
        notes = (text,)
    past: Workload | None = None
    if split is not None:
        if history is not None:
            raise InputError("give --history or --split, not both")
        past, workload = workload.split(_split_time(split, workload))
        notes = (
            *notes,
            f"{len(past):,} jobs before {_named(split)} are history, {len(workload):,} run.",
        )
    elif history is not None:
        past, text = workload_of(history)
        past = _placed_before(past, workload)
        notes = (*notes, f"history: {text}")
    if learn is Learn.HISTORY_ONLY and past is None:
        raise InputError("--learn history-only needs a history: give --history LOG or --split DATE")
    if described is not None:
        said = len(workload.notes)
        workload = with_machine(workload, described, leave_out=True)
        notes = (*notes, *workload.notes[said:])
    if head is not None:
        if head < 1:
            raise InputError(f"--head {head}: give at least 1 job")
        workload = workload.head(head)

    policy = mechanism_policy(
        mechanism,
        Policy(
            order=order,
            backfill=backfill,
            guard_s=None if guard == "off" else parse_duration(guard, "--guard", zero=True),
            event_order=event_order,
        ),
    )
    if correction is not None:
        policy = replace(policy, correction=correction)
    if roles is not None:
        policy = replace(policy, roles=Roles.parse(roles))
    task = Replay(
        policy=policy,
        scheme=scheme,
        mechanism=mechanism,
        accuracy=accuracy,
        learn=learn is Learn.CONTINUOUSLY,
        history=past,
        publish_interval_s=parse_duration(publish_interval, "--publish-interval"),
        lua_version=lua,
        state_dir=state_dir,
    )
    options = {
        **({} if machine is None else {"machine": str(machine)}),
        "order": str(order),
        "backfill": str(backfill),
        "scheme": scheme,
        "rule": str(settings) if settings is not None else rule or "production",
        "mechanism": mechanism.value,
        "correction": str(policy.correction),
        "roles": str(policy.roles),
        "guard": "off" if policy.guard_s is None else format_duration(policy.guard_s),
        "learn": learn.value,
        "event order": str(event_order),
        "tables every": publish_interval,
        "warm-up": warm_up,
    }
    span = scored_span(workload, warm_up_s=parse_duration(warm_up, "--warm-up", zero=True))
    comparison = _compared(workload, task, repeat, workers, seed, span, ScoreSettings(tau_s=tau))
    statistics = comparison.repeats[0].statistics
    if not isinstance(
        statistics, AdjustedStatistics
    ):  # for the type checker: Replay gives no other
        raise TypeError(statistics)
    result = ReplayResult(
        workload_name=workload.name,
        machine_processors=workload.machine_processors,
        simulated_jobs=len(workload),
        workload_notes=notes,
        options=options,
        comparison=comparison,
        hook=statistics.hook,
        guard_activations=statistics.guard_activations,
        wall_clock_s=time.perf_counter() - began,
        peak_memory_bytes=_peak_memory_bytes(),
    )
    if csv_out is not None:
        _write_csv(result, csv_out)
    if swf_out is not None:
        chosen = ", ".join(f"{name} {value}" for name, value in options.items())
        comments = [f"Note: schedule simulated by foretime replay: {chosen}"]
        write_swf(log_of_workload(workload, wait=statistics.wait, comments=comments), swf_out)
    if plot is not None:
        from foretime_sim.plots import plot_waits, save  # matplotlib is slow to load

        save(plot_waits(comparison, workload.name), plot)
    if as_json:
        typer.echo(json.dumps(to_json(result), indent=2))
    else:
        console = Console()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console = Console(width=WIDTH)
        console.print(render(result, classes_of=classes, width=console.width))


def _check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse at once what could only be refused after the whole replay otherwise."""
    taken = {path.resolve(): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{option} {path}: this is {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = option
        if path.is_dir():
            raise InputError(f"{option} {path}: is a folder; name a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            missing = "" if path.parent.exists() else "; there is no such folder"
            raise InputError(f"{option} {path}: can't be written{missing}")
        if option == "--plot":
            from foretime_sim.plots import FORMATS  # matplotlib is slow to load

            if path.suffix.lower() not in FORMATS:
                raise InputError(f"{option} {path}: end it in {' or '.join(sorted(FORMATS))}")


def _peak_memory_bytes() -> int:
    """Largest resident size of this process and of any that ran a repeat."""
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in processes) * 1024


def _write_csv(result: ReplayResult, path: Path) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, CSV_COLUMNS)
            writer.writeheader()
            writer.writerows(metric_rows(result))
    except OSError as error:
        raise InputError(f"--csv {path}: can't write it: {error.strerror}") from error


def _accuracy(
    settings: Path | None, rule: Rule | None, percentile: float | None, threshold: int | None
) -> AccuracySection:
    """Give the accuracy rule, with what was changed on the command line."""
    if settings is not None:
        if rule is not None:
            raise InputError("give --rule or --settings, not both: each is a whole rule")
        section = read_settings(settings).accuracy
    elif rule == "tang2010":
        section = AccuracySection.of_model(AccuracySettings.tang2010())
    else:
        section = AccuracySection()
    model = section.to_model()
    if percentile is not None:
        if not 0 < percentile <= 1:
            raise InputError(f"--percentile {percentile:g}: give a share above 0 and at most 1")
        model = replace(model, percentile=percentile)
    if threshold is not None:
        if threshold < 1:
            raise InputError(f"--threshold {threshold}: give at least 1")
        model = replace(model, threshold=threshold)
    return AccuracySection.of_model(model).model_copy(update={"scheme": section.scheme})


def _named(split: str) -> str:
    """Say a split as a date or as a day of the log."""
    return split if "-" in split else f"day {split}"


def _split_time(text: str, workload: Workload) -> int:
    """Read ``--split``: a date, or days since the log's start; seconds since its start."""
    try:
        return round(float(text) * 86_400)
    except (ValueError, OverflowError):
        pass
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"--split {text!r}: give a date such as 1997-01-31, or days since the log's start"
        ) from error
    return workload.seconds_at(date)


def _placed_before(history: Workload, workload: Workload) -> Workload:
    """Let a history end where the workload begins, if one of them does not say when it was."""
    if history.unix_start_time is not None and workload.unix_start_time is not None:
        return history
    waits = history.logged_wait
    wait = 0 if waits is None else waits.filled(0)
    end_time = int((history.submit_time + wait + history.actual_runtime).max())
    return replace(
        history,
        unix_start_time=workload.unix_start_time,
        submit_time=history.submit_time + int(workload.submit_time[0]) - end_time,
    )


@contextmanager
def _bar(total: int, unit: str) -> Iterator[tuple[Progress, TaskID]]:
    columns = (
        TextColumn("replaying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield progress, progress.add_task("replay", total=total)


def _compared(
    workload: Workload,
    task: Replay,
    repeat: int,
    workers: int,
    seed: int,
    span: ScoredSpan,
    scoring: ScoreSettings,
) -> Comparison:
    """Run the repeats under a progress bar: of jobs in this process, of repeats in several."""
    in_process = workers == 1
    total = repeat * len(workload) if in_process else repeat
    with _bar(total, "jobs" if in_process else "repeats") as (progress, bar):
        done = 0

        def jobs_done(count: int) -> None:
            progress.update(bar, completed=done * len(workload) + count)

        def repeats_done(count: int, _: int) -> None:
            nonlocal done
            done = count
            progress.update(bar, completed=done * len(workload) if in_process else done)

        return compare(
            workload,
            replace(task, progress=jobs_done) if in_process else task,
            repeats=repeat,
            seed=seed,
            span=span,
            settings=scoring,
            workers=workers,
            progress=repeats_done,
        )
