"""What `foretime simulate` found, as tables for a terminal; `simulate_export` has JSON and CSV."""

from __future__ import annotations

from foretime_sim.metrics import METRICS
from foretime_sim.policy import Backfill
from foretime_sim.policy_comparison import PolicyComparison
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretime_sidecar.figures import format_gain, format_value, gain_text
from foretime_sidecar.simulate_export import SimulateResult

WIDTH = 132
"""Columns that the tables take where there is no terminal."""

COLUMNS = {
    "wait_mean_s": "mean\nwait",
    "wait_p50_s": "median\nwait",
    "wait_p99_s": "p99\nwait",
    "wait_max_s": "max\nwait",
    "bounded_slowdown_mean": "\nAVEbsld",
    "slowdown_mean": "mean\nslowdown",
    "utilization_makespan": "utili-\nzation",
    "makespan_s": "\nmakespan",
}
"""What the table shows, in this order; JSON and CSV have all metrics."""

GAINS = ("wait_mean_s", "wait_p99_s", "bounded_slowdown_mean", "utilization_makespan")
"""Metrics whose gains over the first policy are shown."""


def render(result: SimulateResult, *, width: int = WIDTH) -> RenderableType:
    """Everything that `foretime simulate` prints.

    Parameters
    ----------
    result
        What was found.
    width
        Columns that there are; where they are few, the last figures are left out, and said to be.
    """
    comparison = result.comparison
    shown = list(COLUMNS)
    while len(shown) > 1 and _width(_figures(comparison, shown)) > width:
        shown.pop()
    parts: list[RenderableType] = [_heading(result), Text(), _figures(comparison, shown)]
    if len(shown) < len(COLUMNS):
        left_out = ", ".join(METRICS[key].title for key in COLUMNS if key not in shown)
        parts.append(Text(f"Left out for want of columns: {left_out}; --json has them.", "dim"))
    if len(comparison.cases) > 1:
        parts += [Text(), _gains(comparison, width)]
    if comparison.class_metric is not None:
        parts += [Text(), _classes(comparison, comparison.class_metric)]
    return Group(*parts, Text(), *_closing_lines(result))


def _heading(result: SimulateResult) -> RenderableType:
    comparison = result.comparison
    scored = comparison.runs[0][0].scores.jobs
    jobs = f"{result.simulated_jobs:,} jobs"
    if scored != result.simulated_jobs:
        jobs += f", {scored:,} of them scored"
    options = dict(result.options)
    policies = [case.policy for case in comparison.cases]
    easy = [policy for policy in policies if policy.backfill in (Backfill.EASY, Backfill.EASY_SJBF)]
    conservative = [policy for policy in policies if policy.backfill is Backfill.CONSERVATIVE]
    for option, values in (
        ("order", {str(policy.order) for policy in policies}),
        ("backfill", {str(policy.backfill) for policy in policies}),
        ("depth", {str(policy.depth) for policy in easy}),
        ("compression", {str(policy.compression) for policy in conservative}),
        ("estimator", {case.estimator for case in comparison.cases}),
    ):
        if len(values) == 1:
            options[option] = values.pop()
    told = ", ".join(f"{option} {value}" for option, value in options.items())
    lines = [
        Text.assemble(
            (result.workload_name, "bold"),
            f": {jobs}, {result.machine_processors:,} processors",
        )
    ]
    lines += [Text(f"  {text}", "dim") for text in (*result.workload_notes, told)]
    return Group(*lines)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    return table


def _width(table: Table) -> int:
    """Columns that a table needs."""
    return Console(width=1_000).measure(table).maximum


def _figures(comparison: PolicyComparison, shown: list[str]) -> Table:
    """Tabulate the policies' figures, with half the interval below where there is one."""
    headings = [COLUMNS[key] + (", s" if key == "wait_mean_s" else "") for key in shown]
    table = _table("\npolicy", *headings)
    for place, case in enumerate(comparison.cases):
        cells, spreads = [], []
        for key in shown:
            figure = comparison.figure(place, key)
            cells.append(_figure(key, figure.mean))
            interval = figure.interval
            half = None if interval is None else (interval.high - interval.low) / 2
            spreads.append("" if half is None else f"± {_figure(key, half)}")
        table.add_row(case.name, *cells)
        if any(spreads):
            table.add_row("", *(Text(spread, "dim") for spread in spreads))
    return table


def _figure(key: str, value: float | None) -> str:
    """Write a figure; mean waits in seconds with decimals, as they are published."""
    if key == "wait_mean_s" and value is not None:
        return f"{value:,.2f}"
    return format_value(value, METRICS[key])


def _gains(comparison: PolicyComparison, width: int) -> Table:
    """Tabulate gains over the first policy, with intervals where they fit."""
    intervals = comparison.interval_method != "none" and width >= WIDTH - 20
    table = _table("\ngain", *(COLUMNS[key] for key in GAINS))
    table.title = f"Gains over {comparison.cases[0].name} (positive is better)"
    table.title_justify, table.title_style = "left", "bold"
    for place, case in enumerate(comparison.cases[1:], 1):
        cells: list[Text] = []
        for key in GAINS:
            compared = comparison.gain(place, key)
            interval = compared.interval
            low, high = (None, None) if interval is None else (interval.low, interval.high)
            cell = gain_text(compared.gain, low, high)
            if intervals and interval is not None:
                cell.append(f" ({format_gain(low)} to {format_gain(high)})", "dim")
            cells.append(cell)
        table.add_row(case.name, *cells)
    return table


def _classes(comparison: PolicyComparison, metric: str) -> Table:
    """Tabulate one metric by size and length of jobs, a column for each policy."""
    described = METRICS[metric]
    table = _table(f"{described.title}:\nsize", "\nrequested", "\njobs")
    table.columns[1].justify = "left"
    for case in comparison.cases:
        table.add_column("\n" + case.name, justify="right", no_wrap=True)
    by_case = [comparison.by_class(place) for place in range(len(comparison.cases))]
    for values in zip(*by_case, strict=True):
        first = values[0]
        cells = [format_value(value.value, described) for value in values]
        table.add_row(first.size_class, first.length_class, f"{first.jobs:,}", *cells)
    return table


def _closing_lines(result: SimulateResult) -> list[Text]:
    comparison = result.comparison
    repeats = comparison.repeats
    moved = f"{repeats.count} runs with submissions moved by up to {repeats.jitter_s} s"
    level = f"{repeats.level:.0%}"
    lines = []
    if result.checked:
        lines.append(Text("Conservation laws checked: every schedule keeps them."))
    match comparison.interval_method:
        case "t":
            lines.append(
                Text(f"Means and {level} intervals of {moved} (seed {repeats.seed}).", "dim")
            )
        case "weeks":
            runs = "One run of the log as it is" if repeats.count == 1 else f"Means of {moved}"
            lines.append(
                Text(
                    f"{runs}; {level} intervals of gains by resampling its weeks. "
                    "--repeat 3 or more tells what ties and jitter do.",
                    "dim",
                )
            )
        case _:
            runs = "One run of the log as it is" if repeats.count == 1 else f"Means of {moved}"
            lines.append(Text(f"{runs}, no intervals; give --repeat 3 or more.", "dim"))
    memory = ""
    if result.peak_memory_bytes is not None:
        memory = f", at most {result.peak_memory_bytes / 2**20:,.0f} MiB"
    speeds = [comparison.jobs_per_s(place) for place in range(len(comparison.cases))]
    speed = (
        f"{min(speeds):,.0f}" if len(speeds) == 1 else f"{min(speeds):,.0f} to {max(speeds):,.0f}"
    )
    lines.append(
        Text(f"Took {result.wall_clock_s:,.1f} s; simulated {speed} jobs/s{memory}.", "dim")
    )
    return lines
