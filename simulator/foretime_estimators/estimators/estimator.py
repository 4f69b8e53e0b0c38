"""What every runtime estimator offers: to predict at submission, to learn from finished jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest


class RuntimeEstimator(Protocol):
    """Predicts runtimes and learns from finished jobs, one at a time.

    Every estimator passes `foretime_estimators.estimators.testing`.
    """

    @property
    def oracle(self) -> bool:
        """Whether it is told actual runtimes beforehand: for studies, not for production."""
        ...

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Scheduled time of a job, seconds, from 1 to its requested time, as known at ``now``."""
        ...

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end; call in order of end times."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` of a like estimator gave; `StateError` if it can't be used."""
        ...


class RolePrediction(NamedTuple):
    """Scheduled times of one job, seconds, one for each use that a scheduler makes of a runtime.

    Attributes
    ----------
    queue
        Decides its place in the queue.
    backfill
        Decides into which gaps it may be backfilled.
    drain
        Decides when it is expected to end once it runs.
    """

    queue: int
    backfill: int
    drain: int


@runtime_checkable
class RoleEstimator(RuntimeEstimator, Protocol):
    """A `RuntimeEstimator` that has a scheduled time of its own for each role.

    Its ``predict_one`` is the time for backfilling: what a scheduler is given that takes only one.
    """

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Scheduled times of a job, seconds, each from 1 to its requested time."""
        ...


@runtime_checkable
class StartObserver(RuntimeEstimator, Protocol):
    """A `RuntimeEstimator` that goes by what is running too, so it is told of each start.

    Starts and ends are told in order of time, a job's start before its end, and all of those up to
    a moment before a prediction there (`foretime_estimators.estimators.job_events`).
    """

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Take note that a job has started at ``start_time``, seconds; it runs until learned."""
        ...


def observes_starts(estimator: RuntimeEstimator) -> TypeGuard[StartObserver]:
    """Whether it is told of starts; as ``isinstance``, which takes longer than most predictions."""
    return hasattr(estimator, "start_one")


def clamped(predicted_runtime: int, job: JobRequest) -> int:
    """Cut a model's output, seconds, to what may be planned with: 1 to the requested time."""
    return max(1, min(predicted_runtime, job.requested_time))


class Memoryless:
    """Base of estimators that learn nothing: there is nothing to keep."""

    def learn_one(self, job: FinishedJob) -> None:
        """Learn nothing."""

    def state(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over nothing; a state that holds something is another estimator's."""
        if state:
            raise StateError(
                f"{type(self).__name__} keeps no state, but was given {', '.join(sorted(state))}: "
                "the state was saved by another estimator"
            )
