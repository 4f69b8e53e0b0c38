"""Tables of the study of Talby & Feitelson 1999: the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from foretime_sim.policies.slack import InsertionOrder
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.job_classes import LENGTHS, SIZES, JobClasses
from foretime_sim.scores.metrics import Direction

from foretime_studies.frame.runs import Gain, paired_gain
from foretime_studies.frame.tables import Entry, NotedRows, Row, Rows, StudyTable, study_table
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    EASY,
    SLACK,
    UNEQUAL,
    AverageWait,
    Case,
    Estimates,
)
from foretime_studies.talby1999.runs import LogRuns, Talby1999

_S, _TENTHS, _GAIN = ",.0f", ",.1f", "+.1%"


def tables(found: Talby1999) -> list[StudyTable]:
    """Give all tables: those of the paper's log, then those of the others."""
    made: list[StudyTable] = []
    if found.papers is not None:
        made += _of_the_paper(found.runs[found.papers.name], found.papers.outliving)
    others = [log for log in found.logs if not log.papers]
    if others:
        made.append(_logs(found))
    plain = {case.name: case for case in named.other_cases()}
    for number, log in enumerate(others, 1):
        made.append(_schedulers(f"log{number}", log.name, found.runs[log.name], plain))
    return made


def _of_the_paper(runs: LogRuns, outliving: int) -> Iterator[StudyTable]:
    listed = (EASY, CONSERVATIVE, *named.COMPRESSIONS, SLACK)
    of_overruns = (CONSERVATIVE, SLACK, *named.overrunning())
    baselines, overruns = ({case.name: case for case in some} for some in (listed, of_overruns))
    slack_factors = {f"SF {f:g}": named.with_slack_factor(f) for f in named.SLACK_FACTORS}
    waits = {f"paper's x {factor:g}": named.with_awt(factor) for factor in named.AWT_FACTORS}
    for kind in AverageWait:
        name = "learned online" if kind is AverageWait.GIVEN else f"own {kind.value}'s"
        waits[name] = named.with_average_wait(kind)
    gaps = {f"{gap:g}": named.with_gap(SLACK, gap) for gap in named.GAPS}
    weights = {name: named.with_weights(name, weights) for name, weights in named.WEIGHTS}
    everyone = {f"UP {up:g}, PP {pp:g}": named.for_everyone((up, pp)) for up, pp in named.EVERYONE}
    yield _months(runs)
    yield _trace(runs)
    yield _schedulers("baselines", "EASY and conservative backfilling", runs, baselines)
    yield _schedulers("slack-factor", "Slack factor", runs, slack_factors)
    title = "Average wait that jobs are given"
    yield _schedulers("awt", title, runs, {"paper's, 2,401 s": SLACK, **waits})
    yield _classes(runs)
    yield _orders(runs)
    yield _unequal_months(runs)
    yield _unequal("gap", "Every fifth job at higher priority", runs, gaps)
    yield _unequal("weights", "Weights, every fifth job at high priority", runs, weights)
    yield _schedulers("everyone", "Equal but higher priorities for all", runs, everyone)
    yield _schedulers("overruns", "Jobs that reach their request", runs, overruns, outliving)
    yield _estimates(runs)
    yield _loads(runs)


@study_table("months", "Equal priorities by month (table of 5.2)")
def _months(runs: LogRuns) -> NotedRows:
    ours, old = runs[SLACK.name, 0], runs[CONSERVATIVE.name, 0]
    by_month = zip(ours.months, ours.jobs, old.wait_s, ours.wait_s, strict=True)
    listed = [(*month, paper.MONTHS.get(month[0], {})) for month in by_month]
    for month, jobs, before, after, printed in (
        *listed,
        ("all", sum(ours.jobs), old.mean_wait_s, ours.mean_wait_s, paper.YEAR),
    ):
        yield [
            ("month", month),
            ("jobs", jobs, ",d"),
            ("conservative, paper, s", printed.get("conservative"), _TENTHS),
            ("ours, s", before, _TENTHS),
            ("priority, paper, s", printed.get("priority"), _TENTHS),
            ("ours, s", after, _TENTHS),
            ("gain, paper", _gain(printed.get("conservative"), printed.get("priority")), _GAIN),
            ("gain, ours", _gain(before, after), _GAIN),
        ]
    return f"Gain over the jittered copies: {_write(runs.gain(CONSERVATIVE.name, SLACK.name))}."


@study_table("trace", "The conservative column, traced")
def _trace(runs: LogRuns) -> NotedRows:
    """Say what was tried to find why the conservative scheduler differs from the paper's."""
    paper_s, september = (m["conservative"] for m in (paper.YEAR, paper.MONTHS[paper.FIRST_MONTH]))
    for case in (CONSERVATIVE, *named.COMPRESSIONS, EASY, *named.traced()):
        run = runs[case.name, 0]
        shares = [
            wait / paper.MONTHS[month]["conservative"]
            for month, wait in zip(run.months, run.wait_s, strict=True)
            if month in paper.MONTHS and month != paper.FIRST_MONTH
        ]
        first = run.wait_s[0] if run.months[0] == paper.FIRST_MONTH else None
        yield [
            ("variant", case.name),
            ("jobs", sum(run.jobs), ",d"),
            ("mean wait, s", run.mean_wait_s, _TENTHS),
            ("of the paper's", run.mean_wait_s / paper_s, ".2f"),
            ("month that is least of it", min(shares, default=None), ".2f"),
            ("month that is most", max(shares, default=None), ".2f"),
            ("September 1996, s", first, _TENTHS),
        ]
    return (
        f"The paper's conservative scheduler: {paper_s:,.1f} s; September "
        f"{september:,.1f} s, which the two columns before the last leave out."
    )


def _schedulers(
    key: str, title: str, runs: LogRuns, listed: Mapping[str, Case], outliving: int | None = None
) -> StudyTable:
    """Compare cases with conservative backfilling, and say how promises were kept.

    With ``outliving``, the number of jobs that would run for longer than they requested, it is
    told, too, how many were killed.
    """
    rows: list[Row] = []
    for name, case in listed.items():
        run = runs[case.name, 0]
        gain = runs.gain(CONSERVATIVE.name, case.name)
        row: list[Entry] = [
            ("scheduler", name),
            ("mean wait, s", run.mean_wait_s, _TENTHS),
            ("gain", gain.single, _GAIN),
            *gain.copies("gain, copies"),
            ("bounded slowdown", run.bounded_slowdown, _TENTHS),
            ("p99 wait, h", run.p99_wait_s / 3_600, _TENTHS),
            ("longest wait, h", run.longest_wait_s / 3_600, _TENTHS),
            ("first planned, h", _hours(run.planned_wait_s), ",.2f"),
            ("promised, h", _hours(run.promised_wait_s), ",.2f"),
            ("later than planned", run.later_share, ".1%"),
            ("promises broken", None if run.promised_wait_s is None else run.broken, ",d"),
        ]
        if outliving is not None:
            row.append(("killed", outliving if case.killed else run.killed, ",d"))
        rows.append(row)
    return StudyTable.of(key, title, rows)


@study_table("classes", "Who gains: mean waits by class")
def _classes(runs: LogRuns) -> Rows:
    bounds = JobClasses()
    for names, unit, ends, field in (
        (SIZES, "of the machine", [f"{share:.1%}" for share in bounds.size_shares], "size"),
        (LENGTHS, "requested", [f"{end / 3_600:g} h" for end in bounds.length_s], "length"),
    ):
        for place, name in enumerate(names):
            upto = f"up to {ends[place]}" if place < len(ends) else f"more than {ends[-1]}"
            easy, old, new = (
                [
                    getattr(run, f"wait_by_{field}_s")[place]
                    for run in (runs[case.name, 0], *runs.repeats(case.name))
                ]
                for case in (EASY, CONSERVATIVE, SLACK)
            )
            gain = paired_gain(old[0], new[0], old[1:], new[1:])
            yield [
                ("jobs", f"{name}: {upto} {unit}"),
                ("EASY, s", easy[0], _S),
                ("conservative, s", old[0], _S),
                ("priority, s", new[0], _S),
                ("priority's gain on conservative", gain.single, _GAIN),
                *gain.copies(),
            ]


_UNEQUAL = ("equal", "unequal", "high", "low")
"""Columns of the tables of 5.3."""


def _beside(printed: Sequence[float | None], ours: Sequence[float], form: str) -> Row:
    """Give the columns of a table of 5.3, the paper's and ours."""
    return [
        entry
        for name, told, value in zip(_UNEQUAL, printed, ours, strict=True)
        for entry in ((f"{name}, paper, s", told, form), ("ours", value, form))
    ]


@study_table("orders", "Insertion orders, equal and unequal priorities")
def _orders(runs: LogRuns) -> Rows:
    """Table at the end of section 5.3, and the gains that 5.2 states for equal priorities."""
    for order, printed in paper.ORDERS.items():
        equal, unequal = (
            named.ordered(InsertionOrder(order), gap) for gap in (0.0, named.GAPS[-1])
        )
        run = runs[unequal.name, 0]
        ours = (run.mean_wait_s, run.fifth_mean_wait_s, run.others_mean_wait_s)
        gain = runs.gain(CONSERVATIVE.name, equal.name)
        told = [printed[name] for name in _UNEQUAL]
        yield [
            ("order", order.upper()),
            ("gain, paper", printed["gain"], _GAIN),
            ("ours", gain.single, _GAIN),
            *gain.copies(),
            *_beside(told, (runs[equal.name, 0].mean_wait_s, *ours), _S),
        ]


@study_table(
    "unequal-months",
    "Every fifth job at high priority (table of 5.3)",
    "The last column is what the paper does not give: the mean wait of the very jobs that are "
    "raised, while all priorities are equal.",
)
def _unequal_months(runs: LogRuns) -> Rows:
    equal, run = runs[SLACK.name, 0], runs[UNEQUAL.name, 0]
    by_month = zip(
        run.months,
        equal.wait_s,
        run.wait_s,
        run.fifth_wait_s,
        run.others_wait_s,
        equal.fifth_wait_s,
        strict=True,
    )
    year = (
        equal.mean_wait_s,
        run.mean_wait_s,
        run.fifth_mean_wait_s,
        run.others_mean_wait_s,
        equal.fifth_mean_wait_s,
    )
    for month, *ours, same in (*by_month, ("all", *year)):
        printed = paper.YEAR if month == "all" else paper.MONTHS.get(month, {})
        told = [printed.get(name) for name in ("priority", "unequal", "high", "low")]
        last: Entry = ("the same jobs, equal", same, _TENTHS)
        yield [("month", month), *_beside(told, ours, _TENTHS), last]


def _unequal(key: str, title: str, runs: LogRuns, listed: Mapping[str, Case]) -> StudyTable:
    """Compare cases with equal priorities: all jobs, every fifth, and the others."""
    rows: list[Row] = []
    for name, case in listed.items():
        run = runs[case.name, 0]
        fifths = runs.gain(SLACK.name, case.name, lambda one: one.fifth_mean_wait_s)
        rows.append(
            [
                ("case", name),
                ("all, s", run.mean_wait_s, _TENTHS),
                *runs.gain(SLACK.name, case.name).copies("gain on equal, copies"),
                ("every fifth, s", run.fifth_mean_wait_s, _TENTHS),
                *fifths.copies("their gain, copies"),
                ("others, s", run.others_mean_wait_s, _TENTHS),
                ("gap, s", run.others_mean_wait_s - run.fifth_mean_wait_s, _TENTHS),
                ("bounded slowdown", run.bounded_slowdown, _TENTHS),
                ("longest wait, h", run.longest_wait_s / 3_600, _TENTHS),
            ]
        )
    note = "Gains against the priority scheduler with equal priorities; every fifth against itself."
    return StudyTable.of(key, title, rows, note)


def _three(runs: LogRuns, cases: Sequence[Case]) -> Row:
    """Give the three schedulers side by side."""
    easy, old, new = (runs[case.name, 0] for case in cases)
    return [
        ("slowdown: EASY", easy.bounded_slowdown, _TENTHS),
        ("conservative", old.bounded_slowdown, _TENTHS),
        ("priority", new.bounded_slowdown, _TENTHS),
        ("wait, s: EASY", easy.mean_wait_s, _S),
        ("conservative", old.mean_wait_s, _S),
        ("priority", new.mean_wait_s, _S),
        ("priority's longest, h", new.longest_wait_s / 3_600, _TENTHS),
    ]


@study_table("estimates", "Overestimated requests (section 3.3)")
def _estimates(runs: LogRuns) -> Rows:
    for kind in Estimates:
        for factor in named.ESTIMATE_FACTORS:
            yield [
                ("planned with", f"{kind.value} x {factor:g}"),
                *_three(runs, [named.estimated(case, kind, factor) for case in named.PLAIN]),
            ]


@study_table("loads", "Loads (section 3.3)")
def _loads(runs: LogRuns) -> Rows:
    for factor in named.LOADS:
        cases = [named.loaded(case, factor) for case in named.PLAIN]
        easy, old, new = (case.name for case in cases)
        of_easy, of_new = (
            runs.gain(old, name, lambda run: run.bounded_slowdown) for name in (easy, new)
        )
        yield [
            ("interarrival factor", f"{factor:g}"),
            ("load", runs[old, 0].offered_load, ".0%"),
            *_three(runs, cases),
            *of_easy.copies("EASY's gain in slowdown on conservative, copies"),
            *of_new.copies("priority's"),
        ]


SHOWN = {
    "EASY's gain": EASY,
    "priority's": SLACK,
    "SF 9": named.with_slack_factor(9.0),
    "AWT learned": named.with_average_wait(AverageWait.GIVEN),
}
"""What is compared on every log."""


@study_table("logs", "Other logs, on their own machines")
def _logs(found: Talby1999) -> Rows:
    for log in found.logs:
        runs = found.runs[log.name]
        old = runs[CONSERVATIVE.name, 0]
        row: list[Entry] = [
            ("log", log.name),
            ("jobs", sum(old.jobs), ",d"),
            ("months", len(old.months), ",d"),
            ("processors", log.whole.machine_processors, ",d"),
            ("conservative, s", old.mean_wait_s, _S),
        ]
        for title, case in SHOWN.items():
            gain = runs.gain(CONSERVATIVE.name, case.name)
            row += [(title, gain.single, _GAIN), ("copies", _write(gain))]
        yield row


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3_600


def _gain(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    return relative_gain(before, after, Direction.SMALLER)


def _write(gain: Gain) -> str:
    """Write the copies' mean gain with its interval."""
    if gain.mean is None:
        return "–"
    return f"{gain.mean:+.1%}" + ("" if gain.words is None else f" ({gain.words})")
