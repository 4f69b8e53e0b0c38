"""Downey's lifetimes as a `RuntimeDistribution`, to be pushed through forward runs.

So his model reaches every policy that the engine runs, where his own extension (Downey 1997,
section 7.1) stops at priorities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.uniform_log_classes import LifetimeClasses, up_to_request
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class UniformLogRuntimes:
    """Runtimes drawn from the conditional lifetimes of their classes, each job by itself.

    Downey assumes that jobs are independent (section 4.1), so nothing is shared within a row. Of a
    job that has outlived its class's t_max the past repeats; where no class has enough jobs yet,
    every ln t up to the requested time is as likely.

    Parameters
    ----------
    classes
        What is learned.
    """

    def __init__(self, classes: LifetimeClasses) -> None:
        self._classes = classes

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes; see `RuntimeDistribution.sample`."""
        drawn = np.empty((samples, len(jobs)), dtype=np.int64)
        for column, (job, old) in enumerate(zip(jobs, age.tolist(), strict=True)):
            life = self._draw(job, old, rng.random(samples))
            shortest = min(old + 1, job.requested_time)
            whole = np.ceil(np.minimum(life, job.requested_time)).astype(np.int64)
            drawn[:, column] = np.maximum(whole, shortest)
        return drawn

    def _draw(self, job: JobRequest, age: int, share: Float64Array) -> Float64Array:
        model = self._classes.lifetimes(job) or up_to_request(job)
        if age >= model.t_max:
            return np.asarray(max(age, 1) / (1 - share))
        return model.conditional_quantile(share, age)

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end; call in order of end times."""
        self._classes.learn_one(job)

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return self._classes.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` of a like model gave; `StateError` if it can't be used."""
        self._classes.restore(state)
