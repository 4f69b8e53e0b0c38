"""What Talby & Feitelson 1999 say of their simulations, each judged on the log and its copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foretime_sim.policies.slack import InsertionOrder

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    EASY,
    SLACK,
    AverageWait,
    Case,
    Estimates,
)
from foretime_studies.talby1999.runs import LogRuns, RunFigures

UNEQUAL = named.with_gap(SLACK, named.GAPS[-1])
_EQUAL_ORDERS = tuple(named.ordered(order) for order in InsertionOrder)
_PRIORITY_ONLY = named.with_weights(*named.WEIGHTS[1])
_HEAVY = named.LOADS[-1]
_CLOSE = 0.03
"""What "nearly the same" and "very close" are taken to mean."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """The runs of one copy of the log."""

    runs: LogRuns
    copy: int

    def __call__(self, case: Case) -> RunFigures:
        return self.runs[case.name, self.copy]

    def wait(self, case: Case) -> float:
        return self(case).mean_wait_s

    def gain(self, case: Case, base: Case = CONSERVATIVE) -> float:
        return 1 - self.wait(case) / self.wait(base)


@dataclass(frozen=True, slots=True)
class _Claim:
    """One sentence, what the paper has for it, what we have, and when it holds."""

    text: str
    papers: str
    ours: Callable[[_Copy], str]
    holds: Callable[[_Copy], bool]


def _gain(case: Case, base: Case = CONSERVATIVE) -> Callable[[_Copy], str]:
    return lambda copy: f"{copy.gain(case, base):+.1%}"


def _raised(copy: _Copy) -> float:
    """How much less the raised jobs wait than the average job does with equal priorities."""
    return 1 - copy(UNEQUAL).fifth_mean_wait_s / copy.wait(SLACK)


def _raised_themselves(copy: _Copy) -> float:
    return 1 - copy(UNEQUAL).fifth_mean_wait_s / copy(SLACK).fifth_mean_wait_s


def _gap(case: Case) -> Callable[[_Copy], float]:
    return lambda copy: copy(case).others_mean_wait_s - copy(case).fifth_mean_wait_s


def _middle_gaps(copy: _Copy) -> list[float]:
    """Costs in mean wait of the gaps below the largest, as shares of equal priorities' wait."""
    return [-copy.gain(named.with_gap(SLACK, gap), SLACK) for gap in named.GAPS[1:-1]]


def _slowdown_gain(case: Case, base: Case) -> Callable[[_Copy], float]:
    return lambda copy: 1 - copy(case).bounded_slowdown / copy(base).bounded_slowdown


_HEAVY_GAIN = _slowdown_gain(named.loaded(CONSERVATIVE, _HEAVY), named.loaded(EASY, _HEAVY))
_EXACT = named.estimated(CONSERVATIVE, Estimates.RUNTIMES, 1.0)
_DOUBLED = named.estimated(CONSERVATIVE, Estimates.RUNTIMES, 2.0)
_MONTHLY = named.with_average_wait(AverageWait.MONTH)
_HIGHEST = named.for_everyone((1.0, 1.0))
_SMALLEST_AWT = named.with_awt(min(named.AWT_FACTORS))

CLAIMS = (
    _Claim(
        "The conservative scheduler's mean wait is nearly EASY's (5.1)",
        "–",
        lambda copy: f"{copy.gain(CONSERVATIVE, EASY):+.1%} against EASY",
        lambda copy: abs(copy.gain(CONSERVATIVE, EASY)) <= _CLOSE,
    ),
    _Claim(
        "In very high loads its bounded slowdown is slightly better than EASY's (3.3)",
        "–",
        lambda copy: f"{_HEAVY_GAIN(copy):+.1%} at interarrival times x {_HEAVY:g}",
        lambda copy: _HEAVY_GAIN(copy) > 0,
    ),
    _Claim(
        "Overestimated runtimes improve conservative backfilling (3.3)",
        "–",
        lambda copy: f"{copy.gain(_DOUBLED, _EXACT):+.1%} with twice the runtimes",
        lambda copy: copy.gain(_DOUBLED, _EXACT) > 0,
    ),
    _Claim(
        "... and so do users' own requests, against exact runtimes",
        "–",
        lambda copy: f"{copy.gain(CONSERVATIVE, _EXACT):+.1%}",
        lambda copy: copy.gain(CONSERVATIVE, _EXACT) > 0,
    ),
    _Claim(
        "The priority scheduler's mean wait is shorter than conservative backfilling's (5.2)",
        "+16.5%",
        _gain(SLACK),
        lambda copy: copy.gain(SLACK) > 0,
    ),
    _Claim(
        "It is shorter than EASY's (abstract: by about 15%)",
        "+15%",
        _gain(SLACK, EASY),
        lambda copy: copy.gain(SLACK, EASY) > 0,
    ),
    _Claim(
        "With SF = 9 it is shorter still (5.2)",
        "+19.25%",
        _gain(named.with_slack_factor(9.0)),
        lambda copy: copy.gain(named.with_slack_factor(9.0), SLACK) > 0,
    ),
    _Claim(
        "Each month's own AWT shortens it further (5.2)",
        "a few percent",
        _gain(_MONTHLY, SLACK),
        lambda copy: copy.gain(_MONTHLY, SLACK) > 0,
    ),
    _Claim(
        "A very small AWT gives conservative backfilling (5.2)",
        "–",
        _gain(_SMALLEST_AWT),
        lambda copy: abs(copy.gain(_SMALLEST_AWT)) <= _CLOSE,
    ),
    _Claim(
        "Equal but higher priorities lengthen it (5.2)",
        "–",
        lambda copy: f"{-copy.gain(_HIGHEST, SLACK):+.1%}",
        lambda copy: copy.gain(_HIGHEST, SLACK) < 0,
    ),
    _Claim(
        "AST is the best insertion order for equal priorities (5.2)",
        "+16.5% against 8.1% to 13%",
        lambda copy: ", ".join(
            f"{order.value.upper()} {copy.gain(named.ordered(order)):+.1%}"
            for order in InsertionOrder
        ),
        lambda copy: copy.wait(SLACK) <= min(map(copy.wait, _EQUAL_ORDERS)),
    ),
    _Claim(
        "All orders improve on conservative backfilling (5.2)",
        "8.1% to 16.5%",
        lambda copy: f"at least {min(map(copy.gain, _EQUAL_ORDERS)):+.1%}",
        lambda copy: min(map(copy.gain, _EQUAL_ORDERS)) > 0,
    ),
    _Claim(
        "... and on EASY",
        "–",
        lambda copy: f"at least {min(copy.gain(case, EASY) for case in _EQUAL_ORDERS):+.1%}",
        lambda copy: min(copy.gain(case, EASY) for case in _EQUAL_ORDERS) > 0,
    ),
    _Claim(
        "Jobs at high priority wait less than the average with equal priorities (5.3)",
        "+2.5%",
        lambda copy: f"{_raised(copy):+.1%}",
        lambda copy: _raised(copy) > 0,
    ),
    _Claim(
        "... and less than they themselves did",
        "–",
        lambda copy: f"{_raised_themselves(copy):+.1%}",
        lambda copy: _raised_themselves(copy) > 0,
    ),
    _Claim(
        "High priorities for some lengthen the mean wait of all (5.3)",
        "+11.1%",
        lambda copy: f"{-copy.gain(UNEQUAL, SLACK):+.1%}",
        lambda copy: copy.gain(UNEQUAL, SLACK) < 0,
    ),
    _Claim(
        "It stays shorter than conservative backfilling's (5.3)",
        "+7.3%",
        _gain(UNEQUAL),
        lambda copy: copy.gain(UNEQUAL) > 0,
    ),
    _Claim(
        "... and than EASY's",
        "–",
        _gain(UNEQUAL, EASY),
        lambda copy: copy.gain(UNEQUAL, EASY) > 0,
    ),
    _Claim(
        "Even the others wait less than in EASY (6)",
        "+4.5% against conservative",
        lambda copy: f"{1 - copy(UNEQUAL).others_mean_wait_s / copy(EASY).others_mean_wait_s:+.1%}",
        lambda copy: copy(UNEQUAL).others_mean_wait_s < copy(EASY).others_mean_wait_s,
    ),
    _Claim(
        "But for the largest gap, the mean wait of all is very close to equal priorities' (5.3)",
        "–",
        lambda copy: f"at most {max(_middle_gaps(copy)):+.1%}",
        lambda copy: max(_middle_gaps(copy)) <= _CLOSE,
    ),
    _Claim(
        "Weights of 0.2 but for priority widen the gap between the groups (5.3)",
        "slightly",
        lambda copy: f"{_gap(UNEQUAL)(copy):,.0f} -> {_gap(_PRIORITY_ONLY)(copy):,.0f} s",
        lambda copy: _gap(_PRIORITY_ONLY)(copy) > _gap(UNEQUAL)(copy),
    ),
    _Claim(
        "... and lengthen the waits of both (5.3)",
        "considerably",
        lambda copy: f"{-copy.gain(_PRIORITY_ONLY, UNEQUAL):+.1%} in all",
        lambda copy: (
            copy(_PRIORITY_ONLY).fifth_mean_wait_s > copy(UNEQUAL).fifth_mean_wait_s
            and copy(_PRIORITY_ONLY).others_mean_wait_s > copy(UNEQUAL).others_mean_wait_s
        ),
    ),
)


def claims(runs: LogRuns, repeats: int) -> StudyTable:
    """Judge every claim on the log as it is, and on each of its jittered copies."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        copies = [_Copy(runs, copy) for copy in range(repeats + 1)]
        held = sum(claim.holds(copy) for copy in copies[1:])
        rows.append(
            (
                claim.text,
                claim.papers,
                claim.ours(copies[0]),
                "yes" if claim.holds(copies[0]) else "**no**",
                f"{held} of {repeats}",
            )
        )
    columns = (
        Column("claim"),
        Column("paper"),
        Column("ours"),
        Column("holds"),
        Column("on copies"),
    )
    note = f'"Nearly" and "very close" are taken as within {_CLOSE:.0%}.'
    return StudyTable("claims", "What the paper says", columns, tuple(rows), note)
