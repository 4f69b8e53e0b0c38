"""Tables 1, 4, 6, 7 and 8 of Gaussier 2015, the paper's numbers beside ours, and our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from foretime_sim.scores.intervals import t_interval
from foretime_sim.scores.metrics import rank
from foretime_sim.scores.repeats import FEWEST_REPEATS

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.gaussier2015 import paper
from foretime_studies.gaussier2015.paper import PaperLog, Span
from foretime_studies.gaussier2015.selection import (
    Rule,
    agreements,
    mean_reduction,
    reduction,
)
from foretime_studies.gaussier2015.study import (
    CLAIRVOYANT,
    CLAIRVOYANT_SJBF,
    EASY,
    EASY_PLUS_PLUS,
    EASY_SJBF,
    LAST_TWO,
    LAST_TWO_REQUESTED,
    Gaussier2015,
    Triple,
)

_SCORE, _SHARE = ",.1f", ".0%"
_T = TypeVar("_T")
_MONTH_DAYS = 365.25 / 12


def tables(found: Gaussier2015) -> list[StudyTable]:
    """Give every table of the campaign, in the paper's order, then our own."""
    made = [table_1(found), table_4(found), table_6(found)]
    if found.chosen:
        made += [table_7(found), selection(found)]
    if found.settings.repeats:
        made.append(jittered(found))
    if len(found.logs) > 1:
        made.append(correlations(found))
    return [*made, extremes(found), effects(found), all_triples(found)]


def _paper(found: Gaussier2015) -> list[PaperLog | None]:
    by_name = {log.name: log for log in paper.PAPER_LOGS}
    return [by_name.get(name) for name in found.names]


def _of(printed: PaperLog | None, figure: Callable[[PaperLog], _T]) -> _T | None:
    """Give one of the printed figures; ``None`` for a log that the paper has not."""
    return None if printed is None else figure(printed)


def _printed_gap(log: PaperLog) -> float:
    return (log.easy - log.chosen) / (log.easy - log.clairvoyant_sjbf)


def table_1(found: Gaussier2015) -> StudyTable:
    """Give EASY on requested and on actual times."""
    rows: list[tuple[Cell, ...]] = []
    for name, printed in zip(found.names, _paper(found), strict=True):
        easy, known = found.avebsld(name, EASY), found.avebsld(name, CLAIRVOYANT)
        rows.append(
            (
                name,
                easy,
                _of(printed, lambda log: log.easy),
                known,
                _of(printed, lambda log: log.clairvoyant),
                reduction(easy, known),
                _of(printed, lambda log: reduction(log.easy, log.clairvoyant)),
            )
        )
    columns = (
        Column("log"),
        Column("EASY", _SCORE),
        Column("paper", _SCORE),
        Column("clairvoyant", _SCORE),
        Column("paper", _SCORE),
        Column("reduced by", _SHARE),
        Column("paper", _SHARE),
    )
    return StudyTable(
        "table1", "Table 1. AVEbsld of EASY on requested and on actual times", columns, tuple(rows)
    )


def table_4(found: Gaussier2015) -> StudyTable:
    """Describe the logs."""
    rows: list[tuple[Cell, ...]] = []
    for here, printed in zip(found.logs, _paper(found), strict=True):
        rows.append(
            (
                here.name,
                here.processors,
                _of(printed, lambda log: log.processors),
                here.jobs_read,
                _of(printed, lambda log: f"{log.jobs_k}k"),
                here.jobs,
                here.days / _MONTH_DAYS,
                _of(printed, lambda log: log.months),
            )
        )
    columns = (
        Column("log"),
        Column("processors", ",d"),
        Column("paper", ",d"),
        Column("jobs", ",d"),
        Column("paper"),
        Column("simulated", ",d"),
        Column("months", ".1f"),
        Column("paper", "d"),
    )
    return StudyTable("table4", "Table 4. The logs", columns, tuple(rows))


def _span(found: Gaussier2015, log: str, listed: Iterable[Triple]) -> Span:
    values = [found.avebsld(log, triple) for triple in listed]
    return Span(min(values), max(values)) if values else Span(math.nan, math.nan)


def _written(span: Span | None) -> str | None:
    return None if span is None else f"{span.best:,.1f} to {span.worst:,.1f}"


def table_6(found: Gaussier2015) -> StudyTable:
    """Everything in overview: the best and the worst triple with a learned prediction."""
    learned = [triple for triple in found.candidates if triple.learned]
    rows: list[tuple[Cell, ...]] = []
    for name, printed in zip(found.names, _paper(found), strict=True):
        row: list[Cell] = [name]
        for triple, of_paper in (
            (CLAIRVOYANT, _of(printed, lambda log: log.clairvoyant)),
            (CLAIRVOYANT_SJBF, _of(printed, lambda log: log.clairvoyant_sjbf)),
            (EASY, _of(printed, lambda log: log.easy)),
            (EASY_PLUS_PLUS, _of(printed, lambda log: log.easy_plus_plus)),
        ):
            row += [found.avebsld(name, triple), of_paper]
        for backfill, span in (
            ("easy", _of(printed, lambda log: log.learning)),
            ("easy-sjbf", _of(printed, lambda log: log.learning_sjbf)),
        ):
            ours = _span(found, name, [t for t in learned if t.backfill == backfill])
            row += [ours.best, ours.worst, _written(span)]
        rows.append(tuple(row))
    columns = [Column("log")]
    for title in ("clairvoyant FCFS", "clairvoyant SJBF", "EASY", "EASY++"):
        columns += [Column(title, _SCORE), Column("paper", _SCORE)]
    for title in ("learned FCFS", "learned SJBF"):
        columns += [Column(f"{title}, best", _SCORE), Column("worst", _SCORE), Column("paper")]
    return StudyTable("table6", "Table 6. Overview of AVEbsld", tuple(columns), tuple(rows))


def gap_closed(found: Gaussier2015, log: str, triple: Triple, seed: int = 0) -> float:
    """Share of the gap from EASY to clairvoyant EASY-SJBF that a triple closes."""
    easy, best = (found.avebsld(log, known, seed) for known in (EASY, CLAIRVOYANT_SJBF))
    return (easy - found.avebsld(log, triple, seed)) / (easy - best)


def table_7(found: Gaussier2015) -> StudyTable:
    """Tell what the triple that was chosen on the other logs does."""
    own_choice = found.settings.paper_choice
    rows: list[tuple[Cell, ...]] = []
    for name, printed in zip(found.names, _paper(found), strict=True):
        chosen = found.chosen[name]
        easy, value = found.avebsld(name, EASY), found.avebsld(name, chosen)
        plus = found.avebsld(name, EASY_PLUS_PLUS)
        own = found.avebsld(name, own_choice) if own_choice in found.candidates else None
        rows.append(
            (
                name,
                chosen.title,
                value,
                own,
                _of(printed, lambda log: log.chosen),
                reduction(easy, value),
                _of(printed, lambda log: reduction(log.easy, log.chosen)),
                gap_closed(found, name, chosen),
                _of(printed, _printed_gap),
                plus,
                _of(printed, lambda log: log.easy_plus_plus),
                reduction(easy, plus),
                _of(printed, lambda log: reduction(log.easy, log.easy_plus_plus)),
            )
        )
    columns = (
        Column("log"),
        Column("chosen on the others"),
        Column("AVEbsld", _SCORE),
        Column("of the paper's choice", _SCORE),
        Column("paper", _SCORE),
        Column("reduced by", _SHARE),
        Column("paper", _SHARE),
        Column("of the gap", _SHARE),
        Column("paper", _SHARE),
        Column("EASY++", _SCORE),
        Column("paper", _SCORE),
        Column("reduced by", _SHARE),
        Column("paper", _SHARE),
    )
    note = (
        "Chosen is the triple with the smallest sum of AVEbsld on the other logs; reduced against "
        "EASY; the gap is the one from EASY to clairvoyant EASY-SJBF."
    )
    return StudyTable(
        "table7", "Table 7. The triple chosen on the other logs", columns, tuple(rows), note
    )


def selection(found: Gaussier2015) -> StudyTable:
    """Compare rules of selection, and the mean reduction that each reaches."""
    easy = [found.avebsld(name, EASY) for name in found.names]
    plus = [found.avebsld(name, EASY_PLUS_PLUS) for name in found.names]
    columns = [Column("chosen by"), Column("reduced by", ".1%"), Column("against EASY++", ".1%")]
    columns += [Column(name) for name in found.names]
    rows: list[tuple[Cell, ...]] = []

    def add(title: str, chosen: Sequence[Triple]) -> None:
        values = [found.avebsld(n, triple) for n, triple in zip(found.names, chosen, strict=True)]
        told = [f"{value:,.1f}" for value in values]
        rows.append((title, mean_reduction(easy, values), mean_reduction(plus, values), *told))

    for rule in Rule:
        add(rule.value, list(found.choices(rule).values()))
    own_choice = found.settings.paper_choice
    if own_choice in found.candidates:
        add("the paper's choice everywhere", [own_choice] * len(easy))
    add("AVE_2 corrected to the request", [LAST_TWO_REQUESTED] * len(easy))
    add("EASY++ everywhere", [EASY_PLUS_PLUS] * len(easy))
    add("EASY-SJBF on requests everywhere", [EASY_SJBF] * len(easy))
    of_paper = [log for log in _paper(found) if log is not None]
    for title, listed in (
        ("paper's table 7, these logs", of_paper),
        ("paper's table 7, its six logs", list(paper.PAPER_LOGS)),
    ):
        values = [log.chosen for log in listed]
        told = {log.name: f"{log.chosen:,.1f}" for log in listed}
        rows.append(
            (
                title,
                mean_reduction([log.easy for log in listed], values) if listed else None,
                mean_reduction([log.easy_plus_plus for log in listed], values) if listed else None,
                *(told.get(name) for name in found.names),
            )
        )
    rows.append(
        (
            "printed in its text",
            paper.PRINTED_REDUCTION,
            paper.PRINTED_REDUCTION_TO_EASY_PLUS_PLUS,
            *(None for _ in found.names),
        )
    )
    return StudyTable(
        "selection",
        "Mean reduction of AVEbsld, by rule of selection",
        tuple(columns),
        tuple(rows),
        "Every rule chooses for a log on the others only. Under each log: AVEbsld there.",
    )


def jittered(found: Gaussier2015) -> StudyTable:
    """Give the triples that matter on jittered copies: single runs are noise."""
    count = found.settings.repeats
    rows: list[tuple[Cell, ...]] = []
    for name in found.names:
        for triple in found.settings.triples:
            if (name, triple, count) in found.runs:
                values = _on_copies(found, name, triple, found.avebsld)
                single = (found.avebsld(name, triple), min(values), max(values))
                told = (triple.title, *single, *_mean(values))
                gaps = _on_copies(found, name, triple, partial(gap_closed, found))
                reduced = _on_copies(found, name, triple, partial(_reduced, found))
                rows.append((name, *told, *_mean(reduced), float(np.mean(gaps))))
    everywhere = [
        ("EASY++", [EASY_PLUS_PLUS] * len(found.names)),
        ("AVE_2 corrected to the request", [LAST_TWO_REQUESTED] * len(found.names)),
    ]
    if found.settings.paper_choice in found.candidates:
        everywhere.append(("the paper's choice", [found.settings.paper_choice] * len(found.names)))
    if found.chosen:
        everywhere.append(("chosen on the others", list(found.chosen.values())))
    for title, listed in everywhere if len(found.names) > 1 else ():
        # Copies of different logs have nothing to do with each other: any may stand together.
        reduced, gaps = (
            np.mean(
                [
                    _on_copies(found, name, triple, partial(of, found))
                    for name, triple in zip(found.names, listed, strict=True)
                ],
                axis=0,
            ).tolist()
            for of in (_reduced, gap_closed)
        )
        row = ("mean of the logs", title, *(None for _ in range(6)))
        rows.append((*row, *_mean(reduced), float(np.mean(gaps))))
    columns = (
        Column("log"),
        Column("triple"),
        Column("log as it is", _SCORE),
        Column("least", _SCORE),
        Column("most", _SCORE),
        Column("mean", _SCORE),
        Column("from", _SCORE),
        Column("to", _SCORE),
        Column("reduced by", ".1%"),
        Column("from", ".1%"),
        Column("to", ".1%"),
        Column("of the gap", _SHARE),
    )
    note = (
        f"{count} copies of each log, submissions moved by up to a minute and ties shuffled, the "
        "same for every triple; 95% intervals of the means."
    )
    return StudyTable(
        "jittered", "AVEbsld on jittered copies of the logs", columns, tuple(rows), note
    )


def _on_copies(
    found: Gaussier2015, log: str, triple: Triple, of: Callable[[str, Triple, int], float]
) -> list[float]:
    """Give a figure of a triple on each jittered copy of a log."""
    return [of(log, triple, seed) for seed in range(1, found.settings.repeats + 1)]


def _reduced(found: Gaussier2015, log: str, triple: Triple, seed: int) -> float:
    return reduction(found.avebsld(log, EASY, seed), found.avebsld(log, triple, seed))


def _mean(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Mean, and Student's interval from three values on."""
    if len(values) < FEWEST_REPEATS:
        return float(np.mean(values)), None, None
    interval = t_interval(values)
    return float(np.mean(values)), interval.low, interval.high


def correlations(found: Gaussier2015) -> StudyTable:
    """Section 6.3.2: whether a triple that does well on one log does well on another."""
    found_pairs = agreements(found.matrix(found.candidates))
    rows: list[tuple[Cell, ...]] = [
        (f"{found.names[pair.first]}, {found.names[pair.second]}", *pair[2:], None)
        for pair in found_pairs
    ]
    values = np.array([pair[2:] for pair in found_pairs])
    for title, put_together, printed in (
        ("mean", np.mean, paper.CORRELATION_MEAN),
        ("smallest", np.min, paper.CORRELATION_MIN),
        ("largest", np.max, paper.CORRELATION_MAX),
    ):
        rows.append((title, *(float(put_together(column)) for column in values.T), printed))
    columns = (
        Column("logs"),
        Column("Pearson", ".2f"),
        Column("of logarithms", ".2f"),
        Column("Spearman", ".2f"),
        Column("paper, Pearson", ".2f"),
    )
    return StudyTable(
        "correlations",
        "Section 6.3.2. Correlation of the triples' AVEbsld between logs",
        columns,
        tuple(rows),
        "The paper's are of the 15 couples of its six logs.",
    )


def extremes(found: Gaussier2015) -> StudyTable:
    """Section 6.5: what the 0.1% of jobs with the largest bounded slowdowns are in AVEbsld."""
    learned = [triple for triple in found.candidates if triple.learned]
    by_last_two = [triple for triple in found.candidates if triple.prediction == LAST_TWO]
    rows: list[tuple[Cell, ...]] = []
    for log in found.logs:

        def share(triple: Triple, name: str = log.name) -> float:
            return float(found.runs[name, triple, 0]["bounded_slowdown_top_share"])

        listed = [("EASY", EASY), ("clairvoyant SJBF", CLAIRVOYANT_SJBF)]
        listed += [("EASY++", EASY_PLUS_PLUS)]
        listed += [("AVE_2 corrected to the request", LAST_TWO_REQUESTED)]
        if found.settings.paper_choice in learned:
            listed.append(("the paper's choice", found.settings.paper_choice))
        if found.chosen:
            listed.append((f"chosen: {found.chosen[log.name].title}", found.chosen[log.name]))
        for title, group in (("of last-two", by_last_two), ("learned", learned)):
            ordered = sorted(group, key=share)
            if ordered:
                middle, last = ordered[len(ordered) // 2], ordered[-1]
                listed += [(f"{title}, median: {middle.title}", middle)]
                listed += [(f"{title}, most: {last.title}", last)]
        for title, triple in listed:
            run = found.runs[log.name, triple, 0]
            extreme = rank(paper.EXTREME_SHARE, log.jobs)
            value = found.avebsld(log.name, triple)
            others = value * (1 - share(triple)) * log.jobs / (log.jobs - extreme)
            largest, longest_d = run["bounded_slowdown_max"], run["wait_max_s"] / 86_400
            rows.append((log.name, title, value, share(triple), others, largest, longest_d))
    columns = (
        Column("log"),
        Column("triple"),
        Column("AVEbsld", _SCORE),
        Column("share of the extreme", ".1%"),
        Column("AVEbsld of the others", _SCORE),
        Column("largest", ",.0f"),
        Column("longest wait, days", ",.1f"),
    )
    return StudyTable(
        "extremes", "Section 6.5. The 0.1% of jobs with extreme bounded slowdowns", columns,
        tuple(rows),
    )  # fmt: skip


def effects(found: Gaussier2015) -> StudyTable:
    """Tell what each prediction, correction and backfilling does, all others varied."""
    listed = [triple for triple in found.candidates if triple.correction is not None]
    matrix = found.matrix(listed)
    ratio = np.log(matrix / found.matrix([EASY]))
    rows: list[tuple[Cell, ...]] = []
    for what in ("prediction", "correction", "backfill"):
        for value in dict.fromkeys(getattr(triple, what) for triple in listed):
            columns = [
                place for place, triple in enumerate(listed) if getattr(triple, what) == value
            ]
            by_log = np.exp(ratio[:, columns].mean(axis=1))
            best = listed[columns[int(np.argmin(ratio[:, columns].mean(axis=0)))]]
            rows.append(
                (
                    what,
                    str(value),
                    float(np.exp(ratio[:, columns].mean())),
                    *by_log.tolist(),
                    best.title,
                    float(np.exp(ratio[:, columns].mean(axis=0).min())),
                )
            )
    headings = (
        Column("what"),
        Column("value"),
        Column("AVEbsld over EASY's", ".2f"),
        *(Column(name, ".2f") for name in found.names),
        Column("best triple with it"),
        Column("its AVEbsld over EASY's", ".2f"),
    )
    return StudyTable(
        "effects",
        "What each part of a triple does",
        headings,
        tuple(rows),
        "Geometric means over logs and all triples with it.",
    )


def all_triples(found: Gaussier2015) -> StudyTable:
    """Give AVEbsld of every triple on every log, what figure 3 draws, best first."""
    listed = found.settings.triples
    matrix = found.matrix(listed)
    over = np.exp(np.log(matrix / found.matrix([EASY])).mean(axis=0))
    rows = tuple(
        (
            *listed[column],
            float(over[column]),
            *matrix[:, column].tolist(),
        )
        for column in np.argsort(over, kind="stable").tolist()
    )
    columns = (
        Column("prediction"),
        Column("correction"),
        Column("backfilling"),
        Column("over EASY's", ".2f"),
        *(Column(name, _SCORE) for name in found.names),
    )
    return StudyTable("triples", "AVEbsld of every triple on the logs as they are", columns, rows)
