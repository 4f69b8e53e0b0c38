"""The figures behind what Streit 2002 says of its results, worked out on one draw of the sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.streit2002.measures import Measures
from foretime_studies.streit2002.runs import (
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
    Switched,
    self_tuning,
)
from foretime_studies.streit2002.sets import CTC, JOB_SETS, PC2, TABLE_FACTOR, JobSet
from foretime_studies.streit2002.study import Streit2002
from foretime_studies.streit2002.tables import backlog, share_of_cases, switched_of

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
        case = Case(job_set.name, "independent", self.draw, "printed", factor, requests, scheduler)
        return self.found.results[case]

    def measures(
        self,
        job_set: JobSet,
        scheduler: str,
        factor: float = TABLE_FACTOR,
        requests: Requests = "real",
    ) -> Measures:
        """Give its measures."""
        return self.run(job_set, scheduler, factor, requests).measures

    def artww(self, job_set: JobSet, scheduler: str, factor: float = TABLE_FACTOR) -> float:
        """Give its ARTwW, s."""
        return self.measures(job_set, scheduler, factor).artww_s

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
            getattr(self.measures(job_set, first, factor), measure)
            / getattr(self.measures(job_set, second, factor), measure)
            for factor in (job_set.factors if factors is None else factors)
        ]
        return float(np.mean(ratios))

    def switched(self, job_set: JobSet, scheduler: str) -> Switched:
        """Give how a scheduler that does so switched, at the factor of table 4."""
        return switched_of(self.run(job_set, scheduler))

    def started(self, job_set: JobSet, scheduler: str, order: Order) -> float:
        """Give the share of the jobs started with an order, at the factor of table 4."""
        started = self.switched(job_set, scheduler).started
        return started[str(order)] / sum(started.values())


OfDraw: TypeAlias = Callable[[Draw], float]
_Figure: TypeAlias = Callable[[Draw, JobSet], float]
"""Of a claim about one set; those about all take no heed of it."""


def _everywhere(holds: Callable[[JobSet, float], bool]) -> float:
    """Give the share of the points of a figure, sets and factors, at which something is so."""
    return float(np.mean([holds(given, at) for given in JOB_SETS for at in given.factors]))


def _gain(draw: Draw, given: JobSet, quality: Quality = Quality.ARTWW) -> float:
    """Say by how much the advanced decider's ARTwW is below the simple one's in table 4."""
    simple, advanced = (draw.artww(given, self_tuning(by, quality)) for by in DECIDERS)
    return 1 - advanced / simple


def _better_blocks(draw: Draw, _: JobSet) -> float:
    return float(
        sum(_gain(draw, given, quality) > 0 for given in JOB_SETS for quality in QUALITIES)
    )


def _favours_fcfs(draw: Draw, _: JobSet) -> float:
    count = 0
    for given in JOB_SETS:
        for quality in QUALITIES:
            name = self_tuning(Decider.SIMPLE, quality)
            count += max(_ORDERS, key=lambda order: draw.started(given, name, order)) is Order.FCFS
    return float(count)


def _started(scheduler: str, order: Order) -> _Figure:
    return lambda draw, given: draw.started(given, scheduler, order)


def _spread_of_table(draw: Draw, given: JobSet) -> float:
    values = [
        draw.artww(given, self_tuning(by, quality)) for by in DECIDERS for quality in QUALITIES
    ]
    return max(values) / min(values) - 1


def _same_policy(draw: Draw, given: JobSet) -> float:
    switched = draw.switched(given, ADVANCED)
    return 1 - sum(switched.switches.values()) / max(1, switched.tries)


def _cases(*rows: str) -> _Figure:
    return lambda draw, given: share_of_cases(draw.run(given, ADVANCED), rows)


def _ratio(first: str, second: str, measure: str = "artww_s") -> _Figure:
    return lambda draw, given: draw.ratio(given, first, second, measure)


def _tail_ratio(second: str) -> _Figure:
    factors = [factor for factor in CTC.factors if factor < 0.9]
    return lambda draw, given: draw.ratio(given, ADVANCED, second, factors=factors)


def _pc2_slowdown(draw: Draw, _: JobSet) -> float:
    pc2, ctc = (draw.measures(each, ADVANCED, each.factors[-1]) for each in (PC2, CTC))
    return pc2.sldww_60 / ctc.sldww_60


def _sjf_lowest(
    among: Sequence[str], measure: str = "artww_s", requests: Requests = "real"
) -> _Figure:
    """Give the share of the points of a figure at which SJF has the lowest of several."""

    def of(draw: Draw, _: JobSet) -> float:
        def at(given: JobSet, factor: float, scheduler: str) -> float:
            return float(getattr(draw.measures(given, scheduler, factor, requests), measure))

        return _everywhere(
            lambda given, factor: (
                at(given, factor, SJF) <= min(at(given, factor, name) for name in among)
            )
        )

    return of


def _saturated(draw: Draw, given: JobSet, scheduler: str = LJF) -> float:
    return draw.measures(given, scheduler, given.factors[-1]).utilization


def _highest_utilization(draw: Draw, _: JobSet) -> float:
    """Count the sets in which LJF's utilization is the highest (to 0.1%) when saturated."""
    return float(
        sum(
            _saturated(draw, given) >= max(_saturated(draw, given, name) for name in FIVE) - 0.001
            for given in JOB_SETS
        )
    )


def _utilization_spread(draw: Draw, _: JobSet) -> float:
    spreads = []
    for given in JOB_SETS:
        values = [draw.measures(given, name, given.factors[0]).utilization for name in FIVE]
        spreads.append(max(values) - min(values))
    return max(spreads)


def _lost_and_used(draw: Draw, _: JobSet) -> float:
    found = (draw.measures(given, LJF, given.factors[-1]) for given in JOB_SETS)
    return min(some.utilization + some.loss_of_capacity for some in found)


def _same_ranking(draw: Draw, _: JobSet) -> float:
    def ranking(given: JobSet, factor: float, measure: str) -> list[str]:
        return sorted(FIVE, key=lambda name: getattr(draw.measures(given, name, factor), measure))

    return _everywhere(
        lambda given, factor: (
            ranking(given, factor, "sldww_60") == ranking(given, factor, "sldww_300")
        )
    )


def _short_jobs(draw: Draw, _: JobSet) -> float:
    counts = [draw.measures(given, FCFS).jobs_of_class for given in JOB_SETS]
    return sum(count[0] for count in counts) / sum(map(sum, counts))


def _sjf_at(factor: float, requests: Requests) -> _Figure:
    return lambda draw, given: draw.measures(given, SJF, factor, requests).artww_s


def _worth_of_estimates(draw: Draw, given: JobSet, factor: float) -> float:
    """Give SJF's ARTwW with real requests over that with exact ones."""
    exact = draw.measures(given, SJF, factor, "exact").artww_s
    return draw.artww(given, SJF, factor) / exact


def _exact_against_sjf(draw: Draw, _: JobSet) -> float:
    ratios = [
        draw.measures(given, ADVANCED, factor, "exact").artww_s
        / draw.measures(given, SJF, factor, "exact").artww_s
        for given in JOB_SETS
        for factor in given.factors
    ]
    return float(np.mean(ratios))


def _at_or_below_best(draw: Draw, _: JobSet) -> float:
    """Give the share of points at which the advanced decider's ARTwW is at most the best single's.

    To 2%: section 6 desires a curve that "would always stay below or is equal to the best single
    policy at any workload".
    """
    return _everywhere(
        lambda given, factor: (
            draw.artww(given, ADVANCED, factor)
            <= 1.02 * min(draw.artww(given, name, factor) for name in SINGLES)
        )
    )


FIGURES: dict[str, _Figure] = {
    "gain in ARTwW": _gain,
    "better blocks": _better_blocks,
    "ARTwW over ART": lambda draw, given: draw.artww(given, ADVANCED) / draw.artww(given, _BY_ART),
    "favours FCFS": _favours_fcfs,
    "LJF by MS": _started(_BY_MAKESPAN, Order.LJF),
    "FCFS by ARTwW": _started(ADVANCED, Order.FCFS),
    "SJF by ARTwW": _started(ADVANCED, Order.SJF),
    "spread of table 4": _spread_of_table,
    "same policy": _same_policy,
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
