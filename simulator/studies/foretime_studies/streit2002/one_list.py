"""Tables 4 to 6 of Streit 2002 with a queue that is one list, which FCFS does not sort.

What that is, and why: `foretime_sim.policies.policy_switching` and docs/dynp.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from foretime_sim.policies.policy_switching import Quality

from foretime_studies.frame.tables import Entry, NotedRows, Row, StudyTable, study_table
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.curves import point, points
from foretime_studies.streit2002.paper import TABLE_6_ROWS
from foretime_studies.streit2002.sets import CTC, KTH, PC2, JobSet
from foretime_studies.streit2002.study import (
    ADVANCED,
    DECIDERS,
    LIST_ADVANCED,
    LIST_SIMPLE,
    QUALITIES,
    SIMPLE,
    SINGLES,
    CaseResult,
    Streit2002,
    self_tuning,
    with_one_list,
)
from foretime_studies.streit2002.tables import (
    ARTWW,
    QUALITY_TITLES,
    STARTED,
    printed_run,
    rows_of_table_5,
    run_key,
    share_row,
    told_of,
)

_FIGURE_2 = {PC2.name: 0.30, KTH.name: 0.20, CTC.name: None}
"""How much the advanced decider is said to be better by over shrinking factors."""
_LOADED = "The sets have the paper's load: their gaps are stretched until it is that."
_BY_ARTWW = {LIST_SIMPLE: "simple, one list", LIST_ADVANCED: "advanced, one list"}


def one_list_tables(found: Streit2002) -> list[StudyTable]:
    """Make the tables of a queue in one list."""
    return [
        _gains(found),
        _table_4(found),
        _tables_5_and_6(found),
        _singles(found),
        _curves(found),
    ]


def _gains_of(simple: Sequence[CaseResult], advanced: Sequence[CaseResult]) -> list[float]:
    """Say by how much the advanced decider's ARTwW is lower, draw by draw."""
    return [
        1 - one.measures.artww_s / other.measures.artww_s
        for one, other in zip(advanced, simple, strict=True)
    ]


def _over_factors(found: Streit2002, job_set: JobSet, simple: str, advanced: str) -> Spread:
    """Give the same, the mean over the factors of a draw."""
    gains = [
        _gains_of(*(found.runs(job_set.name, key, at) for key in (simple, advanced)))
        for at in job_set.factors
    ]
    return Spread.of(np.mean(gains, axis=0).tolist())


@study_table("one-list-gains", "By how much the advanced decider's ARTwW is below the simple one's")
def _gains(found: Streit2002) -> NotedRows:
    """Say by how much the advanced decider is better: printed, planned anew, and with one list."""

    def row(where: str, name: str, printed: float | None, anew: Spread, one_list: Spread) -> Row:
        told: list[Entry] = [("where", where), ("set", name), ("paper", printed, ".1%")]
        for title, spread in (("anew", anew), ("one list", one_list)):
            _, mean, interval = told_of(".1%", spread)
            told += [(title, mean), ("95% interval", interval)]
        return told

    for quality, job_set in itertools.product(QUALITIES, found.sets):
        name = job_set.name
        printed = [printed_run(name, quality, decider)["artww_s"] for decider in DECIDERS]
        anew = [found.runs(name, self_tuning(decider, quality)) for decider in DECIDERS]
        listed = [
            found.runs(name, with_one_list(decider, quality), kind="loaded") for decider in DECIDERS
        ]
        spreads = (Spread.of(_gains_of(*anew)), Spread.of(_gains_of(*listed)))
        where = f"table 4, {QUALITY_TITLES[quality]}"
        yield row(where, name, 1 - printed[1] / printed[0], *spreads)
    for job_set in found.sets:
        if job_set.name in _FIGURE_2:
            of_anew = _over_factors(found, job_set, SIMPLE, ADVANCED)
            of_list = _over_factors(found, job_set, LIST_SIMPLE, LIST_ADVANCED)
            said = _FIGURE_2[job_set.name]
            yield row("figure 2, over factors", job_set.name, said, of_anew, of_list)
    return (
        f"Means over {found.settings.seeds} draws. Anew, and over factors: on the sets above; one "
        "list in table 4: on sets with the paper's load."
    )


@study_table("one-list-4", "Table 4 with one list: ARTwW, and jobs started with each order")
def _table_4(found: Streit2002) -> NotedRows:
    for job_set, quality, decider in itertools.product(found.sets, QUALITIES, DECIDERS):
        printed = printed_run(job_set.name, quality, decider)
        row = run_key(job_set.name, quality, decider)
        for of in (ARTWW, *STARTED):
            key = with_one_list(decider, quality)
            spread = found.spread(of.of, job_set.name, key, kind="loaded")
            _, mean, interval = told_of(of.form, spread)
            row += [(f"{of.title}, paper", format(printed[of.key], of.form)), ("mean", mean)]
            if of is ARTWW:
                row.append(("95% interval", interval))
        yield row
    return _LOADED


def _loaded_mean(found: Streit2002, of: str, job_set: JobSet) -> str | None:
    return told_of(ARTWW.form, found.spread(ARTWW.of, job_set.name, of, kind="loaded"))[1]


@study_table(
    "one-list-5-6", "Tables 5 and 6 with one list: advanced decider, ARTwW, shrinking factor 1.00"
)
def _tables_5_and_6(found: Streit2002) -> NotedRows:
    compared = [*rows_of_table_5(), *(share_row(f"case {case}", [case]) for case in TABLE_6_ROWS)]
    for each in compared:
        of, form = each.row.of, each.row.form
        row: list[Entry] = [("", each.row.title)]
        for job_set in found.sets:
            anew, listed = (
                told_of(form, found.spread(of, job_set.name, key, kind="loaded"))[1]
                for key in (ADVANCED, LIST_ADVANCED)
            )
            printed = format(each.printed[job_set.name], form)
            row += [(f"{job_set.name} paper", printed), ("anew", anew), ("one list", listed)]
        yield row
    return f"Means over {found.settings.seeds} draws; cases as shares of their total. {_LOADED}"


@study_table(
    "one-list-artww", "ARTwW in seconds at a shrinking factor of 1.00, with the paper's load"
)
def _singles(found: Streit2002) -> NotedRows:
    names = {key: key for key in SINGLES} | {SIMPLE: "simple, anew", ADVANCED: "advanced, anew"}
    for job_set in found.sets:
        yield [
            ("set", job_set.name),
            *(
                (title, _loaded_mean(found, key, job_set))
                for key, title in (names | _BY_ARTWW).items()
            ),
            *(
                (
                    f"{decider}, paper",
                    f"{printed_run(job_set.name, Quality.ARTWW, decider)['artww_s']:,.0f}",
                )
                for decider in DECIDERS
            ),
        ]
    return f"Means over {found.settings.seeds} draws. {_LOADED}"


@study_table("one-list-curves", "ARTwW in seconds over shrinking factors, with one list")
def _curves(found: Streit2002) -> NotedRows:
    shown = {key: key for key in SINGLES} | _BY_ARTWW
    for job_set, factor in points(found.sets):
        row = [*point(job_set, factor)]
        for key, title in shown.items():
            artww = [run.measures.artww_s for run in found.runs(job_set.name, key, factor)]
            row.append((title, float(np.mean(artww)), ARTWW.form))
        yield row
    return f"Means over {found.settings.seeds} draws, the sets of figure 4."
