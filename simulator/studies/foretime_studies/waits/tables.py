"""Tables of forecast waits: targets of every log, and every method's scores log by log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foretime_sim.scores.intervals import Interval
from foretime_sim.waits.block_sums import Figure

from foretime_studies.frame.tables import Column, Entry, Row, StudyTable
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
    rows: list[Row] = []
    for scored in runs:
        run = scored.run
        first = (run.records.after_s == 0) & (run.submit_time >= run.scored_from)
        waits = run.records.waited_s[first]
        rows.append(
            [
                ("log", run.name),
                ("waits", run.kind),
                ("jobs", run.jobs, ",d"),
                ("asked at submission", scored.first_answers, ",d"),
                ("later looks", scored.later_answers, ",d"),
                ("started at once", float((waits <= run.now_within_s).mean()), ".1%"),
                ("waited over 10 min", float((waits > 600).mean()), ".1%"),
            ]
        )
    return StudyTable.of("logs", "The logs", rows)


def targets_table(runs: Sequence[ScoredRun]) -> StudyTable:
    """Give every target on every log."""
    rows: list[Row] = [
        [
            ("log", scored.run.title),
            ("target", target.name),
            ("wanted", target.wanted),
            ("found", target.value, ".3f"),
            *_ends(target.interval, ".3f"),
            ("met", "met" if target.met else "**missed**"),
            ("note", target.note),
        ]
        for scored in runs
        for target in targets(scored)
    ]
    note = "From, to: 95% interval of a bootstrap over weeks."
    return StudyTable.of("targets", "Targets", rows, note)


def methods_table(
    key: str,
    title: str,
    found: Mapping[str, Mapping[str, Figure]],
    shown: Sequence[tuple[str, str, str]],
    scored: ScoredRun | None,
) -> StudyTable:
    """Give a row a method; with tightness beside QBETS where ``scored`` is given."""
    rows = []
    for method, figures in found.items():
        row: list[Entry] = [("method", f"{method}*" if method in ORACLES else method)]
        row += [(heading, figures[name].value, form) for name, heading, form in shown]
        if scored is not None:
            beside = scored.tightness[method]
            row += [
                ("95% bound / QBETS'", beside.ratio.value, ".2f"),
                ("the same, means", beside.mean_ratio.value, ".2f"),
            ]
        rows.append(row)
    return StudyTable.of(key, title, rows, _NOTE)


def intervals_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give our scores at submission with their intervals."""
    first, later = scored.at_submission[OURS], scored.later[OURS]
    shown = [*((first, score) for score in _SCORES), *((later, score) for score in _LATER[-2:])]
    rows: list[Row] = [
        [
            ("score", title),
            (OURS, figures[name].value, ",.4g"),
            *_ends(figures[name].interval, ",.4g"),
        ]
        for figures, (name, title, _) in shown
    ]
    title = f"{scored.run.title}: {OURS} with 95% intervals over weeks"
    return StudyTable.of(key, title, rows)


def slices_table(key: str, scored: ScoredRun) -> StudyTable:
    """Give how often our 95% bound holds in each slice; there may be none."""
    columns = (
        Column("slice by"),
        Column("slice"),
        Column("jobs", ",d"),
        *(Column(title, ".1%") for title in ("95% bound holds", "from", "to")),
    )
    rows = tuple(
        (part.by, part.name, part.rows, part.coverage, *(end[1] for end in _ends(part.interval)))
        for part in scored.slices
    )
    title = f"{scored.run.title}: the 95% bound in slices"
    note = "Of jobs not forecast to start at once; slices of at least 100 of them."
    return StudyTable(key, title, columns, rows, note)


def _ends(interval: Interval | None, form: str = "") -> Row:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return [("from", low, form), ("to", high, form)]
