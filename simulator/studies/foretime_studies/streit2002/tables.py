"""Tables 2 to 6 of Streit 2002, the paper's numbers beside ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foretime_sim.models.description import describe
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.frame.tables import Entry, NotedRows, Row, Rows, StudyTable, study_table
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.paper import (
    CURRENT,
    DIFFERENT,
    PRINTED_CURRENT,
    PRINTED_DIFFERENT,
    SETS,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6_ROWS,
    TABLE_6_TOTALS,
    set_figures,
    summed,
)
from foretime_studies.streit2002.sets import LogSource
from foretime_studies.streit2002.study import (
    ADVANCED,
    DECIDERS,
    QUALITIES,
    SIMPLE,
    SINGLES,
    CaseResult,
    Streit2002,
    Switched,
    self_tuning,
)

STARTED_ORDERS = (Order.SJF, Order.FCFS, Order.LJF)
"""In the order of table 4."""
QUALITY_TITLES = {Quality.ARTWW: "ARTwW", Quality.ART: "ART", Quality.MAKESPAN: "MS"}
"""What the paper's tables call them."""


def tables(found: Streit2002) -> list[StudyTable]:
    """Make tables 2 to 6, and what the draws of a set have in common with the paper's one."""
    return [
        _table_2(found),
        _table_3(found),
        *_table_4(found),
        _table_5(found),
        _table_6(found),
        _draws(found),
    ]


@study_table(
    "table2",
    "Table 2: what the analyser says of the logs",
    "Ours are the archive's cleaned logs after the filters; alpha and beta give the gaps' mean "
    "and deviation.",
)
def _table_2(found: Streit2002) -> Rows:
    ours: dict[str, dict[str, float]] = {}
    for job_set in found.sets:
        source = found.sources[job_set.name]
        if isinstance(source, LogSource):
            ours[job_set.name] = set_figures(source.log, source.model.interarrival)
    for title, printed in TABLE_2.items():
        row: list[Entry] = [("", title)]
        for name in (job_set.name for job_set in found.sets):
            mine = format(ours[name][title], printed["form"]) if name in ours else None
            row += [(f"{name} paper", format(printed[name], printed["form"])), ("ours", mine)]
        yield row


@study_table("table3", "Table 3: the generated sets")
def _table_3(found: Streit2002) -> NotedRows:
    ours = {
        job_set.name: [
            found.figures_of_set(job_set, draw) for draw in range(1, found.settings.seeds + 1)
        ]
        for job_set in found.sets
    }
    for title, printed in TABLE_3.items():
        row: list[Entry] = [("", title)]
        for name, draws in ours.items():
            mine = [figures[title] for figures in draws]
            told = {
                f"{name} paper": printed[name],
                "seed 1": mine[0],
                "mean": sum(mine) / len(mine),
            }
            row += [(head, format(value, printed["form"])) for head, value in told.items()]
        yield row
    return f"Mean over {found.settings.seeds} seeds."


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of table 4 or 5: a figure of a run, how it is written, and its column in table4.csv."""

    title: str
    of: Callable[[CaseResult], float]
    form: str = ",.0f"
    key: str = ""


def switched_of(result: CaseResult) -> Switched:
    """Give what a scheduler that switches did."""
    if result.switched is None:
        raise ValueError("not a run of a scheduler that switches")
    return result.switched


def _started(order: Order) -> Callable[[CaseResult], float]:
    return lambda result: switched_of(result).started[str(order)]


ARTWW = RunRow("ARTwW, s", lambda result: result.measures.artww_s, key="artww_s")
UTIL = RunRow("UTIL", lambda result: result.measures.utilization, ".2%", "utilization")
LOC = RunRow("LOC", lambda result: result.measures.loss_of_capacity, ".5f", "loss_of_capacity")
STARTED = tuple(
    RunRow(str(order).upper(), _started(order), key=str(order)) for order in STARTED_ORDERS
)


def told_of(form: str, spread: Spread | None) -> tuple[str | None, str | None, str | None]:
    """Write first draw, mean, and interval."""
    if spread is None:
        return None, None, None
    low, high = spread.ends
    interval = None if low is None or high is None else f"{low:{form}} – {high:{form}}"
    return format(spread.first, form), format(spread.mean, form), interval


def _table_4(found: Streit2002) -> list[StudyTable]:
    """Give table 4 as two: what schedules are like, and with which orders jobs start."""
    title = "Table 4: deciders and qualities, shrinking factor 1.00"
    started = f"{title}: jobs started with each order"
    return [
        _compared_runs(found, "table4", title, (ARTWW, UTIL, LOC), intervals=True),
        _compared_runs(found, "table4-started", started, STARTED),
    ]


def _compared_runs(
    found: Streit2002, key: str, title: str, measures: Sequence[RunRow], *, intervals: bool = False
) -> StudyTable:
    """Put every run of table 4 into a row: printed, first draw, mean, and where that lies."""
    rows = []
    for job_set, quality, decider in itertools.product(found.sets, QUALITIES, DECIDERS):
        printed = printed_run(job_set.name, quality, decider)
        row = run_key(job_set.name, quality, decider)
        for of in measures:
            spread = found.spread(of.of, job_set.name, self_tuning(decider, quality))
            first, mean, interval = told_of(of.form, spread)
            row += [
                (f"{of.title}, paper", format(printed[of.key], of.form)),
                ("seed 1", first),
                ("mean", mean),
            ]
            if intervals:
                row.append(("95% interval", interval))
        rows.append(row)
    return StudyTable.of(key, title, rows)


def run_key(name: str, quality: Quality, decider: Decider) -> list[Entry]:
    """Begin a row of table 4."""
    return [("set", name), ("quality", QUALITY_TITLES[quality]), ("decider", str(decider))]


def printed_run(name: str, quality: Quality, decider: Decider) -> dict[str, Any]:
    """Give a printed column of a block of table 4."""
    return TABLE_4[name, str(quality), str(decider)]


def _of_switches(order: Order) -> Callable[[CaseResult], float]:
    return lambda result: (
        switched_of(result).switches[str(order)] / max(1, switched_of(result).tries)
    )


def same_policy(result: CaseResult) -> float:
    """Give the share of the tries of a switch at which nothing changed."""
    counted = switched_of(result)
    return 1 - sum(counted.switches.values()) / max(1, counted.tries)


def backlog(result: CaseResult) -> float:
    """Mean number of jobs waiting at a try."""
    counted = switched_of(result)
    return counted.waiting_at_tries / max(1, counted.tries)


@dataclass(frozen=True, slots=True)
class Compared:
    """A row of table 5 or 6: ours, ``None`` where only the print is told, and printed by set."""

    row: RunRow
    printed: Mapping[str, float]
    ours: bool = True


def _beside_the_paper(
    found: Streit2002, key: str, title: str, compared: Sequence[Compared], note: str = ""
) -> StudyTable:
    """Make a table of three columns a set: printed, first draw, mean over the draws."""
    rows = []
    for each in compared:
        form = each.row.form
        row: list[Entry] = [("", each.row.title)]
        for job_set in found.sets:
            spread = found.spread(each.row.of, job_set.name, ADVANCED) if each.ours else None
            first, mean, _ = told_of(form, spread)
            printed = format(each.printed[job_set.name], form)
            row += [(f"{job_set.name} paper", printed), ("seed 1", first), ("mean", mean)]
        rows.append(row)
    return StudyTable.of(key, title, rows, note)


def rows_of_table_5() -> list[Compared]:
    """Give the rows of table 5."""
    in_table_4 = (
        ARTWW,
        UTIL,
        LOC,
        *(replace(row, title=f"jobs started with {row.title}") for row in STARTED),
    )
    before = (
        RunRow("average actual runtime, s", lambda result: result.measures.actual_runtime_s),
        RunRow("average wait time, s", lambda result: result.measures.wait_s),
        RunRow("ART, s", lambda result: result.measures.art_s),
    )
    after = (
        RunRow("total tries of switches", lambda result: switched_of(result).tries),
        *(
            RunRow(f"switches to {str(order).upper()}", _of_switches(order), ".2%")
            for order in STARTED_ORDERS
        ),
        RunRow("same policy", same_policy, ".2%"),
        RunRow("average backlog at a try", backlog, ".2f"),
    )
    column = {name: printed_run(name, Quality.ARTWW, Decider.ADVANCED) for name in SETS}
    return [
        *(Compared(row, TABLE_5[row.title]) for row in before),
        *(Compared(row, {name: column[name][row.key] for name in SETS}) for row in in_table_4),
        *(Compared(row, TABLE_5[row.title]) for row in after),
    ]


def _table_5(found: Streit2002) -> StudyTable:
    title = "Table 5: self-tuning dynP with the advanced decider and ARTwW, shrinking factor 1.00"
    return _beside_the_paper(found, "table5", title, rows_of_table_5())


def cases_of(result: CaseResult) -> dict[str, int]:
    """Count the cases of table 1 as table 6 does."""
    counted = switched_of(result).cases
    if counted is None:
        raise ValueError("not a run of a scheduler that tunes itself")
    # Cases 7, 9 and 5 are special cases of 2, 3 and 4b.
    return {row: sum(counted.get(case, 0) for case in row.split(" & ")) for row in TABLE_6_ROWS}


def share_of_cases(result: CaseResult, rows: Sequence[str]) -> float:
    """Give the share of some cases among all."""
    counted = cases_of(result)
    return sum(counted[row] for row in rows) / max(1, sum(counted.values()))


def share_row(title: str, cases: Sequence[str]) -> Compared:
    """Give the share of some cases among all as a row."""
    row = RunRow(title, lambda result: share_of_cases(result, cases), ".2%")
    return Compared(row, {name: summed(name, cases) / summed(name, TABLE_6_ROWS) for name in SETS})


def _table_6(found: Streit2002) -> StudyTable:
    def count(title: str, cases: Sequence[str]) -> Compared:
        row = RunRow(title, lambda result: sum(cases_of(result)[case] for case in cases))
        return Compared(row, {name: summed(name, cases) for name in SETS})

    def as_printed(title: str, printed: Mapping[str, float], form: str) -> Compared:
        return Compared(RunRow(title, ARTWW.of, form), printed, ours=False)

    def of_printed(counts: Mapping[str, int]) -> dict[str, float]:
        return {name: counts[name] / TABLE_6_TOTALS[name] for name in SETS}

    return _beside_the_paper(
        found,
        "table6",
        "Table 6: cases of the advanced decider with ARTwW, shrinking factor 1.00",
        [
            *(count(f"case {case}", [case]) for case in TABLE_6_ROWS),
            as_printed("total as printed", TABLE_6_TOTALS, ",.0f"),
            count("total added up", TABLE_6_ROWS),
            as_printed("deciders differ, as printed", of_printed(PRINTED_DIFFERENT), ".2%"),
            share_row("the same of the total added up", DIFFERENT),
            as_printed("current policy taken, as printed", of_printed(PRINTED_CURRENT), ".2%"),
            share_row("the same without case 5", CURRENT),
        ],
        "The paper's totals leave case 10b out; its last row counts case 5 (with 4b), in which LJF "
        "is taken whatever was current, and for KTH is 59 less than its own counts.",
    )


@study_table(
    "draws",
    "Each draw at a shrinking factor of 1.00: offered load, and ARTwW in seconds",
    "Of the paper's set the utilization, which is a little below the load.",
)
def _draws(found: Streit2002) -> Rows:
    """Give each draw of each set with its load, which is what a single draw hangs on."""
    shown = (*SINGLES, SIMPLE, ADVANCED)

    def row(name: str, draw: str | int, load: float | None, artww: Sequence[float | None]) -> Row:
        each = zip(shown, artww, strict=True)
        head: Row = [("set", name), ("draw", draw), ("offered load", load, ".1%")]
        return [*head, *((scheduler, value, ",.0f") for scheduler, value in each)]

    for job_set in found.sets:
        runs = [found.runs(job_set.name, scheduler) for scheduler in shown]
        for draw, results in enumerate(zip(*runs, strict=True), start=1):
            load = describe(found.jobs(job_set, draw)).offered_load
            yield row(job_set.name, draw, load, [run.measures.artww_s for run in results])
        simple, advanced = (printed_run(job_set.name, Quality.ARTWW, by) for by in DECIDERS)
        artww = (None, None, None, simple["artww_s"], advanced["artww_s"])
        yield row(job_set.name, "paper", simple["utilization"], artww)
