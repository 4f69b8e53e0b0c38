"""Mean share of their requests that similar jobs took: a cheap estimate, with a time for each role.

t_sched = t_req * mean R over the job's kinds, from fine to coarse. Running jobs are expected to end
at their requests: then nothing that runs outlives its estimate, and what waits at the head is told
a start that holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foretime_estimators.estimators.estimator import RolePrediction, clamped
from foretime_estimators.estimators.job_kinds import Ageing
from foretime_estimators.estimators.kind_sums import KindSums
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S


@dataclass(frozen=True, slots=True)
class ExpectedRuntimeSettings:
    """Settings of `ExpectedRuntime`.

    Attributes
    ----------
    half_life_jobs, enough_jobs
        How history is weighed, see `foretime_estimators.estimators.job_kinds.Ageing`.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    shortest_s
        Shorter runtimes count as so long, at least 1 second: the tau of bounded slowdown, below
        which nothing is gained by being shorter.
    """

    half_life_jobs: float = 8.0
    enough_jobs: float = 8.0
    window_s: int = 180 * DAY_S
    shortest_s: int = 10

    def __post_init__(self) -> None:
        for name in ("window_s", "shortest_s"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"expected runtime: {name} = {getattr(self, name)!r}: give at least 1 second"
                )


class ExpectedRuntime:
    """Mean R of similar jobs for backfilling; who is first by the rule for least mean slowdown.

    The time for the queue's order is sqrt(E[p] / E[1/p]), p being the runtime. One machine has
    the least mean of wait / runtime if jobs run in order of E[cost] / E[weight] (Smith 1956;
    Rothkopf 1966 for random times), here E[p] / E[1/p]; its root is in seconds, and the runtime
    itself where that is certain. By it a kind whose jobs fail at once every second time comes
    early, by its mean late.

    A cancelled job counts by what it ran: so long it held its processors.

    Parameters
    ----------
    settings
        The defaults if ``None``.
    """

    oracle = False
    _name = "expected_runtime"

    def __init__(self, settings: ExpectedRuntimeSettings | None = None) -> None:
        self.settings = settings if settings is not None else ExpectedRuntimeSettings()
        # Of R and of 1/R.
        self._sums = KindSums(
            2,
            Ageing(self.settings.half_life_jobs, self.settings.enough_jobs),
            self.settings.window_s,
        )

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the time for backfilling, seconds."""
        return self.predict_roles(job, now).backfill

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Give each role's time, seconds; the request where nothing has finished."""
        asked = job.requested_time
        means = self._sums.mean(job, (1.0, 1.0))
        if means is None:
            return RolePrediction(asked, asked, asked)
        share, inverse = means
        return RolePrediction(
            clamped(math.ceil(math.sqrt(share / inverse) * asked), job),
            clamped(math.ceil(share * asked), job),
            asked,
        )

    def learn_one(self, job: FinishedJob) -> None:
        """Take in what the job took of its request."""
        if evidence_of(job) is Evidence.NONE:
            return
        asked = job.request.requested_time
        share = 1.0
        if job.ending is not Ending.TIMED_OUT:
            share = min(1.0, max(job.actual_runtime, self.settings.shortest_s) / asked)
        self._sums.add(job.request, self._figures(share), job.end_time)

    def _figures(self, share: float) -> tuple[float, float]:
        """Give what is summed up of a job."""
        return share, 1.0 / share

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            self._name: 1,
            "settings": asdict(self.settings),
            "kinds": self._sums.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another estimator saved it, or it was learned under other settings.
        """
        if state.get(self._name) != 1:
            raise StateError(
                "expected runtime: the state given was saved by another estimator: learn the"
                " history anew"
            )
        if state["settings"] != asdict(self.settings):
            raise StateError(
                "expected runtime: the state was learned under other settings: learn the history"
                " anew"
            )
        self._sums.restore(state["kinds"])
