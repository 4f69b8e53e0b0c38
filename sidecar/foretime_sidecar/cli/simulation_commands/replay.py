"""``foretime replay``: what Foretime would have done to a log."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.schedule import known_waits
from foretime_sim.logs.swf import write_swf
from foretime_sim.mocks.mechanism import mechanism_policy
from foretime_sim.policies.advance_reservations import check_reservations, read_reservations
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.said_to_sites import with_known_qos
from foretime_sim.policies.site_machine import on_machine_of, site_of
from foretime_sim.policies.slurm import Slurm
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.scores.comparison import Comparison, compare
from foretime_sim.scores.replay_result import ReplayResult
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.frame.helpful_commands import HelpAllOption
from foretime_sidecar.cli.frame.option_groups import with_option_groups
from foretime_sidecar.cli.frame.output_files import write_csv
from foretime_sidecar.cli.frame.peak_memory import peak_memory_bytes
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.learning_options import Learn, LearningOptions
from foretime_sidecar.cli.options.mechanism_options import MechanismOptions
from foretime_sidecar.cli.options.output_options import OutputOptions
from foretime_sidecar.cli.options.policy_details import PolicyDetails
from foretime_sidecar.cli.options.policy_options import OnePolicyOptions
from foretime_sidecar.cli.options.replayed_scheduler import FOR_RESEARCH, ReplayedScheduler
from foretime_sidecar.cli.options.scoring_options import ReplayScoringOptions
from foretime_sidecar.cli.options.workload_options import WorkloadOptions, check_head
from foretime_sidecar.cli.options.workload_source import WorkloadSource
from foretime_sidecar.cli.reports.policy_words import policy_words
from foretime_sidecar.cli.reports.whole_tables import print_uncut, report_width
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_export import CSV_COLUMNS, metric_rows, to_json
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.replays.report import WIDTH, render
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.settings_file import read_settings
from foretime_sidecar.wording.durations import format_duration, parse_duration


@with_option_groups
def replay(
    log: WorkloadOptions,
    chosen: OnePolicyOptions,
    details: PolicyDetails,
    mechanism: MechanismOptions,
    learning: LearningOptions,
    scoring: ReplayScoringOptions,
    output: OutputOptions,
    help_all: HelpAllOption = False,  # its callback does it all
) -> None:
    """Replay a log without and with Foretime: the real hook, sidecar and engine.

    Example: [bold]foretime replay KTH-SP2-1996-2.1-cln.swf.gz --repeat 5[/bold]
    """
    began = time.perf_counter()
    scheduler = ReplayedScheduler(chosen, details, mechanism)
    policy = scheduler.policy()
    scoring.verify()
    check_head(log.head)
    inputs = {"--history": learning.history, "--settings": learning.settings}
    inputs |= {"--reservations": details.reservations, **log.inputs, **chosen.inputs}
    output.verify(inputs, scoring.repeat, "--repeat 1")
    site = None if policy is None else site_of(policy)
    sites = () if site is None else (site,)
    source = WorkloadSource(log, scoring.seed, history=learning.history, sites=sites)
    workload, notes = source.read()
    if policy is None:
        workload, policy, assumed = scheduler.on_defaults(workload)
        notes = (*notes, *assumed)
    (policy,), workload, users = UnknownUsersChoice(chosen.unknown_users).applied(
        [policy], workload
    )
    workload, without_qos = with_known_qos(workload, () if site is None else (site,))
    notes = (*notes, *users, *without_qos)
    if site_of(policy) is not None:
        policy = mechanism_policy(mechanism.chosen(policy), policy)
    else:
        notes = (*notes, FOR_RESEARCH)
    task = _task(details, mechanism, learning, policy)
    past, workload, notes = learning.past(source, workload, notes)
    workload, notes = source.first(on_machine_of(policy, workload), notes)
    task = replace(task, history=past, check=scoring.check)
    check_reservations(task.reservations, workload.machine_processors)
    comparison = _compared(workload, task, scoring)
    others = {}
    if mechanism.beside is not None:
        rival = replace(task, estimator=mechanism.beside)
        others[mechanism.beside] = _compared(workload, rival, scoring)
    statistics = _statistics(comparison)
    result = ReplayResult(
        workload_name=workload.name,
        machine_processors=workload.machine_processors,
        simulated_jobs=len(workload),
        workload_notes=notes,
        options=log.described
        | _said_of_policy(chosen, details, task.policy)
        | _said_of_run(mechanism, learning, task)
        | {"warm-up": scoring.warm_up},
        comparison=comparison,
        hook=statistics.hook,
        guard_activations=statistics.guard_activations,
        ordering=statistics.ordering,
        wall_clock_s=time.perf_counter() - began,
        peak_memory_bytes=peak_memory_bytes(),
        promises=(statistics.baseline_promises, statistics.promises),
        beside=others,
        never_ran=statistics.never_ran,
    )
    _write(result, workload, output)
    if output.as_json:
        typer.echo(json.dumps(to_json(result), indent=2))
    else:
        width = report_width(WIDTH)
        print_uncut(render(result, classes_of=scoring.classes, width=width), width)


def _task(
    details: PolicyDetails, mechanism: MechanismOptions, learning: LearningOptions, policy: Policy
) -> Replay:
    """Give what is run, as far as the options say it without the log."""
    mechanism.verify(policy)
    accuracy = learning.accuracy()
    queue_order = mechanism.kept_order(learning.settings, policy, plans_short=learning.plans_short)
    starts_now = queue_order is not None and queue_order.starts_now
    if queue_order is not None and learning.estimator is not None:
        queue_order = queue_order.model_copy(update={"estimator": learning.estimator})
    beside = BesideSettings()
    if learning.settings is not None:
        settings = read_settings(learning.settings)
        if settings.scheduler.kind == "pbs" and isinstance(policy.backfill, Slurm):
            raise InputError(
                f'--settings {learning.settings}: scheduler.kind is "pbs" there, and this is a'
                " replay under Slurm: give --scheduler pbs, or --site with a PBS's site"
            )
        beside = settings.beside
    return Replay(
        policy=policy,
        scheme=accuracy.scheme,
        mechanism=mechanism.chosen(policy),
        accuracy=accuracy,
        learned=learning.learned("learned" if starts_now else accuracy.scheme),
        learn=learning.learn is Learn.CONTINUOUSLY,
        publish_interval_s=parse_duration(mechanism.publish_interval, "--publish-interval"),
        lua_version=mechanism.lua,
        state_dir=mechanism.state_dir,
        reservations=()
        if details.reservations is None
        else read_reservations(details.reservations),
        queue_order=queue_order,
        plain_beside=beside,
        look_interval_s=mechanism.look_interval_s,
        look_takes_s=mechanism.look_takes_s,
    )


def _said_of_policy(
    chosen: OnePolicyOptions, details: PolicyDetails, policy: Policy
) -> dict[str, str]:
    """Say by which policy it was run, for the report."""
    if site_of(policy) is not None:
        file = chosen.site or chosen.policy
        name = "pbs" if policy.is_pbs else "slurm"
        return {"scheduler": name if file is None else f"{name} ({file})"}
    said = {} if chosen.policy is None else {"policy": chosen.policy}
    said |= {"order": policy.order_name, "backfill": str(policy.backfill)}
    settings = policy.backfill.shown.items()
    said |= {name: str(value) for name, value in settings if (name, value) != ("depth", 1)}
    if details.reservations is not None:
        said["reservations"] = str(details.reservations)
    return said


def _said_of_run(
    mechanism: MechanismOptions, learning: LearningOptions, task: Replay
) -> dict[str, str]:
    """Say by which other options it was run, for the report."""
    said: dict[str, str] = {}
    if task.queue_order is not None:
        said |= {"queue order": task.queue_order.order, "looks": mechanism.look_interval}
        if task.look_takes_s:
            said["looks take"] = mechanism.look_takes
        if task.protects_late:
            bounds = {
                "protected if late by": task.plain_beside.most_late_s,
                "behind by at most": task.plain_beside.most_behind_s,
            }
            said |= {words: format_duration(bound) for words, bound in bounds.items() if bound}
        if task.starts_now:
            return said | {"estimator": task.queue_order.estimator, "learn": learning.learn.value}
    said["scheme"] = task.scheme
    if task.scheme == "learned":
        said["estimator"] = task.learned.estimator
    rule = learning.rule or "production"
    return said | {
        "rule": rule if learning.settings is None else str(learning.settings),
        "mechanism": task.mechanism.value,
        **policy_words(task.policy),
        "learn": learning.learn.value,
        "tables every": mechanism.publish_interval,
    }


def _statistics(comparison: Comparison) -> AdjustedStatistics:
    """Give what the first repeat's run says of itself."""
    statistics = comparison.repeats[0].statistics
    if not isinstance(statistics, AdjustedStatistics):  # for the type checker: it is no other
        raise TypeError(statistics)
    return statistics


def _write(result: ReplayResult, workload: Workload, output: OutputOptions) -> None:
    """Write the files that are asked for."""
    if output.csv_out is not None:
        write_csv(output.csv_out, CSV_COLUMNS, metric_rows(result))
    if output.swf_out is not None:
        told = ", ".join(f"{name} {value}" for name, value in result.options.items())
        comments = [f"Note: schedule simulated by foretime replay: {told}"]
        wait = known_waits(_statistics(result.comparison).wait)
        write_swf(log_of_workload(workload, wait=wait, comments=comments), output.swf_out)
    if output.plot is not None:
        from foretime_sim.scores.plots import plot_waits, save  # matplotlib is slow to load

        drawn = plot_waits(result.comparison, workload.name, beside=result.beside)
        save(drawn, output.plot)


def _compared(workload: Workload, task: Replay, scoring: ReplayScoringOptions) -> Comparison:
    """Run the repeats under a progress bar: of jobs in this process, of repeats in several."""
    repeat, in_process = scoring.repeat, scoring.workers == 1
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
            seed=scoring.seed,
            span=scoring.span(workload),
            settings=scoring.settings,
            workers=scoring.workers,
            progress=repeats_done,
        )
