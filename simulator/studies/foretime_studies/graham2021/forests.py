"""Forests on Graham's polls: what each may learn from, and growing many of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.time_units import DAY_S
from foretime_sim.scores.worker_processes import run_in_processes
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.survival_forest import ForestSettings, SurvivalForest

from foretime_studies.graham2021.features import Features
from foretime_studies.graham2021.polls import NoonPolls

LEARNED_DAYS = 28
"""How far back a forest learns."""
SEED = 1

_PUBLISHED_SEED, _PUBLISHED_SHARE = 46, 0.1

Learnable = tuple[Int64Array, Int64Array, BoolArray]
"""Rows, seconds that each has waited, whether it started then."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a method said of some jobs."""

    method: str
    rows: Int64Array  # positions of the jobs in the polls, shape (jobs,)
    forecasts: WaitForecasts  # a row for each of them

    def of(self, rows: Int64Array) -> Told:
        """Give what was said of some of the jobs, in their order."""
        order = np.argsort(self.rows)
        places = order[np.searchsorted(self.rows, rows, sorter=order)]
        kept = WaitForecasts(self.forecasts.wait_s[places], self.forecasts.starts_now[places])
        return Told(self.method, rows, kept)


def together(parts: Iterable[Told]) -> Told:
    """Put what was said at several noons together."""
    told = list(parts)
    return Told(
        told[0].method,
        np.concatenate([part.rows for part in told]),
        WaitForecasts(
            np.concatenate([part.forecasts.wait_s for part in told]),
            np.concatenate([part.forecasts.starts_now for part in told]),
        ),
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A forest to be grown, and the noons that it is asked about."""

    name: str  # of what it says
    noons: tuple[int, ...]  # times of their polls. It learns what was known at the first,
    gap_days: int = 0  # or so many days before
    without: str | None = None  # group of features that it does not see; ``None``: sees all
    # Noons of which it learns everything instead, outcomes and all, as the published network.
    around: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Grower:
    """Grows forests on polls."""

    polls: NoonPolls
    features: Features
    settings: ForestSettings  # of the forests

    def grow(self, plan: Plan) -> Told:
        """Grow a forest, and ask it about its noons."""
        features, polls = self.features, self.polls
        values = features.values if plan.without is None else features.without(plan.without)
        if plan.around:
            rows = np.flatnonzero(np.isin(polls.poll_time, plan.around))
            waited_s, started = polls.wait_s[rows], np.ones(len(rows), dtype=np.bool_)
        else:
            rows, waited_s, started = known_at(polls, plan.noons[0], plan.gap_days)
        forest = SurvivalForest(values[rows], waited_s, started, self.settings, SEED)
        asked = np.flatnonzero(np.isin(polls.poll_time, plan.noons))
        wait_s = forest.quantiles(values[asked], LEVELS)
        return Told(plan.name, asked, WaitForecasts(wait_s, np.zeros(len(asked))))

    def grow_all(
        self,
        plans: Sequence[Plan],
        workers: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Told]:
        """Grow many, in so many processes; give what they say in the plans' order."""
        told: dict[int, Told] = {}

        def done(number: int, said: Told) -> None:
            told[number] = said
            if progress is not None:
                progress(len(told), len(plans))

        if workers == 1:
            for number, plan in enumerate(plans):
                done(number, self.grow(plan))
        else:
            run_in_processes(self.grow, plans, workers, done)
        return [told[number] for number in range(len(plans))]


def known_at(
    polls: NoonPolls,
    now: int,
    gap_days: int = 0,  # learn what was known so many days before, instead
) -> Learnable:
    """Give what a forest may learn from at a noon."""
    then = now - gap_days * DAY_S
    rows, waited_s, started = polls.known_outcomes(then)
    recent = polls.poll_time[rows] >= then - LEARNED_DAYS * DAY_S
    return rows[recent], waited_s[recent], started[recent]


def published_split(polls: NoonPolls) -> tuple[Int64Array, Int64Array]:
    """Give the polls that the published network was tested on, and those it learned from.

    Each a tenth of the days, rounded up, the test's and then the validation's, drawn by numpy's
    legacy generator with the seed 46; on Graham the test has 15,042 jobs after those with infinite
    columns are dropped, a tenth of the 150,420 predictions that were published of ten trainings.
    """
    days = np.array([f"{datetime.fromtimestamp(poll, UTC):%Y-%m-%d}" for poll in polls.polls])
    rng = np.random.RandomState(_PUBLISHED_SEED)
    size = math.ceil(_PUBLISHED_SHARE * len(days))
    tested = rng.choice(days, size=size, replace=False)
    others = days[~np.isin(days, tested)]
    validated = rng.choice(others, size=min(size, len(others)), replace=False)
    test = np.isin(days, tested)
    return polls.polls[test], polls.polls[~test & ~np.isin(days, validated)]
