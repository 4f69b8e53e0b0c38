"""Requested times by a model of users' estimates, for jobs that have none of their own.

D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", 11th Workshop on Job
Scheduling Strategies for Parallel Processing, 2005; constants as in the authors' own program
(est_model). Users pick from few times: twenty popular ones are those of 89% of the jobs, and the
longest one allowed is the most popular; some hundred others share the rest. Which job gets which
is left to chance, but that no job runs for longer than its estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import HOUR_S, MINUTE_S

from foretime_sim.models.generation import random_streams
from foretime_sim.workloads.workload import Workload

POPULAR = 20
COMMON_S = tuple(
    [minutes * MINUTE_S for minutes in (5, 10, 15, 20, 30)]
    + [hours * HOUR_S for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)]
)
"""Times that are popular in all four of the paper's logs."""
ROUND_STEPS_S = (
    *(hours * HOUR_S for hours in (200, 100, 50, 10, 5, 2, 1)),
    *(minutes * MINUTE_S for minutes in (20, 10, 5)),
)
"""Multiples of these fill up the twenty, from the longest down, coarse ones first."""
POPULARITY_BY_TIME = (
    (3, 1, 1, 1),
    (1, 3, 4, 6),
    (4, 4, 10, 5),
    (17, 2, 14, 3),
    (13, 12, 20, 7),
    (7, 9, 2, 2),
    (8, 8, 3, 18),
    (18, 18, 7, 19),
    (2, 6, 12, 4),
    (6, 7, 6, 11),
    (16, 11, 19, 20),
    (10, 20, 5, 9),
    (5, 16, 18, 10),
    (15, 5, 16, 14),
    (14, 14, 9, 13),
    (19, 13, 17, 16),
    (11, 10, 15, 15),
    (12, 15, 13, 17),
    (9, 17, 8, 8),
    (20, 19, 11, 12),
)
"""Popularity ranks of the twenty in SDSC-106, CTC, KTH (4 h) and BLUE: of the longest in the first
row, then of the others by time."""
DISTINCT_JOBS = (0, 20, 200, 1_000, 10_000, 70_000, 250_000)
DISTINCT_TIMES = (0, 10, 20, 35, 90, 340, 565)
"""How many distinct estimates so many jobs have, straight lines between."""
HEAD_SHARE = 0.89
HEAD_A, HEAD_B, HEAD_C = 14.0491, -0.177531, 0.462513
"""Percent of jobs of rank 2 to 20: a e^(b rank) + c; rank 1 has the rest of the head."""
TAIL_EXPONENT = -2.267
"""Shares from rank 21 on: in proportion to rank^exponent."""
BEND_FACTOR, BEND_EXPONENT = 12.1039, -0.6026
"""Of the curve that the times lie on: a = 1 + factor K^exponent for K distinct estimates."""
AVOIDANCE_S = (0, 30, -30, 20, -20, 10, -10)
"""How far from its minute a rare time is put where the minute is taken."""
USUAL_LIMITS_S = tuple(
    hours * HOUR_S for hours in (1, 2, 4, 8, 12, 18, 24, 36, 48, 60, 72, 96, 120, 168, 240, 336)
)
"""Limits of sites, to choose the longest estimate from where none is given."""
LARGER_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Shares of jobs that ask for the longest, tried where jobs are too long for the model's own."""


@dataclass(frozen=True, slots=True)
class Tsafrir2005:
    """The model's parameters.

    Attributes
    ----------
    longest_s
        Longest estimate that the site allows, seconds, at least an hour.
    longest_share
        Share of jobs with it; ``None``: what the other popular ones leave of the head, 22%. (Of few
        jobs, which have no rare estimates, 1/0.89 times as much.)
    """

    longest_s: int
    longest_share: float | None = None

    def __post_init__(self) -> None:
        if not HOUR_S <= self.longest_s <= 10_000_000_000:
            raise InputError(
                f"the longest estimate is {self.longest_s} s: the model needs at least an hour"
            )
        if self.longest_share is not None and not 0 < self.longest_share < HEAD_SHARE:
            raise InputError(
                f"longest_share is {self.longest_share:g}: give more than 0 and less than "
                f"{HEAD_SHARE:g}, the share of the popular estimates"
            )

    @classmethod
    def of(cls, workload: Workload) -> Tsafrir2005:
        """Take the longest requested time of a log, and its share, which the authors advise."""
        longest = int(workload.requested_time.max())
        share = float(np.mean(workload.requested_time == longest))
        return cls(max(longest, HOUR_S), min(max(share, 1e-6), HEAD_SHARE - 1e-6))

    def estimates(self, jobs: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
        """Draw the distinct estimates (ascending, seconds) and how many jobs have each."""
        distinct = distinct_estimates(jobs)
        head = self.popular_times()
        head_shares = self.popular_shares(len(head))[_popularity(len(head), rng)]
        tail = self._rare_times(max(distinct - len(head), 0), distinct, set(head))
        ranks = np.arange(POPULAR + 1, POPULAR + 1 + len(tail), dtype=np.float64)
        tail_shares = rng.permutation(ranks**TAIL_EXPONENT)
        if len(tail):
            tail_shares *= (1 - HEAD_SHARE) / tail_shares.sum()
        times = np.array([*head, *tail], dtype=np.int64)
        counts = _whole(np.concatenate((head_shares, tail_shares)), jobs)
        order = np.argsort(times)
        times, counts = times[order], counts[order]
        return times[counts > 0], counts[counts > 0]

    def popular_times(self) -> list[int]:
        """Give the twenty popular estimates, or as many as there can be: the longest first."""
        others = [seconds for seconds in COMMON_S if seconds < self.longest_s]
        taken = {self.longest_s, *others}
        for step in ROUND_STEPS_S:
            for seconds in range(self.longest_s // step * step, 0, -step):
                if len(taken) == POPULAR:
                    break
                taken.add(seconds)
        return [self.longest_s, *sorted(taken - {self.longest_s})]

    def popular_shares(self, count: int) -> Float64Array:
        """Give the shares of the popular estimates by popularity rank: shape (count,)."""
        ranks = np.arange(2, count + 1)
        others = (HEAD_A * np.exp(HEAD_B * ranks) + HEAD_C) / 100
        longest = self.longest_share
        if longest is None:
            longest = HEAD_SHARE - float(others.sum())
        else:
            others *= (HEAD_SHARE - longest) / others.sum()
        return np.concatenate(([longest], others))

    def _rare_times(self, count: int, distinct: int, taken: set[int]) -> list[int]:
        """Give the other estimates, on the curve y = (a - 1) x / (a - x) of ranks and times."""
        bend = 1 + BEND_FACTOR * distinct**BEND_EXPONENT if distinct else 2.0
        times: list[int] = []
        for rank in range(1, count + 1):
            x = rank / count
            seconds = self.longest_s * (bend - 1) * x / (bend - x)
            minute = math.floor(seconds / MINUTE_S + 0.5) * MINUTE_S
            for offset in AVOIDANCE_S:
                there = minute + offset
                if 0 < there < self.longest_s and there not in taken:
                    times.append(there)
                    taken.add(there)
                    break
        return times


def with_estimates(
    workload: Workload, model: Tsafrir2005 | None = None, *, seed: int = 1
) -> Workload:
    """Give every job of a workload a requested time by the model.

    Longer runtimes than the longest estimate are cut to it, as the authors' program does. How jobs
    ended is left out: it goes with the requests that they had.

    Parameters
    ----------
    workload
        Its requested times are replaced.
    model
        Parameters; if not given, the first of the usual limits (1 h to 14 days) that is long
        enough for every job, and under which all get an estimate. Where the model's own share of
        jobs that ask for the longest is too small for that, larger ones are tried, 30% to 80%,
        unless one is given.
    seed
        Seed of the random numbers, at least 0.

    Raises
    ------
    InputError
        If so many jobs run so long that the model has too few long estimates.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.models.tsafrir2005 import with_estimates
    >>> workload = generate("lublin2003", jobs=100, seed=1)
    >>> estimated = with_estimates(workload, seed=1)
    >>> bool((estimated.requested_time >= workload.actual_runtime).all())
    True
    """
    if model is not None:
        tried = [model, *_with_larger_shares(model)]
    else:
        longest_run = int(workload.actual_runtime.max())
        limits = [limit for limit in USUAL_LIMITS_S if limit >= longest_run] or [longest_run]
        tried = [Tsafrir2005(limit) for limit in limits]
        tried += _with_larger_shares(tried[0])
    chosen, requested, runtimes = _first_that_will_do(workload, tried, seed)
    cut = int(np.count_nonzero(runtimes < workload.actual_runtime))
    share = "" if chosen.longest_share is None else f" ({chosen.longest_share:.0%} of jobs)"
    note = (
        "requested times instead by the model of Tsafrir, Etsion and Feitelson (2005), at most "
        f"{chosen.longest_s:,} s{share}, seed {seed}"
        f"{f'; {cut:,} runtimes cut to that' if cut else ''}"
    )
    return replace(
        workload,
        requested_time=requested,
        actual_runtime=runtimes,
        status=None,
        endings=None,
        notes=(*workload.notes, note),
    )


def _with_larger_shares(model: Tsafrir2005) -> list[Tsafrir2005]:
    """Give the model with more and more jobs that ask for the longest, if it leaves that open."""
    if model.longest_share is not None:
        return []
    return [replace(model, longest_share=share) for share in LARGER_SHARES]


def _first_that_will_do(
    workload: Workload, models: Sequence[Tsafrir2005], seed: int
) -> tuple[Tsafrir2005, Int64Array, Int64Array]:
    """Give the first model under which every job gets an estimate, and what `_assigned` gives."""
    for model in models[:-1]:
        with suppress(InputError):  # too few estimates that are long enough
            return model, *_assigned(workload, model, seed)
    return models[-1], *_assigned(workload, models[-1], seed)


def distinct_estimates(jobs: int) -> int:
    """Say how many distinct estimates so many jobs have."""
    return math.floor(float(np.interp(jobs, DISTINCT_JOBS, DISTINCT_TIMES)) + 0.5)


def _assigned(workload: Workload, model: Tsafrir2005, seed: int) -> tuple[Int64Array, Int64Array]:
    """Give requested times and runtimes, both of shape (jobs,)."""
    time_rng, job_rng = random_streams(seed, 2)
    runtimes = np.minimum(workload.actual_runtime, model.longest_s)
    times, counts = model.estimates(len(workload), time_rng)
    estimates = np.repeat(times, counts)[::-1].copy()  # descending
    by_runtime = np.lexsort((job_rng.random(len(workload)), -runtimes))
    longest_first = runtimes[by_runtime]
    if (short := np.flatnonzero(longest_first > estimates)).size:
        place = int(short[0])
        raise InputError(
            f"{workload.name}: {place + 1:,} jobs run for {int(longest_first[place]):,} s or more, "
            f"and the model has fewer estimates as long, with a longest one of {model.longest_s:,} "
            "s: try another longest estimate, or a larger share of jobs that ask for it"
        )
    # Job by job, the longest first: any estimate is drawn that is left and long enough.
    last = np.searchsorted(-estimates, -longest_first, side="right") - 1
    draws = job_rng.random(len(workload))
    left = estimates.tolist()
    for place, (end, draw) in enumerate(zip(last.tolist(), draws.tolist(), strict=True)):
        chosen = place + int(draw * (end - place + 1))
        left[place], left[chosen] = left[chosen], left[place]
    requested = np.empty(len(workload), dtype=np.int64)
    requested[by_runtime] = left
    return requested, runtimes


def _popularity(count: int, rng: np.random.Generator) -> Int64Array:
    """Draw the popularity rank, from 0, of each popular estimate (the longest, then by time).

    The longest is the most popular. Any other takes a rank that its place had in one of the logs or
    that earlier places left over, the more popular of two drawn; a rank whose last place has come
    is taken first.
    """
    last_place = {
        rank: max(place for place, row in enumerate(POPULARITY_BY_TIME) if rank in row)
        for rank in range(1, POPULAR + 1)
    }
    pool: list[int] = []
    chosen: list[int] = []
    for place, row in enumerate(POPULARITY_BY_TIME[:count]):
        pool += [rank for rank in row if rank not in chosen]
        due = [rank for rank, last in last_place.items() if last <= place and rank not in chosen]
        if place == 0:
            rank = 1
        elif due:
            rank = min(due)
        else:
            rank = min(pool[int(k)] for k in rng.integers(0, len(pool), size=2))
        chosen.append(rank)
        pool = [other for other in pool if other != rank]
    order = np.argsort(np.array(chosen, dtype=np.int64))
    return np.asarray(
        np.argsort(order), dtype=np.int64
    )  # of fewer than twenty, ranks from 0 without gaps


def _whole(shares: Float64Array, jobs: int) -> Int64Array:
    """Turn shares into numbers of jobs that add up, by largest remainders."""
    exact = shares / shares.sum() * jobs
    counts: Int64Array = np.floor(exact).astype(np.int64)
    missing = jobs - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts
