"""Tables 4 to 6 of Streit 2002 with a queue that is one list, which FCFS does not sort.

What that is, and why: `foretime_sim.policies.policy_switching` and docs/dynp.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.streit2002.paper import TABLE_6_ROWS
from foretime_studies.streit2002.runs import (
    ADVANCED,
    DECIDERS,
    LIST_ADVANCED,
    LIST_SIMPLE,
    QUALITIES,
    SIMPLE,
    SINGLES,
    CaseResult,
    self_tuning,
    with_one_list,
)
from foretime_studies.streit2002.sets import CTC, KTH, PC2, JobSet
from foretime_studies.streit2002.study import Spread, Streit2002
from foretime_studies.streit2002.tables import (
    ARTWW,
    STARTED,
    printed_run,
    quality_title,
    rows_of_table_5,
    share_row,
    told_of,
)

_FIGURE_2 = {PC2.name: 0.30, KTH.name: 0.20, CTC.name: None}
"""How much the advanced decider is said to be better by over shrinking factors."""
_GAIN = ".1%"
_LOADED = "The sets have the paper's load: their gaps are stretched until it is that."


def one_list_tables(found: Streit2002) -> list[StudyTable]:
    """Make the tables of a queue in one list."""
    return [
        _gains(found),
        _table_4(found),
        _tables_5_and_6(found),
        _singles(found),
        _curves(found),
    ]


def _gains_of(advanced: Sequence[CaseResult], simple: Sequence[CaseResult]) -> list[float]:
    """Say by how much the advanced decider's ARTwW is lower, draw by draw."""
    return [
        1 - one.measures.artww_s / other.measures.artww_s
        for one, other in zip(advanced, simple, strict=True)
    ]


def _over_factors(found: Streit2002, job_set: JobSet, advanced: str, simple: str) -> Spread:
    """Give the same, the mean over the factors of a draw."""
    gains = [
        _gains_of(*(found.runs(job_set.name, key, at) for key in (advanced, simple)))
        for at in job_set.factors
    ]
    return Spread.of(np.mean(gains, axis=0).tolist())


def _gains(found: Streit2002) -> StudyTable:
    """Say by how much the advanced decider is better: printed, planned anew, and with one list."""
    rows: list[tuple[Cell, ...]] = []

    def add(where: str, name: str, printed: float | None, *ours: Spread) -> None:
        cells: list[Cell] = []
        for spread in ours:
            cells += told_of(_GAIN, spread)[1:]
        rows.append((where, name, printed, *cells))

    for quality, job_set in itertools.product(QUALITIES, found.sets):
        printed = [printed_run(job_set.name, quality, decider)[ARTWW] for decider in DECIDERS]
        simple, advanced = (
            found.runs(job_set.name, self_tuning(decider, quality)) for decider in DECIDERS
        )
        of_list = [
            found.runs(job_set.name, with_one_list(decider, quality), kind="loaded")
            for decider in DECIDERS
        ]
        where = f"table 4, {quality_title(quality)}"
        anew = Spread.of(_gains_of(advanced, simple))
        one_list = Spread.of(_gains_of(of_list[1], of_list[0]))
        add(where, job_set.name, 1 - printed[1] / printed[0], anew, one_list)
    for job_set in found.sets:
        if job_set.name in _FIGURE_2:
            anew = _over_factors(found, job_set, ADVANCED, SIMPLE)
            one_list = _over_factors(found, job_set, LIST_ADVANCED, LIST_SIMPLE)
            add("figure 2, over factors", job_set.name, _FIGURE_2[job_set.name], anew, one_list)
    columns = [Column("where"), Column("set"), Column("paper", ".1%")]
    for title in ("anew", "one list"):
        columns += [Column(title), Column("95% interval")]
    return StudyTable(
        "one-list-gains",
        "By how much the advanced decider's ARTwW is below the simple one's",
        tuple(columns),
        tuple(rows),
        f"Means over {found.settings.seeds} draws. Anew, and over factors: on the sets above; one "
        "list in table 4: on sets with the paper's load.",
    )


def _table_4(found: Streit2002) -> StudyTable:
    """Give table 4 with one list: ARTwW, and jobs started with each order."""
    columns = [Column("set"), Column("quality"), Column("decider")]
    columns += [Column("ARTwW, s, paper"), Column("mean"), Column("95% interval")]
    for row in STARTED:
        columns += [Column(f"{row.title}, paper"), Column("mean")]
    rows: list[tuple[Cell, ...]] = []
    for job_set, quality, decider in itertools.product(found.sets, QUALITIES, DECIDERS):
        printed = printed_run(job_set.name, quality, decider)
        cells: list[Cell] = []
        for row in (ARTWW, *STARTED):
            key = with_one_list(decider, quality)
            spread = found.spread(row.of, job_set.name, key, kind="loaded")
            told = told_of(row.form, spread)
            cells += [format(printed[row], row.form), *(told[1:] if row is ARTWW else told[1:2])]
        rows.append((job_set.name, quality_title(quality), str(decider), *cells))
    return StudyTable(
        "one-list-4",
        "Table 4 with one list: ARTwW, and jobs started with each order",
        tuple(columns),
        tuple(rows),
        _LOADED,
    )


def _tables_5_and_6(found: Streit2002) -> StudyTable:
    """Give tables 5 and 6: printed, planned anew and with one list, on the same sets."""
    columns = [Column("")]
    for job_set in found.sets:
        columns += [Column(f"{job_set.name} paper"), Column("anew"), Column("one list")]
    compared = [*rows_of_table_5(), *(share_row(f"case {case}", [case]) for case in TABLE_6_ROWS)]
    rows = []
    for each in compared:
        row = each.row
        cells: list[Cell] = [row.title]
        for job_set in found.sets:
            cells.append(format(each.printed[job_set.name], row.form))
            for key in (ADVANCED, LIST_ADVANCED):
                spread = found.spread(row.of, job_set.name, key, kind="loaded")
                cells.append(told_of(row.form, spread)[1])
        rows.append(tuple(cells))
    return StudyTable(
        "one-list-5-6",
        "Tables 5 and 6 with one list: advanced decider, ARTwW, shrinking factor 1.00",
        tuple(columns),
        tuple(rows),
        f"Means over {found.settings.seeds} draws; cases as shares of their total. {_LOADED}",
    )


def _singles(found: Streit2002) -> StudyTable:
    """Give ARTwW of the schedulers on the sets with the paper's load."""
    names = {key: key for key in SINGLES} | {SIMPLE: "simple, anew", ADVANCED: "advanced, anew"}
    names |= {LIST_SIMPLE: "simple, one list", LIST_ADVANCED: "advanced, one list"}
    columns = [Column("set"), *(Column(title) for title in names.values())]
    columns += [Column("simple, paper"), Column("advanced, paper")]
    rows: list[tuple[Cell, ...]] = []
    for job_set in found.sets:
        cells = [
            told_of(ARTWW.form, found.spread(ARTWW.of, job_set.name, key, kind="loaded"))[1]
            for key in names
        ]
        printed = [
            format(printed_run(job_set.name, Quality.ARTWW, decider)[ARTWW], ARTWW.form)
            for decider in (Decider.SIMPLE, Decider.ADVANCED)
        ]
        rows.append((job_set.name, *cells, *printed))
    return StudyTable(
        "one-list-artww",
        "ARTwW in seconds at a shrinking factor of 1.00, with the paper's load",
        tuple(columns),
        tuple(rows),
        f"Means over {found.settings.seeds} draws. {_LOADED}",
    )


def _curves(found: Streit2002) -> StudyTable:
    """Give ARTwW over shrinking factors, the single policies beside both deciders."""
    shown = {key: key for key in SINGLES}
    shown |= {LIST_SIMPLE: "simple, one list", LIST_ADVANCED: "advanced, one list"}
    rows: list[tuple[Cell, ...]] = []
    for job_set in found.sets:
        for factor in job_set.factors:
            runs = (found.runs(job_set.name, key, factor) for key in shown)
            means = [float(np.mean([ARTWW.of(run) for run in of_key])) for of_key in runs]
            rows.append((job_set.name, factor, *means))
    return StudyTable(
        "one-list-curves",
        "ARTwW in seconds over shrinking factors, with one list",
        (
            Column("set"),
            Column("factor", ".2f"),
            *(Column(title, ARTWW.form) for title in shown.values()),
        ),
        tuple(rows),
        f"Means over {found.settings.seeds} draws, the sets of figure 4.",
    )
