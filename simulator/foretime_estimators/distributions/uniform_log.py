"""The uniform-log model: the straight line that lifetimes follow over the logarithm of time.

Downey 1997, section 3: Pr{L < t} = beta_0 + beta_1 ln t between t_min = e^(-beta_0/beta_1) and
t_max = e^((1-beta_0)/beta_1), fitted by least squares to the empirical cdf without the longest and
the shortest 10% of the jobs. (The paper's beta, printed with two digits, give a t_max of 37 h where
its text says 24.2 h: t_max is that sensitive, and so they are kept as they are fitted.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_estimators.jobs.errors import InputError

OMITTED = 0.1
"""Share of the jobs that is left out at each end of a fit."""
MOST_LOG_TIME = 30.0
"""t_max is held to e^30 s, and t_min to e^-30 s: lines that hardly rise reach further."""


@dataclass(frozen=True, slots=True)
class UniformLog:
    """A fitted line.

    Attributes
    ----------
    intercept, slope
        beta_0 and beta_1 (equation 2).
    r_squared
        Share of the empirical cdf's variance that the line explains, where it was fitted.
    jobs
        How many lifetimes there were, those left out included.
    """

    intercept: float
    slope: float
    r_squared: float
    jobs: int

    def __post_init__(self) -> None:
        if not self.slope > 0:
            raise InputError(f"slope is {self.slope}: a cdf of lifetimes has to rise")

    @property
    def t_min(self) -> float:
        """Shortest life, seconds."""
        return math.exp(max(-self.intercept / self.slope, -MOST_LOG_TIME))

    @property
    def t_max(self) -> float:
        """Longest life, seconds."""
        return math.exp(min((1 - self.intercept) / self.slope, MOST_LOG_TIME))

    @property
    def lifetimes(self) -> Lifetimes:
        """The distribution that the line says."""
        ends = np.array([math.log(self.t_min), math.log(self.t_max)])
        return Lifetimes(ends, np.array([0.0, 1.0]))


def fit_uniform_log(runtimes: npt.ArrayLike, omitted: float = OMITTED) -> UniformLog | None:
    """Fit the line to lifetimes.

    Parameters
    ----------
    runtimes
        Seconds, shape (jobs,); what is shorter than a second counts as one.
    omitted
        Share of the jobs that is left out at each end, below 0.5.

    Returns
    -------
    UniformLog | None
        ``None`` where what is left has fewer than two different lifetimes.

    Examples
    --------
    >>> from foretime_estimators.distributions.uniform_log import fit_uniform_log
    >>> line = fit_uniform_log([60, 120, 240, 480, 960])
    >>> round(line.t_min), round(line.t_max)
    (42, 1358)
    """
    if not 0 <= omitted < 0.5:
        raise InputError(f"omitted is {omitted}: give a share of at least 0 and below 0.5")
    log_time = np.log(np.maximum(np.sort(np.asarray(runtimes, dtype=np.float64)), 1.0))
    jobs = len(log_time)
    reached = (np.arange(jobs) + 0.5) / max(jobs, 1)
    kept = (reached >= omitted) & (reached <= 1 - omitted)
    log_time, reached = log_time[kept], reached[kept]
    if len(log_time) < 2 or log_time[0] == log_time[-1]:
        return None
    across, up = log_time - log_time.mean(), reached - reached.mean()
    slope = float(across @ up / (across @ across))
    intercept = float(reached.mean() - slope * log_time.mean())
    residual = up - slope * across
    r_squared = 1 - float(residual @ residual / (up @ up))
    return UniformLog(intercept, slope, r_squared, jobs)
