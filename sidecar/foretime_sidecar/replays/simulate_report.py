"""What `foretime simulate` found, as tables for a terminal; `simulate_export` has JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foretime_sim.policies.families import FAMILIES
from foretime_sim.policies.order import Order
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.policy_comparison import PolicyComparison
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretime_sidecar.replays.never_ran_report import never_ran_lines
from foretime_sidecar.replays.promise_report import broken_promises, promises_table
from foretime_sidecar.replays.simulate_export import SimulateResult
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.numbers import format_gain, format_value, gain_text
from foretime_sidecar.wording.table_widths import table_width

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
    while len(shown) > 1 and table_width(_figures(comparison, shown)) > width:
        shown.pop()
    parts: list[RenderableType] = [_heading(result), Text(), _figures(comparison, shown)]
    if len(shown) < len(COLUMNS):
        parts.append(_left_out(key for key in COLUMNS if key not in shown))
    if len(comparison.cases) > 1:
        parts += [Text(), *_gains_that_fit(comparison, width)]
    promises = [comparison.promises(place) for place in range(len(comparison.cases))]
    if any(promises):
        named = [(c.name, one) for c, one in zip(comparison.cases, promises, strict=True)]
        parts += [Text(), promises_table(named, width=width), *broken_promises(named)]
    if switched := [place for place in range(len(comparison.cases)) if comparison.switching(place)]:
        table = _switched(comparison, switched)
        if table_width(table) > width:
            table = _switched_by_order(comparison, switched)
        parts += [Text(), table]
    if comparison.class_metric is not None:
        tables = _classes_that_fit(comparison, comparison.class_metric, width)
        parts += [part for table in tables for part in (Text(), table)]
    return Group(*parts, Text(), *_closing_lines(result))


def _left_out(keys: Iterable[str]) -> Text:
    titles = (COLUMNS[key].replace("-\n", "").replace("\n", " ").strip() for key in keys)
    return Text(f"Left out for want of columns: {', '.join(titles)}; --json has them.", "dim")


def _machine(result: SimulateResult) -> str:
    if result.blue_gene is None:
        return counted(result.machine_processors, "processor")
    return f"{counted(result.blue_gene.nodes, 'node')} of {result.blue_gene.name}"


def _heading(result: SimulateResult) -> RenderableType:
    comparison = result.comparison
    scored = comparison.runs[0][0].scores.jobs
    jobs = counted(result.simulated_jobs, "job")
    if scored != result.simulated_jobs:
        jobs += f", {scored:,} of them scored"
    options = dict(result.options)
    policies = [case.policy for case in comparison.cases]
    titles = dict.fromkeys(title for family in FAMILIES.values() for title in family.shown)
    shown = [item for policy in policies for item in policy.backfill.shown.items()]
    for option, values in (
        ("order", {policy.order_name for policy in policies}),
        ("backfill", {str(policy.backfill) for policy in policies}),
        *((each, {str(value) for name, value in shown if name == each}) for each in titles),
        ("estimator", {case.estimator for case in comparison.cases}),
    ):
        if len(values) == 1:
            options[option] = values.pop()
    told = ", ".join(f"{option} {value}" for option, value in options.items())
    lines = [
        Text.assemble(
            (result.workload_name, "bold"),
            f": {jobs}, {_machine(result)}",
        )
    ]
    lines += [Text(f"  {text}", "dim") for text in (*result.workload_notes, told)]
    return Group(*lines)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        if place:
            table.add_column(heading, justify="right", no_wrap=True)
        else:  # long names of policies wrap before a figure is cut
            table.add_column(heading, overflow="fold")
    return table


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


def _gains_that_fit(comparison: PolicyComparison, width: int) -> list[RenderableType]:
    """Tabulate the gains; where columns are few, intervals go below, then figures are left out."""
    table = _gains(comparison, GAINS, below=False)
    shown = list(GAINS)
    while table_width(table) > width:
        table = _gains(comparison, shown, below=True)
        if len(shown) == 1:
            break
        if table_width(table) > width:
            shown.pop()
    if len(shown) == len(GAINS):
        return [table]
    return [table, _left_out(key for key in GAINS if key not in shown)]


def _gains(comparison: PolicyComparison, keys: Sequence[str], *, below: bool) -> Table:
    """Tabulate gains over the first policy with their intervals: beside them, or in a row below."""
    table = _table("\ngain", *(COLUMNS[key] for key in keys))
    table.title = f"Gains over {comparison.cases[0].name} (positive is better)"
    table.title_justify, table.title_style = "left", "bold"
    for place, case in enumerate(comparison.cases[1:], 1):
        cells: list[Text] = []
        spreads: list[Text] = []
        for key in keys:
            compared = comparison.gain(place, key)
            interval = compared.interval
            low, high = (None, None) if interval is None else (interval.low, interval.high)
            cell = gain_text(compared.gain, low, high)
            spread = Text(style="dim")
            if interval is not None:
                spread.append(f"{format_gain(low)} to {format_gain(high)}")
                if not below:
                    cell.append_text(Text.assemble((f" ({spread})", "dim")))
            cells.append(cell)
            spreads.append(spread)
        table.add_row(case.name, *cells)
        if below and any(spreads):
            table.add_row("", *spreads)
    return table


def _switched(comparison: PolicyComparison, places: Sequence[int]) -> Table:
    """Tabulate how often orders were switched, and which jobs started in; means over repeats."""
    table = _table(
        "\npolicy", "\ntries", "waiting\nat a try", "same\norder", "switches to", "jobs started in"
    )
    table.title = "Switching between queue orders"
    table.title_justify, table.title_style = "left", "bold"
    for place in places:
        figures, by_order = _switching(comparison, place)
        cells = (
            ", ".join(f"{order} {shares[at]:.1%}" for order, *shares in by_order) for at in (0, 1)
        )
        table.add_row(comparison.cases[place].name, *figures, *cells)
    return table


def _switched_by_order(comparison: PolicyComparison, places: Sequence[int]) -> Table:
    """Tabulate the same with a row for each order, where columns are few."""
    table = _table(
        "\npolicy",
        "\ntries",
        "waiting\nat a try",
        "same\norder",
        "\norder",
        "switches\nto it",
        "jobs\nstarted",
    )
    table.columns[4].justify = "left"
    table.title = "Switching between queue orders"
    table.title_justify, table.title_style = "left", "bold"
    for place in places:
        figures, by_order = _switching(comparison, place)
        before = [comparison.cases[place].name, *figures]
        for order, switches, started in by_order:
            table.add_row(*before, str(order), f"{switches:.1%}", f"{started:.1%}")
            before = [""] * len(before)
    return table


def _switching(
    comparison: PolicyComparison, place: int
) -> tuple[list[str], list[tuple[Order, float, float]]]:
    """Give tries, waiting at a try and same order; shares of tries and jobs by order."""
    counted = comparison.switching(place)
    tries = sum(one.tries for one in counted)
    waiting = sum(one.waiting_at_tries for one in counted)
    same = sum(one.same_policy for one in counted)
    orders = counted[0].orders
    switches = [sum(one.switches[at] for one in counted) for at in range(len(orders))]
    started = [sum(int(one.jobs_started[at]) for one in counted) for at in range(len(orders))]
    figures = [
        f"{tries / len(counted):,.0f}",
        f"{waiting / tries:.1f}" if tries else "-",
        f"{same / tries:.1%}" if tries else "-",
    ]
    shares = zip(
        orders,
        [each / tries if tries else 0.0 for each in switches],
        [each / sum(started) for each in started],
        strict=True,
    )
    return figures, list(shares)


def _classes_that_fit(comparison: PolicyComparison, metric: str, width: int) -> list[Table]:
    """Tabulate one metric by class; as many policies side by side as there are columns for."""
    tables: list[Table] = []
    places = list(range(len(comparison.cases)))
    while places:
        taken = len(places)
        while taken > 1 and table_width(_classes(comparison, metric, places[:taken])) > width:
            taken -= 1
        tables.append(_classes(comparison, metric, places[:taken]))
        places = places[taken:]
    return tables


def _classes(comparison: PolicyComparison, metric: str, places: Sequence[int]) -> Table:
    """Tabulate one metric by size and length of jobs, a column for each of some policies."""
    described = METRICS[metric]
    table = _table(f"{described.title}:\nsize", "\nrequested", "\njobs")
    table.columns[1].justify = "left"
    for place in places:
        name = comparison.cases[place].name
        table.add_column("\n" + name, justify="right", no_wrap=True)
    by_case = [comparison.by_class(place) for place in places]
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
    several = len(comparison.cases) > 1
    lines = never_ran_lines(
        [
            (case.name if several else "", comparison.never_ran(place))
            for place, case in enumerate(comparison.cases)
        ]
    )
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
