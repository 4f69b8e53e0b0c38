"""What Talby & Feitelson 1999 say of their simulations, each judged on the log and its copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from foretime_sim.policies.slack import InsertionOrder

from foretime_studies.frame.claims import keeps, yes
from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Rows, study_table
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    EASY,
    SLACK,
    UNEQUAL,
    AverageWait,
    Case,
    Estimates,
)
from foretime_studies.talby1999.runs import LogRuns, RunFigures

CLAIMS = published(__package__, "claims")


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

    def gap(self, case: Case) -> float:
        return self(case).others_mean_wait_s - self(case).fifth_mean_wait_s


_Figure: TypeAlias = Callable[[_Copy], float]


def _gain(case: Case, base: Case = CONSERVATIVE) -> _Figure:
    return lambda copy: copy.gain(case, base)


def _cost(case: Case, base: Case = SLACK) -> _Figure:
    return lambda copy: -copy.gain(case, base)


def _slowdown_gain(case: Case, base: Case) -> _Figure:
    return lambda copy: 1 - copy(case).bounded_slowdown / copy(base).bounded_slowdown


def _largest_cost_of_smaller_gaps(copy: _Copy) -> float:
    return max(-copy.gain(named.with_gap(SLACK, gap), SLACK) for gap in named.GAPS[1:-1])


def _least_cost_of_small_weights(copy: _Copy) -> float:
    weighted, equal = copy(_PRIORITY_ONLY), copy(UNEQUAL)
    return min(
        weighted.fifth_mean_wait_s - equal.fifth_mean_wait_s,
        weighted.others_mean_wait_s - equal.others_mean_wait_s,
    )


_ORDERS = {order: named.ordered(order) for order in InsertionOrder}
_PRIORITY_ONLY = named.with_weights(*named.WEIGHTS[1])
_HEAVY = named.LOADS[-1]
_EXACT, _DOUBLED = (named.estimated(CONSERVATIVE, Estimates.RUNTIMES, x) for x in (1.0, 2.0))
_SF_9 = named.with_slack_factor(9.0)

_FIGURES: dict[str, _Figure] = {
    "conservative on EASY": _gain(CONSERVATIVE, EASY),
    "slowdown in high loads": _slowdown_gain(
        named.loaded(CONSERVATIVE, _HEAVY), named.loaded(EASY, _HEAVY)
    ),
    "doubled on exact": _gain(_DOUBLED, _EXACT),
    "conservative on exact": _gain(CONSERVATIVE, _EXACT),
    "priority": _gain(SLACK),
    "priority on EASY": _gain(SLACK, EASY),
    "SF 9 on priority": _gain(_SF_9, SLACK),
    "monthly AWT on priority": _gain(named.with_average_wait(AverageWait.MONTH), SLACK),
    "small AWT": _gain(named.with_awt(min(named.AWT_FACTORS))),
    "cost of high priorities for all": _cost(named.for_everyone((1.0, 1.0))),
    "AST on the best order": lambda copy: min(map(copy.wait, _ORDERS.values())) - copy.wait(SLACK),
    "worst order": lambda copy: min(map(copy.gain, _ORDERS.values())),
    "worst order on EASY": lambda copy: min(copy.gain(case, EASY) for case in _ORDERS.values()),
    "raised on all": lambda copy: 1 - copy(UNEQUAL).fifth_mean_wait_s / copy.wait(SLACK),
    "raised on themselves": lambda copy: (
        1 - copy(UNEQUAL).fifth_mean_wait_s / copy(SLACK).fifth_mean_wait_s
    ),
    "cost of unequal priorities": _cost(UNEQUAL),
    "unequal": _gain(UNEQUAL),
    "unequal on EASY": _gain(UNEQUAL, EASY),
    "others on EASY": lambda copy: (
        1 - copy(UNEQUAL).others_mean_wait_s / copy(EASY).others_mean_wait_s
    ),
    "largest cost of smaller gaps": _largest_cost_of_smaller_gaps,
    "widened gap": lambda copy: copy.gap(_PRIORITY_ONLY) - copy.gap(UNEQUAL),
    "least cost of small weights": _least_cost_of_small_weights,
}
_TEXTS: dict[str, Callable[[_Copy], str]] = {
    "SF 9 on priority": lambda copy: f"{copy.gain(_SF_9):+.1%}",
    "AST on the best order": lambda copy: ", ".join(
        f"{order.value.upper()} {copy.gain(case):+.1%}" for order, case in _ORDERS.items()
    ),
    "widened gap": lambda copy: f"{copy.gap(UNEQUAL):,.0f} -> {copy.gap(_PRIORITY_ONLY):,.0f} s",
    "least cost of small weights": lambda copy: (
        f"{-copy.gain(_PRIORITY_ONLY, UNEQUAL):+.1%} in all"
    ),
}
"""What is told in place of the figure that is judged."""


@study_table("claims", "What the paper says", '"Nearly" and "very close" are taken as within 3%.')
def claims(runs: LogRuns, repeats: int) -> Rows:
    """Judge every claim on the log as it is, and on each of its jittered copies."""
    copies = [_Copy(runs, copy) for copy in range(repeats + 1)]
    for text, claim in CLAIMS.items():
        values = [_FIGURES[claim["figure"]](copy) for copy in copies]
        held = [keeps(value, claim["holds"]) for value in values]
        written = claim["written"]
        ours = written.format(values[0]) if written else _TEXTS[claim["figure"]](copies[0])
        yield [
            ("claim", text),
            ("paper", claim["paper"]),
            ("ours", ours),
            ("holds", yes(held[0])),
            ("on copies", f"{sum(held[1:])} of {repeats}"),
        ]
