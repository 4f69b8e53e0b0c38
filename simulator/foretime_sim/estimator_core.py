"""The native core's estimators: made of Python's with all that they have learned, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from foretime_estimators.estimator import RuntimeEstimator
from foretime_estimators.last_two import LastTwo
from foretime_estimators.learned_runtime import MOST_ASKED, LearnedRuntime
from foretime_estimators.prediction_loss import LEAST_WEIGHT, PredictionLoss

from foretime_sim import _core
from foretime_sim.workload import Workload

NativeEstimator: TypeAlias = LastTwo | LearnedRuntime


def is_native(estimator: RuntimeEstimator) -> TypeGuard[NativeEstimator]:
    """Whether the native core has the like, and can begin with what this one has learned.

    It can't where jobs are still to end of which the estimator knows by their names.
    """
    if type(estimator) is LearnedRuntime:
        return not estimator.awaits_ends
    return type(estimator) is LastTwo


class CoreEstimator(Protocol):
    """An estimator of the native core for a run of one workload."""

    @property
    def core(self) -> _core.OnlineEstimator:
        """The core's own."""
        ...

    def state(self) -> dict[str, Any]:
        """All that it has learned, as the estimator in Python would give it."""
        ...


def core_estimator(estimator: NativeEstimator, workload: Workload) -> CoreEstimator:
    """Make one that begins with all that ``estimator`` has learned."""
    if isinstance(estimator, LastTwo):
        return _CoreLastTwo(estimator.state(), workload)
    return _CoreLearnedRuntime(estimator, workload)


class CoreUsers:
    """The codes that the native core knows users by: the workload's, and others after those.

    Attributes
    ----------
    codes
        Of each job's user, int64, shape (jobs,); -1 where it has none.
    """

    def __init__(self, workload: Workload) -> None:
        labels = workload.users
        self.codes = (
            np.full(len(workload), -1, dtype=np.int64)
            if labels is None
            else labels.codes.astype(np.int64)
        )
        self.names = [] if labels is None else list(labels.names)
        self._code_of = {name: code for code, name in enumerate(self.names)}

    def code(self, name: str) -> int:
        """Give the code of a user, who may have no job in the workload."""
        if name not in self._code_of:
            self._code_of[name] = len(self.names)
            self.names.append(name)
        return self._code_of[name]


class _CoreLastTwo:
    def __init__(self, state: Mapping[str, Any], workload: Workload) -> None:
        self._users = CoreUsers(workload)
        self._length = state["length"]
        self.core = _core.LastTwo()
        for user, jobs in state["recent"].items():
            for runtime, requested in jobs:
                self.core.remember(self._users.code(user), runtime, requested)

    def state(self) -> dict[str, Any]:
        recent = {self._users.names[user]: self.core.recent(user) for user in self.core.users}
        return {"length": self._length, "recent": recent}


class _CoreLearnedRuntime:
    def __init__(self, estimator: LearnedRuntime, workload: Workload) -> None:
        self._users = CoreUsers(workload)
        self._workload = workload
        self._begun_with = estimator.state()
        settings = estimator.regression.settings
        self.core = _core.LearnedRuntime(
            _core_loss(estimator.loss),
            settings.eta,
            settings.l2,
            settings.decay,
            settings.absolute,
            MOST_ASKED,
        )
        regression = self._begun_with["regression"]
        self.core.restore_learned(
            regression["examples"],
            regression["normalised_squares"],
            np.array(regression["weight"]),
            np.array(regression["scale"]),
            np.array(regression["gradient_squares"]),
        )
        for name, user in self._begun_with["users"].items():
            past = (
                user["last_runtimes"],
                user["jobs"],
                user["runtime_sum"],
                user["processors_sum"],
                user["last_end"],
            )
            self.core.restore_user(self._users.code(name), past)

    def state(self) -> dict[str, Any]:
        examples, squares, *terms = self.core.learned()
        weight, scale, gradient_squares = (values.tolist() for values in terms)
        job_ids = self._workload.distinct_job_ids()
        return {
            **self._begun_with,
            "regression": {
                **self._begun_with["regression"],
                "examples": examples,
                "normalised_squares": squares,
                "weight": weight,
                "scale": scale,
                "gradient_squares": gradient_squares,
            },
            "users": {
                self._users.names[code]: self._user(code, job_ids) for code in self.core.users
            },
            "asked": {job_ids[job]: features for job, features in self.core.asked()},
        }

    def _user(self, code: int, job_ids: list[str]) -> dict[str, Any]:
        past, running = self.core.jobs_of_user(code)
        requested_time = self._workload.requested_time
        last_runtimes, jobs, runtime_sum, processors_sum, last_end = past
        return {
            "last_runtimes": last_runtimes,
            "jobs": jobs,
            "runtime_sum": runtime_sum,
            "processors_sum": processors_sum,
            "last_end": last_end,
            "running": {
                job_ids[job]: [start_time, processors, start_time + int(requested_time[job])]
                for job, start_time, processors in running
            },
        }


def _core_loss(loss: PredictionLoss) -> _core.PredictionLoss:
    return _core.PredictionLoss(
        _core.LossBranch[loss.over.name],
        _core.LossBranch[loss.under.name],
        _core.LossWeight[loss.weight.name],
        loss.log_base,
        LEAST_WEIGHT,
    )
