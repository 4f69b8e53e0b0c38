"""Downey's predictors of the wait at the head of the queue (Downey 1997, section 4).

A job at the head needs n' more processors than are free. Predictor A asks when it is as likely as
not that one of the running jobs that hold so many alone has ended; predictor B lets every job
release its processors gradually. Beside them stands what they approximate: the median wait if any
set of jobs may end, by enumerating the sets (equations 5 to 7) or by adding job after job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import RunningLives
from foretime_estimators.jobs.errors import InputError

SMALL_NEED = 32
"""n' below which predictor A is used, and from which on B (section 5.3)."""
HORIZON_S = 3e8
"""Nothing is predicted later than this; some ten years."""
MOST_ENUMERATED = 16
"""Running jobs whose sets are enumerated; there are 2 to this power."""

Rising: TypeAlias = Callable[[Float64Array], Float64Array]
"""Gives a quantity that never falls, at seconds from now, shape (times,)."""

_FIRST_GRID = np.concatenate([[0.0], np.geomspace(0.5, HORIZON_S, 63)])
_REFINED = np.linspace(0.0, 1.0, 33)


def first_time(rising: Rising, target: float) -> float:
    """Find when a quantity that never falls reaches a target, to one part in ten thousand.

    Parameters
    ----------
    rising
        The quantity, from 0 to `HORIZON_S`.
    target
        What it is to reach.

    Returns
    -------
    float
        Seconds; NaN if it does not reach it.
    """
    times = _FIRST_GRID
    for _ in range(3):
        reached = rising(times)
        place = int(np.argmax(reached >= target))
        if reached[place] < target:
            return float("nan")
        if place == 0:
            return float(times[0])
        low, high = times[place - 1], times[place]
        below, above = reached[place - 1], reached[place]
        times = low + (high - low) * _REFINED
    return float(low + (high - low) * (target - below) / (above - below))


def benefactors(needed: float, processors: Int64Array) -> Int64Array:
    """Give the jobs that satisfy a need by themselves when they end, n_i >= n' (equation 8).

    (The text of section 5.1 says "greater than n'"; a job of just n' processors does it, too.)
    """
    return np.flatnonzero(processors >= needed)


def median_wait(
    needed: float, processors: Int64Array, lives: RunningLives, share: float = 0.5
) -> float:
    """Predict by Predictor A: no benefactor has ended with probability 1 - share (equation 8).

    Parameters
    ----------
    needed
        n', processors beyond those that are free.
    processors
        n_i of the running jobs, shape (jobs,).
    lives
        Their conditional lifetimes.
    share
        Probability to have started by then; the median by default.

    Returns
    -------
    float
        Seconds; 0 if nothing is needed, NaN where no running job is a benefactor.
    """
    if needed <= 0:
        return 0.0
    chosen = lives.of(benefactors(needed, processors))
    if not len(chosen):
        return float("nan")
    return first_time(lambda later: 1 - chosen.survival(later).prod(axis=1), share)


def mean_wait(needed: float, processors: Int64Array, lives: RunningLives) -> float:
    """Predict by Predictor B: jobs have released n' processors, each gradually (equation 9).

    Parameters and result are those of `median_wait`; NaN where more is needed than is held.
    """
    if needed <= 0:
        return 0.0
    return first_time(lambda later: (1 - lives.survival(later)) @ processors, needed)


def combined_wait(
    needed: float,
    processors: Int64Array,
    lives: RunningLives,
    small_need: float = SMALL_NEED,
) -> float:
    """Predict by A where n' is small and A has an answer, else by B (section 5.3)."""
    if needed < small_need:
        by_a = median_wait(needed, processors, lives)
        if not np.isnan(by_a):
            return by_a
    return mean_wait(needed, processors, lives)


def freed_probability(
    needed: int, processors: Int64Array, lives: RunningLives, later: Float64Array
) -> Float64Array:
    """Give Pr{F >= n'} at times from now, for any number of jobs.

    The distribution of what is freed is worked out by adding job after job, which is the sum over
    all sets (equation 7) in another order.

    Parameters
    ----------
    needed, processors, lives
        As for `median_wait`.
    later
        Seconds from now, shape (times,).
    """
    ended = 1 - lives.survival(later)
    freed = np.zeros((len(later), needed + 1))
    freed[:, 0] = 1.0
    for job, held in enumerate(np.minimum(processors, needed).tolist()):
        ends = freed * ended[:, job, None]
        freed -= ends
        freed[:, held:-1] += ends[:, : needed - held]
        freed[:, -1] += ends[:, needed - held :].sum(axis=1)  # so many or more
    return freed[:, -1]


def enumerated_probability(
    needed: int, processors: Int64Array, lives: RunningLives, later: Float64Array
) -> Float64Array:
    """Give Pr{F >= n'} by enumerating which jobs have ended (equations 5 to 7).

    Equation 5 as printed swaps its products: b_i = 0 means that a job still runs, so its factor is
    the probability to survive.

    Raises
    ------
    InputError
        For more than `MOST_ENUMERATED` jobs.
    """
    jobs = len(processors)
    if jobs > MOST_ENUMERATED:
        raise InputError(f"{jobs} running jobs: at most {MOST_ENUMERATED} are enumerated")
    ended = (np.arange(2**jobs)[:, None] >> np.arange(jobs)) & 1 == 1
    enough = ended[ended @ processors >= needed]
    survival = lives.survival(later)[:, None, :]
    return np.asarray(np.where(enough, 1 - survival, survival).prod(axis=2).sum(axis=1))


def exact_median_wait(needed: int, processors: Int64Array, lives: RunningLives) -> float:
    """Predict the median wait, of which `median_wait` takes single benefactors only."""
    if needed <= 0:
        return 0.0
    if processors.sum() < needed:
        return float("nan")
    return first_time(lambda later: freed_probability(needed, processors, lives, later), 0.5)
