"""Tables of the study of Talby & Feitelson 1999: the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_sim.policies.slack import InsertionOrder
from foretime_sim.scores.job_classes import LENGTHS, SIZES, JobClasses

from foretime_studies.frame.runs import Gain, paired_gain
from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    EASY,
    SLACK,
    AverageWait,
    Case,
    Estimates,
)
from foretime_studies.talby1999.runs import LogRuns, RunFigures
from foretime_studies.talby1999.study import Talby1999

YEAR = "all"
UNEQUAL = named.with_gap(SLACK, named.GAPS[-1])
_S, _GAIN, _SHARE = ",.0f", "+.1%", ".1%"


def tables(found: Talby1999) -> list[StudyTable]:
    """Give all tables: those of the paper's log, then those of the others."""
    made = []
    if found.papers is not None:
        runs, whole = found.runs[found.papers.name], found.papers.whole
        made += [
            months(runs),
            trace(runs),
            schedulers("baselines", "EASY and conservative backfilling", runs, _baselines()),
            schedulers("slack-factor", "Slack factor", runs, _slack_factors()),
            schedulers("awt", "Average wait that jobs are given", runs, _average_waits()),
            classes(runs),
            orders(runs),
            unequal_months(runs),
            unequal("gap", "Every fifth job at higher priority", runs, _gaps()),
            unequal("weights", "Weights, every fifth job at high priority", runs, _weights()),
            schedulers("everyone", "Equal but higher priorities for all", runs, _everyone()),
            schedulers(
                "overruns",
                "Jobs that reach their request",
                runs,
                _overruns(),
                outliving=int(np.sum(whole.actual_runtime > whole.requested_time)),
            ),
            estimates(runs),
            loads(runs),
        ]
    others = [log for log in found.logs if not log.papers]
    if others:
        made.append(logs(found))
    for number, log in enumerate(others, 1):
        runs = found.runs[log.name]
        listed = [(case.name, case) for case in named.other_cases()]
        made.append(schedulers(f"log{number}", log.name, runs, listed))
    return made


def months(runs: LogRuns) -> StudyTable:
    """Table of section 5.2."""
    ours, old = runs[SLACK.name, 0], runs[CONSERVATIVE.name, 0]
    printed = {month.month: month for month in paper.MONTHS}
    rows: list[tuple[Cell, ...]] = []
    for place, month in enumerate(ours.months):
        row = printed.get(month)
        before = None if row is None else row.conservative
        after = None if row is None else row.priority
        rows.append(
            (
                month,
                ours.jobs[place],
                before,
                old.wait_s[place],
                after,
                ours.wait_s[place],
                _gain(before, after),
                _gain(old.wait_s[place], ours.wait_s[place]),
            )
        )
    means = (paper.CONSERVATIVE_S, old.mean_wait_s, paper.PRIORITY_S, ours.mean_wait_s)
    gains = (_gain(means[0], means[2]), _gain(means[1], means[3]))
    rows.append((YEAR, sum(ours.jobs), *means, *gains))
    columns = (
        Column("month"),
        Column("jobs", ",d"),
        Column("conservative, paper, s", ",.1f"),
        Column("ours, s", ",.1f"),
        Column("priority, paper, s", ",.1f"),
        Column("ours, s", ",.1f"),
        Column("gain, paper", _GAIN),
        Column("gain, ours", _GAIN),
    )
    note = f"Gain over the jittered copies: {_write(runs.gain(CONSERVATIVE.name, SLACK.name))}."
    return StudyTable(
        "months", "Equal priorities by month (table of 5.2)", columns, tuple(rows), note
    )


def trace(runs: LogRuns) -> StudyTable:
    """Say what was tried to find why the conservative scheduler differs from the paper's."""
    printed = {month.month: month.conservative for month in paper.MONTHS[1:]}
    rows: list[tuple[Cell, ...]] = []
    for case in (CONSERVATIVE, *named.COMPRESSIONS, EASY, *named.traced()):
        run = runs[case.name, 0]
        shares = [
            run.wait_s[place] / printed[month]
            for place, month in enumerate(run.months)
            if month in printed
        ]
        first = run.wait_s[0] if run.months[0] == paper.MONTHS[0].month else None
        rows.append(
            (
                case.name,
                sum(run.jobs),
                run.mean_wait_s,
                run.mean_wait_s / paper.CONSERVATIVE_S,
                min(shares, default=None),
                max(shares, default=None),
                first,
            )
        )
    columns = (
        Column("variant"),
        Column("jobs", ",d"),
        Column("mean wait, s", ",.1f"),
        Column("of the paper's", ".2f"),
        Column("month that is least of it", ".2f"),
        Column("month that is most", ".2f"),
        Column("September 1996, s", ",.1f"),
    )
    note = (
        f"The paper's conservative scheduler: {paper.CONSERVATIVE_S:,.1f} s; September "
        f"{paper.MONTHS[0].conservative:,.1f} s, which the two columns before the last leave out."
    )
    return StudyTable("trace", "The conservative column, traced", columns, tuple(rows), note)


def schedulers(
    key: str,
    title: str,
    runs: LogRuns,
    listed: Sequence[tuple[str, Case]],
    outliving: int | None = None,
) -> StudyTable:
    """Compare cases with conservative backfilling, and say how promises were kept.

    Parameters
    ----------
    key, title, runs
        Of the table; a log's runs.
    listed
        What each case is called here.
    outliving
        Jobs that would run for longer than they requested: how many were killed is told, too.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, case in listed:
        run = runs[case.name, 0]
        gain = runs.gain(CONSERVATIVE.name, case.name)
        rows.append(
            (
                name,
                run.mean_wait_s,
                gain.single,
                *_repeated(gain),
                run.bounded_slowdown,
                run.p99_wait_s / 3_600,
                run.longest_wait_s / 3_600,
                _hours(run.planned_wait_s),
                _hours(run.promised_wait_s),
                run.later_share,
                None if run.promised_wait_s is None else run.broken,
                *(() if outliving is None else (outliving if case.killed else run.killed,)),
            )
        )
    columns = (
        Column("scheduler"),
        Column("mean wait, s", ",.1f"),
        Column("gain", _GAIN),
        Column("gain, copies", _GAIN),
        Column("95%"),
        Column("bounded slowdown", ",.1f"),
        Column("p99 wait, h", ",.1f"),
        Column("longest wait, h", ",.1f"),
        Column("first planned, h", ",.2f"),
        Column("promised, h", ",.2f"),
        Column("later than planned", _SHARE),
        Column("promises broken", ",d"),
        *(() if outliving is None else (Column("killed", ",d"),)),
    )
    return StudyTable(key, title, columns, tuple(rows))


def classes(runs: LogRuns) -> StudyTable:
    """Say who gains and who loses: mean waits by size and by requested time."""
    rows: list[tuple[Cell, ...]] = []
    bounds = JobClasses()
    for names, unit, ends, field in (
        (SIZES, "of the machine", [f"{share:.1%}" for share in bounds.size_shares], "size"),
        (LENGTHS, "requested", [f"{end / 3_600:g} h" for end in bounds.length_s], "length"),
    ):
        for place, name in enumerate(names):
            row: list[Cell] = [
                f"{name}: "
                + (f"up to {ends[place]}" if place < len(ends) else f"more than {ends[-1]}")
                + f" {unit}"
            ]
            waits = []
            for case in (EASY, CONSERVATIVE, SLACK):
                each = (runs[case.name, 0], *runs.repeats(case.name))
                waits.append([getattr(run, f"wait_by_{field}_s")[place] for run in each])
            row += [wait[0] for wait in waits]
            gain = paired_gain(waits[1][0], waits[2][0], waits[1][1:], waits[2][1:])
            rows.append((*row, gain.single, *_repeated(gain)))
    columns = (
        Column("jobs"),
        Column("EASY, s", _S),
        Column("conservative, s", _S),
        Column("priority, s", _S),
        Column("priority's gain on conservative", _GAIN),
        Column("copies", _GAIN),
        Column("95%"),
    )
    return StudyTable("classes", "Who gains: mean waits by class", columns, tuple(rows))


def orders(runs: LogRuns) -> StudyTable:
    """Table at the end of section 5.3, and the gains that 5.2 states for equal priorities."""
    rows: list[tuple[Cell, ...]] = []
    for order in sorted(InsertionOrder, key=lambda order: list(paper.ORDERS).index(order.value)):
        printed = paper.ORDERS[order.value]
        equal = named.ordered(order)
        unequal_run = runs[named.ordered(order, named.GAPS[-1]).name, 0]
        gain = runs.gain(CONSERVATIVE.name, equal.name)
        rows.append(
            (
                order.value.upper(),
                printed.gain,
                gain.single,
                *_repeated(gain),
                printed.equal,
                runs[equal.name, 0].mean_wait_s,
                printed.unequal,
                unequal_run.mean_wait_s,
                printed.high,
                unequal_run.fifth_mean_wait_s,
                printed.low,
                unequal_run.others_mean_wait_s,
            )
        )
    columns = (
        Column("order"),
        Column("gain, paper", _GAIN),
        Column("ours", _GAIN),
        Column("copies", _GAIN),
        Column("95%"),
        *(
            Column(title, _S)
            for name in ("equal", "unequal", "high", "low")
            for title in (f"{name}, paper, s", "ours")
        ),
    )
    return StudyTable(
        "orders", "Insertion orders, equal and unequal priorities", columns, tuple(rows)
    )


def unequal_months(runs: LogRuns) -> StudyTable:
    """Table of section 5.3: every fifth job at high priority."""
    equal, run = runs[SLACK.name, 0], runs[UNEQUAL.name, 0]
    printed = {month.month: month for month in paper.MONTHS}
    rows: list[tuple[Cell, ...]] = []
    for place, month in enumerate(run.months):
        row = printed.get(month)
        told = (None,) * 4 if row is None else (row.priority, row.unequal, row.high, row.low)
        ours = (
            equal.wait_s[place],
            run.wait_s[place],
            run.fifth_wait_s[place],
            run.others_wait_s[place],
        )
        pairs = [cell for pair in zip(told, ours, strict=True) for cell in pair]
        rows.append((month, *pairs, equal.fifth_wait_s[place]))
    year = (paper.PRIORITY_S, paper.UNEQUAL_S, paper.HIGH_S, paper.LOW_S)
    means = (
        equal.mean_wait_s,
        run.mean_wait_s,
        run.fifth_mean_wait_s,
        run.others_mean_wait_s,
    )
    pairs = [cell for pair in zip(year, means, strict=True) for cell in pair]
    rows.append((YEAR, *pairs, equal.fifth_mean_wait_s))
    columns = (
        Column("month"),
        *(
            Column(title, ",.1f")
            for name in ("equal", "unequal", "high", "low")
            for title in (f"{name}, paper, s", "ours")
        ),
        Column("the same jobs, equal", ",.1f"),
    )
    note = (
        "The last column is what the paper does not give: the mean wait of the very jobs that are "
        "raised, while all priorities are equal."
    )
    return StudyTable(
        "unequal-months",
        "Every fifth job at high priority (table of 5.3)",
        columns,
        tuple(rows),
        note,
    )


def unequal(key: str, title: str, runs: LogRuns, listed: Sequence[tuple[str, Case]]) -> StudyTable:
    """Compare cases with equal priorities: all jobs, every fifth, and the others."""
    rows: list[tuple[Cell, ...]] = []
    for name, case in listed:
        run = runs[case.name, 0]
        change = runs.gain(SLACK.name, case.name)
        fifths = runs.gain(SLACK.name, case.name, lambda one: one.fifth_mean_wait_s)
        rows.append(
            (
                name,
                run.mean_wait_s,
                *_repeated(change),
                run.fifth_mean_wait_s,
                *_repeated(fifths),
                run.others_mean_wait_s,
                run.others_mean_wait_s - run.fifth_mean_wait_s,
                run.bounded_slowdown,
                run.longest_wait_s / 3_600,
            )
        )
    columns = (
        Column("case"),
        Column("all, s", ",.1f"),
        Column("gain on equal, copies", _GAIN),
        Column("95%"),
        Column("every fifth, s", ",.1f"),
        Column("their gain, copies", _GAIN),
        Column("95%"),
        Column("others, s", ",.1f"),
        Column("gap, s", ",.1f"),
        Column("bounded slowdown", ",.1f"),
        Column("longest wait, h", ",.1f"),
    )
    note = "Gains against the priority scheduler with equal priorities; every fifth against itself."
    return StudyTable(key, title, columns, tuple(rows), note)


def estimates(runs: LogRuns) -> StudyTable:
    """Section 3.3: overestimated requests."""
    rows: list[tuple[Cell, ...]] = []
    for kind in Estimates:
        for factor in named.ESTIMATE_FACTORS:
            cases = [named.estimated(case, kind, factor) for case in named.PLAIN]
            name = f"{kind.value} x {factor:g}"
            rows.append((name, *_three(runs, cases)))
    title = "Overestimated requests (section 3.3)"
    return StudyTable("estimates", title, _three_columns("planned with"), tuple(rows))


def loads(runs: LogRuns) -> StudyTable:
    """Section 3.3: loads."""
    rows: list[tuple[Cell, ...]] = []
    for factor in named.LOADS:
        cases = [named.loaded(case, factor) for case in named.PLAIN]
        gains = [runs.gain(cases[1].name, cases[place].name, _slowdown) for place in (0, 2)]
        told = [cell for gain in gains for cell in _repeated(gain)]
        load = runs[cases[1].name, 0].offered_load
        rows.append((f"{factor:g}", load, *_three(runs, cases), *told))
    first, *others = _three_columns("interarrival factor")
    columns = (
        first,
        Column("load", ".0%"),
        *others,
        Column("EASY's gain in slowdown on conservative, copies", _GAIN),
        Column("95%"),
        Column("priority's", _GAIN),
        Column("95%"),
    )
    return StudyTable("loads", "Loads (section 3.3)", columns, tuple(rows))


def logs(found: Talby1999) -> StudyTable:
    """Give the main comparisons on every log."""
    rows: list[tuple[Cell, ...]] = []
    for log in found.logs:
        runs = found.runs[log.name]
        old = runs[CONSERVATIVE.name, 0]
        row: list[Cell] = [log.name, sum(old.jobs), len(old.months), log.whole.machine_processors]
        row.append(old.mean_wait_s)
        for case in (EASY, SLACK, named.with_slack_factor(9.0), _LEARNED):
            gain = runs.gain(CONSERVATIVE.name, case.name)
            row += [gain.single, _write(gain)]
        rows.append(tuple(row))
    columns = [Column("log")]
    columns += [Column(title, ",d") for title in ("jobs", "months", "processors")]
    columns.append(Column("conservative, s", ",.0f"))
    for title in ("EASY's gain", "priority's", "SF 9", "AWT learned"):
        columns += [Column(title, _GAIN), Column("copies")]
    return StudyTable("logs", "Other logs, on their own machines", tuple(columns), tuple(rows))


def _baselines() -> list[tuple[str, Case]]:
    return [(case.name, case) for case in (EASY, CONSERVATIVE, *named.COMPRESSIONS, SLACK)]


def _slack_factors() -> list[tuple[str, Case]]:
    return [(f"SF {factor:g}", named.with_slack_factor(factor)) for factor in named.SLACK_FACTORS]


_LEARNED = named.with_average_wait(AverageWait.GIVEN)


def _average_waits() -> list[tuple[str, Case]]:
    given = [(f"paper's x {factor:g}", named.with_awt(factor)) for factor in named.AWT_FACTORS]
    others = [
        (
            "learned online" if kind is AverageWait.GIVEN else f"own {kind.value}'s",
            named.with_average_wait(kind),
        )
        for kind in AverageWait
    ]
    return [("paper's, 2,401 s", SLACK), *given, *others]


def _gaps() -> list[tuple[str, Case]]:
    return [(f"{gap:g}", named.with_gap(SLACK, gap)) for gap in named.GAPS]


def _weights() -> list[tuple[str, Case]]:
    return [(name, named.with_weights(name, weights)) for name, weights in named.WEIGHTS]


def _everyone() -> list[tuple[str, Case]]:
    return [
        (f"UP {user:g}, PP {political:g}", named.for_everyone((user, political)))
        for user, political in named.EVERYONE
    ]


def _overruns() -> list[tuple[str, Case]]:
    return [(case.name, case) for case in (CONSERVATIVE, SLACK, *named.overrunning())]


def _three(runs: LogRuns, cases: Sequence[Case]) -> list[Cell]:
    each = [runs[case.name, 0] for case in cases]
    return [
        *(run.bounded_slowdown for run in each),
        *(run.mean_wait_s for run in each),
        each[2].longest_wait_s / 3_600,
    ]


def _three_columns(first: str) -> tuple[Column, ...]:
    return (
        Column(first),
        Column("slowdown: EASY", ",.1f"),
        Column("conservative", ",.1f"),
        Column("priority", ",.1f"),
        Column("wait, s: EASY", _S),
        Column("conservative", _S),
        Column("priority", _S),
        Column("priority's longest, h", ",.1f"),
    )


def _slowdown(run: RunFigures) -> float:
    return run.bounded_slowdown


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3_600


def _gain(before: float | None, after: float | None) -> float | None:
    if before is None or after is None or before == 0:
        return None
    return (before - after) / before


def _repeated(gain: Gain) -> tuple[Cell, Cell]:
    """Give the copies' mean gain and its interval in words."""
    if gain.interval is None:
        return gain.mean, None
    return gain.mean, f"{gain.interval.low:+.1%} to {gain.interval.high:+.1%}"


def _write(gain: Gain) -> str:
    """Write the copies' mean gain with its interval."""
    if gain.mean is None:
        return "–"
    interval = _repeated(gain)[1]
    return f"{gain.mean:+.1%}" + ("" if interval is None else f" ({interval})")
