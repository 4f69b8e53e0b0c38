"""Plain models of runtimes, to measure others by: the request itself, the last jobs' runtimes.

Each draws every job by itself; another model can be made to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class RequestedRuntimes(Memoryless):
    """Every job runs to its requested time: what a plan on t_req takes for certain."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Give the requested times in every sample; see `RuntimeDistribution.sample`."""
        requested = np.array([job.requested_time for job in jobs], dtype=np.int64)
        return np.tile(requested, (samples, 1))


class DrawnApart(Memoryless):
    """Another model's runtimes with every job drawn by itself: nothing is shared.

    Parameters
    ----------
    runtimes
        The other model; it is taught by its owner.
    """

    def __init__(self, runtimes: RuntimeDistribution) -> None:
        self._runtimes = runtimes

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes; see `RuntimeDistribution.sample`."""
        return rng.permuted(self._runtimes.sample(jobs, age, now, samples, rng), axis=0)


class LastRuntimes:
    """Runs as long as one of the last finished jobs, each as likely, of those above the age.

    Cut at the requested time; a job older than all of them runs to it.

    Parameters
    ----------
    last
        How many jobs are remembered.
    by_user
        Whether those are its user's, as far as that one has any; otherwise anybody's.
    """

    def __init__(self, last: int, *, by_user: bool) -> None:
        if last < 1:
            raise InputError(f"last runtimes: {last} jobs: give 1 or more")
        self._last = last
        self._by_user = by_user
        self._all: deque[int] = deque(maxlen=last)
        self._of_user: dict[str, deque[int]] = {}

    def learn_one(self, job: FinishedJob) -> None:
        """Remember the runtime."""
        if evidence_of(job) is Evidence.NONE:
            return
        self._all.append(job.actual_runtime)
        user = job.request.user
        if self._by_user and user is not None:
            self._of_user.setdefault(user, deque(maxlen=self._last)).append(job.actual_runtime)

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes; see `RuntimeDistribution.sample`."""
        everybody = np.sort(np.array(self._all, dtype=np.int64))
        of_user: dict[str | None, Int64Array] = {
            user: np.sort(np.array(runtimes, dtype=np.int64))
            for user, runtimes in self._of_user.items()
        }
        drawn = np.empty((samples, len(jobs)), dtype=np.int64)
        for column, (job, old) in enumerate(zip(jobs, age.tolist(), strict=True)):
            known = of_user.get(job.user, everybody)
            longer = known[known.searchsorted(old, side="right") :]
            if not len(longer):
                drawn[:, column] = job.requested_time
                continue
            taken = longer[rng.integers(len(longer), size=samples)]
            drawn[:, column] = np.minimum(np.maximum(taken, 1), job.requested_time)
        return drawn

    def state(self) -> dict[str, Any]:
        """Give what is remembered, as JSON can hold it."""
        return {
            "last_runtimes": [self._last, self._by_user],
            "all": list(self._all),
            "of_user": {user: list(runtimes) for user, runtimes in self._of_user.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; `StateError` if another model saved it."""
        if state.get("last_runtimes") != [self._last, self._by_user]:
            raise StateError("last runtimes: the state was saved by another model: learn anew")
        self._all = deque(state["all"], maxlen=self._last)
        self._of_user = {
            user: deque(runtimes, maxlen=self._last) for user, runtimes in state["of_user"].items()
        }
