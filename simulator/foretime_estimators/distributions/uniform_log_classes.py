"""Lifetimes by class of job, learned as jobs finish, with back-off to coarser classes.

Downey 1997, section 3.1, gives each queue a distribution of its own, and section 6.1 the cross
product of several attributes, as long as there are enough jobs in each class for a good estimate.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

Classifier: TypeAlias = Callable[[JobRequest], str | None]
"""Gives the class of a job; ``None`` where the log does not say."""
ClassKey: TypeAlias = tuple[str, ...]
Fit: TypeAlias = Callable[[Int64Array], Lifetimes | None]

DEFAULT_EDGES_S = (900, 3_600, 10_800, 43_200)
"""Longest requested times of the classes but the last."""


@dataclass(frozen=True, slots=True)
class RequestedTimeClass:
    """Classes of requested time: short, medium, long or more of them.

    Attributes
    ----------
    edges_s
        Longest requested time of each class but the last, seconds, rising.
    """

    edges_s: tuple[int, ...] = DEFAULT_EDGES_S

    def __post_init__(self) -> None:
        if list(self.edges_s) != sorted(set(self.edges_s)):
            raise InputError(f"edges_s is {self.edges_s}: give rising times")

    def __call__(self, job: JobRequest) -> str:
        """Give the class by its number."""
        return f"time {bisect_left(self.edges_s, job.requested_time)}"


def size_class(job: JobRequest) -> str:
    """Give the class of size: sequential jobs, then up to 2, 4, 8, ... processors."""
    return f"size {1 << (job.processors - 1).bit_length()}"


@dataclass(frozen=True, slots=True)
class MemoryClass:
    """Classes of requested memory, doubling from one to the next.

    Attributes
    ----------
    requested
        Memory of jobs by their ids, in any unit; jobs that are not there have no class.
    """

    requested: Mapping[str, float]

    def __call__(self, job: JobRequest) -> str | None:
        """Give the class by its upper edge."""
        memory = self.requested.get(job.job_id)
        if memory is None or memory <= 0:
            return None
        return f"memory {2.0 ** np.ceil(np.log2(memory)):g}"


CLASSIFIERS: Mapping[str, Classifier] = {
    "queue": lambda job: job.queue,
    "user": lambda job: job.user,
    "project": lambda job: job.project,
    "executable": lambda job: job.executable,
    "requested-time": RequestedTimeClass(),
    "size": size_class,
}
"""Attributes of which classes can be made, by name."""


def parse_classifiers(text: str) -> tuple[Classifier, ...]:
    """Read attributes, the most important first, such as ``queue,size``; empty for one class.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in CLASSIFIERS:
            raise InputError(
                f"unknown attribute {name!r} in {text!r}. Valid: {', '.join(CLASSIFIERS)}"
            )
    return tuple(CLASSIFIERS[name] for name in names)


def fit_one_stage(runtimes: Int64Array) -> Lifetimes | None:
    """Fit the uniform-log model, as a distribution."""
    line = fit_uniform_log(runtimes)
    return None if line is None else line.lifetimes


def up_to_request(job: JobRequest) -> Lifetimes:
    """Give what stands in where no class has enough jobs: every ln t up to the request alike."""
    longest = max(job.requested_time, 2)
    return Lifetimes(np.array([0.0, np.log(longest)]), np.array([0.0, 1.0]))


class LifetimeClasses:
    """Lifetimes of classes of jobs, fitted to the last ones that finished.

    A class is the cross product of the attributes. One with too few jobs, or whose jobs are all
    alike, gives way to the class without the last attribute, and so on down to all jobs.

    Parameters
    ----------
    classifiers
        Attributes, the most important first.
    fit
        `fit_one_stage`, or `foretime_estimators.distributions.uniform_log_stages.fit_stages`.
    fewest_jobs
        That a class needs.
    remembered_jobs
        How many of each class are kept, the last ones.
    refit_share
        A class is fitted anew when this share of new jobs has come since it was fitted last.
    """

    def __init__(
        self,
        classifiers: Sequence[Classifier] = (),
        *,
        fit: Fit = fit_one_stage,
        fewest_jobs: int = 50,
        remembered_jobs: int = 5_000,
        refit_share: float = 0.05,
    ) -> None:
        if not 2 <= fewest_jobs <= remembered_jobs:
            raise InputError(
                f"fewest_jobs is {fewest_jobs}, remembered_jobs {remembered_jobs}: give 2 or more, "
                "and no more than are remembered"
            )
        self._classifiers = tuple(classifiers)
        self._fit = fit
        self._fewest_jobs = fewest_jobs
        self._remembered_jobs = remembered_jobs
        self._refit_share = refit_share
        self._runtimes: dict[ClassKey, deque[int]] = {}
        self._fitted: dict[ClassKey, Lifetimes | None] = {}
        self._new: dict[ClassKey, int] = {}

    def keys(self, job: JobRequest) -> list[ClassKey]:
        """Give a job's classes, from fine to coarse, the last being that of all jobs.

        An attribute that it lacks is passed over.
        """
        key: ClassKey = ()
        keys = [key]
        for place, classifier in enumerate(self._classifiers):
            value = classifier(job)
            if value is not None:
                key = (*key, f"{place} {value}")
                keys.append(key)
        return keys[::-1]

    def learn_one(self, job: FinishedJob) -> None:
        """Remember how long a job ran, unless it never started or the machine ended it."""
        if evidence_of(job) is Evidence.NONE:
            return
        for key in self.keys(job.request):
            runtimes = self._runtimes.get(key)
            if runtimes is None:
                runtimes = self._runtimes[key] = deque(maxlen=self._remembered_jobs)
            runtimes.append(job.actual_runtime)
            self._new[key] = self._new.get(key, 0) + 1

    def lifetimes(self, job: JobRequest) -> Lifetimes | None:
        """Give the distribution of the finest of a job's classes that has one."""
        for key in self.keys(job):
            if (model := self._model(key)) is not None:
                return model
        return None

    def _model(self, key: ClassKey) -> Lifetimes | None:
        runtimes = self._runtimes.get(key)
        if runtimes is None or len(runtimes) < self._fewest_jobs:
            return None
        if key not in self._fitted or self._new[key] >= self._refit_share * len(runtimes):
            self._fitted[key] = self._fit(np.array(runtimes, dtype=np.int64))
            self._new[key] = 0
        return self._fitted[key]

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {"classes": [[list(key), list(runs)] for key, runs in self._runtimes.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave.

        Raises
        ------
        StateError
            If it is not that of such a model.
        """
        try:
            taken = {
                tuple(str(name) for name in key): deque(
                    (int(run) for run in runs), maxlen=self._remembered_jobs
                )
                for key, runs in state["classes"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state of lifetime classes can't be used: {error!r}") from error
        self._runtimes, self._fitted = taken, {}
        self._new = dict.fromkeys(taken, 0)
