"""What Streit 2002 says of its results, sentence by sentence, and whether it holds of ours.

Each claim is a figure worked out on every draw of the job sets, and a bound that it must keep: what
"approximately", "mostly" or "not that much" are taken to mean stands beside it in claims.csv.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Row, StudyTable
from foretime_studies.streit2002.claim_figures import FIGURES, Draw, OfDraw
from foretime_studies.streit2002.sets import JOB_SETS, JobSet
from foretime_studies.streit2002.study import Spread, Streit2002


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


def claims_table(found: Streit2002) -> StudyTable:
    """Say of each claim what it is in the paper and here, and in how many draws it holds."""
    rows: list[Row] = []
    for claim in CLAIMS:
        values = _on_draws(claim, found) if set(claim.sets) <= set(found.sets) else []
        if not values:
            continue
        spread = Spread.of(values)
        told = [format(value, claim.form) for value in spread.ends if value is not None]
        printed = None if claim.printed is None else format(claim.printed, claim.form)
        rows.append(
            [
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
        )
    return StudyTable.of(
        "claims",
        "What the paper says, and whether it holds",
        rows,
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
