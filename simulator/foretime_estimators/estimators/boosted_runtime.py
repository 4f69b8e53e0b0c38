"""Quantiles of a job's R from gradient-boosted trees, refitted as jobs finish.

A regression tree for each of five quantiles of ln R (Friedman 2001; pinball loss) on the features
of Gaussier 2015's table 2, on what similar jobs took, and on the job's names, hashed. The five say
how R is distributed; mean and order time follow as for `expected`. Needs scikit-learn.
"""

from __future__ import annotations

import contextlib
import functools
import math
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.estimator import RolePrediction, clamped
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.outcome_classes import OutcomeClasses
from foretime_estimators.estimators.pending_predictions import AskedJobs
from foretime_estimators.estimators.regression.runtime_features import FEATURES, RuntimeFeatures
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import ThreadpoolController

_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
_NAMES = 256
"""Classes that names are hashed into: as many as a tree's histogram has bins."""


@dataclass(frozen=True, slots=True)
class BoostedSettings:
    """Settings of `BoostedRuntime`.

    Attributes
    ----------
    first_jobs
        Finished jobs after which trees are first grown, at least 20; anew at each doubling.
    refit_jobs
        ... until so many, and then after each further so many.
    window_jobs
        Trees are grown from the last so many finished jobs, at least ``first_jobs``.
    trees, leaves, least_jobs, rate
        Trees of each quantile, leaves of a tree, jobs in a leaf at least, and how much of its step
        each tree takes.
    shortest_s
        Shorter runtimes count as so long, seconds.
    seed
        What decides the trees.
    """

    first_jobs: int = 500
    refit_jobs: int = 4_000
    window_jobs: int = 20_000
    trees: int = 60
    leaves: int = 15
    least_jobs: int = 20
    rate: float = 0.1
    shortest_s: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                value = getattr(self, name)
                raise InputError(f"boosted: {name} = {value!r}: it must be {rule}")

        require("first_jobs", self.first_jobs >= 20, "at least 20")
        require("refit_jobs", self.refit_jobs >= self.first_jobs, "at least first_jobs")
        require("window_jobs", self.window_jobs >= self.first_jobs, "at least first_jobs")
        require("trees", self.trees >= 1, "at least 1")
        require("leaves", self.leaves >= 2, "at least 2")
        require("least_jobs", self.least_jobs >= 1, "at least 1")
        require("rate", 0 < self.rate <= 1, "above 0 and at most 1")
        require("shortest_s", self.shortest_s >= 1, "at least 1 second")

    def refits_after(self, jobs: int) -> bool:
        """Whether trees are grown once so many jobs have finished."""
        if jobs >= self.refit_jobs:
            return jobs % self.refit_jobs == 0
        times, rest = divmod(jobs, self.first_jobs)
        return rest == 0 and times.bit_count() == 1

    def last_refit(self, jobs: int) -> int:
        """Give after how many of these jobs trees were grown last; 0 for never."""
        if jobs >= self.refit_jobs:
            return jobs - jobs % self.refit_jobs
        times = jobs // self.first_jobs
        return self.first_jobs << (times.bit_length() - 1) if times else 0


@functools.cache
def _threads() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _in_one_thread() -> contextlib.AbstractContextManager[object]:
    """Let scikit-learn compute in the calling thread alone.

    Trees are so small that threads wait for each other longer than they compute: on two busy cores
    it took 28 times the CPU to ask them, and 19 times to grow them.
    """
    limited: contextlib.AbstractContextManager[object] = _threads().limit(
        limits=1, user_api="openmp"
    )
    return limited


class BoostedRuntime:
    """Trees grown from finished jobs alone, each with what was known of it at its submission.

    What is known of a job is noted when it is first asked about; of one that nobody asked about,
    when it ends. Until the first trees are grown the times are those of `expected`.

    Parameters
    ----------
    settings
        The defaults if ``None``.

    Raises
    ------
    InputError
        If scikit-learn is not installed.
    """

    oracle = False

    def __init__(self, settings: BoostedSettings | None = None) -> None:
        try:
            import sklearn.ensemble  # noqa: F401
        except ImportError:
            raise InputError("boosted needs scikit-learn: pip install 'foretime[learn]'") from None
        self.settings = settings if settings is not None else BoostedSettings()
        self._features = RuntimeFeatures()
        self._expected = ExpectedRuntime()
        self._outcomes = OutcomeClasses()
        self._asked: AskedJobs[list[float]] = AskedJobs()
        self._finished = 0
        # Features, then ln R: as many as the next trees, or those there are, may need.
        most = self.settings.window_jobs + self.settings.refit_jobs
        self._examples: deque[list[float]] = deque(maxlen=most)
        self._trees: list[HistGradientBoostingRegressor] = []

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the time for backfilling, seconds."""
        return self.predict_roles(job, now).backfill

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Give each role's time, seconds: sqrt(E[R] / E[1/R]), E[R] and 1 times the request."""
        known = self._known(job, now)
        self._asked.remember(job.job_id, known)
        if not self._trees:
            return self._expected.predict_roles(job, now)
        row = np.array([known])
        with _in_one_thread():
            log_shares = [min(0.0, float(tree.predict(row)[0])) for tree in self._trees]
        asked = job.requested_time
        mean = sum(map(math.exp, log_shares)) / len(log_shares)
        inverse = sum(math.exp(-share) for share in log_shares) / len(log_shares)
        return RolePrediction(
            clamped(math.ceil(math.sqrt(mean / inverse) * asked), job),
            clamped(math.ceil(mean * asked), job),
            asked,
        )

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Take note that a job runs."""
        self._features.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        """Keep the job as an example, and grow trees if it is time to."""
        request = job.request
        known = self._asked.take(request.job_id)
        if evidence_of(job) is not Evidence.NONE:
            if known is None:
                known = self._known(request, job.end_time)
            share = 1.0
            if job.ending is not Ending.TIMED_OUT:
                took = max(job.actual_runtime, self.settings.shortest_s)
                share = min(1.0, took / request.requested_time)
            self._examples.append([*known, math.log(share)])
            self._finished += 1
        for model in (self._features, self._expected, self._outcomes):
            model.learn_one(job)
        if evidence_of(job) is not Evidence.NONE and self.settings.refits_after(self._finished):
            self._grow()

    def _known(self, job: JobRequest, now: int) -> list[float]:
        """Give the features of a job, all finite."""
        roles = self._expected.predict_roles(job, now)
        outcomes = self._outcomes.probabilities(job) or (0.0, 0.0, 1.0)
        names = (job.user, job.project, job.queue, job.executable)
        return [
            *self._features.of(job, now).tolist(),
            math.log(roles.backfill / job.requested_time),
            math.log(roles.queue / job.requested_time),
            *outcomes,
            *(float(zlib.crc32(name.encode()) % _NAMES) if name else -1.0 for name in names),
        ]

    def _grow(self) -> None:
        """Grow trees from the examples that there were after the last job at which one does."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        rules = self.settings
        later = self._finished - rules.last_refit(self._finished)
        usable = len(self._examples) - later
        chosen = islice(self._examples, max(0, usable - rules.window_jobs), usable)
        table: Float64Array = np.array(list(chosen))
        with _in_one_thread():
            self._trees = [
                HistGradientBoostingRegressor(
                    loss="quantile",
                    quantile=level,
                    learning_rate=rules.rate,
                    max_iter=rules.trees,
                    max_leaf_nodes=rules.leaves,
                    min_samples_leaf=rules.least_jobs,
                    early_stopping=False,
                    random_state=rules.seed,
                ).fit(table[:, :-1], table[:, -1])
                for level in _LEVELS
            ]

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it; trees are grown again from the examples."""
        return {
            "boosted": 1,
            "settings": asdict(self.settings),
            "features": self._features.state(),
            "expected": self._expected.state(),
            "outcomes": self._outcomes.state(),
            "asked": self._asked.state(),
            "finished": self._finished,
            "examples": list(self._examples),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned, and grow its trees again.

        Raises
        ------
        StateError
            If another estimator saved it, or it was learned under other settings.
        """
        if state.get("boosted") != 1 or state["settings"] != asdict(self.settings):
            raise StateError(
                "boosted: the state given was saved by another estimator or learned under other"
                " settings: learn the history anew"
            )
        examples: Sequence[list[float]] = state["examples"]
        width = len(FEATURES) + 10
        if any(len(example) != width for example in examples):
            raise StateError(f"boosted: an example of the state given has not {width} figures")
        self._features.restore(state["features"])
        self._expected.restore(state["expected"])
        self._outcomes.restore(state["outcomes"])
        self._asked.restore(state["asked"])
        self._finished = state["finished"]
        self._examples = deque(map(list, examples), maxlen=self._examples.maxlen)
        self._trees = []
        if self.settings.last_refit(self._finished):
            self._grow()
