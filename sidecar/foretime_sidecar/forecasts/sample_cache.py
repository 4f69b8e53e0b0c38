"""Runtimes drawn once for a queue, and kept for all that is asked about it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class DrawnOnce:
    """A `RuntimeDistribution` that draws anew only for another queue, or at another time.

    What if a job joined the queue is then asked of the same samples, and takes half the time. Such
    a job is the last; it is taken to run to its request, as when a job starts does not hang on its
    own runtime.

    Parameters
    ----------
    runtimes
        What draws and learns.
    """

    def __init__(self, runtimes: RuntimeDistribution) -> None:
        self._runtimes = runtimes
        # By moment and number of samples.
        self._drawn: dict[tuple[int, int], tuple[Sequence[JobRequest], Int64Array]] = {}

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes of all the jobs together, or give those drawn before; see the protocol."""
        # While a new queue is forecast, questions are of the one before.
        before = sorted({at for at, _ in self._drawn} - {now})[:-1]
        self._drawn = {key: drawn for key, drawn in self._drawn.items() if key[0] not in before}
        # The queue itself is asked about first, then what would be if.
        is_asked = any(
            at == now and len(jobs) == len(whose) + 1 and _begins_with(jobs, whose)
            for (at, _), (whose, _) in self._drawn.items()
        )
        if is_asked:
            queue = self.sample(jobs[:-1], age[:-1], now, samples, rng)
            last = np.full((samples, 1), jobs[-1].requested_time, dtype=np.int64)
            return np.hstack([queue, last])
        enough = min((n for at, n in self._drawn if at == now and n >= samples), default=samples)
        whose, drawn = self._drawn.get((now, enough), ((), None))
        if drawn is not None and len(jobs) == len(whose) and _begins_with(jobs, whose):
            return drawn[:samples]
        fresh = self._runtimes.sample(jobs, age, now, samples, rng)
        self._drawn.setdefault((now, samples), (jobs, fresh))
        return fresh

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end."""
        self._runtimes.learn_one(job)

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return self._runtimes.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self._runtimes.restore(state)
        self._drawn.clear()


def _begins_with(jobs: Sequence[JobRequest], first: Sequence[JobRequest]) -> bool:
    return len(jobs) >= len(first) and all(map(operator.is_, jobs, first))
