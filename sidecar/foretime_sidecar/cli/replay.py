"""``foretime replay``: what Foretime would have done to a log."""

from __future__ import annotations

import datetime
import enum
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from foretime_estimators.accuracy.accuracy import AccuracySettings
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.finished_history import placed_before
from foretime_sim.logs.swf import write_swf
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.advance_reservations import check_reservations, read_reservations
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Compression, parse_backfill, with_settings
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.scores.comparison import Comparison, compare
from foretime_sim.scores.metrics import ScoredSpan, ScoreSettings, scored_span
from foretime_sim.scores.replay_result import ReplayResult
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.output_files import (
    CsvOption,
    JsonOption,
    check_folder,
    check_outputs,
    write_csv,
)
from foretime_sidecar.cli.policy_options import (
    BackfillOption,
    SwitchedOrderOption,
    switched_order_of_log,
)
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sidecar.cli.run_options import (
    CheckOption,
    ClassesOption,
    CompressionOption,
    CorrectionStepsOption,
    DepthOption,
    EventOrderOption,
    HeadOption,
    RepeatOption,
    ReservationsOption,
    RolesOption,
    SeedOption,
    TauOption,
    WarmUpOption,
    WorkersOption,
    check_classes,
    check_head,
    head_note,
    parse_guard,
    peak_memory_bytes,
)
from foretime_sidecar.cli.slack_options import (
    AverageWaitOption,
    InsertionOrderOption,
    SlackFactorOption,
    SlackWeightsOption,
    slack_settings,
)
from foretime_sidecar.cli.whole_tables import report_console
from foretime_sidecar.cli.workload_source import (
    ColumnsOption,
    EstimatesOption,
    FormatOption,
    GenerateOption,
    JobsOption,
    KeepOverrunsOption,
    LenientOption,
    LoadOption,
    LongestEstimateOption,
    MachineOption,
    MissingRequestOption,
    OptionalLogArgument,
    ProcessorsOption,
    TimeZoneOption,
    WorkloadSource,
)
from foretime_sidecar.replays.replay import TABLE_SCHEMES, Replay, oracle_share
from foretime_sidecar.replays.replay_export import CSV_COLUMNS, metric_rows, to_json
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.replays.report import WIDTH, render
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import AccuracySection
from foretime_sidecar.settings.settings_file import read_settings
from foretime_sidecar.wording.durations import format_duration, parse_duration

_GUARD_S = 6 * 3600

Rule = Literal["production", "tang2010"]


class Learn(enum.Enum):
    """When finished jobs are learned."""

    CONTINUOUSLY = "continuously"
    HISTORY_ONLY = "history-only"


def replay(
    log: OptionalLogArgument = None,
    generate: GenerateOption = None,
    jobs: JobsOption = None,
    load: LoadOption = None,
    processors: ProcessorsOption = None,
    machine: MachineOption = None,
    log_format: FormatOption = None,
    columns: ColumnsOption = None,
    time_zone: TimeZoneOption = None,
    lenient: LenientOption = False,
    missing_request: MissingRequestOption = "drop",
    estimates: EstimatesOption = None,
    longest_estimate: LongestEstimateOption = None,
    keep_overruns: KeepOverrunsOption = False,
    head: HeadOption = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="requested|user|project|combined|learned|actual|blend:a",
            help="Whose history decides t_sched, or for learned an estimator; actual and blend:a "
            "know the true runtimes. combined if neither this nor --settings says.",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The estimator of the scheme learned, as in docs/estimators.md; "
            f"{LearnedSettings().estimator} if neither this nor --settings says.",
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take the accuracy rule, and what is said of learned, from the daemon's settings.",
        ),
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
    order: SwitchedOrderOption = "fcfs",
    backfill: BackfillOption = "easy",
    depth: DepthOption = 1,
    compression: CompressionOption = Compression.RESERVATION_ORDER,
    slack_factor: SlackFactorOption = None,
    insertion_order: InsertionOrderOption = None,
    average_wait: AverageWaitOption = None,
    slack_weights: SlackWeightsOption = None,
    queue_order: Annotated[
        Literal["fcfs", "sjf", "ljf", "xf", "wfp", "dynp"] | None,
        typer.Option(
            help="Have the sidecar keep the queue in this order through site factors (Slurm), "
            "as queue_order of --settings says; without Foretime it stays in --order."
        ),
    ] = None,
    look_interval: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="With --queue-order: how often the queue is looked at; 0: always."
        ),
    ] = "1:00",
    reservations: ReservationsOption = None,
    mechanism: Annotated[
        Mechanism,
        typer.Option(help="How t_sched reaches the scheduler; sets correction and roles."),
    ] = Mechanism.SLURM_SOFT_LIMIT,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="ESTIMATOR",
            help="Score an estimator in the place of PBS's hook, too: recent-maximum is CESNET's.",
        ),
    ] = None,
    correction: Annotated[
        Correction | None, typer.Option(help="What a job that outlives t_sched is planned with.")
    ] = None,
    correction_steps: CorrectionStepsOption = None,
    roles: RolesOption = None,
    guard: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|off",
            help="Plan on t_req while the head job waits longer than this over its t_req plan; "
            "6:00:00 if not given, off where more jobs than the head are planned, or none.",
        ),
    ] = None,
    event_order: EventOrderOption = EventOrder.PER_TIMESTEP,
    publish_interval: Annotated[
        str, typer.Option(metavar="TIME", help="How often a table may be written.")
    ] = "1:00:00",
    warm_up: WarmUpOption = "7-00:00:00",
    repeat: RepeatOption = 1,
    workers: WorkersOption = 1,
    tau: TauOption = 10,
    seed: SeedOption = 1,
    lua: Annotated[
        Literal["5.1", "5.2", "5.3", "5.4", "luajit"],
        typer.Option(help="Which Lua runs Slurm's hook; Debian's has 5.1."),
    ] = "5.1",
    state_dir: Annotated[
        Path | None, typer.Option(help="Keep the sidecar's store and table here, in new folders.")
    ] = None,
    check: CheckOption = False,
    classes: ClassesOption = None,
    as_json: JsonOption = False,
    csv_out: CsvOption = None,
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
    if beside is not None and queue_order is not None:
        raise InputError("--beside is of PBS, --queue-order of Slurm: give one of them")
    learned = _learned(settings, scheme, estimator)
    check_classes(classes)
    check_head(head)
    if beside is not None:
        if mechanism is not Mechanism.PBS_SOFT_WALLTIME:
            raise InputError(
                f"--beside {beside}: estimators run in the place of PBS's hook; give "
                f"--mechanism {Mechanism.PBS_SOFT_WALLTIME.value}, too"
            )
        parse_estimator(beside)
    if state_dir is not None:
        check_folder("--state-dir", state_dir)
    check_outputs(
        {"--csv": csv_out, "--swf-out": swf_out, "--plot": plot},
        {
            "the log": log,
            "--history": history,
            "--settings": settings,
            "--reservations": reservations,
            "--machine": machine,
        },
    )
    if swf_out is not None and repeat != 1:
        raise InputError(f"--swf-out writes one schedule, not {repeat}: give --repeat 1")
    source = WorkloadSource(
        log=log,
        generate=generate,
        jobs=jobs,
        load=load,
        seed=seed,
        processors=processors,
        log_format=log_format,
        columns=columns,
        time_zone=time_zone,
        lenient=lenient,
        missing_request=missing_request,
        keep_overruns=keep_overruns,
        machine=machine,
        estimates=estimates,
        longest_estimate=longest_estimate,
        history=history,
    )
    workload, notes = source.read()
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
        past, text = source.read_log(history)
        past = source.with_estimates(past)
        past = placed_before(past, workload)
        notes = (*notes, f"history: {text}")
    if learn is Learn.HISTORY_ONLY and past is None:
        raise InputError("--learn history-only needs a history: give --history LOG or --split DATE")
    if head is not None:
        notes = (*notes, head_note(head, len(workload)))
        workload = workload.head(head)

    unguarded = with_settings(
        parse_backfill(backfill),
        depth=depth,
        compression=compression,
        settings=slack_settings(
            [] if slack_factor is None else [slack_factor],
            [] if insertion_order is None else [insertion_order],
            average_wait,
            slack_weights,
        )[0],
    )
    guard_s = _guard_s(guard, unguarded)
    family = unguarded.guarded(None if guard_s is None else Guard(guard_s))
    unmechanised = Policy(backfill=family, event_order=event_order)
    policy = mechanism_policy(mechanism, unmechanised.in_order(switched_order_of_log(order)))
    if correction is not None:
        policy = replace(policy, correction=correction)
    if correction_steps is not None:
        policy = replace(policy, correction_steps=correction_steps)
    if roles is not None:
        policy = replace(policy, roles=Roles.parse(roles))
    task = Replay(
        policy=policy,
        scheme=scheme,
        mechanism=mechanism,
        accuracy=accuracy,
        learned=learned,
        learn=learn is Learn.CONTINUOUSLY,
        history=past,
        publish_interval_s=parse_duration(publish_interval, "--publish-interval"),
        lua_version=lua,
        state_dir=state_dir,
        reservations=() if reservations is None else read_reservations(reservations),
        queue_order=_queue_order(settings, queue_order),
        look_interval_s=parse_duration(look_interval, "--look-interval", zero=True),
        check=check,
    )
    check_reservations(task.reservations, workload.machine_processors)
    options = {
        **({} if machine is None else {"machine": str(machine)}),
        "order": policy.order_name,
        "backfill": str(policy.backfill),
        **{
            name: str(value)
            for name, value in policy.backfill.shown.items()
            if (name, value) != ("depth", 1)
        },
        **({"reservations": str(reservations)} if reservations is not None else {}),
        **({} if queue_order is None else {"queue order": queue_order, "looks": look_interval}),
        "scheme": scheme,
        **({"estimator": learned.estimator} if scheme == "learned" else {}),
        "rule": str(settings) if settings is not None else rule or "production",
        "mechanism": mechanism.value,
        "correction": str(policy.correction),
        **({} if correction_steps is None else {"correction steps": str(correction_steps)}),
        "roles": str(policy.roles),
        "guard": "off" if guard_s is None else format_duration(guard_s),
        "learn": learn.value,
        "event order": str(event_order),
        "tables every": publish_interval,
        "warm-up": warm_up,
    }
    span = scored_span(workload, warm_up_s=parse_duration(warm_up, "--warm-up", zero=True))
    scoring = ScoreSettings(tau_s=tau)
    comparison = _compared(workload, task, repeat, workers, seed, span, scoring)
    others = {}
    if beside is not None:
        rival = replace(task, estimator=beside)
        others[beside] = _compared(workload, rival, repeat, workers, seed, span, scoring)
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
        ordering=statistics.ordering,
        wall_clock_s=time.perf_counter() - began,
        peak_memory_bytes=peak_memory_bytes(),
        promises=(statistics.baseline_promises, statistics.promises),
        beside=others,
    )
    if csv_out is not None:
        write_csv(csv_out, CSV_COLUMNS, metric_rows(result))
    if swf_out is not None:
        chosen = ", ".join(f"{name} {value}" for name, value in options.items())
        comments = [f"Note: schedule simulated by foretime replay: {chosen}"]
        write_swf(log_of_workload(workload, wait=statistics.wait, comments=comments), swf_out)
    if plot is not None:
        from foretime_sim.scores.plots import plot_waits, save  # matplotlib is slow to load

        save(plot_waits(comparison, workload.name, beside=others), plot)
    if as_json:
        typer.echo(json.dumps(to_json(result), indent=2))
    else:
        console = report_console(WIDTH)
        console.print(render(result, classes_of=classes, width=console.width))


def _guard_s(given: str | None, family: Backfilling) -> int | None:
    """Bound of the starvation guard; by default where there is one."""
    if given is None:
        return _GUARD_S if family.head_only else None
    return parse_guard(given)


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


def _learned(settings: Path | None, scheme: str, estimator: str | None) -> LearnedSettings:
    """Give what is said of the scheme ``learned``."""
    learned = LearnedSettings() if settings is None else read_settings(settings).learned
    if estimator is None:
        return learned
    if scheme != "learned":
        raise InputError(f"--estimator {estimator}: give --scheme learned, too")
    parse_estimator(estimator)
    return learned.model_copy(update={"estimator": estimator})


def _queue_order(settings: Path | None, order: str | None) -> QueueOrderSettings | None:
    """Give how the sidecar keeps the queue in order; ``None``: it does not."""
    if order is None:
        return None
    section = QueueOrderSettings() if settings is None else read_settings(settings).queue_order
    return QueueOrderSettings.model_validate(section.model_dump() | {"order": order})


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
    with progress_bar("replaying", total, "jobs" if in_process else "repeats") as show:
        done = 0

        def jobs_done(count: int) -> None:
            show(done * len(workload) + count)

        def repeats_done(count: int, _: int) -> None:
            nonlocal done
            done = count
            show(done * len(workload) if in_process else done)

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
