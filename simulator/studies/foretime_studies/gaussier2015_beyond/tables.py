"""Tables of the study beyond Gaussier 2015."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from foretime_studies.frame.claims import yes
from foretime_studies.frame.tables import NotedRows, Row, StudyTable, study_table
from foretime_studies.gaussier2015_beyond.cases import BESIDE, CLAIRVOYANT, EASY, Kind
from foretime_studies.gaussier2015_beyond.study import (
    BELOW,
    GAP,
    LONGEST,
    MEAN_WAIT,
    P99,
    P99_9,
    TARGETS,
    WAITS,
    Beyond,
    Rule,
)

_RULES: Mapping[Rule, str] = {
    Rule.GAP: "the greatest share of the gap closed on the other logs",
    Rule.WAITS: "the same among the cases that keep the targets of waits on the other logs (where "
    "none does: the one that misses them by least)",
    Rule.ALL: "the greatest share of the gap closed among the cases that keep all targets on the "
    "other logs (where none does: the one that misses them by least)",
}
_BY_KIND = {
    "ablation": ("What each idea brings", Kind.PRACTICAL),
    "predictors": ("What each estimator brings", Kind.PREDICTOR),
    "corrections": ("What each correction brings", Kind.CORRECTION),
    "oracles": ("What perfect knowledge would bring", Kind.ORACLE),
    "orders": ("Other queue orders", Kind.ORDER),
}


def tables(found: Beyond) -> list[StudyTable]:
    """Give every table, in the order of the report."""
    return [
        _logs_table(found),
        *(table for rule in Rule for table in _chosen_tables(found, rule)),
        *(_cases_table(found, key, title, kind) for key, (title, kind) in _BY_KIND.items()),
        *(_of_log(found, place) for place in range(len(found.logs))),
    ]


@study_table("logs", "The gap")
def _logs_table(found: Beyond) -> NotedRows:
    for log in found.logs:
        easy, best = (found.runs[log.name, case.name] for case in (EASY, CLAIRVOYANT))
        waits = {"mean wait of EASY, s": "mean", "p99, s": "p99", "longest, s": "max"}
        yield [
            ("log", log.name),
            ("jobs", log.jobs, ","),
            ("processors", log.processors, ","),
            ("AVEbsld, EASY", _mean_of(easy, "bounded_slowdown_mean")),
            ("clairvoyant EASY-SJBF", _mean_of(best, "bounded_slowdown_mean")),
            *(
                (title, float(np.mean([run[f"wait_{of}_s"] for run in easy])), ",.0f")
                for title, of in waits.items()
            ),
        ]
    return _note(found)


def _mean_of(runs: Sequence[Mapping[str, object]], key: str) -> str:
    values = np.array([run[key] for run in runs], dtype=np.float64)
    spread = f" ({values.min():.1f} to {values.max():.1f})" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread}"


def _chosen_tables(found: Beyond, rule: Rule) -> Iterator[StudyTable]:
    """Judge what is chosen for each log on the others by every target."""
    chosen = found.choices(rule)
    if not chosen:
        return
    rows: list[Row] = []
    for target in TARGETS:
        of_logs = {name: found.measured(name, case, target) for name, case in chosen.items()}
        mean = float(np.mean([value.mean for value in of_logs.values()]))
        met = all(target.met(value.mean) for value in of_logs.values())
        if target.least_mean is not None:
            met = met and mean >= target.least_mean
        told = {
            name: value.give_or_take() if target.met(value.mean) else f"**{value.give_or_take()}**"
            for name, value in of_logs.items()
        }
        rows.append(
            [
                ("target", target.title),
                ("bound", target.bound(" on each")),
                *told.items(),
                ("mean", mean, ".2f"),
                ("met", yes(met)),
            ]
        )
    note = f"For each log by {_RULES[rule]}. What misses its bound on a log is bold. {_note(found)}"
    yield StudyTable.of(f"targets-{rule.value}", f"Targets, chosen by {rule.value}", rows, note)
    names: list[Row] = [
        [("log", name), ("on the others", case.name)] for name, case in chosen.items()
    ]
    yield StudyTable.of(f"chosen-{rule.value}", f"Chosen by {rule.value}", names)


def _cases_table(found: Beyond, key: str, title: str, kind: Kind) -> StudyTable:
    """Give each case's figures over the logs: what it closes, and the worst it does to waits."""
    beside = BESIDE.get(kind)
    cases = [case for case in found.cases if case.kind is kind or case == beside]
    gap, below, wait = (found.matrix(cases, target) for target in (GAP, BELOW, MEAN_WAIT))
    worst = {
        heading: found.matrix(cases, target).max(axis=0)
        for heading, target in (
            ("p99, worst log", P99),
            ("p99.9, worst", P99_9),
            ("longest, worst", LONGEST),
        )
    }
    rows: list[Row] = [
        [
            ("case", case.name),
            *(
                (f"gap closed, {log.name}", float(value), ".0%")
                for log, value in zip(found.logs, gap[:, place], strict=True)
            ),
            ("mean", float(gap[:, place].mean()), ".0%"),
            ("AVEbsld below EASY's", float(below[:, place].mean()), ".0%"),
            ("mean wait", float(wait[:, place].mean()), ".2f"),
            *((heading, float(values[place]), ".2f") for heading, values in worst.items()),
        ]
        for place, case in enumerate(cases)
    ]
    few = [
        f"{case.name}: {case.copies} of the copies."
        for case in cases
        if case.copies is not None and case.copies < found.repeats
    ]
    note = " ".join(["Waits are times EASY's.", _note(found), *few])
    return StudyTable.of(key, title, rows, note)


def _of_log(found: Beyond, place: int) -> StudyTable:
    log = found.logs[place]
    rows: list[Row] = []
    for case in found.cases:
        slowdowns = [run["bounded_slowdown_mean"] for run in found.runs[log.name, case.name]]
        rows.append(
            [
                ("case", case.name),
                ("AVEbsld", float(np.mean(slowdowns)), ".2f"),
                *(
                    (of.title, found.measured(log.name, case, of).give_or_take())
                    for of in (GAP, *WAITS)
                ),
            ]
        )
    return StudyTable.of(f"log{place + 1}", log.name, rows, _note(found))


def _note(found: Beyond) -> str:
    count = found.repeats
    return f"Means of {count} jittered replays, ± half of the 95% interval." if count > 1 else ""
