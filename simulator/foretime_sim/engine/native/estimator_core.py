"""The native core's estimators: made of Python's with all that they have learned, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy as np
from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.job_kinds import LEFT_OPEN
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.regression.learned_runtime import MOST_ASKED, LearnedRuntime
from foretime_estimators.estimators.regression.prediction_loss import LEAST_WEIGHT, PredictionLoss

from foretime_sim import _core
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

NativeEstimator: TypeAlias = LastTwo | LearnedRuntime | ExpectedRuntime


def is_native(estimator: RuntimeEstimator) -> TypeGuard[NativeEstimator]:
    """Whether the native core has the like, and can begin with what this one has learned.

    It can't where jobs are still to end of which the estimator knows by their names.
    """
    if type(estimator) is LearnedRuntime:
        return not estimator.awaits_ends
    return type(estimator) in (LastTwo, ExpectedRuntime)


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
    if isinstance(estimator, ExpectedRuntime):
        return _CoreExpectedRuntime(estimator, workload)
    return _CoreLearnedRuntime(estimator, workload)


class CoreNames:
    """The codes that the native core knows names by: the workload's, and others after those.

    Attributes
    ----------
    codes
        Of each job's name, int64, shape (jobs,); -1 where it has none.
    """

    def __init__(self, labels: Labels | None, jobs: int) -> None:
        self.codes = (
            np.full(jobs, -1, dtype=np.int64) if labels is None else labels.codes.astype(np.int64)
        )
        self.names = [] if labels is None else list(labels.names)
        self._code_of = {name: code for code, name in enumerate(self.names)}

    def code(self, name: str) -> int:
        """Give the code of a name, which may be of no job in the workload."""
        if name not in self._code_of:
            self._code_of[name] = len(self.names)
            self.names.append(name)
        return self._code_of[name]


class JobNames(NamedTuple):
    """The names of a workload's jobs as the native core knows them."""

    users: CoreNames
    projects: CoreNames
    queues: CoreNames
    executables: CoreNames

    @classmethod
    def of(cls, workload: Workload) -> JobNames:
        """Give a workload's."""
        columns = (workload.users, workload.projects, workload.queues, workload.executables)
        return cls(*(CoreNames(labels, len(workload)) for labels in columns))


class _CoreLastTwo:
    def __init__(self, state: Mapping[str, Any], workload: Workload) -> None:
        self._users = CoreNames(workload.users, len(workload))
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
        self._users = CoreNames(workload.users, len(workload))
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
        loss.over.value,
        loss.under.value,
        loss.weight.value,
        loss.log_base,
        LEAST_WEIGHT,
    )


_KINDS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("executable", ("users", "executables", None, None)),
    ("user-request-size", ("users", None, None)),
    ("user-request", ("users", None)),
    ("user-class", ("users", None)),
    ("user", ("users",)),
    ("project-request", ("projects", None)),
    ("project", ("projects",)),
    ("queue-classes", ("queues", None, None)),
    ("classes", (None, None)),
    ("all", ()),
)
"""`job_kinds.kinds_of` in the order of the core's levels; what is a name."""
_LEVELS = {kind: level for level, (kind, _) in enumerate(_KINDS)}


class _CoreExpectedRuntime:
    def __init__(self, estimator: ExpectedRuntime, workload: Workload) -> None:
        self._names = JobNames.of(workload)
        self._begun_with = estimator.state()
        settings = estimator.settings
        self.core = _core.ExpectedRuntime(
            2.0 ** (-1.0 / settings.half_life_jobs),
            settings.enough_jobs,
            settings.window_s,
            LEFT_OPEN,
            settings.shortest_s,
        )
        for (kind, *values), end, (weight, *sums) in self._begun_with["kinds"]:
            level = _LEVELS[kind]
            coded = [
                value if column is None else self._column(column).code(value)
                for column, value in zip(_KINDS[level][1], values, strict=True)
            ]
            self.core.restore_kind((level, coded, end, weight, *sums))

    def _column(self, column: str) -> CoreNames:
        names: CoreNames = getattr(self._names, column)
        return names

    def state(self) -> dict[str, Any]:
        kinds = []
        for level, coded, end, *sums in self.core.kinds():
            kind, columns = _KINDS[level]
            values = [
                value if column is None else self._column(column).names[value]
                for column, value in zip(columns, coded, strict=False)
            ]
            kinds.append([[kind, *values], end, sums])
        return {**self._begun_with, "kinds": kinds}
