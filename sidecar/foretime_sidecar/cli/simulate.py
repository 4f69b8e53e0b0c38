"""``foretime simulate``: a log under one or several policies, without the hook."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.advance_reservations import check_reservations, read_reservations
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import (
    Compression,
    Planning,
    Slack,
    has_setting,
    parse_backfill,
    with_settings,
)
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackSettings
from foretime_sim.scores.metrics import ScoreSettings, scored_span
from foretime_sim.scores.policy_comparison import PolicyCase, compare_policies
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.output_files import CsvOption, JsonOption, check_outputs, write_csv
from foretime_sidecar.cli.policy_options import (
    BACKFILLS_HELP,
    SWITCHED_ORDERS_HELP,
    complete_backfill,
    complete_switched_order,
    switched_order_of_log,
)
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sidecar.cli.run_options import (
    CheckOption,
    ClassesOption,
    CorrectionStepsOption,
    EventOrderOption,
    GuardOption,
    HeadOption,
    RepeatOption,
    ReservationsOption,
    RolesOption,
    SchedulingIntervalOption,
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
    InsertionOrdersOption,
    OverrunsOption,
    SlackFactorsOption,
    SlackWeightsOption,
    parse_slack_factor,
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
    ProcessorsPerNodeOption,
    TimeZoneOption,
    WorkloadSource,
)
from foretime_sidecar.replays.simulate_export import (
    CSV_COLUMNS,
    SimulateResult,
    csv_rows,
    describe,
    to_json,
)
from foretime_sidecar.replays.simulate_report import WIDTH, render
from foretime_sidecar.wording.durations import parse_duration

COMPRESSIONS = tuple(compression.value for compression in Compression)


def simulate(
    log: OptionalLogArgument = None,
    generate: GenerateOption = None,
    jobs: JobsOption = None,
    load: LoadOption = None,
    processors: ProcessorsOption = None,
    machine: MachineOption = None,
    processors_per_node: ProcessorsPerNodeOption = None,
    log_format: FormatOption = None,
    columns: ColumnsOption = None,
    time_zone: TimeZoneOption = None,
    lenient: LenientOption = False,
    missing_request: MissingRequestOption = "drop",
    estimates: EstimatesOption = None,
    longest_estimate: LongestEstimateOption = None,
    keep_overruns: KeepOverrunsOption = False,
    head: HeadOption = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORDER",
            autocompletion=complete_switched_order,
            help=f"Queue order, or several, comma-separated; fcfs. {SWITCHED_ORDERS_HELP}.",
        ),
    ] = None,
    backfill: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BACKFILL",
            autocompletion=complete_backfill,
            help=f"Backfilling, or several, comma-separated; easy. {BACKFILLS_HELP}.",
        ),
    ] = None,
    depth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K",
            help="Reservations held at once by easy and easy-sjbf, or several, comma-separated; 1.",
        ),
    ] = None,
    compression: Annotated[
        list[str] | None,
        typer.Option(
            metavar="|".join(COMPRESSIONS),
            help="How conservative backfilling moves reservations forward, or several, "
            "comma-separated; reservation-order.",
        ),
    ] = None,
    slack_factor: SlackFactorsOption = None,
    insertion_order: InsertionOrdersOption = None,
    average_wait: AverageWaitOption = None,
    slack_weights: SlackWeightsOption = None,
    overruns: OverrunsOption = None,
    reservations: ReservationsOption = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="|".join(entry.spelling for entry in ESTIMATORS),
            help="What runtimes are planned with, or several, comma-separated; requested.",
        ),
    ] = None,
    rule: Annotated[
        Literal["production", "tang2010"],
        typer.Option(help="How user, project and combined turn history into A."),
    ] = "production",
    correction: Annotated[
        Correction, typer.Option(help="What a job that outlives t_sched is planned with.")
    ] = Correction.REQUESTED,
    correction_steps: CorrectionStepsOption = None,
    roles: RolesOption = None,
    guard: GuardOption = "off",
    event_order: EventOrderOption = EventOrder.PER_TIMESTEP,
    scheduling_interval: SchedulingIntervalOption = None,
    warm_up: WarmUpOption = "0",
    repeat: RepeatOption = 1,
    workers: WorkersOption = 1,
    tau: TauOption = 10,
    seed: SeedOption = 1,
    check: CheckOption = False,
    classes: ClassesOption = None,
    as_json: JsonOption = False,
    csv_out: CsvOption = None,
    swf_out: Annotated[
        Path | None, typer.Option(help="Write the schedule as SWF (one policy, single repeat).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw each policy's waits (PNG or SVG).")
    ] = None,
) -> None:
    """Schedule a log under one or several policies, and compare them.

    Every order is run with every backfilling, depth, compression, slack factor, insertion order and
    estimator; gains are over the first. Switching between orders (dynp) is for --backfill planning.

    Example: [bold]foretime simulate KTH-SP2-1996-2.1-cln.swf.gz --backfill easy,easy-sjbf[/bold]
    """
    began = time.perf_counter()
    shared = Policy(
        correction=correction,
        correction_steps=correction_steps,
        roles=Roles() if roles is None else Roles.parse(roles),
        event_order=event_order,
        scheduling_interval_s=(
            None
            if scheduling_interval is None
            else parse_duration(scheduling_interval, "--scheduling-interval")
        ),
    )
    cases = _cases(
        shared,
        [switched_order_of_log(name) for name in _listed("--order", order, "fcfs")],
        [parse_backfill(name) for name in _listed("--backfill", backfill, "easy")],
        [_depth(text) for text in _listed("--depth", depth, "1")],
        [
            Compression.parse(name)
            for name in _listed("--compression", compression, "reservation-order")
        ],
        slack_settings(
            [parse_slack_factor(text) for text in _several("--slack-factor", slack_factor)],
            [InsertionOrder.parse(text) for text in _several("--insertion-order", insertion_order)],
            average_wait,
            slack_weights,
            _overruns(overruns, keep=keep_overruns),
        ),
        _listed("--estimator", estimator, "requested"),
    )
    cases = _guarded(cases, parse_guard(guard))
    check_classes(classes)
    check_head(head)
    outputs = {"--csv": csv_out, "--swf-out": swf_out, "--plot": plot}
    check_outputs(outputs, {"the log": log, "--reservations": reservations, "--machine": machine})
    if swf_out is not None and (repeat != 1 or len(cases) != 1):
        raise InputError(
            f"--swf-out writes one schedule, not {repeat * len(cases)}: give one policy and "
            "--repeat 1"
        )
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
        processors_per_node=processors_per_node,
    )
    workload, notes = source.read()
    if head is not None:
        notes = (*notes, head_note(head, len(workload)))
        workload = workload.head(head)
    for case in cases:
        estimator_of(case.estimator, workload)  # a wrong name is known before the first run
    claims = () if reservations is None else read_reservations(reservations)
    check_reservations(claims, workload.machine_processors)
    repeats = Repeats(repeat, seed=seed, workers=workers)
    with progress_bar("simulating", len(workload) * len(cases) * repeat, "jobs") as show:
        comparison = compare_policies(
            workload,
            cases,
            repeats=repeats,
            accuracy=AccuracySettings.tang2010() if rule == "tang2010" else None,
            reservations=claims,
            span=scored_span(workload, warm_up_s=parse_duration(warm_up, "--warm-up", zero=True)),
            settings=ScoreSettings(tau_s=tau),
            class_metric=classes,
            check=check,
            progress=show,
        )
    result = SimulateResult(
        workload_name=workload.name,
        machine_processors=workload.machine_processors,
        simulated_jobs=len(workload),
        workload_notes=notes,
        options={
            **({} if machine is None else {"machine": str(machine)}),
            "correction": str(correction),
            **({} if correction_steps is None else {"correction steps": str(correction_steps)}),
            "roles": str(shared.roles),
            "guard": guard,
            "event order": str(event_order),
            **({} if scheduling_interval is None else {"scheduling interval": scheduling_interval}),
            **({} if reservations is None else {"reservations": str(reservations)}),
            "rule": rule,
            "warm-up": warm_up,
        },
        comparison=comparison,
        checked=check,
        wall_clock_s=time.perf_counter() - began,
        peak_memory_bytes=peak_memory_bytes(),
        blue_gene=workload.machine if isinstance(workload.machine, BgpMachine) else None,
    )
    if csv_out is not None:
        write_csv(csv_out, CSV_COLUMNS, csv_rows(result))
    if swf_out is not None:
        _write_schedule(workload, result, swf_out)
    if plot is not None:
        from foretime_sim.scores import plots  # matplotlib is slow to load

        plots.save(plots.plot_policy_waits(comparison, workload.name), plot)
    if as_json:
        typer.echo(json.dumps(to_json(result), indent=2))
    else:
        console = report_console(WIDTH)
        console.print(render(result, width=console.width))


def _listed(option: str, given: Sequence[str] | None, default: str) -> list[str]:
    """Split values given several times or comma-separated, in the order given."""
    return _several(option, given) or [default]


def _several(option: str, given: Sequence[str] | None) -> list[str]:
    if not given:
        return []
    names = [name.strip() for text in given for name in text.split(",")]
    shown = f"{option} {','.join(given)}"
    if "" in names:
        raise InputError(f"{shown}: there is an empty name; leave it out, or write it in full")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"{shown}: {twice[0]} is given twice; once is enough")
    return names


def _depth(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--depth {text}: give a whole number of at least 1") from None


def _cases(
    shared: Policy,
    orders: Sequence[Order | PythonOrder | PolicySwitching],
    backfills: Sequence[Backfilling],
    depths: Sequence[int],
    compressions: Sequence[Compression],
    slacks: Sequence[SlackSettings | None],
    estimators: Sequence[str],
) -> list[PolicyCase]:
    """Cross everything; a case is named by that in which the cases differ.

    Only easy and easy-sjbf have a depth, only conservative backfilling compresses, and only slack
    has a slack: others are run once. If none has, the policy says why it is not taken. Orders
    are only switched under planning; if that is not asked for, the policy says so.
    """
    cases: dict[tuple[Policy, str], PolicyCase] = {}
    plans = any(isinstance(family, Planning) for family in backfills)
    every = itertools.product(orders, backfills, depths, compressions, slacks, estimators)
    for order, backfill, depth, compression, slack, estimator in every:
        switches = isinstance(order, PolicySwitching)
        if switches and plans and not isinstance(backfill, Planning):
            continue
        given: dict[str, Any] = {"depth": depth, "compression": compression, "settings": slack}
        theirs = {
            name: value
            for name, value in given.items()
            if has_setting(backfill, name) or not any(has_setting(b, name) for b in backfills)
        }
        policy = replace(shared, backfill=with_settings(backfill, **theirs)).in_order(order)
        parts = (
            (str(order), len(orders) > 1),
            (str(backfill), len(backfills) > 1),
            (f"depth {depth}", "depth" in policy.backfill.shown and len(depths) > 1),
            (str(compression), "compression" in policy.backfill.shown and len(compressions) > 1),
            *_slack_parts(policy, slacks),
            (estimator, len(estimators) > 1),
        )
        name = " ".join(part for part, shown in parts if shown) or f"{order} {backfill}"
        cases.setdefault((policy, estimator), PolicyCase(name, policy, estimator))
    run = [str(case.policy.backfill) for case in cases.values()]
    if idle := [str(backfill) for backfill in backfills if str(backfill) not in run]:
        raise InputError(
            f"--backfill {','.join(idle)}: nothing would run so, as dynp is for planning alone; "
            "leave it out, or name another order, too (--order fcfs,dynp)"
        )
    return list(cases.values())


def _overruns(overruns: Overruns | None, *, keep: bool) -> Overruns | None:
    """Refuse what would change nothing: runtimes are cut to the requested time if not kept."""
    if overruns not in (None, Overruns.KILL) and not keep:
        raise InputError(
            f"--overruns {overruns}: no job outruns its requested time, as runtimes are cut to it; "
            "give --keep-overruns, too"
        )
    return overruns


def _slack_parts(
    policy: Policy, slacks: Sequence[SlackSettings | None]
) -> tuple[tuple[str, bool], ...]:
    """Give what tells slack settings apart, and whether it does."""
    if not isinstance(policy.backfill, Slack):
        return ()
    chosen = policy.backfill.settings
    others = [slack for slack in slacks if slack is not None]
    return (
        (f"SF {chosen.slack_factor:g}", len({slack.slack_factor for slack in others}) > 1),
        (str(chosen.insertion_order), len({slack.insertion_order for slack in others}) > 1),
    )


def _guarded(cases: Sequence[PolicyCase], guard_s: int | None) -> list[PolicyCase]:
    """Give the guard to those cases that may have one; if none may, the policy says why not."""
    guard = None if guard_s is None else Guard(guard_s)
    some = any(case.policy.backfill.head_only for case in cases)
    return [
        replace(case, policy=case.policy.guarded(guard))
        if case.policy.backfill.head_only or not some
        else case
        for case in cases
    ]


def _write_schedule(workload: Workload, result: SimulateResult, path: Path) -> None:
    from foretime_sim.logs.swf import write_swf
    from foretime_sim.workloads.job_log import log_of_workload

    case = result.comparison.cases[0]
    described = describe(case)
    chosen = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("order", case.policy.order_name),
            ("backfill", case.policy.backfill),
            ("depth", described["depth"]),
            ("compression", described["compression"]),
            ("estimator", case.estimator),
            *result.options.items(),
        )
    )
    comments = [f"Note: schedule simulated by foretime simulate: {chosen}"]
    run = result.comparison.runs[0][0]
    log = log_of_workload(workload, wait=run.wait, comments=comments)
    if run.bgp_partition is not None and isinstance(workload.machine, BgpMachine):
        names = tuple(part.name for part in workload.machine.bgp_partitions)
        log = replace(log, slurm_partitions=Labels(run.bgp_partition, names))
    write_swf(log, path)
