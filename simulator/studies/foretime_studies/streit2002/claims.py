"""What Streit 2002 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is a figure worked out on every draw of the job sets, and a bound that it must keep: what
"approximately", "mostly" or "not that much" are taken to mean stands beside it in claims.csv.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Rows, study_table
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.sets import CTC, JOB_SETS, PC2, TABLE_FACTOR, JobSet
from foretime_studies.streit2002.study import (
    ADVANCED,
    BASIC,
    DECIDERS,
    FCFS,
    FIVE,
    LJF,
    QUALITIES,
    SIMPLE,
    SINGLES,
    SJF,
    Case,
    CaseResult,
    Requests,
    Streit2002,
    self_tuning,
)
from foretime_studies.streit2002.tables import backlog, same_policy, share_of_cases, switched_of

_ORDERS = (Order.FCFS, Order.SJF, Order.LJF)
_BY_ART, _BY_MAKESPAN = (self_tuning(Decider.ADVANCED, q) for q in (Quality.ART, Quality.MAKESPAN))


@dataclass(frozen=True, slots=True)
class Draw:
    """The runs on one draw, from 1, of each set."""

    found: Streit2002
    draw: int

    def run(
        self,
        job_set: JobSet,
        scheduler: str,
        factor: float = TABLE_FACTOR,
        requests: Requests = "real",
    ) -> CaseResult:
        """Give a run; KeyError where there is none."""
        case = Case(job_set.name, scheduler, factor, self.draw, requests=requests)
        return self.found.results[case]

    def artww(
        self, given: JobSet, scheduler: str, at: float = TABLE_FACTOR, requests: Requests = "real"
    ) -> float:
        """Give a run's ARTwW, s."""
        return self.run(given, scheduler, at, requests).measures.artww_s

    def ratio(
        self,
        job_set: JobSet,
        first: str,
        second: str,
        measure: str = "artww_s",
        factors: Sequence[float] | None = None,
    ) -> float:
        """Give the mean over the figure's factors of one scheduler's measure over another's."""
        ratios = [
            getattr(self.run(job_set, first, factor).measures, measure)
            / getattr(self.run(job_set, second, factor).measures, measure)
            for factor in (job_set.factors if factors is None else factors)
        ]
        return float(np.mean(ratios))

    def started(self, job_set: JobSet, scheduler: str, order: Order) -> float:
        """Give the share of the jobs started with an order, at the factor of table 4."""
        started = switched_of(self.run(job_set, scheduler)).started
        return started[str(order)] / sum(started.values())


OfDraw: TypeAlias = Callable[[Draw], float]
_Figure: TypeAlias = Callable[[Draw, JobSet], float]
"""Of a claim about one set; those about all take no heed of it."""


def _everywhere(of: Callable[[JobSet, float], float]) -> float:
    """Give the mean over the points of a figure, sets and factors, or the share where it is so."""
    return float(np.mean([of(given, at) for given in JOB_SETS for at in given.factors]))


def _gain(draw: Draw, given: JobSet, quality: Quality = Quality.ARTWW) -> float:
    """Say by how much the advanced decider's ARTwW is below the simple one's in table 4."""
    simple, advanced = (draw.artww(given, self_tuning(by, quality)) for by in DECIDERS)
    return 1 - advanced / simple


def _better_blocks(draw: Draw, _: JobSet) -> float:
    blocks = itertools.product(JOB_SETS, QUALITIES)
    return float(sum(_gain(draw, given, quality) > 0 for given, quality in blocks))


def _favours_fcfs(draw: Draw, _: JobSet) -> float:
    def favourite(given: JobSet, quality: Quality) -> Order:
        name = self_tuning(Decider.SIMPLE, quality)
        return max(_ORDERS, key=lambda order: draw.started(given, name, order))

    blocks = itertools.product(JOB_SETS, QUALITIES)
    return float(sum(favourite(*block) is Order.FCFS for block in blocks))


def _started(scheduler: str, order: Order) -> _Figure:
    return lambda draw, given: draw.started(given, scheduler, order)


def _spread_of_table(draw: Draw, given: JobSet) -> float:
    blocks = itertools.product(DECIDERS, QUALITIES)
    values = [draw.artww(given, self_tuning(*block)) for block in blocks]
    return max(values) / min(values) - 1


def _cases(*rows: str) -> _Figure:
    return lambda draw, given: share_of_cases(draw.run(given, ADVANCED), rows)


def _ratio(first: str, second: str, measure: str = "artww_s") -> _Figure:
    return lambda draw, given: draw.ratio(given, first, second, measure)


def _tail_ratio(second: str) -> _Figure:
    factors = [factor for factor in CTC.factors if factor < 0.9]
    return lambda draw, given: draw.ratio(given, ADVANCED, second, factors=factors)


def _pc2_slowdown(draw: Draw, _: JobSet) -> float:
    pc2, ctc = (draw.run(each, ADVANCED, each.factors[-1]).measures for each in (PC2, CTC))
    return pc2.sldww_60 / ctc.sldww_60


def _sjf_lowest(
    among: Sequence[str], measure: str = "artww_s", requests: Requests = "real"
) -> _Figure:
    """Give the share of the points of a figure at which SJF has the lowest of several."""

    def of(draw: Draw, _: JobSet) -> float:
        def at(given: JobSet, factor: float, scheduler: str) -> float:
            return float(getattr(draw.run(given, scheduler, factor, requests).measures, measure))

        return _everywhere(
            lambda given, factor: (
                at(given, factor, SJF) <= min(at(given, factor, name) for name in among)
            )
        )

    return of


def _saturated(draw: Draw, given: JobSet, scheduler: str = LJF) -> float:
    return draw.run(given, scheduler, given.factors[-1]).measures.utilization


def _highest_utilization(draw: Draw, _: JobSet) -> float:
    """Count the sets in which LJF's utilization is the highest (to 0.1%) when saturated."""
    most = {given: max(_saturated(draw, given, name) for name in FIVE) for given in JOB_SETS}
    return float(sum(_saturated(draw, given) >= most[given] - 0.001 for given in JOB_SETS))


def _utilization_spread(draw: Draw, _: JobSet) -> float:
    spreads = []
    for given in JOB_SETS:
        runs = [draw.run(given, name, given.factors[0]) for name in FIVE]
        values = [run.measures.utilization for run in runs]
        spreads.append(max(values) - min(values))
    return max(spreads)


def _lost_and_used(draw: Draw, _: JobSet) -> float:
    found = (draw.run(given, LJF, given.factors[-1]).measures for given in JOB_SETS)
    return min(some.utilization + some.loss_of_capacity for some in found)


def _same_ranking(draw: Draw, _: JobSet) -> float:
    def ranking(given: JobSet, factor: float, measure: str) -> list[str]:
        found = {name: draw.run(given, name, factor).measures for name in FIVE}
        return sorted(FIVE, key=lambda name: getattr(found[name], measure))

    return _everywhere(
        lambda given, at: ranking(given, at, "sldww_60") == ranking(given, at, "sldww_300")
    )


def _short_jobs(draw: Draw, _: JobSet) -> float:
    counts = [draw.run(given, FCFS).measures.jobs_of_class for given in JOB_SETS]
    return sum(count[0] for count in counts) / sum(map(sum, counts))


def _sjf_at(factor: float, requests: Requests) -> _Figure:
    return lambda draw, given: draw.artww(given, SJF, factor, requests)


def _worth_of_estimates(draw: Draw, given: JobSet, factor: float) -> float:
    """Give SJF's ARTwW with real requests over that with exact ones."""
    return draw.artww(given, SJF, factor) / draw.artww(given, SJF, factor, "exact")


def _exact_against_sjf(draw: Draw, _: JobSet) -> float:
    return _everywhere(
        lambda given, at: (
            draw.artww(given, ADVANCED, at, "exact") / draw.artww(given, SJF, at, "exact")
        )
    )


def _at_or_below_best(draw: Draw, _: JobSet) -> float:
    """Give the share of points at which the advanced decider's ARTwW is at most the best single's.

    To 2%: section 6 desires a curve that "would always stay below or is equal to the best single
    policy at any workload".
    """

    def below(given: JobSet, at: float) -> bool:
        best = min(draw.artww(given, name, at) for name in SINGLES)
        return draw.artww(given, ADVANCED, at) <= 1.02 * best

    return _everywhere(below)


FIGURES: dict[str, _Figure] = {
    "gain in ARTwW": _gain,
    "better blocks": _better_blocks,
    "ARTwW over ART": lambda draw, given: draw.artww(given, ADVANCED) / draw.artww(given, _BY_ART),
    "favours FCFS": _favours_fcfs,
    "LJF by MS": _started(_BY_MAKESPAN, Order.LJF),
    "FCFS by ARTwW": _started(ADVANCED, Order.FCFS),
    "SJF by ARTwW": _started(ADVANCED, Order.SJF),
    "spread of table 4": _spread_of_table,
    "same policy": lambda draw, given: same_policy(draw.run(given, ADVANCED)),
    "case 6b": _cases("6b"),
    "critical cases": _cases("6c", "8b", "10a"),
    "gain over factors": lambda draw, given: 1 - draw.ratio(given, ADVANCED, SIMPLE),
    "slowdown of advanced on simple": _ratio(ADVANCED, SIMPLE, "sldww_60"),
    "PC2 slowdown on CTC": _pc2_slowdown,
    "SJF lowest of five": _sjf_lowest(FIVE),
    "SJF lowest of singles": _sjf_lowest(SINGLES),
    "SJF lowest slowdown of five": _sjf_lowest(FIVE, "sldww_60"),
    "SJF lowest slowdown of singles": _sjf_lowest(SINGLES, "sldww_60"),
    "SJF on FCFS": _ratio(SJF, FCFS),
    "basic on FCFS": _ratio(BASIC, FCFS),
    "advanced on SJF": _ratio(ADVANCED, SJF),
    "advanced on FCFS": _ratio(ADVANCED, FCFS),
    "advanced on FCFS below 0.9": _tail_ratio(FCFS),
    "advanced on LJF below 0.9": _tail_ratio(LJF),
    "utilization spread": _utilization_spread,
    "LJF saturated": _saturated,
    "highest utilization": _highest_utilization,
    "lost and used": _lost_and_used,
    "short jobs": _short_jobs,
    "same ranking": _same_ranking,
    "SJF at 1.00, real": _sjf_at(1.0, "real"),
    "SJF at 1.00, exact": _sjf_at(1.0, "exact"),
    "SJF at 0.70, real": _sjf_at(0.7, "real"),
    "SJF at 0.70, exact": _sjf_at(0.7, "exact"),
    "worth of estimates at 0.70": lambda draw, given: _worth_of_estimates(draw, given, 0.7),
    "worth of estimates at the last": lambda draw, given: _worth_of_estimates(
        draw, given, given.factors[-1]
    ),
    "exact: SJF lowest with advanced": _sjf_lowest((*SINGLES, ADVANCED), requests="exact"),
    "exact: SJF lowest of singles": _sjf_lowest(SINGLES, requests="exact"),
    "exact: advanced on SJF": _exact_against_sjf,
    "at or below the best": _at_or_below_best,
    "backlog at 0.80": lambda draw, given: backlog(draw.run(given, ADVANCED, 0.8)),
}
"""By the names that claims.csv has for them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper as a figure."""

    where: str
    says: str
    printed: float | None  # the paper's number for the figure, ``None`` where it gives none
    form: str
    of: OfDraw
    low: float = -math.inf
    high: float = math.inf
    sets: tuple[JobSet, ...] = JOB_SETS  # what it needs

    @property
    def bound(self) -> str:
        """What it is taken to say."""
        if math.isinf(self.low):
            return f"≤ {self.high:{self.form}}"
        if math.isinf(self.high):
            return f"≥ {self.low:{self.form}}"
        return f"{self.low:{self.form}} to {self.high:{self.form}}"

    def holds(self, value: float) -> bool:
        """Say whether a figure is as claimed."""
        return self.low <= value <= self.high


def _claims() -> list[Claim]:
    by_name = {job_set.name: job_set for job_set in JOB_SETS}
    made = []
    for (where, named, says), row in published(__package__, "claims", keys=3).items():
        sets = tuple(by_name[name] for name in named.split()) if named else JOB_SETS
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        of = partial(_of_first, row["figure"], sets[0])
        made.append(Claim(where, says, row["printed"], row["form"], of, low, high, sets))
    return made


def _of_first(figure: str, job_set: JobSet, draw: Draw) -> float:
    return FIGURES[figure](draw, job_set)


CLAIMS = tuple(_claims())


@study_table(
    "claims",
    "What the paper says, and whether it holds",
    'Figures over "points" are means over the shrinking factors of the figure; a claim holds '
    "if the mean over the draws is as it is taken.",
)
def claims_table(found: Streit2002) -> Rows:
    """Say of each claim what it is in the paper and here, and in how many draws it holds."""
    for claim in CLAIMS:
        values = _on_draws(claim, found) if set(claim.sets) <= set(found.sets) else []
        if not values:
            continue
        spread = Spread.of(values)
        told = [format(value, claim.form) for value in spread.ends if value is not None]
        printed = None if claim.printed is None else format(claim.printed, claim.form)
        yield [
            ("where", claim.where),
            ("what it says", claim.says),
            ("paper", printed),
            ("taken as", claim.bound),
            ("seed 1", format(spread.first, claim.form)),
            ("mean", format(spread.mean, claim.form)),
            ("95% interval", " – ".join(told) or None),
            ("draws", f"{sum(map(claim.holds, values))} of {len(values)}"),
            ("holds", "yes" if claim.holds(spread.mean) else "no"),
        ]


def _on_draws(claim: Claim, found: Streit2002) -> list[float]:
    """Work a claim out on the draws that have all the runs it needs."""
    values = []
    for draw in range(1, found.settings.seeds + 1):
        try:
            values.append(claim.of(Draw(found, draw)))
        except KeyError:
            break
    return values
