"""What every model of runtimes as distributions offers: samples for running and queued jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class RuntimeDistribution(Protocol):
    """Draws how long jobs will run, and learns from finished jobs, one at a time."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes of all the jobs together, as one sample a row.

        What jobs have in common (user, project, campaign) they share within a row: their runtimes
        are not independent.

        Parameters
        ----------
        jobs
            As submitted.
        age
            Seconds that each has run, 0 for those that wait; shape (jobs,).
        now
            Seconds; what has finished by then has been learned.
        samples
            How many to draw.
        rng
            What decides them.

        Returns
        -------
        Int64Array
            Runtimes from the start, seconds, shape (samples, jobs), each above its job's age
            (unless that has reached the requested time) and at most its requested time.
        """
        ...

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end; call in order of end times."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` of a like model gave; `StateError` if it can't be used."""
        ...
