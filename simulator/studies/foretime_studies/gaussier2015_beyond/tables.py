"""Tables of the study beyond Gaussier 2015."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.gaussier2015_beyond.cases import (
    BESIDE,
    CLAIRVOYANT,
    EASY,
    Case,
    Kind,
)
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
    Target,
)

_RULES: Mapping[Rule, str] = {
    Rule.GAP: "the greatest share of the gap closed on the other logs",
    Rule.WAITS: "the same among the cases that keep the targets of waits on the other logs (where "
    "none does: the one that misses them by least)",
    Rule.ALL: "the greatest share of the gap closed among the cases that keep all targets on the "
    "other logs (where none does: the one that misses them by least)",
}


def tables(found: Beyond) -> list[StudyTable]:
    """Give every table, in the order of the report."""
    return [
        logs_table(found),
        *(table for rule in Rule for table in _chosen_tables(found, rule)),
        cases_table(found, "ablation", "What each idea brings", Kind.PRACTICAL),
        cases_table(found, "predictors", "What each estimator brings", Kind.PREDICTOR),
        cases_table(found, "corrections", "What each correction brings", Kind.CORRECTION),
        cases_table(found, "oracles", "What perfect knowledge would bring", Kind.ORACLE),
        cases_table(found, "orders", "Other queue orders", Kind.ORDER),
        *(of_log(found, place) for place in range(len(found.logs))),
    ]


def logs_table(found: Beyond) -> StudyTable:
    """Say how large the gap is on each log."""
    columns = (
        Column("log"),
        Column("jobs", ","),
        Column("processors", ","),
        Column("AVEbsld, EASY"),
        Column("clairvoyant EASY-SJBF"),
        Column("mean wait of EASY, s", ",.0f"),
        Column("p99, s", ",.0f"),
        Column("longest, s", ",.0f"),
    )
    rows: list[tuple[Cell, ...]] = []
    for log in found.logs:
        easy = found.runs[log.name, EASY.name]
        rows.append(
            (
                log.name,
                log.jobs,
                log.processors,
                _mean_of(easy, "bounded_slowdown_mean"),
                _mean_of(found.runs[log.name, CLAIRVOYANT.name], "bounded_slowdown_mean"),
                *(
                    float(np.mean([run[key] for run in easy]))
                    for key in ("wait_mean_s", "wait_p99_s", "wait_max_s")
                ),
            )
        )
    return StudyTable("logs", "The gap", columns, tuple(rows), _note(found))


def _mean_of(runs: Sequence[Mapping[str, object]], key: str) -> str:
    values = np.array([run[key] for run in runs], dtype=np.float64)
    spread = f" ({values.min():.1f} to {values.max():.1f})" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread}"


def _chosen_tables(found: Beyond, rule: Rule) -> Iterator[StudyTable]:
    """Judge what is chosen for each log on the others by every target."""
    chosen = found.choices(rule)
    if not chosen:
        return
    names = [log.name for log in found.logs]
    columns = (
        Column("target"),
        Column("bound"),
        *(Column(name) for name in names),
        Column("mean", ".2f"),
        Column("met"),
    )
    rows: list[tuple[Cell, ...]] = []
    for target in TARGETS:
        of_logs = [found.measured(name, chosen[name], target) for name in names]
        mean = float(np.mean([value.mean for value in of_logs]))
        met = all(target.met(value.mean) for value in of_logs)
        if target.least_mean is not None:
            met = met and mean >= target.least_mean
        rows.append(
            (
                target.title,
                _bound(target),
                *(_told(target, value.mean, value.write()) for value in of_logs),
                mean,
                "yes" if met else "**no**",
            )
        )
    yield StudyTable(
        f"targets-{rule.value}",
        f"Targets, chosen by {rule.value}",
        columns,
        tuple(rows),
        f"For each log by {_RULES[rule]}. What misses its bound on a log is bold. {_note(found)}",
    )
    yield StudyTable(
        f"chosen-{rule.value}",
        f"Chosen by {rule.value}",
        (Column("log"), Column("on the others")),
        tuple((name, chosen[name].name) for name in names),
    )


def _told(target: Target, value: float, text: str) -> str:
    return text if target.met(value) else f"**{text}**"


def _bound(target: Target) -> str:
    parts = []
    if target.least is not None:
        parts.append(f"at least {target.least:.2f} on each")
    if target.least_mean is not None:
        parts.append(f"at least {target.least_mean:.2f} on average")
    if target.most is not None:
        parts.append(f"at most {target.most:.2f} on each")
    return ", ".join(parts)


def cases_table(found: Beyond, key: str, title: str, kind: Kind) -> StudyTable:
    """Give each case's figures over the logs: what it closes, and the worst it does to waits."""
    columns = (
        Column("case"),
        *(Column(f"gap closed, {log.name}", ".0%") for log in found.logs),
        Column("mean", ".0%"),
        Column("AVEbsld below EASY's", ".0%"),
        Column("mean wait", ".2f"),
        Column("p99, worst log", ".2f"),
        Column("p99.9, worst", ".2f"),
        Column("longest, worst", ".2f"),
    )
    beside = BESIDE.get(kind)
    cases = [case for case in found.cases if case.kind is kind or case == beside]
    gap, below, wait = (found.matrix(cases, target) for target in (GAP, BELOW, MEAN_WAIT))
    worst = [found.matrix(cases, target).max(axis=0) for target in (P99, P99_9, LONGEST)]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            case.name,
            *(float(value) for value in gap[:, place]),
            float(gap[:, place].mean()),
            float(below[:, place].mean()),
            float(wait[:, place].mean()),
            *(float(values[place]) for values in worst),
        )
        for place, case in enumerate(cases)
    )
    note = " ".join(
        [
            "Waits are times EASY's.",
            _note(found),
            *(
                f"{case.name}: {case.copies} of the copies."
                for case in cases
                if case.copies is not None and case.copies < found.repeats
            ),
        ]
    )
    return StudyTable(key, title, columns, rows, note)


def of_log(found: Beyond, place: int) -> StudyTable:
    """Give every case's figures on one log, with intervals."""
    log = found.logs[place]
    columns = (
        Column("case"),
        Column("AVEbsld", ".2f"),
        *(Column(target.title) for target in (GAP, *WAITS)),
    )

    def row(case: Case) -> tuple[Cell, ...]:
        runs = found.runs[log.name, case.name]
        return (
            case.name,
            float(np.mean([run["bounded_slowdown_mean"] for run in runs])),
            *(found.measured(log.name, case, target).write() for target in (GAP, *WAITS)),
        )

    rows = tuple(row(case) for case in found.cases)
    return StudyTable(f"log{place + 1}", log.name, columns, rows, _note(found))


def _note(found: Beyond) -> str:
    count = found.repeats
    return f"Means of {count} jittered replays, ± half of the 95% interval." if count > 1 else ""
