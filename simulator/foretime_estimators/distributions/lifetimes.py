"""Lifetimes of jobs: a distribution that is piecewise linear in the logarithm of time.

One stage is Downey's uniform-log distribution (Downey 1997, section 3), several are his multi-stage
model (section 5.4). The conditional distribution, its median and its mean have closed forms.

Of the paper's misprints: equation 4 begins with the survival function, which at the median is 0.5
just as the cdf is; what it calls E[L|a] is (t_max - a) / (ln t_max - ln a), the mean whole life, so
the mean *remaining* life is that less a; and equation 1 should read 1 - (t/t_min)^-k.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

_LEAST_S = 1e-9
"""What an age of 0 counts as, seconds: logarithms need something."""
_STEEP = 1e-6
"""Width of the stage at a limit, in ln t."""
_OVER = 1e-12
"""A probability to be alive still that is nothing but rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Lifetimes:
    """The distribution of lifetimes L of a class of jobs.

    Attributes
    ----------
    log_time
        ln t at the ends of the stages, rising, shape (stages + 1,); t in seconds.
    reached
        Pr{L < t} there: 0 first, 1 last, never falling.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_estimators.distributions.lifetimes import Lifetimes
    >>> lifetimes = Lifetimes(np.log([60.0, 3600.0]), np.array([0.0, 1.0]))
    >>> round(lifetimes.median_life()), round(lifetimes.median_life(age=1800))
    (465, 2546)
    """

    log_time: Float64Array
    reached: Float64Array

    def __post_init__(self) -> None:
        shapes = self.log_time.shape == self.reached.shape and len(self.log_time) >= 2
        if not shapes or not (np.diff(self.log_time) > 0).all():
            raise InputError("the ends of the stages of a lifetime model have to rise")
        if self.reached[0] != 0 or self.reached[-1] != 1 or (np.diff(self.reached) < 0).any():
            raise InputError("a cdf of lifetimes has to rise from 0 to 1")

    @property
    def stages(self) -> int:
        """How many stages it has."""
        return len(self.log_time) - 1

    @property
    def t_min(self) -> float:
        """Shortest life, seconds."""
        return float(np.exp(self.log_time[0]))

    @property
    def t_max(self) -> float:
        """Longest life, seconds."""
        return float(np.exp(self.log_time[-1]))

    def cdf(self, time: npt.ArrayLike) -> Float64Array:
        """Pr{L < t} (equation 2, held within 0 and 1); seconds."""
        log_time = np.log(np.maximum(np.asarray(time, dtype=np.float64), _LEAST_S))
        return np.asarray(np.interp(log_time, self.log_time, self.reached))

    def quantile(self, share: npt.ArrayLike) -> Float64Array:
        """Life, seconds, that a share of the jobs stays below; the inverse of `cdf`."""
        asked = np.asarray(share, dtype=np.float64)
        return np.asarray(np.exp(np.interp(asked, self.reached, self.log_time)))

    def conditional_cdf(self, time: npt.ArrayLike, age: float) -> Float64Array:
        """Pr{L < t | L > age} (equation 3, with the cdf where the paper has its complement).

        A job that has outlived t_max has no distribution: 1 throughout.
        """
        survives = 1 - self.cdf(age)
        if survives <= 0:
            return np.ones_like(np.asarray(time, dtype=np.float64))
        return np.maximum(0.0, 1 - (1 - self.cdf(time)) / survives)

    def conditional_quantile(self, share: npt.ArrayLike, age: float) -> Float64Array:
        """Whole life, seconds, of a job that has run for ``age``: at least that."""
        past = self.cdf(age)
        return np.maximum(age, self.quantile(past + np.asarray(share) * (1 - past)))

    def median_life(self, age: float = 0.0) -> float:
        """Median whole life given an age: sqrt(t_max * age) in one stage (equation 4)."""
        return float(self.conditional_quantile(0.5, age))

    def mean_life(self, age: float = 0.0) -> float:
        """Mean whole life given an age, seconds.

        In one stage (t_max - a) / (ln t_max - ln a), which the paper prints as E[L|a] (section 3).
        """
        survives = 1 - float(self.cdf(age))
        if survives <= 0:
            return age
        if age <= 0:
            return self._survival_up_to(self.t_max)
        return age + (self._survival_up_to(self.t_max) - self._survival_up_to(age)) / survives

    def _survival_up_to(self, time: float) -> float:
        """Integral of Pr{L > t} from 0 to ``time``, seconds.

        Within a stage Pr{L > t} = c - d ln t, of which c t - d (t ln t - t) is an integral.
        """
        if time <= self.t_min:
            return time
        slope = np.diff(self.reached) / np.diff(self.log_time)
        level = 1 - self.reached[:-1] + slope * self.log_time[:-1]
        begin = np.exp(self.log_time[:-1])
        end = np.minimum(np.exp(self.log_time[1:]), time)
        inside = end > begin
        begin, end, slope, level = begin[inside], end[inside], slope[inside], level[inside]
        parts = level * (end - begin)
        parts -= slope * (end * (np.log(end) - 1) - begin * (np.log(begin) - 1))
        return self.t_min + float(parts.sum())

    def until(self, limit: float) -> Lifetimes:
        """Give the lifetimes of jobs that are killed at a limit, seconds: who gets there ends.

        At it there is a steep stage of a millionth of it.
        """
        end = float(np.log(limit))
        if end <= self.log_time[0]:
            return Lifetimes(np.array([end, end + _STEEP]), np.array([0.0, 1.0]))
        if end >= self.log_time[-1]:
            return self
        inside = self.log_time < end
        log_time = np.concatenate([self.log_time[inside], [end, end + _STEEP]])
        at_limit = float(self.cdf(limit))
        return Lifetimes(log_time, np.concatenate([self.reached[inside], [at_limit, 1.0]]))

    def stage_weights(self, age: float) -> Float64Array:
        """Probability that a job of this age belongs to each stage, by Bayes (section 5.4).

        The share of the stage among all jobs times the probability that a job of that stage is
        still alive; all 0 for a job that has outlived every stage.
        """
        alive = np.diff(self.reached) * self.stage_survival(age)
        total = alive.sum()
        return alive / total if total > 0 else alive

    def stage_survival(self, time: float) -> Float64Array:
        """Pr{L > t | stage} of each stage; seconds."""
        log_time = np.log(max(time, _LEAST_S))
        inside = (log_time - self.log_time[:-1]) / np.diff(self.log_time)
        return np.asarray(1 - np.clip(inside, 0, 1))


class Overdue(enum.Enum):
    """What to think of a job that has outlived t_max, of which the model says nothing."""

    PAST_REPEATS = "past-repeats"
    """Its past repeats: Pr{L > t | L > a} = a / t (equation 1 with k = 1)."""
    ENDS_NOW = "ends-now"
    """What the fitted line says, taken at its word: it is over."""
    NEVER_ENDS = "never-ends"
    """It releases nothing."""


class RunningLives:
    """How much longer each of many jobs will live, all asked at once.

    Parameters
    ----------
    models
        Of each job; ``None`` for the past-repeats heuristic (Leland and Ott 1986; Downey 1997,
        section 2), which knows nothing but the age.
    age
        Seconds that each has run, shape (jobs,); 0 for one that starts now.
    overdue
        What to think of jobs that have outlived their model.
    """

    def __init__(
        self,
        models: Sequence[Lifetimes | None],
        age: Int64Array | Float64Array,
        overdue: Overdue = Overdue.PAST_REPEATS,
    ) -> None:
        jobs = len(models)
        self.age = np.asarray(age, dtype=np.float64)
        if len(self.age) != jobs:
            raise InputError(f"{jobs} models for {len(self.age)} ages")
        stages = max((model.stages for model in models if model is not None), default=1)
        # Stages that a job lacks have no weight; they lie where they do no harm.
        self._begin = np.zeros((stages, jobs))
        self._width = np.ones((stages, jobs))
        self._weight = np.zeros((stages, jobs))
        for job, model in enumerate(models):
            if model is not None:
                self._begin[: model.stages, job] = model.log_time[:-1]
                self._width[: model.stages, job] = np.diff(model.log_time)
                self._weight[: model.stages, job] = np.diff(model.reached)
        modelled = np.array([model is not None for model in models], dtype=np.bool_)
        alive = self._model_survival(self.age[None])[0]
        self.overdue = modelled & (alive <= _OVER)
        """Which have outlived their model, shape (jobs,)."""
        self._modelled = modelled & ~self.overdue
        self._repeats = ~modelled | (self.overdue & (overdue is Overdue.PAST_REPEATS))
        self._never = self.overdue & (overdue is Overdue.NEVER_ENDS)
        self._alive = np.where(self._modelled, alive, 1.0)

    def __len__(self) -> int:
        return len(self.age)

    def of(self, jobs: Int64Array) -> Self:
        """Give the same of some jobs, by their places."""
        chosen = copy(self)
        for name in ("age", "overdue", "_alive", "_modelled", "_repeats", "_never"):
            setattr(chosen, name, getattr(self, name)[jobs])
        for name in ("_begin", "_width", "_weight"):
            setattr(chosen, name, getattr(self, name)[:, jobs])
        return chosen

    def survival(self, later: Float64Array) -> Float64Array:
        """Pr{L > age + later | L > age} of every job.

        Parameters
        ----------
        later
            Seconds from now on, shape (times,), or (times, jobs) with a time of each job's own.

        Returns
        -------
        Float64Array
            Shape (times, jobs); 1 at 0 and before, but for jobs that are held to be over.
        """
        later = np.maximum(later if later.ndim == 2 else later[:, None], 0.0)
        result = self._model_survival(self.age + later)
        result /= self._alive
        if not self._modelled.all():
            result[:, ~self._modelled] = 0.0
            result[:, self._never] = 1.0
            # A job that starts now has no past: it counts as a second old.
            past = np.maximum(self.age, 1.0)
            result[:, self._repeats] = (past / (past + later))[:, self._repeats]
        return result

    def _model_survival(self, time: Float64Array) -> Float64Array:
        """Pr{L > t}, shape (times, jobs)."""
        log_time = np.log(np.maximum(time, _LEAST_S))
        survival = np.ones_like(log_time)
        for begin, width, weight in zip(self._begin, self._width, self._weight, strict=True):
            inside = log_time - begin
            inside /= width
            np.maximum(inside, 0.0, out=inside)
            np.minimum(inside, 1.0, out=inside)
            inside *= weight
            survival -= inside
        return np.asarray(np.maximum(survival, 0.0, out=survival))
