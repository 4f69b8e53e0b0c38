"""Runtimes as distributions learned from finished jobs, from those most like one to all.

What is expected of a job is the mixture over its kinds of `foretime_estimators.job_kinds`. A
finished job with another request is read in two ways: as long as it took, and as much of its
request as it took. What all kinds leave open is uniform in log runtime up to the request
(Downey 1997, section 3.1), the last part of it at the request.

Conditional on an age, what lies below it is left out of the whole mixture, so kinds that did not
expect the job to live so long lose their say by themselves. A cancelled job would have run longer;
so would one cut at a limit below the new one's: lower bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from foretime_estimators.endings import Evidence, evidence_of
from foretime_estimators.errors import InputError, StateError
from foretime_estimators.job_kinds import Ageing, BackOff, Kind, KindHistories
from foretime_estimators.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.runtime_quantiles import NORMAL_SCORES, NOTHING, RuntimeQuantiles
from foretime_estimators.shared_effects import SharedEffects

Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]

DAY_S = 86_400
_OF_ONE_REQUEST = frozenset(
    ["executable", "user-request-size", "user-request", "project-request"],
)
"""Kinds whose jobs all have the same requested time."""
_OPEN_VALUES = 8
"""Values that stand for what is left open."""
_LEAST_OPEN = 0.001
"""Share that is not looked at in coarser kinds: less than for a percentile of a job that has not
begun, since a job that outlived what finer kinds expected is left with the coarser ones'."""
_AGEING = Ageing(15.0, 2.0)
_SHARED = SharedEffects(0.1, 0.4)


@dataclass(frozen=True, slots=True)
class RuntimeHistoriesSettings:
    """Settings of `RuntimeHistories`.

    Attributes
    ----------
    ageing
        How the jobs of a kind weigh.
    remembered_jobs
        Jobs of each kind that are kept.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    as_share
        How far a job with another request is read as a share of that, 0 to 1; for the rest it is
        read in seconds.
    shared
        How far jobs of one user and campaign are off together.
    """

    ageing: Ageing = _AGEING
    remembered_jobs: int = 40
    window_s: int = 180 * DAY_S
    as_share: float = 0.5
    shared: SharedEffects = _SHARED

    def __post_init__(self) -> None:
        if self.remembered_jobs < 1:
            raise InputError(
                f"runtime histories: remembered_jobs {self.remembered_jobs}: give 1 or more"
            )
        if self.window_s < 1:
            raise InputError(f"runtime histories: window_s {self.window_s}: give 1 or more seconds")
        if not 0 <= self.as_share <= 1:
            raise InputError(f"runtime histories: as_share {self.as_share} must be from 0 to 1")


class RuntimeHistories:
    """A `foretime_estimators.runtime_distribution.RuntimeDistribution`.

    Parameters
    ----------
    settings
        The defaults if ``None``.
    """

    def __init__(self, settings: RuntimeHistoriesSettings | None = None) -> None:
        self.settings = settings if settings is not None else RuntimeHistoriesSettings()
        remembered = self.settings.remembered_jobs
        # (runtime, requested time, whether the runtime is a lower bound)
        self._jobs: KindHistories[tuple[int, int, bool]] = KindHistories(
            remembered, self.settings.window_s
        )
        self._back_off = BackOff(self.settings.ageing, remembered, _LEAST_OPEN)
        # Of kinds that have not changed since: rows of log runtime, log request, bound, at limit.
        self._columns: dict[Kind, Float64Array] = {}

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end; call in order of end times."""
        evidence = evidence_of(job)
        if evidence is Evidence.NONE:
            return
        requested = job.request.requested_time
        runtime = requested if job.ending is Ending.TIMED_OUT else job.actual_runtime
        bound = evidence is Evidence.LOWER_BOUND and runtime < requested
        what = (max(1, min(runtime, requested)), requested, bound)
        for kind in self._jobs.remember(job.request, what, job.end_time):
            self._columns.pop(kind, None)

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes of all the jobs together, as one sample a row; see the protocol."""
        if not jobs:
            return np.empty((samples, 0), dtype=np.int64)
        table = np.exp(self._log_quantiles(jobs, age))
        scores = self.settings.shared.scores(jobs, samples, rng)
        step = 1 / (NORMAL_SCORES[1] - NORMAL_SCORES[0])
        place = np.clip((scores - NORMAL_SCORES[0]) * step, 0, len(NORMAL_SCORES) - 1.001)
        before = place.astype(np.int64)
        part = place - before
        before += np.arange(len(jobs)) * len(NORMAL_SCORES)
        flat = table.ravel()
        low = flat[before]
        runtime = np.rint(low + part * (flat[before + 1] - low)).astype(np.int64)
        requested = np.array([job.requested_time for job in jobs], dtype=np.int64)
        least = np.minimum(np.asarray(age, dtype=np.int64) + 1, requested)
        clipped: Int64Array = np.clip(runtime, least, requested)
        return clipped

    def _log_quantiles(self, jobs: Sequence[JobRequest], age: Int64Array) -> Float64Array:
        """Give log runtimes at the levels of `NORMAL_SCORES`, shape (jobs, levels)."""
        numbers: dict[tuple[object, ...], int] = {}
        of = np.empty(len(jobs), dtype=np.int64)
        different: list[JobRequest] = []
        for place, job in enumerate(jobs):
            alike = (
                job.user,
                job.project,
                job.processors,
                job.requested_time,
                job.queue,
                job.executable,
            )
            number = numbers.setdefault(alike, len(numbers))
            if number == len(different):
                different.append(job)
            of[place] = number
        beyond = np.where(age > 0, np.log(np.maximum(age, 1)), NOTHING)
        return self._quantiles(different).table(of, beyond)

    def _quantiles(self, jobs: Sequence[JobRequest]) -> RuntimeQuantiles:
        """Give the distributions of jobs that have not begun."""
        columns: list[Float64Array] = []
        weights: list[Float64Array] = []
        owner: list[int] = []
        another: list[bool] = []
        left_open = np.empty(len(jobs))
        for number, job in enumerate(jobs):
            known = list(self._jobs.of(job))
            parts, left_open[number] = self._back_off.shares([len(jobs) for _, jobs in known])
            for (kind, remembered), part in zip(known, parts, strict=False):
                values = self._columns.get(kind)
                if values is None:
                    values = self._columns[kind] = _columns_of(remembered)
                columns.append(values)
                weights.append(part)
                owner.append(number)
                another.append(kind[0] not in _OF_ONE_REQUEST)
        log_request = np.log([job.requested_time for job in jobs])
        open_place = np.append((np.arange(_OPEN_VALUES - 1) + 0.5) / (_OPEN_VALUES - 1), 1.0)
        of = [np.repeat(np.arange(len(jobs)), _OPEN_VALUES)]
        values_of = [np.outer(log_request, open_place).ravel()]
        weight_of = [np.repeat(left_open / _OPEN_VALUES, _OPEN_VALUES)]
        bound_of = [np.zeros(len(of[0]), dtype=np.bool_)]
        if columns:
            length = np.array([len(part) for part in weights])
            owners = np.repeat(owner, length)
            weight = np.concatenate(weights)
            log_runtime, log_asked, bound, at_limit = np.concatenate(columns, axis=1)
            log_limit = log_request[owners]
            # Read as a share of the request; of jobs with the same request that is the runtime.
            differs = np.repeat(another, length) & (log_asked != log_limit)
            share = np.where(differs, self.settings.as_share, 1.0)
            read = share > 0
            of.append(owners[read])
            values_of.append((log_runtime - log_asked + log_limit)[read])
            weight_of.append((weight * share)[read])
            bound_of.append(bound[read] > 0)
            read = share < 1
            of.append(owners[read])
            values_of.append(np.minimum(log_runtime, log_limit)[read])
            weight_of.append((weight * (1 - share))[read])
            cut = (bound > 0) | (at_limit > 0)
            bound_of.append((cut & (log_runtime < log_limit))[read])
        return RuntimeQuantiles(
            np.concatenate(of),
            np.maximum(np.concatenate(values_of), 0.0),
            np.concatenate(weight_of),
            np.concatenate(bound_of),
        )

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "runtime_histories": 1,
            "settings": asdict(self.settings),
            "kinds": [
                [kind, end_time, [list(job) for job in jobs]]
                for kind, end_time, jobs in self._jobs.state()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another model saved it, or it was learned under other settings.
        """
        if state.get("runtime_histories") != 1:
            raise StateError(
                "runtime histories: the state given was saved by another model: learn the history"
                " anew"
            )
        if state["settings"] != asdict(self.settings):
            raise StateError(
                "runtime histories: the state was learned under other settings: learn the history"
                " anew"
            )
        self._jobs.restore(
            [
                (kind, end_time, [(runtime, asked, bound) for runtime, asked, bound in jobs])
                for kind, end_time, jobs in state["kinds"]
            ]
        )
        self._columns.clear()


def _columns_of(remembered: Sequence[tuple[int, int, bool]]) -> Float64Array:
    """Give log runtime, log request, whether it is a bound, whether it is at the request."""
    runtime, asked, bound = np.array(remembered, dtype=np.float64).T
    return np.stack([np.log(runtime), np.log(asked), bound, runtime >= asked])
