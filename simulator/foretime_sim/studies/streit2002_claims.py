"""What Streit 2002 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is a figure worked out on every draw of the job sets, and a bound that it must keep: what
"approximately", "mostly" or "not that much" are taken to mean stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foretime_sim.policy import Order
from foretime_sim.policy_switching import Decider, Quality
from foretime_sim.studies.streit2002 import Spread, Streit2002
from foretime_sim.studies.streit2002_measures import Measures
from foretime_sim.studies.streit2002_runs import (
    ADVANCED,
    BASIC,
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
from foretime_sim.studies.streit2002_sets import CTC, JOB_SETS, KTH, PC2, SDSC, TABLE_FACTOR, JobSet
from foretime_sim.studies.streit2002_tables import backlog, share_of_cases
from foretime_sim.studies.study_tables import Cell, Column, StudyTable


@dataclass(frozen=True, slots=True)
class _Draw:
    """The runs on one draw of each set."""

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


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper as a figure.

    Attributes
    ----------
    where, says
        Table, figure or section; in short what it says.
    printed
        The paper's number for the figure, ``None`` where it gives none.
    form
        How the figure is written.
    of
        Works it out on a draw.
    low, high
        It holds where the figure is within these.
    sets
        What it needs.
    """

    where: str
    says: str
    printed: float | None
    form: str
    of: Callable[[_Draw], float]
    low: float = -math.inf
    high: float = math.inf
    sets: tuple[JobSet, ...] = JOB_SETS

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


def _gain(job_set: JobSet, quality: Quality) -> Callable[[_Draw], float]:
    """By how much the advanced decider's ARTwW is below the simple one's at the table's factor."""

    def of(draw: _Draw) -> float:
        simple, advanced = (
            draw.artww(job_set, self_tuning(decider, quality))
            for decider in (Decider.SIMPLE, Decider.ADVANCED)
        )
        return 1 - advanced / simple

    return of


def _better_blocks(draw: _Draw) -> float:
    return float(
        sum(_gain(given, quality)(draw) > 0 for given in JOB_SETS for quality in QUALITIES)
    )


def _over_factors(job_set: JobSet, measure: str) -> Callable[[_Draw], float]:
    """By how much the advanced decider is below the simple one over the figure's factors."""
    return lambda draw: 1 - draw.over_factors(job_set, ADVANCED, SIMPLE, measure)


def _quality_ratio(job_set: JobSet) -> Callable[[_Draw], float]:
    """ARTwW with quality ARTwW over that with ART, advanced."""
    by_art = self_tuning(Decider.ADVANCED, Quality.ART)
    return lambda draw: draw.artww(job_set, ADVANCED) / draw.artww(job_set, by_art)


def _spread_of_table(job_set: JobSet) -> Callable[[_Draw], float]:
    def of(draw: _Draw) -> float:
        values = [
            draw.artww(job_set, self_tuning(decider, quality))
            for decider in (Decider.SIMPLE, Decider.ADVANCED)
            for quality in QUALITIES
        ]
        return max(values) / min(values) - 1

    return of


def _favours_fcfs(draw: _Draw) -> float:
    """In how many of the 12 columns the simple decider starts most jobs with FCFS."""
    count = 0
    for job_set in JOB_SETS:
        for quality in QUALITIES:
            name = self_tuning(Decider.SIMPLE, quality)
            shares = {order: draw.started(job_set, name, order) for order in _ORDERS}
            count += max(shares, key=lambda order: shares[order]) is Order.FCFS
    return float(count)


_ORDERS = (Order.FCFS, Order.SJF, Order.LJF)


def _lowest(measure: str) -> Callable[[_Draw], float]:
    """Share of the points of a figure at which SJF has the lowest measure of the five."""

    def of(draw: _Draw) -> float:
        hits = [
            getattr(draw.measures(job_set, SJF, factor), measure)
            <= min(getattr(draw.measures(job_set, name, factor), measure) for name in FIVE)
            for job_set in JOB_SETS
            for factor in job_set.factors
        ]
        return float(np.mean(hits))

    return of


def _ratio(job_set: JobSet, first: str, second: str, measure: str) -> Callable[[_Draw], float]:
    return lambda draw: draw.over_factors(job_set, first, second, measure)


def _tail_ratio(first: str, second: str) -> Callable[[_Draw], float]:
    """ARTwW of one scheduler over another's on CTC below a factor of 0.9."""

    def of(draw: _Draw) -> float:
        factors = [factor for factor in CTC.factors if factor < 0.9]
        return float(
            np.mean([draw.artww(CTC, first, at) / draw.artww(CTC, second, at) for at in factors])
        )

    return of


def _saturated(job_set: JobSet, scheduler: str) -> Callable[[_Draw], float]:
    return lambda draw: draw.measures(job_set, scheduler, job_set.factors[-1]).utilization


def _highest_utilization(draw: _Draw) -> float:
    """In how many sets LJF's utilization is the highest of the five (to 0.1%) when saturated."""
    return float(
        sum(
            _saturated(job_set, LJF)(draw)
            >= max(_saturated(job_set, name)(draw) for name in FIVE) - 0.001
            for job_set in JOB_SETS
        )
    )


def _utilization_spread(draw: _Draw) -> float:
    """Largest difference between the five's utilizations at the figure's first factor."""
    spreads = []
    for job_set in JOB_SETS:
        values = [draw.measures(job_set, name, job_set.factors[0]).utilization for name in FIVE]
        spreads.append(max(values) - min(values))
    return max(spreads)


def _lost_and_used(draw: _Draw) -> float:
    """Utilization and loss of capacity together when saturated, least of all sets (LJF)."""
    found = (draw.measures(given, LJF, given.factors[-1]) for given in JOB_SETS)
    return min(some.utilization + some.loss_of_capacity for some in found)


def _same_ranking(draw: _Draw) -> float:
    """Share of points at which the five rank alike by both slowdowns."""

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


def _short_jobs(draw: _Draw) -> float:
    counts = [draw.measures(job_set, FCFS).jobs_of_class for job_set in JOB_SETS]
    return sum(count[0] for count in counts) / sum(map(sum, counts))


def _sjf_on_ctc(factor: float, requests: Requests) -> Callable[[_Draw], float]:
    return lambda draw: draw.measures(CTC, SJF, factor, requests).artww_s


def _worth_of_estimates(job_set: JobSet, factor: float) -> Callable[[_Draw], float]:
    """SJF's ARTwW with real requests over that with exact ones."""

    def of(draw: _Draw) -> float:
        real, exact = (
            draw.measures(job_set, SJF, factor, requests).artww_s for requests in _REQUESTS
        )
        return real / exact

    return of


_REQUESTS: tuple[Requests, Requests] = ("real", "exact")


def _exact_against_sjf(draw: _Draw) -> float:
    """ARTwW of the advanced decider over SJF's with exact requests, over all points."""
    ratios = [
        draw.measures(given, ADVANCED, factor, "exact").artww_s
        / draw.measures(given, SJF, factor, "exact").artww_s
        for given in JOB_SETS
        for factor in given.factors
    ]
    return float(np.mean(ratios))


def _exact_lowest(draw: _Draw) -> float:
    hits = [
        draw.measures(given, SJF, factor, "exact").artww_s
        <= min(draw.measures(given, name, factor, "exact").artww_s for name in (*SINGLES, ADVANCED))
        for given in JOB_SETS
        for factor in given.factors
    ]
    return float(np.mean(hits))


def _cases(job_set: JobSet, rows: Sequence[str]) -> Callable[[_Draw], float]:
    return lambda draw: share_of_cases(draw.run(job_set, ADVANCED), rows)


def _every_set(
    where: str,
    says: str,
    printed: Sequence[float | None],
    form: str,
    of: Callable[[JobSet], Callable[[_Draw], float]],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    sets: Sequence[JobSet] = JOB_SETS,
) -> list[Claim]:
    """Make one claim a set of a sentence that is about several."""
    return [
        Claim(where, f"{given.name}: {says}", number, form, of(given), low, high, (given,))
        for given, number in zip(sets, printed, strict=True)
    ]


def _same_policy(job_set: JobSet) -> Callable[[_Draw], float]:
    def of(draw: _Draw) -> float:
        switched = draw.run(job_set, ADVANCED).switched
        if switched is None:
            raise ValueError("the advanced decider switches")
        return 1 - sum(switched.switches.values()) / max(1, switched.tries)

    return of


def _started_with(scheduler: str, order: Order) -> Callable[[JobSet], Callable[[_Draw], float]]:
    return lambda job_set: lambda draw: draw.started(job_set, scheduler, order)


_BY_MAKESPAN = self_tuning(Decider.ADVANCED, Quality.MAKESPAN)

_BUSY = (CTC, KTH, PC2)
_SJF_ON_CTC: tuple[tuple[float, Requests, int], ...] = (
    (1.0, "real", 20_000),
    (1.0, "exact", 20_000),
    (0.7, "real", 145_212),
    (0.7, "exact", 102_725),
)
"""Factor, requests, and ARTwW in the text."""

CLAIMS = (
    *_every_set(
        "table 4",
        "ARTwW of the advanced decider is below the simple one's by",
        (0.1566, 0.3074, 0.2697, 0.0033),
        ".1%",
        lambda given: _gain(given, Quality.ARTWW),
        low=0.0,
    ),
    Claim(
        "table 4",
        "columns of 12 in which the advanced decider has the lower ARTwW",
        11,
        ".0f",
        _better_blocks,
        low=11,
    ),
    *_every_set(
        "table 4",
        "quality ARTwW is the best for KTH and PC2, ART for CTC: ARTwW with it over that with ART",
        (1.012, 0.819, 0.984),
        ".3f",
        _quality_ratio,
        high=1.0,
        sets=_BUSY,
    ),
    Claim(
        "table 4",
        "columns of 12 in which the simple decider starts most jobs with FCFS",
        12,
        ".0f",
        _favours_fcfs,
        low=12,
    ),
    *_every_set(
        "table 4",
        "advanced, MS: jobs started with LJF (about 7,000 of 10,000 or more)",
        (0.850, 0.899, 0.938),
        ".1%",
        _started_with(_BY_MAKESPAN, Order.LJF),
        low=0.7,
        sets=_BUSY,
    ),
    *_every_set(
        "table 4",
        "advanced, ARTwW: jobs started with FCFS (750 to 1,350)",
        (0.130, 0.135, 0.106),
        ".1%",
        _started_with(ADVANCED, Order.FCFS),
        low=0.075,
        high=0.135,
        sets=_BUSY,
    ),
    *_every_set(
        "table 4",
        "advanced, ARTwW: jobs started with SJF (about two thirds)",
        (0.612, 0.789, 0.755),
        ".1%",
        _started_with(ADVANCED, Order.SJF),
        low=0.6,
        sets=_BUSY,
    ),
    Claim(
        "table 4",
        "SDSC: schedules differ little: largest ARTwW of the six over the least, less 1",
        0.007,
        ".1%",
        _spread_of_table(SDSC),
        high=0.02,
        sets=(SDSC,),
    ),
    *_every_set(
        "table 5",
        "tries that keep the policy",
        (0.9032, 0.8792, 0.9252, 0.9136),
        ".1%",
        _same_policy,
        low=0.87,
    ),
    *_every_set(
        "table 6",
        "case 6b among all (over two thirds)",
        (0.628, 0.724, 0.735, 0.294),
        ".1%",
        lambda given: _cases(given, ["6b"]),
        low=2 / 3,
    ),
    *_every_set(
        "table 6",
        "the critical cases 6c, 8b and 10a among all",
        (0.0059, 0.0043, 0.0023, 0.0098),
        ".2%",
        lambda given: _cases(given, ["6c", "8b", "10a"]),
        high=0.01,
    ),
    *_every_set(
        "figure 2",
        "advanced below simple in ARTwW by (approximately 30% on PC2, 20% on KTH)",
        (0.2, 0.3),
        ".1%",
        lambda given: _over_factors(given, "artww_s"),
        low=0.1,
        sets=(KTH, PC2),
    ),
    Claim(
        "figure 2",
        "CTC: the deciders are not that much different: advanced below simple in ARTwW by",
        None,
        ".1%",
        _over_factors(CTC, "artww_s"),
        -0.1,
        0.1,
        (CTC,),
    ),
    Claim(
        "figure 3",
        "CTC: the simple decider has the lower slowdown: advanced over simple",
        None,
        ".2f",
        _ratio(CTC, ADVANCED, SIMPLE, "sldww_60"),
        low=1.0,
        sets=(CTC,),
    ),
    Claim(
        "figure 3",
        "PC2's slowdowns are 10 times CTC's (advanced, last factors)",
        10,
        ".1f",
        lambda draw: (
            draw.measures(PC2, ADVANCED, PC2.factors[-1]).sldww_60
            / draw.measures(CTC, ADVANCED, CTC.factors[-1]).sldww_60
        ),
        low=5,
        high=20,
        sets=(CTC, PC2),
    ),
    Claim(
        "figure 4",
        "points at which SJF has the lowest ARTwW of the five (all four sets, a wide range)",
        None,
        ".0%",
        _lowest("artww_s"),
        low=0.8,
    ),
    Claim(
        "figure 5",
        "the same of SLDwW_60",
        None,
        ".0%",
        _lowest("sldww_60"),
        low=0.8,
    ),
    *_every_set(
        "figure 4",
        "SJF's ARTwW over FCFS's",
        (None,) * 4,
        ".2f",
        lambda given: _ratio(given, SJF, FCFS, "artww_s"),
        high=1.0,
    ),
    *_every_set(
        "figure 4",
        "basic dynP performs badly: its ARTwW over FCFS's",
        (None,) * 4,
        ".2f",
        lambda given: _ratio(given, BASIC, FCFS, "artww_s"),
        low=1.0,
    ),
    Claim(
        "figure 4",
        "PC2: the advanced decider is similar to SJF, not better: its ARTwW over SJF's",
        None,
        ".2f",
        _ratio(PC2, ADVANCED, SJF, "artww_s"),
        1.0,
        1.2,
        (PC2,),
    ),
    Claim(
        "figure 4",
        "CTC below 0.9: the advanced decider cannot compete with FCFS: its ARTwW over FCFS's",
        None,
        ".2f",
        _tail_ratio(ADVANCED, FCFS),
        low=1.0,
        sets=(CTC,),
    ),
    Claim(
        "figure 4",
        "and even reaches LJF: its ARTwW over LJF's",
        None,
        ".2f",
        _tail_ratio(ADVANCED, LJF),
        low=0.9,
        sets=(CTC,),
    ),
    *_every_set(
        "figure 4",
        "the advanced decider generally follows FCFS: its ARTwW over FCFS's",
        (None, None),
        ".2f",
        lambda given: _ratio(given, ADVANCED, FCFS, "artww_s"),
        low=0.9,
        high=1.1,
        sets=(KTH, SDSC),
    ),
    Claim(
        "figure 8",
        "all have the same utilization at the first factors: largest difference",
        None,
        ".1%",
        _utilization_spread,
        high=0.03,
    ),
    *_every_set(
        "figure 8",
        "LJF's utilization at the last factor (95% and more)",
        (0.95,) * 4,
        ".1%",
        lambda given: _saturated(given, LJF),
        low=0.95,
    ),
    Claim(
        "figure 8",
        "sets in which LJF's utilization is the highest of the five then",
        4,
        ".0f",
        _highest_utilization,
        low=4,
    ),
    Claim(
        "section 5.2",
        "LOC = 1 - UTIL when saturated: their sum at the last factors, least of all sets (LJF)",
        1.0,
        ".3f",
        _lost_and_used,
        low=0.97,
    ),
    Claim(
        "section 5.2",
        "jobs of at most 5 minutes (almost 50%)",
        0.5,
        ".1%",
        _short_jobs,
        0.4,
        0.55,
    ),
    Claim(
        "figure 7",
        "points at which the five rank alike with bounds of 60 s and of 300 s",
        1.0,
        ".0%",
        _same_ranking,
        low=0.9,
    ),
    *(
        Claim(
            "figure 6",
            f"CTC: SJF's ARTwW at {factor:.2f}, {requests} requests, s",
            printed,
            ",.0f",
            _sjf_on_ctc(factor, requests),
            0.75 * printed,
            1.25 * printed,
            (CTC,),
        )
        for factor, requests, printed in _SJF_ON_CTC
    ),
    Claim(
        "figure 6",
        "CTC: real over exact requests at 0.70, SJF's ARTwW",
        1.414,
        ".2f",
        _worth_of_estimates(CTC, 0.7),
        low=1.2,
        sets=(CTC,),
    ),
    Claim(
        "figure 6",
        "PC2: the same at the last factor is even larger",
        None,
        ".2f",
        _worth_of_estimates(PC2, PC2.factors[-1]),
        low=1.414,
        sets=(PC2,),
    ),
    Claim(
        "figure 6",
        "exact requests: points at which SJF has the lowest ARTwW",
        None,
        ".0%",
        _exact_lowest,
        low=0.8,
    ),
    Claim(
        "figure 6",
        "exact requests: the advanced decider comes close to SJF: its ARTwW over SJF's",
        None,
        ".2f",
        _exact_against_sjf,
        high=1.2,
    ),
    Claim(
        "section 5",
        "CTC at 0.80: jobs waiting at a self-tuning try",
        185,
        ".0f",
        lambda draw: backlog(draw.run(CTC, ADVANCED, 0.8)),
        92,
        370,
        (CTC,),
    ),
)


def claims_table(found: Streit2002) -> StudyTable:
    """Say of each claim what it is in the paper and here, and in how many draws it holds."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        if not set(claim.sets) <= set(found.sets):
            continue
        values = [claim.of(_Draw(found, draw)) for draw in range(1, found.settings.seeds + 1)]
        spread = Spread.of(values)
        told = [format(value, claim.form) for value in spread.ends if value is not None]
        held = sum(map(claim.holds, values))
        rows.append(
            (
                claim.where,
                claim.says,
                None if claim.printed is None else format(claim.printed, claim.form),
                claim.bound,
                format(spread.first, claim.form),
                format(spread.mean, claim.form),
                " – ".join(told) or None,
                f"{held} of {len(values)}",
                "yes" if claim.holds(spread.mean) else "no",
            )
        )
    titles = (
        *("where", "what it says", "paper", "taken as", "seed 1"),
        *("mean", "95% interval", "draws", "holds"),
    )
    return StudyTable(
        "claims",
        "What the paper says, and whether it holds",
        tuple(Column(title) for title in titles),
        tuple(rows),
        'Figures over "points" are means over the shrinking factors of the figure; a claim holds '
        "if the mean over the draws is as it is taken.",
    )
