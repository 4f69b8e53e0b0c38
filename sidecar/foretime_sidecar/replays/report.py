"""What a replay found, as tables and sentences for a terminal; `replay_export` has JSON and CSV."""

from __future__ import annotations

import math

import numpy as np
from foretime_sim.scores.comparison import Comparison
from foretime_sim.scores.gains import MetricComparison
from foretime_sim.scores.job_classes import ALL, LENGTHS, SIZES
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.replay_result import ReplayResult
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from foretime_sidecar.replays.never_ran_report import never_ran_lines
from foretime_sidecar.replays.promise_report import broken_promises, promises_table
from foretime_sidecar.replays.worse_off_report import worse_off_lines
from foretime_sidecar.settings.queue_order_settings import START_NOW
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.numbers import (
    NOTHING,
    format_count,
    format_gain,
    format_value,
    gain_text,
)

WIDTH = 100
"""Columns that a report takes at most."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Means": (
        "wait_mean_s",
        "wait_mean_below_p99_s",
        "unitless_wait_mean",
        "slowdown_mean",
        "bounded_slowdown_mean",
        "bounded_slowdown_mean_below_p99",
        "bounded_slowdown_weighted_mean",
        "turnaround_time_mean_s",
        "turnaround_time_weighted_mean_s",
    ),
    "Tails": (
        "wait_p50_s",
        "wait_p90_s",
        "wait_p99_s",
        "wait_p99_9_s",
        "wait_max_s",
        "bounded_slowdown_p99",
        "wait_top_share",
        "bounded_slowdown_top_share",
        "starved_jobs",
    ),
    "Machine": (
        "makespan_s",
        "utilization_makespan",
        "utilization_arrivals",
        "loss_of_capacity",
        "avoidable_loss_of_capacity",
    ),
    "Starts": (
        "started_from_head_jobs",
        "started_out_of_order_jobs",
        "backfilled_jobs",
        "outlived_jobs",
    ),
}
"""What the table shows, by section; JSON and CSV have all metrics."""


def render(
    result: ReplayResult, *, classes_of: str | None = None, width: int = WIDTH
) -> RenderableType:
    """Everything that `foretime replay` prints, at most `WIDTH` columns wide.

    Parameters
    ----------
    result
        What the replay found.
    classes_of
        One of `CLASS_METRICS`, to add its table by size and length of jobs.
    width
        Columns that there are; below `WIDTH` the ratios and intervals are left out, and said to be.
    """
    narrow = width < WIDTH
    parts: list[RenderableType] = [
        heading(result),
        metric_table(result.comparison, narrow=narrow),
    ]
    if narrow:
        parts.append(Text(f"Ratios and intervals need {WIDTH} columns, or --json.", "dim"))
    parts += [beside_table(result, name) for name in result.beside]
    if any(result.promises):
        named = list(zip(("without", "with Foretime"), result.promises, strict=True))
        parts += [Text(), promises_table(named, width=width), *broken_promises(named)]
    if classes_of is not None:
        parts.append(class_table(result.comparison, classes_of))
    return Group(*parts, Padding(findings(result), (1, 0, 0, 0)))


def heading(result: ReplayResult) -> RenderableType:
    """Say which log ran, on which machine, what the filters did, and with which options."""
    scored = result.comparison.repeats[0].baseline.jobs
    jobs = counted(result.simulated_jobs, "job")
    if scored != result.simulated_jobs:
        jobs += f", {scored:,} of them scored"
    lines = [
        Text.assemble(
            (result.workload_name, "bold"),
            f": {jobs}, {counted(result.machine_processors, 'processor')}",
        )
    ]
    lines += [Text(f"  {note}", "dim") for note in result.workload_notes]
    if result.options:
        options = ", ".join(f"{name} {value}" for name, value in result.options.items())
        lines.append(Text(f"  {options}", "dim"))
    return Group(*lines)


def metric_table(comparison: Comparison, *, narrow: bool = False) -> Table:
    """Tabulate what was measured in both runs; ``narrow`` leaves out ratio and interval."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    names = ["without", "with Foretime", "ratio", "gain", f"{comparison.level:.0%} interval"]
    shown = [0, 1, 3] if narrow else range(5)
    for name in (names[column] for column in shown):
        table.add_column(name, justify="right", no_wrap=True)
    for section, keys in SECTIONS.items():
        table.add_row()
        table.add_row(Text(section, "bold"))
        for key in keys:
            title, *cells = _metric_row(comparison[key])
            table.add_row(title, *(cells[column] for column in shown))
    return table


def _metric_row(compared: MetricComparison) -> tuple[RenderableType, ...]:
    interval = compared.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return (
        f"  {compared.metric.title}",
        format_value(compared.baseline, compared.metric),
        format_value(compared.adjusted, compared.metric),
        NOTHING if compared.ratio is None else f"{compared.ratio:.2f}",
        gain_text(compared.gain, low, high),
        NOTHING if interval is None else f"{format_gain(low)} to {format_gain(high)}",
    )


BESIDE = (
    "wait_mean_s",
    "wait_mean_below_p99_s",
    "wait_p99_s",
    "wait_max_s",
    "slowdown_mean",
    "bounded_slowdown_mean",
    "starved_jobs",
    "loss_of_capacity",
    "backfilled_jobs",
    "outlived_jobs",
    "killed_early_jobs",
)
"""What is shown of an estimator in the hook's place; JSON has all metrics."""


def beside_table(result: ReplayResult, name: str) -> Table:
    """Tabulate requested times, Foretime and one estimator in the hook's place side by side."""
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        title=f"\nBeside {name} in the hook's place",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("", no_wrap=True)
    for column in ("without", "with Foretime", name, "gain", f"gain of {name}"):
        table.add_column(column, justify="right", no_wrap=True)
    for key in BESIDE:
        ours, other = result.comparison[key], result.beside[name][key]
        table.add_row(
            ours.metric.title,
            format_value(ours.baseline, ours.metric),
            format_value(ours.adjusted, ours.metric),
            format_value(other.adjusted, ours.metric),
            gain_text(ours.gain),
            gain_text(other.gain),
        )
    return table


def class_table(comparison: Comparison, metric: str) -> Table:
    """Tabulate one metric by size (rows) and length (columns): without, with and gain.

    Parameters
    ----------
    comparison
        Both runs.
    metric
        One of `CLASS_METRICS`.
    """
    compared = comparison.by_class(metric)
    described = METRICS[metric]
    size, length = comparison.classes.size_shares, comparison.classes.length_s
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        title=f"\n{described.title}, by share of the machine and requested time: "
        "without, with, gain",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("", no_wrap=True)
    length_bounds = [f"up to {format_duration(bound)}" for bound in length] + ["longer"]
    for name, bound in zip(LENGTHS, length_bounds, strict=True):
        table.add_column(f"{name}\n{bound}", justify="right", no_wrap=True)
    table.add_column(f"{ALL}\n", justify="right", no_wrap=True)
    size_bounds = [f"up to {bound:.3g}" for bound in size] + ["more"]
    values = compared[["baseline", "adjusted", "gain"]].to_numpy(dtype=np.float64)
    rows = values.reshape(len(SIZES) + 1, len(LENGTHS) + 1, 3)
    for size_class, bound, row in zip((*SIZES, ALL), (*size_bounds, ""), rows, strict=True):
        gains = [None if math.isnan(gain) else float(gain) for gain in row[:, 2]]
        table.add_row()
        table.add_row(Text(size_class, "bold"), *(format_value(x, described) for x in row[:, 0]))
        table.add_row(Text(bound, "dim"), *(format_value(x, described) for x in row[:, 1]))
        table.add_row("", *(gain_text(gain) for gain in gains))
    return table


def findings(result: ReplayResult) -> RenderableType:
    """Say in sentences what a site must know: shortened, outlived, killed, starved, how sure."""
    lines = [
        *_shortening_lines(result),
        _killed_line(result.comparison),
        *_used_up_lines(result.comparison),
        _starved_line(result.comparison),
        *never_ran_lines(
            list(zip(("Without Foretime", "With Foretime"), result.never_ran, strict=True))
        ),
        _who_lost_line(result.comparison),
        *worse_off_lines(result.comparison),
        _interval_line(result.comparison),
        *_hook_lines(result),
        _speed_line(result),
    ]
    return Group(*lines)


def _shortening_lines(result: ReplayResult) -> list[Text]:
    shortening = result.shortening
    if shortening.median_adjustment is None or shortening.median_shortened_s is None:
        return [Text("No job was planned with less than it asked for.")]
    share = shortening.shortened_jobs / shortening.jobs
    outlived = shortening.underestimated_jobs
    return [
        Text(
            f"{shortening.shortened_jobs:,} of {shortening.jobs:,} jobs ({share:.1%}) were planned "
            "with less than they asked for:"
        ),
        Text(
            f"  median A = {shortening.median_adjustment:.2f}, "
            f"{format_duration(round(shortening.median_shortened_s))} less; {outlived:,} of them "
            f"({outlived / shortening.shortened_jobs:.1%}) ran longer than planned."
        ),
    ]


def _killed_line(comparison: Comparison) -> Text:
    with_foretime = comparison["killed_early_jobs"].adjusted or 0
    without = comparison["killed_early_jobs"].baseline or 0
    if with_foretime == 0 and without == 0:
        return Text("Nobody was killed before the time they asked for.")
    return Text(
        f"KILLED EARLY: {format_count(with_foretime)} jobs were ended before the time they asked "
        f"for ({format_count(without)} without Foretime).",
        "bold red",
    )


def _used_up_lines(comparison: Comparison) -> list[Text]:
    """Say how many jobs ended for minutes that were used up, if any did."""
    counts = comparison["used_up_jobs"]
    if not counts.adjusted and not counts.baseline:
        return []
    return [
        Text(
            f"{format_count(counts.adjusted or 0)} jobs were ended as the minutes of a limit were "
            f"used up ({format_count(counts.baseline or 0)} without Foretime)."
        )
    ]


def _starved_line(comparison: Comparison) -> Text:
    settings = comparison.settings
    rule = (
        f"waited over {format_duration(settings.starved_wait_s)} and over "
        f"{settings.starved_wait_over_requested:g} times what they asked for"
    )
    without = comparison["starved_jobs"].baseline or 0
    with_foretime = comparison["starved_jobs"].adjusted or 0
    if with_foretime == 0 and without == 0:
        return Text(f"No job starved ({rule}).")
    newly = comparison.paired("newly_starved_jobs")
    noun = "job" if with_foretime == 1 else "jobs"
    return Text(
        f"Starved: {format_count(with_foretime)} {noun} {rule}; {format_count(without)} without "
        f"Foretime; {format_count(newly)} only with it.",
        "bold red" if newly else "",
    )


def _who_lost_line(comparison: Comparison) -> Text:
    most = format_duration(round(comparison.paired("largest_added_wait_s")))
    return Text(
        f"{format_count(comparison.paired('started_earlier_jobs'))} jobs start earlier, "
        f"{format_count(comparison.paired('started_later_jobs'))} later, none by more than {most}."
    )


def _interval_line(comparison: Comparison) -> Text:
    repeats = len(comparison.repeats)
    moved = f"{repeats} runs with submissions moved by up to {comparison.jitter_s} s"
    match comparison.interval_method:
        case "t":
            return Text(f"Means and intervals of {moved} (seed {comparison.seed}).", "dim")
        case "weeks":
            runs = "one run of the log as it is" if repeats == 1 else moved
            return Text(
                f"{runs[0].upper()}{runs[1:]}; intervals by resampling its weeks. "
                "--repeat 3 or more tells what ties and jitter do.",
                "dim",
            )
        case _:
            return Text("No intervals: too few weeks in the log; give --repeat 3 or more.", "dim")


def _hook_lines(result: ReplayResult) -> list[Text]:
    lines = []
    if result.options.get("guard", "off") != "off":
        stepped_in = counted(result.guard_activations, "head job")
        lines.append(Text(f"The starvation guard stepped in for {stepped_in}.", "dim"))
    if (ordering := result.ordering) is not None:
        text = f"The sidecar looked at the queue {ordering.looks:,} times to put it in order"
        if result.options.get("queue order") == START_NOW:
            text = (
                f"The sidecar looked at the queue {ordering.looks:,} times, and raised jobs to "
                f"start at once {ordering.raised:,} times; {ordering.missed:,} times the job had "
                "not started by the next look"
            )
        if ordering.tries:
            to = ", ".join(f"{n:,} to {order}" for order, n in sorted(ordering.switches.items()))
            text += f", and chose an order {ordering.tries:,} times; switches: {to or 'none'}"
        lines.append(Text(f"{text}.", "dim"))
        if ordering.bounds:
            share = 100 * ordering.bounds_kept / ordering.bounds
            lines.append(
                Text(
                    f"Of {ordering.bounds:,} jobs that it saw waiting, {share:.2f}% started no "
                    "later than the bound that they were told at first.",
                    "dim",
                )
            )
        if ordering.failures:
            lines.append(Text(f"NOT CHOSEN: {ordering.failures:,} times it failed.", "bold red"))
    hook = result.hook
    if hook is None:
        return lines
    submissions = counted(hook.submissions, "submission")
    said = (
        f"The hook saw {submissions} and adjusted {hook.adjusted:,}, "
        f"from {counted(hook.table_generations, 'table')}."
    )
    if result.options.get("queue order") == START_NOW and not hook.adjusted:
        said = (
            f"The hook let {submissions} through as written: jobs are raised, and none is changed."
        )
    lines.append(Text(said, "dim"))
    if hook.errors:
        lines.append(Text(f"HOOK ERRORS: {hook.errors:,} calls failed.", "bold red"))
    return lines


def _speed_line(result: ReplayResult) -> Text:
    memory = ""
    if result.peak_memory_bytes is not None:
        memory = f", at most {result.peak_memory_bytes / 2**20:,.0f} MiB"
    return Text(
        f"Took {result.wall_clock_s:,.1f} s ({result.jobs_per_s:,.0f} jobs/s){memory}.", "dim"
    )
