"""``foretime simulate``: a log under one or several policies, without the hook."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.engine.schedule import known_waits
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.advance_reservations import check_reservations, read_reservations
from foretime_sim.policies.policy_file import read_policy
from foretime_sim.policies.said_to_sites import with_known_qos
from foretime_sim.policies.site_machine import site_of
from foretime_sim.policies.slack import Overruns
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.scores.policy_comparison import PolicyCase, PolicyComparison, compare_policies
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.frame.helpful_commands import HelpAllOption
from foretime_sidecar.cli.frame.option_groups import with_option_groups
from foretime_sidecar.cli.frame.output_files import write_csv
from foretime_sidecar.cli.frame.peak_memory import peak_memory_bytes
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.estimator_options import EstimatorOptions
from foretime_sidecar.cli.options.output_options import OutputOptions
from foretime_sidecar.cli.options.policy_cases import PolicyChoices
from foretime_sidecar.cli.options.policy_details import SimulatedPolicyDetails
from foretime_sidecar.cli.options.policy_options import SeveralPoliciesOptions, several
from foretime_sidecar.cli.options.scoring_options import ScoringOptions
from foretime_sidecar.cli.options.workload_options import AnyMachineOptions, check_head
from foretime_sidecar.cli.options.workload_source import WorkloadSource
from foretime_sidecar.cli.reports.policy_words import policy_words
from foretime_sidecar.cli.reports.whole_tables import print_uncut, report_width
from foretime_sidecar.replays.simulate_export import (
    CSV_COLUMNS,
    SimulateResult,
    csv_rows,
    describe,
    to_json,
)
from foretime_sidecar.replays.simulate_report import WIDTH, render


@with_option_groups
def simulate(
    log: AnyMachineOptions,
    chosen: SeveralPoliciesOptions,
    details: SimulatedPolicyDetails,
    learning: EstimatorOptions,
    scoring: ScoringOptions,
    output: OutputOptions,
    help_all: HelpAllOption = False,  # its callback does it all
) -> None:
    """Schedule a log under one or several policies, and compare them.

    Every policy, order, backfilling and estimator is run with every other one. Gains are over the
    first.

    Example: [bold]foretime simulate KTH-SP2-1996-2.1-cln.swf.gz --backfill easy,easy-sjbf[/bold]
    """
    began = time.perf_counter()
    cases = _cases(chosen, details, learning, keep_overruns=log.keep_overruns)
    scoring.verify()
    check_head(log.head)
    inputs = {"--reservations": details.reservations, **log.inputs, **chosen.inputs}
    output.verify(inputs, scoring.repeat * len(cases), "one policy and --repeat 1")
    sites = [site for case in cases if (site := site_of(case.policy)) is not None]
    source = WorkloadSource(
        log, scoring.seed, processors_per_node=log.processors_per_node, sites=sites
    )
    workload, notes = source.first(*source.read())
    policies, workload, users = UnknownUsersChoice(chosen.unknown_users).applied(
        [case.policy for case in cases], workload
    )
    cases = [replace(case, policy=each) for case, each in zip(cases, policies, strict=True)]
    workload, without_qos = with_known_qos(workload, sites)
    notes = (*notes, *users, *without_qos)
    comparison = _compared(workload, cases, details, learning, scoring)
    result = SimulateResult(
        workload_name=workload.name,
        machine_processors=workload.machine_processors,
        simulated_jobs=len(workload),
        workload_notes=notes,
        options=log.described
        | _said(chosen, details, cases)
        | {"rule": learning.rule, "warm-up": scoring.warm_up},
        comparison=comparison,
        checked=scoring.check,
        wall_clock_s=time.perf_counter() - began,
        peak_memory_bytes=peak_memory_bytes(),
        blue_gene=workload.machine if isinstance(workload.machine, BgpMachine) else None,
    )
    _write(result, workload, output)
    if output.as_json:
        typer.echo(json.dumps(to_json(result), indent=2))
    else:
        width = report_width(WIDTH)
        print_uncut(render(result, width=width), width)


def _cases(
    chosen: SeveralPoliciesOptions,
    details: SimulatedPolicyDetails,
    learning: EstimatorOptions,
    *,
    keep_overruns: bool,
) -> list[PolicyCase]:
    """Give the policies that are asked for, each with each estimator."""
    names = several("--policy", chosen.policy)
    named = [(name, read_policy(name)) for name in names] or [("", {})]
    estimators = several("--estimator", learning.estimator) or ["requested"]
    cases = PolicyChoices(named, details.values, chosen.axes, estimators).cases()
    for case in cases:
        overruns = case.policy.overruns
        if overruns is not Overruns.KILL and not keep_overruns:
            raise InputError(
                f"--overruns {overruns}: no job outruns its requested time, as runtimes are cut to"
                " it; give --keep-overruns, too"
            )
    return cases


def _compared(
    workload: Workload,
    cases: Sequence[PolicyCase],
    details: SimulatedPolicyDetails,
    learning: EstimatorOptions,
    scoring: ScoringOptions,
) -> PolicyComparison:
    """Run all policies under a progress bar."""
    for case in cases:
        estimator_of(case.estimator, workload)  # a wrong name is known before the first run
    claims = () if details.reservations is None else read_reservations(details.reservations)
    check_reservations(claims, workload.machine_processors)
    repeats = Repeats(scoring.repeat, seed=scoring.seed, workers=scoring.workers)
    total = len(workload) * len(cases) * scoring.repeat
    with progress_bar("simulating", total, "jobs") as show:
        return compare_policies(
            workload,
            cases,
            repeats=repeats,
            accuracy=learning.accuracy,
            reservations=claims,
            span=scoring.span(workload),
            settings=scoring.settings,
            class_metric=scoring.classes,
            check=scoring.check,
            progress=show,
        )


def _said(
    chosen: SeveralPoliciesOptions, details: SimulatedPolicyDetails, cases: Sequence[PolicyCase]
) -> dict[str, str]:
    """Say by which options of the scheduler it was run, for the report."""
    said = {"policy": ",".join(chosen.policy)} if chosen.policy else {}
    every = [policy_words(case.policy) for case in cases]
    for key in dict.fromkeys(key for words in every for key in words):
        said[key] = ", ".join(dict.fromkeys(words[key] for words in every if key in words))
    typed = {"guard": details.guard, "scheduling interval": details.scheduling_interval}
    said |= {key: text for key, text in typed.items() if text is not None}
    if details.reservations is not None:
        said["reservations"] = str(details.reservations)
    return said


def _write(result: SimulateResult, workload: Workload, output: OutputOptions) -> None:
    """Write the files that are asked for."""
    if output.csv_out is not None:
        write_csv(output.csv_out, CSV_COLUMNS, csv_rows(result))
    if output.swf_out is not None:
        _write_schedule(result, workload, output.swf_out)
    if output.plot is not None:
        from foretime_sim.scores import plots  # matplotlib is slow to load

        plots.save(plots.plot_policy_waits(result.comparison, workload.name), output.plot)


def _write_schedule(result: SimulateResult, workload: Workload, path: Path) -> None:
    from foretime_sim.logs.swf import write_swf
    from foretime_sim.workloads.job_log import log_of_workload

    case = result.comparison.cases[0]
    described = describe(case)
    keys = ("order", "backfill", "depth", "compression", "estimator")
    told = {key: described[key] for key in keys if described[key] is not None}
    chosen = ", ".join(f"{name} {value}" for name, value in {**told, **result.options}.items())
    comments = [f"Note: schedule simulated by foretime simulate: {chosen}"]
    run = result.comparison.runs[0][0]
    log = log_of_workload(workload, wait=known_waits(run.wait), comments=comments)
    if run.bgp_partition is not None and isinstance(workload.machine, BgpMachine):
        names = tuple(part.name for part in workload.machine.bgp_partitions)
        log = replace(log, slurm_partitions=Labels(run.bgp_partition, names))
    write_swf(log, path)
