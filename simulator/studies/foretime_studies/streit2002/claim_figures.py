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
    self_tuning,
)
from foretime_studies.streit2002.sets import CTC, JOB_SETS, TABLE_FACTOR, JobSet
from foretime_studies.streit2002.study import Streit2002
from foretime_studies.streit2002.tables import share_of_cases


@dataclass(frozen=True, slots=True)
class Draw:
    """The runs on one draw of each set.

    Attributes
    ----------
    found
        What the study found.
    draw
        From 1.
    """

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

    def over_factors(self, job_set: JobSet, first: str, second: str, measure: str) -> float:
        """Give the mean over the figure's factors of one scheduler's measure over another's."""
        ratios = [
            getattr(self.measures(job_set, first, factor), measure)
            / getattr(self.measures(job_set, second, factor), measure)
            for factor in job_set.factors
        ]
        return float(np.mean(ratios))

    def started(self, job_set: JobSet, scheduler: str, order: Order) -> float:
        """Give the share of the jobs started with an order, at the factor of table 4."""
        switched = self.run(job_set, scheduler).switched
        if switched is None:
            raise ValueError(f"{scheduler} does not switch")
        return switched.started[str(order)] / sum(switched.started.values())


OfDraw: TypeAlias = Callable[[Draw], float]


def gain(job_set: JobSet, quality: Quality) -> OfDraw:
    """Say by how much the advanced decider's ARTwW is below the simple one's in table 4."""

    def of(draw: Draw) -> float:
        simple, advanced = (
            draw.artww(job_set, self_tuning(decider, quality))
            for decider in (Decider.SIMPLE, Decider.ADVANCED)
        )
        return 1 - advanced / simple

    return of


def better_blocks(draw: Draw) -> float:
    """Count the columns of table 4 in which the advanced decider has the lower ARTwW."""
    return float(sum(gain(given, quality)(draw) > 0 for given in JOB_SETS for quality in QUALITIES))


def over_factors(job_set: JobSet, measure: str) -> OfDraw:
    """Say by how much the advanced decider is below the simple one over the figure's factors."""
    return lambda draw: 1 - draw.over_factors(job_set, ADVANCED, SIMPLE, measure)


def quality_ratio(job_set: JobSet) -> OfDraw:
    """Give ARTwW with quality ARTwW over that with ART, advanced."""
    by_art = self_tuning(Decider.ADVANCED, Quality.ART)
    return lambda draw: draw.artww(job_set, ADVANCED) / draw.artww(job_set, by_art)


def spread_of_table(job_set: JobSet) -> OfDraw:
    """Compare the largest ARTwW of a block of table 4 with the least."""

    def of(draw: Draw) -> float:
        values = [
            draw.artww(job_set, self_tuning(decider, quality))
            for decider in (Decider.SIMPLE, Decider.ADVANCED)
            for quality in QUALITIES
        ]
        return max(values) / min(values) - 1

    return of


def favours_fcfs(draw: Draw) -> float:
    """Count the 12 columns in which the simple decider starts most jobs with FCFS."""
    count = 0
    for job_set in JOB_SETS:
        for quality in QUALITIES:
            name = self_tuning(Decider.SIMPLE, quality)
            shares = {order: draw.started(job_set, name, order) for order in _ORDERS}
            count += max(shares, key=lambda order: shares[order]) is Order.FCFS
    return float(count)


_ORDERS = (Order.FCFS, Order.SJF, Order.LJF)


def lowest(measure: str, among: Sequence[str] = FIVE, requests: Requests = "real") -> OfDraw:
    """Give the share of the points of a figure at which SJF has the lowest of several."""

    def of(draw: Draw) -> float:
        def at(job_set: JobSet, factor: float, scheduler: str) -> float:
            return float(getattr(draw.measures(job_set, scheduler, factor, requests), measure))

        hits = [
            at(job_set, factor, SJF) <= min(at(job_set, factor, name) for name in among)
            for job_set in JOB_SETS
            for factor in job_set.factors
        ]
        return float(np.mean(hits))

    return of


def ratio(job_set: JobSet, first: str, second: str, measure: str) -> OfDraw:
    """Give one scheduler's measure over another's, averaged over the figure's factors."""
    return lambda draw: draw.over_factors(job_set, first, second, measure)


def tail_ratio(first: str, second: str) -> OfDraw:
    """Give the ARTwW of one scheduler over another's on CTC below a factor of 0.9."""

    def of(draw: Draw) -> float:
        factors = [factor for factor in CTC.factors if factor < 0.9]
        return float(
            np.mean([draw.artww(CTC, first, at) / draw.artww(CTC, second, at) for at in factors])
        )

    return of


def saturated(job_set: JobSet, scheduler: str) -> OfDraw:
    """Give the utilization at the last factor of the figures."""
    return lambda draw: draw.measures(job_set, scheduler, job_set.factors[-1]).utilization


def highest_utilization(draw: Draw) -> float:
    """Count the sets in which LJF's utilization is the highest (to 0.1%) when saturated."""
    return float(
        sum(
            saturated(job_set, LJF)(draw)
            >= max(saturated(job_set, name)(draw) for name in FIVE) - 0.001
            for job_set in JOB_SETS
        )
    )


def utilization_spread(draw: Draw) -> float:
    """Give the largest difference between the five's utilizations at the first factor."""
    spreads = []
    for job_set in JOB_SETS:
        values = [draw.measures(job_set, name, job_set.factors[0]).utilization for name in FIVE]
        spreads.append(max(values) - min(values))
    return max(spreads)


def lost_and_used(draw: Draw) -> float:
    """Add utilization and loss of capacity when saturated; the least of all sets (LJF)."""
    found = (draw.measures(given, LJF, given.factors[-1]) for given in JOB_SETS)
    return min(some.utilization + some.loss_of_capacity for some in found)


def same_ranking(draw: Draw) -> float:
    """Give the share of points at which the five rank alike by both slowdowns."""

    def ranking(job_set: JobSet, factor: float, measure: str) -> list[str]:
        return sorted(
            FIVE, key=lambda name: float(getattr(draw.measures(job_set, name, factor), measure))
        )

    return float(
        np.mean(
            [
                ranking(given, factor, "sldww_60") == ranking(given, factor, "sldww_300")
                for given in JOB_SETS
                for factor in given.factors
            ]
        )
    )


def short_jobs(draw: Draw) -> float:
    """Give the share of jobs of at most 5 minutes."""
    counts = [draw.measures(job_set, FCFS).jobs_of_class for job_set in JOB_SETS]
    return sum(count[0] for count in counts) / sum(map(sum, counts))


def sjf_on_ctc(factor: float, requests: Requests) -> OfDraw:
    """Give SJF's ARTwW on CTC, s."""
    return lambda draw: draw.measures(CTC, SJF, factor, requests).artww_s


def worth_of_estimates(job_set: JobSet, factor: float) -> OfDraw:
    """Give SJF's ARTwW with real requests over that with exact ones."""

    def of(draw: Draw) -> float:
        real, exact = (
            draw.measures(job_set, SJF, factor, requests).artww_s for requests in _REQUESTS
        )
        return real / exact

    return of


_REQUESTS: tuple[Requests, Requests] = ("real", "exact")


def exact_against_sjf(draw: Draw) -> float:
    """Give the advanced decider's ARTwW over SJF's with exact requests, over all points."""
    ratios = [
        draw.measures(given, ADVANCED, factor, "exact").artww_s
        / draw.measures(given, SJF, factor, "exact").artww_s
        for given in JOB_SETS
        for factor in given.factors
    ]
    return float(np.mean(ratios))


def cases(job_set: JobSet, rows: Sequence[str]) -> OfDraw:
    """Give the share of some cases of table 6 among all."""
    return lambda draw: share_of_cases(draw.run(job_set, ADVANCED), rows)


def same_policy(job_set: JobSet) -> OfDraw:
    """Give the share of tries that keep the policy."""

    def of(draw: Draw) -> float:
        switched = draw.run(job_set, ADVANCED).switched
        if switched is None:
            raise ValueError("the advanced decider switches")
        return 1 - sum(switched.switches.values()) / max(1, switched.tries)

    return of


def started_with(scheduler: str, order: Order) -> Callable[[JobSet], OfDraw]:
    """Give the share of the jobs started with an order."""
    return lambda job_set: lambda draw: draw.started(job_set, scheduler, order)


def at_or_below_best(draw: Draw) -> float:
    """Give the share of points at which the advanced decider's ARTwW is at most the best single's.

    To 2%: section 6 desires a curve that "would always stay below or is equal to the best single
    policy at any workload".
    """
    hits = [
        draw.artww(given, ADVANCED, factor)
        <= 1.02 * min(draw.artww(given, name, factor) for name in SINGLES)
        for given in JOB_SETS
        for factor in given.factors
    ]
    return float(np.mean(hits))
