"""What Streit 2002 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is a figure worked out on every draw of the job sets, and a bound that it must keep: what
"approximately", "mostly" or "not that much" are taken to mean stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretime_sim.policies.order import Order
from foretime_sim.policies.policy_switching import Decider, Quality

from foretime_studies.frame.tables import Cell, Column, StudyTable
from foretime_studies.streit2002.claim_figures import (
    Draw,
    OfDraw,
    at_or_below_best,
    better_blocks,
    cases,
    exact_against_sjf,
    favours_fcfs,
    gain,
    highest_utilization,
    lost_and_used,
    lowest,
    over_factors,
    quality_ratio,
    ratio,
    same_policy,
    same_ranking,
    saturated,
    short_jobs,
    sjf_on_ctc,
    spread_of_table,
    started_with,
    tail_ratio,
    utilization_spread,
    worth_of_estimates,
)
from foretime_studies.streit2002.runs import (
    ADVANCED,
    BASIC,
    FCFS,
    LJF,
    SIMPLE,
    SINGLES,
    SJF,
    Requests,
    self_tuning,
)
from foretime_studies.streit2002.sets import CTC, JOB_SETS, KTH, PC2, SDSC, JobSet
from foretime_studies.streit2002.study import Spread, Streit2002
from foretime_studies.streit2002.tables import backlog


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
    of: OfDraw
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


def _every_set(
    where: str,
    says: str,
    printed: Sequence[float | None],
    form: str,
    of: Callable[[JobSet], OfDraw],
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
    *(
        Claim(
            "table 4",
            f"{given.name}: ARTwW of the advanced decider is below the simple one's by",
            printed,
            ".1%",
            gain(given, Quality.ARTWW),
            printed / 2,
            sets=(given,),
        )
        for given, printed in zip(_BUSY, (0.1566, 0.3074, 0.2697), strict=True)
    ),
    Claim(
        "table 4",
        "columns of 12 in which the advanced decider has the lower ARTwW",
        11,
        ".1f",
        better_blocks,
        low=11,
    ),
    *_every_set(
        "table 4",
        "quality ARTwW is the best for KTH and PC2, ART for CTC: ARTwW with it over that with ART",
        (1.012, 0.819, 0.984),
        ".3f",
        quality_ratio,
        high=1.0,
        sets=_BUSY,
    ),
    Claim(
        "table 4",
        "columns of 12 in which the simple decider starts most jobs with FCFS",
        12,
        ".1f",
        favours_fcfs,
        low=12,
    ),
    *_every_set(
        "table 4",
        "advanced, MS: jobs started with LJF (about 7,000 of 10,000 or more)",
        (0.850, 0.899, 0.938),
        ".1%",
        started_with(_BY_MAKESPAN, Order.LJF),
        low=0.7,
        sets=_BUSY,
    ),
    *_every_set(
        "table 4",
        "advanced, ARTwW: jobs started with FCFS (750 to 1,350)",
        (0.130, 0.135, 0.106),
        ".1%",
        started_with(ADVANCED, Order.FCFS),
        low=0.075,
        high=0.135,
        sets=_BUSY,
    ),
    *_every_set(
        "table 4",
        "advanced, ARTwW: jobs started with SJF (about two thirds)",
        (0.612, 0.789, 0.755),
        ".1%",
        started_with(ADVANCED, Order.SJF),
        low=0.6,
        sets=_BUSY,
    ),
    Claim(
        "table 4",
        "SDSC: schedules differ little: largest ARTwW of the six over the least, less 1",
        0.007,
        ".1%",
        spread_of_table(SDSC),
        high=0.02,
        sets=(SDSC,),
    ),
    *_every_set(
        "table 5",
        "tries that keep the policy",
        (0.9032, 0.8792, 0.9252, 0.9136),
        ".1%",
        same_policy,
        low=0.87,
    ),
    *_every_set(
        "table 6",
        "case 6b among all (over two thirds)",
        (0.628, 0.724, 0.735, 0.294),
        ".1%",
        lambda given: cases(given, ["6b"]),
        low=2 / 3,
    ),
    *_every_set(
        "table 6",
        "the critical cases 6c, 8b and 10a among all",
        (0.0059, 0.0043, 0.0023, 0.0098),
        ".2%",
        lambda given: cases(given, ["6c", "8b", "10a"]),
        high=0.01,
    ),
    *_every_set(
        "figure 2",
        "advanced below simple in ARTwW by (approximately 30% on PC2, 20% on KTH)",
        (0.2, 0.3),
        ".1%",
        lambda given: over_factors(given, "artww_s"),
        low=0.1,
        sets=(KTH, PC2),
    ),
    Claim(
        "figure 2",
        "CTC: the deciders are not that much different: advanced below simple in ARTwW by",
        None,
        ".1%",
        over_factors(CTC, "artww_s"),
        -0.1,
        0.1,
        (CTC,),
    ),
    Claim(
        "figure 3",
        "CTC: the simple decider has the lower slowdown: advanced over simple",
        None,
        ".2f",
        ratio(CTC, ADVANCED, SIMPLE, "sldww_60"),
        low=1.02,
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
        lowest("artww_s"),
        low=0.8,
    ),
    Claim(
        "figure 4",
        "the same of the three single policies",
        None,
        ".0%",
        lowest("artww_s", SINGLES),
        low=0.8,
    ),
    Claim(
        "figure 5",
        "points at which SJF has the lowest SLDwW_60 of the five",
        None,
        ".0%",
        lowest("sldww_60"),
        low=0.8,
    ),
    Claim(
        "figure 5",
        "the same of the three single policies",
        None,
        ".0%",
        lowest("sldww_60", SINGLES),
        low=0.8,
    ),
    *_every_set(
        "figure 4",
        "SJF's ARTwW over FCFS's",
        (None,) * 4,
        ".2f",
        lambda given: ratio(given, SJF, FCFS, "artww_s"),
        high=1.0,
    ),
    *_every_set(
        "figure 4",
        "basic dynP performs badly: its ARTwW over FCFS's",
        (None,) * 4,
        ".2f",
        lambda given: ratio(given, BASIC, FCFS, "artww_s"),
        low=1.0,
    ),
    Claim(
        "figure 4",
        "PC2: the advanced decider is similar to SJF, not better: its ARTwW over SJF's",
        None,
        ".2f",
        ratio(PC2, ADVANCED, SJF, "artww_s"),
        1.0,
        1.2,
        (PC2,),
    ),
    Claim(
        "figure 4",
        "CTC below 0.9: the advanced decider cannot compete with FCFS: its ARTwW over FCFS's",
        None,
        ".2f",
        tail_ratio(ADVANCED, FCFS),
        low=1.0,
        sets=(CTC,),
    ),
    Claim(
        "figure 4",
        "and even reaches LJF: its ARTwW over LJF's",
        None,
        ".2f",
        tail_ratio(ADVANCED, LJF),
        low=0.9,
        sets=(CTC,),
    ),
    *_every_set(
        "figure 4",
        "the advanced decider generally follows FCFS: its ARTwW over FCFS's",
        (None, None),
        ".2f",
        lambda given: ratio(given, ADVANCED, FCFS, "artww_s"),
        low=0.9,
        high=1.1,
        sets=(KTH, SDSC),
    ),
    Claim(
        "figure 8",
        "all have the same utilization at the first factors: largest difference",
        None,
        ".1%",
        utilization_spread,
        high=0.03,
    ),
    *_every_set(
        "figure 8",
        "LJF's utilization at the last factor (95% and more)",
        (0.95,) * 4,
        ".1%",
        lambda given: saturated(given, LJF),
        low=0.95,
    ),
    Claim(
        "figure 8",
        "sets in which LJF's utilization is the highest of the five then",
        4,
        ".1f",
        highest_utilization,
        low=4,
    ),
    Claim(
        "section 5.2",
        "LOC = 1 - UTIL when saturated: their sum at the last factors, least of all sets (LJF)",
        1.0,
        ".3f",
        lost_and_used,
        low=0.97,
    ),
    Claim(
        "section 5.2",
        "jobs of at most 5 minutes (almost 50%)",
        0.5,
        ".1%",
        short_jobs,
        0.4,
        0.55,
    ),
    Claim(
        "figure 7",
        "points at which the five rank alike with bounds of 60 s and of 300 s",
        1.0,
        ".0%",
        same_ranking,
        low=0.9,
    ),
    *(
        Claim(
            "figure 6",
            f"CTC: SJF's ARTwW at {factor:.2f}, {requests} requests, s",
            printed,
            ",.0f",
            sjf_on_ctc(factor, requests),
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
        worth_of_estimates(CTC, 0.7),
        low=1.2,
        sets=(CTC,),
    ),
    Claim(
        "figure 6",
        "PC2: the same at the last factor is even larger",
        None,
        ".2f",
        worth_of_estimates(PC2, PC2.factors[-1]),
        low=1.414,
        sets=(PC2,),
    ),
    Claim(
        "figure 6",
        "exact requests: points at which SJF has the lowest ARTwW, the advanced decider with it",
        None,
        ".0%",
        lowest("artww_s", (*SINGLES, ADVANCED), "exact"),
        low=0.8,
    ),
    Claim(
        "figure 6",
        "the same of the three single policies",
        None,
        ".0%",
        lowest("artww_s", SINGLES, "exact"),
        low=0.8,
    ),
    Claim(
        "figure 6",
        "exact requests: the advanced decider comes close to SJF: its ARTwW over SJF's",
        None,
        ".2f",
        exact_against_sjf,
        high=1.2,
    ),
    Claim(
        "section 6",
        "points at which the advanced decider is at or below the best single (to 2%): desired",
        None,
        ".0%",
        at_or_below_best,
        low=1.0,
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
        values = _on_draws(claim, found)
        if not values:
            continue
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


def _on_draws(claim: Claim, found: Streit2002) -> list[float]:
    """Work a claim out on the draws that have all the runs it needs."""
    values = []
    for draw in range(1, found.settings.seeds + 1):
        try:
            values.append(claim.of(Draw(found, draw)))
        except KeyError:
            break
    return values
