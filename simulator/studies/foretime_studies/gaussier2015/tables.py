"""Tables 1, 4, 6, 7 and 8 of Gaussier 2015, the paper's numbers beside ours, and our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from foretime_sim.scores.intervals import t_interval
from foretime_sim.scores.metrics import rank
from foretime_sim.scores.repeats import FEWEST_REPEATS

from foretime_studies.frame.tables import Cell, Entry, NotedRows, Row, Rows, StudyTable, study_table
from foretime_studies.gaussier2015 import paper
from foretime_studies.gaussier2015.selection import Rule, agreements, mean_reduction, reduction
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

_SCORE, _SHARE, _TENTHS = ",.1f", ".0%", ".1%"
_MONTH_DAYS = 365.25 / 12


def tables(found: Gaussier2015) -> list[StudyTable]:
    """Give every table of the campaign, in the paper's order, then our own."""
    made = [_table_1(found), _table_4(found), _table_6(found)]
    if found.chosen:
        made += [_table_7(found), _selection(found)]
    if found.settings.repeats:
        made.append(_jittered(found))
    if len(found.logs) > 1:
        made.append(_correlations(found))
    return [*made, _extremes(found), _effects(found), _all_triples(found)]


def _printed(name: str) -> Mapping[str, Any]:
    """Give what the paper prints of a log; nothing of one that it has not."""
    return paper.PAPER_LOGS.get(name, {})


def _beside(title: str, ours: float | None, printed: Cell, form: str = _SCORE) -> Row:
    """Put our number beside the paper's."""
    return [(title, ours, form), ("paper", printed, form)]


def _printed_reduction(printed: Mapping[str, Any], of: str) -> float | None:
    return reduction(printed["easy"], printed[of]) if printed else None


@study_table("table1", "Table 1. AVEbsld of EASY on requested and on actual times")
def _table_1(found: Gaussier2015) -> Rows:
    for name in found.names:
        easy, known = found.avebsld(name, EASY), found.avebsld(name, CLAIRVOYANT)
        printed = _printed(name)
        printed_share = _printed_reduction(printed, "clairvoyant")
        yield [
            ("log", name),
            *_beside("EASY", easy, printed.get("easy")),
            *_beside("clairvoyant", known, printed.get("clairvoyant")),
            *_beside("reduced by", reduction(easy, known), printed_share, _SHARE),
        ]


@study_table("table4", "Table 4. The logs")
def _table_4(found: Gaussier2015) -> Rows:
    for log in found.logs:
        printed = _printed(log.name)
        yield [
            ("log", log.name),
            *_beside("processors", log.processors, printed.get("processors"), ",d"),
            ("jobs", log.jobs_read, ",d"),
            ("paper", f"{printed['jobs_k']}k" if printed else None),
            ("simulated", log.jobs, ",d"),
            ("months", log.days / _MONTH_DAYS, ".1f"),
            ("paper", printed.get("months"), "d"),
        ]


@study_table("table6", "Table 6. Overview of AVEbsld")
def _table_6(found: Gaussier2015) -> Rows:
    """Everything in overview: the best and the worst triple with a learned prediction."""
    shown = {
        "clairvoyant FCFS": (CLAIRVOYANT, "clairvoyant"),
        "clairvoyant SJBF": (CLAIRVOYANT_SJBF, "clairvoyant_sjbf"),
        "EASY": (EASY, "easy"),
        "EASY++": (EASY_PLUS_PLUS, "easy_plus_plus"),
    }
    learned = {"learned FCFS": ("easy", "learning"), "learned SJBF": ("easy-sjbf", "learning_sjbf")}
    for name in found.names:
        printed = _printed(name)
        row: list[Entry] = [("log", name)]
        for title, (triple, key) in shown.items():
            row += _beside(title, found.avebsld(name, triple), printed.get(key))
        for title, (backfill, key) in learned.items():
            of = [t for t in found.candidates if t.learned and t.backfill == backfill]
            values = [found.avebsld(name, triple) for triple in of] or [np.nan]
            span = (
                f"{printed[f'{key}_best']:,.1f} to {printed[f'{key}_worst']:,.1f}"
                if printed
                else None
            )
            row += [
                (f"{title}, best", min(values), _SCORE),
                ("worst", max(values), _SCORE),
                ("paper", span),
            ]
        yield row


def gap_closed(found: Gaussier2015, log: str, triple: Triple, seed: int = 0) -> float:
    """Share of the gap from EASY to clairvoyant EASY-SJBF that a triple closes."""
    easy, best = (found.avebsld(log, known, seed) for known in (EASY, CLAIRVOYANT_SJBF))
    return (easy - found.avebsld(log, triple, seed)) / (easy - best)


@study_table(
    "table7",
    "Table 7. The triple chosen on the other logs",
    "Chosen is the triple with the smallest sum of AVEbsld on the other logs; reduced against "
    "EASY; the gap is the one from EASY to clairvoyant EASY-SJBF.",
)
def _table_7(found: Gaussier2015) -> Rows:
    own_choice = found.settings.paper_choice
    for name in found.names:
        chosen, printed = found.chosen[name], _printed(name)
        easy, value, plus = (found.avebsld(name, t) for t in (EASY, chosen, EASY_PLUS_PLUS))
        own = found.avebsld(name, own_choice) if own_choice in found.candidates else None
        by, by_plus = (_printed_reduction(printed, key) for key in ("chosen", "easy_plus_plus"))
        gap = None
        if printed:
            gap_size = printed["easy"] - printed["clairvoyant_sjbf"]
            gap = (printed["easy"] - printed["chosen"]) / gap_size
        yield [
            ("log", name),
            ("chosen on the others", chosen.title),
            ("AVEbsld", value, _SCORE),
            *_beside("of the paper's choice", own, printed.get("chosen")),
            *_beside("reduced by", reduction(easy, value), by, _SHARE),
            *_beside("of the gap", gap_closed(found, name, chosen), gap, _SHARE),
            *_beside("EASY++", plus, printed.get("easy_plus_plus")),
            *_beside("reduced by", reduction(easy, plus), by_plus, _SHARE),
        ]


def _everywhere(found: Gaussier2015, triple: Triple) -> list[Triple]:
    return [triple] * len(found.names)


@study_table(
    "selection",
    "Mean reduction of AVEbsld, by rule of selection",
    "Every rule chooses for a log on the others only. Under each log: AVEbsld there.",
)
def _selection(found: Gaussier2015) -> Rows:
    easy, plus = (
        [found.avebsld(name, triple) for name in found.names] for triple in (EASY, EASY_PLUS_PLUS)
    )
    choices = {rule.value: list(found.choices(rule).values()) for rule in Rule}
    if found.settings.paper_choice in found.candidates:
        choices["the paper's choice everywhere"] = _everywhere(found, found.settings.paper_choice)
    choices["AVE_2 corrected to the request"] = _everywhere(found, LAST_TWO_REQUESTED)
    choices["EASY++ everywhere"] = _everywhere(found, EASY_PLUS_PLUS)
    choices["EASY-SJBF on requests everywhere"] = _everywhere(found, EASY_SJBF)

    def row(title: str, by: float | None, by_plus: float | None, told: Mapping[str, float]) -> Row:
        return [
            ("chosen by", title),
            ("reduced by", by, _TENTHS),
            ("against EASY++", by_plus, _TENTHS),
            *((name, f"{told[name]:,.1f}" if name in told else None) for name in found.names),
        ]

    for title, chosen in choices.items():
        told = {n: found.avebsld(n, triple) for n, triple in zip(found.names, chosen, strict=True)}
        values = list(told.values())
        yield row(title, mean_reduction(easy, values), mean_reduction(plus, values), told)
    here = {name: log for name, log in paper.PAPER_LOGS.items() if name in found.names}
    for which, listed in (("these", here), ("its six", paper.PAPER_LOGS)):
        told = {name: log["chosen"] for name, log in listed.items()}
        by, by_plus = (
            mean_reduction([log[key] for log in listed.values()], list(told.values()))
            if listed
            else None
            for key in ("easy", "easy_plus_plus")
        )
        yield row(f"paper's table 7, {which} logs", by, by_plus, told)
    printed = (paper.PRINTED_REDUCTION, paper.PRINTED_REDUCTION_TO_EASY_PLUS_PLUS)
    yield row("printed in its text", *printed, {})


@study_table("jittered", "AVEbsld on jittered copies of the logs")
def _jittered(found: Gaussier2015) -> NotedRows:
    """Give the triples that matter on jittered copies: single runs are noise."""
    count = found.settings.repeats

    def on_copies(
        name: str, triple: Triple, of: Callable[[str, Triple, int], float]
    ) -> list[float]:
        return [of(name, triple, seed) for seed in range(1, count + 1)]

    def row(
        log: str,
        triple: str,
        scores: tuple[float, Sequence[float]] | None,
        reduced: Sequence[float],
        gaps: Sequence[float],
    ) -> Row:
        single, values = scores or (None, None)
        return [
            ("log", log),
            ("triple", triple),
            ("log as it is", single, _SCORE),
            ("least", min(values) if values else None, _SCORE),
            ("most", max(values) if values else None, _SCORE),
            *_mean("mean", values, _SCORE),
            *_mean("reduced by", reduced, _TENTHS),
            ("of the gap", float(np.mean(gaps)), _SHARE),
        ]

    reduced_by, of_gap = partial(_reduced, found), partial(gap_closed, found)
    for name in found.names:
        for triple in found.settings.triples:
            if (name, triple, count) in found.runs:
                yield row(
                    name,
                    triple.title,
                    (found.avebsld(name, triple), on_copies(name, triple, found.avebsld)),
                    on_copies(name, triple, reduced_by),
                    on_copies(name, triple, of_gap),
                )
    everywhere = {
        "EASY++": _everywhere(found, EASY_PLUS_PLUS),
        "AVE_2 corrected to the request": _everywhere(found, LAST_TWO_REQUESTED),
    }
    if found.settings.paper_choice in found.candidates:
        everywhere["the paper's choice"] = _everywhere(found, found.settings.paper_choice)
    if found.chosen:
        everywhere["chosen on the others"] = list(found.chosen.values())
    for title, listed in everywhere.items() if len(found.names) > 1 else ():
        # Copies of different logs have nothing to do with each other: any may stand together.
        reduced, gaps = (
            np.mean(
                [on_copies(*each, of) for each in zip(found.names, listed, strict=True)], axis=0
            )
            for of in (reduced_by, of_gap)
        )
        yield row("mean of the logs", title, None, reduced.tolist(), gaps.tolist())
    return (
        f"{count} copies of each log, submissions moved by up to a minute and ties shuffled, the "
        "same for every triple; 95% intervals of the means."
    )


def _reduced(found: Gaussier2015, log: str, triple: Triple, seed: int) -> float:
    return reduction(found.avebsld(log, EASY, seed), found.avebsld(log, triple, seed))


def _mean(title: str, values: Sequence[float] | None, form: str) -> Row:
    """Mean, and Student's interval from three values on."""
    low = high = None
    if values is not None and len(values) >= FEWEST_REPEATS:
        interval = t_interval(values)
        low, high = interval.low, interval.high
    mean = None if values is None else float(np.mean(values))
    return [(title, mean, form), ("from", low, form), ("to", high, form)]


@study_table(
    "correlations",
    "Section 6.3.2. Correlation of the triples' AVEbsld between logs",
    "The paper's are of the 15 couples of its six logs.",
)
def _correlations(found: Gaussier2015) -> Rows:
    """Section 6.3.2: whether a triple that does well on one log does well on another."""
    pairs = agreements(found.matrix(found.candidates))

    def row(title: str, values: Sequence[float], printed: float | None = None) -> Row:
        named = zip(("Pearson", "of logarithms", "Spearman"), values, strict=True)
        told: list[Entry] = [(name, float(value), ".2f") for name, value in named]
        return [("logs", title), *told, ("paper, Pearson", printed, ".2f")]

    values = np.array([pair[2:] for pair in pairs])
    for p in pairs:
        yield row(f"{found.names[p.first]}, {found.names[p.second]}", p[2:])
    yield row("mean", values.mean(axis=0), paper.CORRELATION_MEAN)
    yield row("smallest", values.min(axis=0), paper.CORRELATION_MIN)
    yield row("largest", values.max(axis=0), paper.CORRELATION_MAX)


def _extremes(found: Gaussier2015) -> StudyTable:
    """Section 6.5: what the 0.1% of jobs with the largest bounded slowdowns are in AVEbsld."""
    learned = [triple for triple in found.candidates if triple.learned]
    by_last_two = [triple for triple in found.candidates if triple.prediction == LAST_TWO]
    rows: list[Row] = []
    for log in found.logs:

        def share(triple: Triple, name: str = log.name) -> float:
            return float(found.runs[name, triple, 0]["bounded_slowdown_top_share"])

        listed = {
            "EASY": EASY,
            "clairvoyant SJBF": CLAIRVOYANT_SJBF,
            "EASY++": EASY_PLUS_PLUS,
            "AVE_2 corrected to the request": LAST_TWO_REQUESTED,
        }
        if found.settings.paper_choice in learned:
            listed["the paper's choice"] = found.settings.paper_choice
        if found.chosen:
            listed[f"chosen: {found.chosen[log.name].title}"] = found.chosen[log.name]
        for title, group in (("of last-two", by_last_two), ("learned", learned)):
            if ordered := sorted(group, key=share):
                middle, last = ordered[len(ordered) // 2], ordered[-1]
                listed[f"{title}, median: {middle.title}"] = middle
                listed[f"{title}, most: {last.title}"] = last
        extreme = rank(paper.EXTREME_SHARE, log.jobs)
        for title, triple in listed.items():
            run, value = found.runs[log.name, triple, 0], found.avebsld(log.name, triple)
            others = value * (1 - share(triple)) * log.jobs / (log.jobs - extreme)
            rows.append(
                [
                    ("log", log.name),
                    ("triple", title),
                    ("AVEbsld", value, _SCORE),
                    ("share of the extreme", share(triple), _TENTHS),
                    ("AVEbsld of the others", others, _SCORE),
                    ("largest", run["bounded_slowdown_max"], ",.0f"),
                    ("longest wait, days", run["wait_max_s"] / 86_400, ",.1f"),
                ]
            )
    title = "Section 6.5. The 0.1% of jobs with extreme bounded slowdowns"
    return StudyTable.of("extremes", title, rows)


def _effects(found: Gaussier2015) -> StudyTable:
    """Tell what each prediction, correction and backfilling does, all others varied."""
    listed = [triple for triple in found.candidates if triple.correction is not None]
    ratio = np.log(found.matrix(listed) / found.matrix([EASY]))

    def effects() -> Iterator[Row]:
        for what in ("prediction", "correction", "backfill"):
            of = [str(getattr(triple, what)) for triple in listed]
            for value in dict.fromkeys(of):
                columns = [place for place, each in enumerate(of) if each == value]
                over = ratio[:, columns]
                by_log = np.exp(over.mean(axis=1)).tolist()
                by_triple = over.mean(axis=0)
                yield [
                    ("what", what),
                    ("value", value),
                    ("AVEbsld over EASY's", float(np.exp(over.mean())), ".2f"),
                    *((n, one, ".2f") for n, one in zip(found.names, by_log, strict=True)),
                    ("best triple with it", listed[columns[int(np.argmin(by_triple))]].title),
                    ("its AVEbsld over EASY's", float(np.exp(by_triple.min())), ".2f"),
                ]

    note = "Geometric means over logs and all triples with it."
    return StudyTable.of("effects", "What each part of a triple does", effects(), note)


@study_table("triples", "AVEbsld of every triple on the logs as they are")
def _all_triples(found: Gaussier2015) -> Rows:
    listed = found.settings.triples
    matrix = found.matrix(listed)
    over = np.exp(np.log(matrix / found.matrix([EASY])).mean(axis=0))
    for column in np.argsort(over, kind="stable").tolist():
        yield [
            *zip(("prediction", "correction", "backfilling"), listed[column], strict=True),
            ("over EASY's", float(over[column]), ".2f"),
            *(
                (n, value, _SCORE)
                for n, value in zip(found.names, matrix[:, column].tolist(), strict=True)
            ),
        ]
