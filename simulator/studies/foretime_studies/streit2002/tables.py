"""Tables 2 to 6 of Streit 2002, the paper's numbers beside ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from foretime_sim.models.description import describe
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.frame.tables import Cell, Column, StudyTable
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
    SetFigures,
    summed,
)
from foretime_studies.streit2002.runs import (
    ADVANCED,
    DECIDERS,
    QUALITIES,
    SIMPLE,
    SINGLES,
    CaseResult,
    Switched,
    self_tuning,
)
from foretime_studies.streit2002.sets import LogSource
from foretime_studies.streit2002.study import Spread, Streit2002

STARTED_ORDERS = (Order.SJF, Order.FCFS, Order.LJF)
"""In the order of table 4."""


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


@dataclass(frozen=True, slots=True)
class _Property:
    """A row of tables 2 and 3."""

    title: str
    of: Callable[[SetFigures], float]
    form: str = ",.0f"


_PROPERTIES = (
    _Property("number of jobs", lambda given: given.jobs),
    _Property("maximum job width", lambda given: given.widest_processors),
    _Property("width of machine", lambda given: given.machine_processors),
    _Property("average requested resources", lambda given: given.processors_mean, ".2f"),
    _Property("estimated runtime, avg, s", lambda given: given.requested_s[0]),
    _Property("estimated runtime, min, s", lambda given: given.requested_s[1]),
    _Property("estimated runtime, max, s", lambda given: given.requested_s[2]),
    _Property("actual runtime, avg, s", lambda given: given.runtime_s[0]),
    _Property("actual runtime, min, s", lambda given: given.runtime_s[1]),
    _Property("actual runtime, max, s", lambda given: given.runtime_s[2]),
    _Property("actual > estimated runtime", lambda given: given.overrunning_jobs),
    _Property("interarrival time, avg, s", lambda given: given.interarrival_s[0]),
    _Property("interarrival time, min, s", lambda given: given.interarrival_s[1]),
    _Property("interarrival time, max, s", lambda given: given.interarrival_s[2]),
)
_WEIBULL = (
    _Property("Weibull alpha", lambda given: given.weibull_shape, ".2f"),
    _Property("Weibull beta, s", lambda given: given.weibull_scale_s),
)


def _table_2(found: Streit2002) -> StudyTable:
    ours: dict[str, SetFigures] = {}
    for job_set in found.sets:
        source = found.sources[job_set.name]
        if isinstance(source, LogSource):
            ours[job_set.name] = SetFigures.of(source.log, source.model.interarrival)
    columns = [Column("")]
    for job_set in found.sets:
        columns += [Column(f"{job_set.name} paper"), Column("ours")]
    rows = []
    for row in (*_PROPERTIES, *_WEIBULL):
        cells: list[Cell] = [row.title]
        for job_set in found.sets:
            mine = ours.get(job_set.name)
            cells.append(format(row.of(TABLE_2[job_set.name]), row.form))
            cells.append(None if mine is None else format(row.of(mine), row.form))
        rows.append(tuple(cells))
    return StudyTable(
        "table2",
        "Table 2: what the analyser says of the logs",
        tuple(columns),
        tuple(rows),
        "Ours are the archive's cleaned logs after the filters; alpha and beta give the gaps' mean "
        "and deviation.",
    )


def _columns(found: Streit2002) -> tuple[Column, ...]:
    """Head a table of one set beside the other: printed, of the first draw, mean of all draws."""
    columns = [Column("")]
    for job_set in found.sets:
        columns += [Column(f"{job_set.name} paper"), Column("seed 1"), Column("mean")]
    return tuple(columns)


def _table_3(found: Streit2002) -> StudyTable:
    ours = {
        job_set.name: [
            found.figures_of_set(job_set, draw) for draw in range(1, found.settings.seeds + 1)
        ]
        for job_set in found.sets
    }
    rows = []
    for row in _PROPERTIES:
        cells: list[Cell] = [row.title]
        for job_set in found.sets:
            mine = [row.of(figures) for figures in ours[job_set.name]]
            told = (row.of(TABLE_3[job_set.name]), mine[0], sum(mine) / len(mine))
            cells += [format(value, row.form) for value in told]
        rows.append(tuple(cells))
    return StudyTable(
        "table3",
        "Table 3: the generated sets",
        _columns(found),
        tuple(rows),
        f"Mean over {found.settings.seeds} seeds.",
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A row of table 4 or 5: a figure of a run, and how it is written."""

    title: str
    of: Callable[[CaseResult], float]
    form: str = ",.0f"


def _switched(result: CaseResult) -> Switched:
    if result.switched is None:
        raise ValueError("not a run of a scheduler that switches")
    return result.switched


def _started(order: Order) -> Callable[[CaseResult], float]:
    return lambda result: _switched(result).started[str(order)]


ARTWW = Row("ARTwW, s", lambda result: result.measures.artww_s)
UTIL = Row("UTIL", lambda result: result.measures.utilization, ".2%")
LOC = Row("LOC", lambda result: result.measures.loss_of_capacity, ".5f")
STARTED = tuple(Row(str(order).upper(), _started(order)) for order in STARTED_ORDERS)


def told_of(form: str, spread: Spread | None) -> list[Cell]:
    """Write first draw, mean, and interval."""
    if spread is None:
        return [None, None, None]
    low, high = spread.ends
    interval = None if low is None or high is None else f"{low:{form}} – {high:{form}}"
    return [format(spread.first, form), format(spread.mean, form), interval]


def _table_4(found: Streit2002) -> list[StudyTable]:
    """Give table 4 as two: what schedules are like, and with which orders jobs start."""
    title = "Table 4: deciders and qualities, shrinking factor 1.00"
    first = _compared_runs(found, "table4", title, (ARTWW, UTIL, LOC), intervals=True)
    started = f"{title}: jobs started with each order"
    return [first, _compared_runs(found, "table4-started", started, STARTED)]


def _compared_runs(
    found: Streit2002,
    key: str,
    title: str,
    measures: Sequence[Row],
    *,
    intervals: bool = False,
) -> StudyTable:
    """Put every run of table 4 into a row: printed, first draw, mean, and where that lies."""
    columns = [Column("set"), Column("quality"), Column("decider")]
    for row in measures:
        columns += [Column(f"{row.title}, paper"), Column("seed 1"), Column("mean")]
        columns += [Column("95% interval")] * intervals
    rows: list[tuple[Cell, ...]] = []
    for name, quality, decider in itertools.product(
        [job_set.name for job_set in found.sets], QUALITIES, DECIDERS
    ):
        printed = printed_run(name, quality, decider)
        cells: list[Cell] = []
        for row in measures:
            told = told_of(row.form, found.spread(row.of, name, self_tuning(decider, quality)))
            cells += [format(printed[row], row.form), *(told if intervals else told[:2])]
        rows.append((name, quality_title(quality), str(decider), *cells))
    return StudyTable(key, title, tuple(columns), tuple(rows))


def printed_run(name: str, quality: Quality, decider: Decider) -> dict[Row, float]:
    """Give a printed column of a block of table 4."""
    printed = TABLE_4[name][str(quality), str(decider)]
    started = (printed.started[order] for order in STARTED_ORDERS)
    values = (printed.artww_s, printed.utilization, printed.loss_of_capacity, *started)
    return dict(zip((ARTWW, UTIL, LOC, *STARTED), values, strict=True))


def quality_title(quality: Quality) -> str:
    """Call a quality what the paper's tables call it."""
    return {Quality.ARTWW: "ARTwW", Quality.ART: "ART", Quality.MAKESPAN: "MS"}[quality]


def _of_switches(order: Order) -> Callable[[CaseResult], float]:
    def share(result: CaseResult) -> float:
        counted = _switched(result)
        return counted.switches[str(order)] / max(1, counted.tries)

    return share


def _same(result: CaseResult) -> float:
    counted = _switched(result)
    return 1 - sum(counted.switches.values()) / max(1, counted.tries)


def backlog(result: CaseResult) -> float:
    """Mean number of jobs waiting at a try."""
    counted = _switched(result)
    return counted.waiting_at_tries / max(1, counted.tries)


@dataclass(frozen=True, slots=True)
class Compared:
    """A row of table 5 or 6: ours, ``None`` where only the print is told, and printed by set."""

    row: Row
    printed: Mapping[str, float]
    ours: bool = True


def _beside_the_paper(
    found: Streit2002, key: str, title: str, rows: Sequence[Compared], note: str = ""
) -> StudyTable:
    """Make a table of three columns a set: printed, first draw, mean over the draws."""
    made = []
    for compared in rows:
        row = compared.row
        cells: list[Cell] = [row.title]
        for job_set in found.sets:
            spread = found.spread(row.of, job_set.name, ADVANCED) if compared.ours else None
            cells += [
                format(compared.printed[job_set.name], row.form),
                *told_of(row.form, spread)[:2],
            ]
        made.append(tuple(cells))
    return StudyTable(key, title, _columns(found), tuple(made), note)


def rows_of_table_5() -> list[Compared]:
    """Give the rows of table 5."""
    order_rows = [
        Row(f"switches to {str(order).upper()}", _of_switches(order), ".2%")
        for order in STARTED_ORDERS
    ]
    rows = (
        Row("average actual runtime, s", lambda result: result.measures.actual_runtime_s),
        Row("average wait time, s", lambda result: result.measures.wait_s),
        Row("ART, s", lambda result: result.measures.art_s),
        ARTWW,
        UTIL,
        LOC,
        *(replace(row, title=f"jobs started with {row.title}") for row in STARTED),
        Row("total tries of switches", lambda result: _switched(result).tries),
        *order_rows,
        Row("same policy", _same, ".2%"),
        Row("average backlog at a try", backlog, ".2f"),
    )
    return [
        Compared(row, {name: _table_5_of(name)[number] for name in SETS})
        for number, row in enumerate(rows)
    ]


def _table_5(found: Streit2002) -> StudyTable:
    title = "Table 5: self-tuning dynP with the advanced decider and ARTwW, shrinking factor 1.00"
    return _beside_the_paper(found, "table5", title, rows_of_table_5())


def _table_5_of(name: str) -> Sequence[float]:
    """Give a printed column of table 5."""
    printed = TABLE_5[name]
    return (
        printed.actual_runtime_s,
        printed.wait_s,
        printed.art_s,
        *printed_run(name, Quality.ARTWW, Decider.ADVANCED).values(),
        printed.tries,
        *(printed.switches[order] for order in STARTED_ORDERS),
        printed.same,
        printed.backlog,
    )


def cases_of(result: CaseResult) -> dict[str, int]:
    """Count the cases of table 1 as table 6 does."""
    counted = _switched(result).cases
    if counted is None:
        raise ValueError("not a run of a scheduler that tunes itself")
    # Cases 7, 9 and 5 are special cases of 2, 3 and 4b.
    return {
        row: counted[row.partition(" & ")[0]]
        + (counted.get(row.partition(" & ")[2], 0) if " & " in row else 0)
        for row in TABLE_6_ROWS
    }


def share_of_cases(result: CaseResult, rows: Sequence[str]) -> float:
    """Give the share of some cases among all."""
    counted = cases_of(result)
    return sum(counted[row] for row in rows) / max(1, sum(counted.values()))


def share_row(title: str, cases: Sequence[str]) -> Compared:
    """Give the share of some cases among all as a row."""
    row = Row(title, lambda result: share_of_cases(result, cases), ".2%")
    totals = {name: summed(name, TABLE_6_ROWS) for name in SETS}
    return Compared(row, {name: summed(name, cases) / totals[name] for name in SETS})


def _table_6(found: Streit2002) -> StudyTable:
    def count(title: str, cases: Sequence[str]) -> Compared:
        row = Row(title, lambda result: sum(cases_of(result)[case] for case in cases))
        return Compared(row, {name: summed(name, cases) for name in SETS})

    def as_printed(title: str, printed: Mapping[str, float], form: str) -> Compared:
        return Compared(Row(title, ARTWW.of, form), printed, ours=False)

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


def _draws(found: Streit2002) -> StudyTable:
    """Give each draw of each set with its load, which is what a single draw hangs on."""
    shown = (*SINGLES, SIMPLE, ADVANCED)
    rows: list[tuple[Cell, ...]] = []
    for job_set in found.sets:
        runs = [found.runs(job_set.name, scheduler) for scheduler in shown]
        for draw, results in enumerate(zip(*runs, strict=True), start=1):
            load = describe(found.jobs(job_set, draw)).offered_load
            rows.append((job_set.name, draw, load, *(run.measures.artww_s for run in results)))
        printed = [TABLE_4[job_set.name]["artww", str(decider)].artww_s for decider in DECIDERS]
        load = TABLE_4[job_set.name]["artww", "simple"].utilization
        rows.append((job_set.name, "paper", load, None, None, None, *printed))
    columns = (Column("set"), Column("draw"), Column("offered load", ".1%"))
    return StudyTable(
        "draws",
        "Each draw at a shrinking factor of 1.00: offered load, and ARTwW in seconds",
        (*columns, *(Column(scheduler, ",.0f") for scheduler in shown)),
        tuple(rows),
        "Of the paper's set the utilization, which is a little below the load.",
    )
