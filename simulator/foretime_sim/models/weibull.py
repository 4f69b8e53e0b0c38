"""Weibull distributions of the time between submissions, and four ways to fit one.

Streit 2002, section 4: F(x) = 1 - e^(-(x/beta)^alpha). The paper does not say how its analyser
finds alpha and beta. They stand on a grid of 0.05 and 10 s, and the gaps' mean and deviation lead
to them (docs/workloads.md); maximum likelihood does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

LEAST_ALPHA, MOST_ALPHA = 0.2, 20.0
"""Shapes are held within these: below, single gaps would outlast any log."""
ALPHA_STEP, BETA_STEP_S = 0.05, 10.0
"""The grid of the paper's table 2."""
MOST_ROUNDS = 500
_STARTING_ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MOST_LOG_HAZARD = 700.0
"""e to this is near the largest float; nothing survives a thousandth of it."""


@dataclass(frozen=True, slots=True)
class Weibull:
    """F(x) = 1 - e^(-(x/beta)^alpha) (Streit 2002, section 4).

    Attributes
    ----------
    alpha
        Shape; 1 is the exponential distribution, below 1 gaps come in bursts.
    beta_s
        Scale, seconds.

    Examples
    --------
    >>> from foretime_sim.models.weibull import Weibull
    >>> gaps = Weibull(alpha=1.0, beta_s=600.0)
    >>> gaps.mean_s, round(float(gaps.cdf(600)), 3)
    (600.0, 0.632)
    """

    alpha: float
    beta_s: float

    def __post_init__(self) -> None:
        if not (LEAST_ALPHA <= self.alpha <= MOST_ALPHA):
            raise InputError(
                f"Weibull alpha {self.alpha:g}: give {LEAST_ALPHA:g} to {MOST_ALPHA:g}"
            )
        if not 0 < self.beta_s < math.inf:
            raise InputError(f"Weibull beta {self.beta_s:g} s: give more than 0")

    @property
    def mean_s(self) -> float:
        """Mean: beta Gamma(1 + 1/alpha)."""
        return self.beta_s * math.gamma(1 + 1 / self.alpha)

    @property
    def deviation_s(self) -> float:
        """Standard deviation."""
        return self.mean_s * _variation(self.alpha)

    def cdf(self, gaps_s: npt.ArrayLike) -> Float64Array:
        """Share of gaps of at most so many seconds."""
        return np.asarray(-np.expm1(-((np.asarray(gaps_s) / self.beta_s) ** self.alpha)))

    def distance(self, gaps_s: npt.ArrayLike) -> float:
        """Give the largest difference between this cdf and that of gaps (Kolmogorov, Smirnov).

        Cdfs are compared where a second ends: a gap of g s is known to be at most g + 1.
        """
        values, counts = np.unique(np.asarray(gaps_s), return_counts=True)
        reached = np.cumsum(counts) / counts.sum()
        at_end = np.abs(self.cdf(values + 1) - reached)
        before = np.abs(self.cdf(values) - np.concatenate(([0.0], reached[:-1])))
        return float(max(at_end.max(), before.max()))

    def draw(self, gaps: int, rng: np.random.Generator) -> Float64Array:
        """Draw gaps: shape (gaps,), seconds."""
        return np.asarray(self.beta_s * rng.exponential(size=gaps) ** (1 / self.alpha))


def fit_moments(gaps_s: npt.ArrayLike) -> Weibull:
    """Give the Weibull with the mean and the standard deviation of gaps.

    Alpha is held to `LEAST_ALPHA` ... `MOST_ALPHA`; the mean is exact in any case.

    Raises
    ------
    InputError
        If there are no gaps, or all are 0.
    """
    gaps = _checked(gaps_s)
    mean = float(gaps.mean())
    variation = float(gaps.std()) / mean
    low, high = LEAST_ALPHA, MOST_ALPHA
    for _ in range(60):  # the coefficient of variation falls as alpha rises
        alpha = (low + high) / 2
        low, high = (alpha, high) if _variation(alpha) > variation else (low, alpha)
    return Weibull(low, mean / math.gamma(1 + 1 / low))


def search_moments(
    gaps_s: npt.ArrayLike, alpha_step: float = ALPHA_STEP, beta_step_s: float = BETA_STEP_S
) -> Weibull:
    """Search the paper's grid for the Weibull whose mean and deviation are nearest to the gaps'.

    Nearest is the least sum of the squares of both relative errors. Where `fit_moments` is exact,
    this gives numbers such as the paper prints, whose mean may be a fifth off.
    """
    gaps = _checked(gaps_s)
    mean, deviation = float(gaps.mean()), float(gaps.std())
    best, least = fit_moments(gaps), math.inf
    first, last = LEAST_ALPHA / alpha_step, MOST_ALPHA / alpha_step
    for step in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1):
        alpha = round(step * alpha_step, 9)
        # Both moments are proportional to beta: the best one is beside the least squares' own.
        unit = Weibull(alpha, 1.0)
        m, d = unit.mean_s / mean, unit.deviation_s / deviation if deviation else 0.0
        below = math.floor((m + d) / (m * m + d * d) / beta_step_s)
        for multiple in (max(below, 1), below + 1):
            beta = multiple * beta_step_s
            error = (m * beta - 1) ** 2 + (d * beta - 1) ** 2
            if error < least:
                best, least = Weibull(alpha, beta), error
    return best


def fit_likelihood(gaps_s: npt.ArrayLike, resolution_s: npt.ArrayLike = 1.0) -> Weibull:
    """Give the Weibull of maximum likelihood, for gaps that are known to a second.

    A gap of g stands for any from g to g + resolution, so that gaps of 0 s have a likelihood, too:
    the sum of log(F(g + resolution) - F(g)) is maximised by Newton's steps and, where it is not
    concave, by those of the summed outer products of its gradients (Berndt, Hall, Hall and Hausman
    1974), halved while they fail. They start from the likeliest of a few that have the gaps' median
    or moments: few far outlying gaps make the moments' own a slope without end.

    Parameters
    ----------
    gaps_s
        Seconds, shape (gaps,).
    resolution_s
        How wide each gap's interval is: one for all, or shape (gaps,).
    """
    gaps = _checked(gaps_s)
    ends = gaps + np.asarray(resolution_s, dtype=np.float64)
    if float(gaps.max()) == float(gaps.min()):
        return fit_moments(gaps)
    rows, counts = np.unique(np.column_stack((gaps, ends)), axis=0, return_counts=True)
    median = float(np.median((gaps + ends) / 2))
    starts = [fit_moments(gaps)] + [
        Weibull(alpha, median / math.log(2) ** (1 / alpha)) for alpha in _STARTING_ALPHAS
    ]
    places = [np.array([math.log(start.alpha), math.log(start.beta_s)]) for start in starts]
    place = max(places, key=lambda place: float(counts @ _log_likelihoods(rows, place)[0]))
    value, gradients = _log_likelihoods(rows, place)
    total = float(counts @ value)
    least, most = math.log(LEAST_ALPHA), math.log(MOST_ALPHA)
    for _ in range(MOST_ROUNDS):
        slope = counts @ gradients
        curvature = _curvature(rows, counts, place)
        if np.linalg.eigvalsh(curvature)[0] <= 0:
            curvature = (gradients * counts[:, None]).T @ gradients
            curvature += np.eye(2) * 1e-9 * np.trace(curvature)
        step = np.linalg.solve(curvature, slope)
        if (place[0] <= least and step[0] < 0) or (place[0] >= most and step[0] > 0):
            # Alpha is as far as it may go: the best beta beside it is another than beside none.
            step = np.array([0.0, slope[1] / curvature[1, 1]])
        if float(slope @ step) < 1e-10:
            break
        for _ in range(40):
            there = place + step
            there[0] = np.clip(there[0], least, most)
            value, trial = _log_likelihoods(rows, there)
            if (reached := float(counts @ value)) > total:
                break
            step = step / 2
        else:
            break
        place, total, gradients = there, reached, trial
    return Weibull(min(max(math.exp(place[0]), LEAST_ALPHA), MOST_ALPHA), math.exp(place[1]))


def fit_shape(gaps_s: npt.ArrayLike, resolution_s: npt.ArrayLike = 1.0) -> Weibull:
    """Give the Weibull with the alpha of `fit_likelihood` and the gaps' mean.

    The moments make much of few long gaps: when a machine was down for days they say little of the
    rest. This keeps the mean, and so the load, and the shape of the common gaps.
    """
    alpha = fit_likelihood(gaps_s, resolution_s).alpha
    return Weibull(alpha, float(_checked(gaps_s).mean()) / math.gamma(1 + 1 / alpha))


def _log_likelihoods(rows: Float64Array, place: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Give log(F(end) - F(start)) of each row, and its gradient by log alpha and log beta."""
    alpha, log_beta = math.exp(place[0]), place[1]
    with np.errstate(divide="ignore"):
        log_hazard = alpha * (np.log(rows) - log_beta)  # log((x/beta)^alpha), -inf at 0
    log_hazard = np.minimum(log_hazard, MOST_LOG_HAZARD)  # a step may go too far
    hazard = np.exp(log_hazard)
    start, end = hazard[:, 0], hazard[:, 1]
    # Both in units of the survival at the start, which may be too small for a number.
    share = np.maximum(-np.expm1(start - end), 1e-300)
    left = np.exp(start - end)
    by_log_alpha = hazard * np.where(hazard > 0, log_hazard, 0.0)
    gradients = np.column_stack(
        (
            (by_log_alpha[:, 1] * left - by_log_alpha[:, 0]) / share,
            alpha * (start - end * left) / share,
        )
    )
    return np.log(share) - start, gradients


def _curvature(rows: Float64Array, counts: Int64Array, place: Float64Array) -> Float64Array:
    """Give minus the second derivatives of the log-likelihood, from differences of its slope."""
    apart = 1e-5
    beside = [
        [counts @ _log_likelihoods(rows, place + side)[1] for side in (-away, away)]
        for away in np.eye(2) * apart
    ]
    found = np.array([(below - above) / (2 * apart) for below, above in beside])
    return np.asarray((found + found.T) / 2)


def _variation(alpha: float) -> float:
    """Give the coefficient of variation of a Weibull of this shape."""
    return math.sqrt(max(math.gamma(1 + 2 / alpha) / math.gamma(1 + 1 / alpha) ** 2 - 1, 0.0))


def _checked(gaps_s: npt.ArrayLike) -> Float64Array:
    """Give gaps as floats."""
    gaps = np.asarray(gaps_s, dtype=np.float64)
    if not len(gaps) or float(gaps.min()) < 0:
        raise InputError("a Weibull is fitted to at least one gap, none of them negative")
    if float(gaps.max()) == 0:
        raise InputError(
            "all jobs were submitted in the same second: nothing can be learned about the time "
            "between submissions"
        )
    return gaps
