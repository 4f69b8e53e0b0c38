"""Tables of forecast waits: targets of every log, and every method's scores log by log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foretime_sim.scores.intervals import Interval
from foretime_sim.waits.block_sums import Figure

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.waits.runs import ORACLES, OURS
from foretime_studies.waits.scores import ScoredRun, targets

_SCORES: tuple[tuple[str, str, str], ...] = (
    ("answered", "answered", ".1%"),
    ("brier_now", "Brier, now", ".4f"),
    ("waiting_coverage_50", "50% bound holds", ".1%"),
    ("waiting_coverage_75", "75%", ".1%"),
    ("waiting_coverage_90", "90%", ".1%"),
    ("waiting_coverage_95", "95%", ".1%"),
    ("pinball_s", "pinball, s", ",.0f"),
    ("pinball_log", "pinball, log10", ".4f"),
    ("within_1min", "within 1 min", ".1%"),
    ("within_10min", "within 10 min", ".1%"),
    ("within_double", "within [t/2, 2t]", ".1%"),
    ("within_triple", "within [t/3, 3t]", ".1%"),
    ("log10_error", "log10 error", ".3f"),
    ("log10_squared", "log10 error squared", ".3f"),
    ("correlation", "r", ".2f"),
    ("log_correlation", "r, logs", ".2f"),
)
_LATER: tuple[tuple[str, str, str], ...] = (
    *_SCORES[:1],
    *_SCORES[2:],
    ("order", "Kendall's tau", ".2f"),
    ("passed_bound", "first 95% bound passed", ".1%"),
)
_NOTE = (
    "Bounds are of the jobs that a method did not forecast to start at once; within [t/2, 2t] and"
    " all after it of waits above ten minutes. A method marked * is told the future."
)


def tables(runs: Sequence[ScoredRun]) -> tuple[StudyTable, ...]:
    """Give every table, a log's own after those of all logs."""
    found = [logs_table(runs), targets_table(runs)]
    for scored in runs:
        key = f"{scored.run.name}-{scored.run.kind}"
        found += [
            methods_table(
                f"{key}-submission",
                f"{scored.run.title}: {scored.first_answers:,} jobs at their submission",
                scored.at_submission,
                _SCORES,
                scored,
            ),
            methods_table(
                f"{key}-later",
                f"{scored.run.title}: {scored.later_answers:,} later looks",
                scored.later,
                _LATER,
                None,
            ),
            intervals_table(f"{key}-intervals", scored),
            slices_table(f"{key}-slices", scored),
        ]
    return tuple(found)


def logs_table(runs: Sequence[ScoredRun]) -> StudyTable:
    """Give what was asked of which log."""
    columns = (
        Column("log"),
        Column("waits"),
        Column("jobs", ",d"),
        Column("asked at submission", ",d"),
        Column("later looks", ",d"),
        Column("started at once", ".1%"),
        Column("waited over 10 min", ".1%"),
    )
    rows: list[tuple[Cell, ...]] = []
    for scored in runs:
        run = scored.run
        first = (run.records.after_s == 0) & (run.submit_time >= run.scored_from)
        waits = run.records.waited_s[first]
        rows.append(
            (
                run.name,
                run.kind,
                run.jobs,
                scored.first_answers,
                scored.later_answers,
                float((waits <= run.now_within_s).mean()),
                float((waits > 600).mean()),
            )
        )
    return StudyTable("logs", "The logs", columns, tuple(rows))


def targets_table(runs: Sequence[ScoredRun]) -> StudyTable:
    """Give every target on every log."""
    columns = (
        Column("log"),
        Column("target"),
        Column("wanted"),
        Column("found", ".3f"),
        Column("from", ".3f"),
        Column("to", ".3f"),
        Column("met"),
        Column("note"),
    )
    rows: list[tuple[Cell, ...]] = []
    for scored in runs:
        for target in targets(scored):
            low, high = _ends(target.interval)
            rows.append(
                (
                    scored.run.title,
                    target.name,
                    target.wanted,
                    target.value,
                    low,
                    high,
                    "met" if target.met else "**missed**",
                    target.note,
                )
            )
    note = "From, to: 95% interval of a bootstrap over weeks."
    return StudyTable("targets", "Targets", columns, tuple(rows), note)


def methods_table(
    key: str,
    title: str,
    found: Mapping[str, Mapping[str, Figure]],
    shown: Sequence[tuple[str, str, str]],
    scored: ScoredRun | None,
) -> StudyTable:
    """Give a row a method; with tightness beside QBETS where ``scored`` is given."""
    columns = [Column("method"), *(Column(title, form) for _, title, form in shown)]
    if scored is not None:
        columns += [Column("95% bound / QBETS'", ".2f"), Column("the same, means", ".2f")]
    rows: list[tuple[Cell, ...]] = []
    for method, figures in found.items():
        row: list[Cell] = [_name(method), *(figures[name].value for name, _, _ in shown)]
        if scored is not None:
            beside = scored.tightness[method]
            row += [beside.ratio.value, beside.mean_ratio.value]
        rows.append(tuple(row))
    return StudyTable(key, title, tuple(columns), tuple(rows), _NOTE)


def intervals_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give our scores at submission with their intervals."""
    rows: list[tuple[Cell, ...]] = []
    for name, title, _ in _SCORES:
        figure = scored.at_submission[OURS][name]
        rows.append((title, figure.value, *_ends(figure.interval)))
    for name, title, _ in _LATER[-2:]:
        figure = scored.later[OURS][name]
        rows.append((title, figure.value, *_ends(figure.interval)))
    columns = (Column("score"), Column(OURS, ",.4g"), Column("from", ",.4g"), Column("to", ",.4g"))
    title = f"{scored.run.title}: {OURS} with 95% intervals over weeks"
    return StudyTable(key, title, columns, tuple(rows))


def slices_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give how often our 95% bound holds in each slice."""
    rows: list[tuple[Cell, ...]] = [
        (part.by, part.name, part.rows, part.coverage, *_ends(part.interval))
        for part in scored.slices
    ]
    columns = (
        Column("slice by"),
        Column("slice"),
        Column("jobs", ",d"),
        Column("95% bound holds", ".1%"),
        Column("from", ".1%"),
        Column("to", ".1%"),
    )
    title = f"{scored.run.title}: the 95% bound in slices"
    note = "Of jobs not forecast to start at once; slices of at least 100 of them."
    return StudyTable(key, title, columns, tuple(rows), note)


def _name(method: str) -> str:
    return f"{method}*" if method in ORACLES else method


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)
