"""Fails at once, runs to its limit, or something in between: the likely outcome decides.

Runtimes of one kind of jobs are rarely spread around a mean: a job crashes within a minute, is cut
at its limit, or does its work. Each outcome has a probability, from jobs alike, and a typical
runtime. The prediction is the one of the three runtimes with the least expected cost, which is the
pinball loss of ln(runtime / prediction): the quantile of a distribution on three points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foretime_estimators.estimators.estimator import clamped
from foretime_estimators.estimators.job_kinds import Ageing
from foretime_estimators.estimators.kind_sums import KindSums
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S


@dataclass(frozen=True, slots=True)
class OutcomeSettings:
    """Settings of `OutcomeClasses`.

    Attributes
    ----------
    level
        Share of jobs that are to end within their prediction, between 0 and 1: an underestimate
        costs level / (1 - level) times as much as an overestimate by the same factor.
    at_once_s
        A job that ends within so many seconds failed at once, at least 1.
    at_limit
        A job that takes this share of its request, or more, ran to its limit; above 0, at most 1.
    half_life_jobs, enough_jobs
        How history is weighed, see `foretime_estimators.estimators.job_kinds.Ageing`.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    """

    level: float = 0.5
    at_once_s: int = 60
    at_limit: float = 0.95
    half_life_jobs: float = 8.0
    enough_jobs: float = 2.0
    window_s: int = 180 * DAY_S

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                value = getattr(self, name)
                raise InputError(f"outcome classes: {name} = {value!r}: it must be {rule}")

        require("level", 0 < self.level < 1, "between 0 and 1")
        require("at_once_s", self.at_once_s >= 1, "at least 1 second")
        require("at_limit", 0 < self.at_limit <= 1, "above 0 and at most 1")
        require("window_s", self.window_s >= 1, "at least 1 second")


class OutcomeClasses:
    """Probability and geometric mean runtime of each of the three outcomes, by kinds of jobs.

    A cancelled job counts by what it ran: so long it held its processors.

    Parameters
    ----------
    settings
        The defaults if ``None``.
    """

    oracle = False

    def __init__(self, settings: OutcomeSettings | None = None) -> None:
        self.settings = settings if settings is not None else OutcomeSettings()
        # At once, ln seconds there; in between, ln R there; at the limit.
        self._sums = KindSums(
            5,
            Ageing(self.settings.half_life_jobs, self.settings.enough_jobs),
            self.settings.window_s,
        )

    def probabilities(self, job: JobRequest) -> tuple[float, float, float] | None:
        """Give those of failing at once, in between, to the limit; ``None`` without history."""
        means = self._sums.mean(job, (0.0, 0.0, 0.0, 0.0, 1.0))
        return None if means is None else (means[0], means[2], means[4])

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the runtime of least expected cost, seconds; the request without history."""
        means = self._sums.mean(job, (0.0, 0.0, 0.0, 0.0, 1.0))
        if means is None:
            return job.requested_time
        at_once, log_seconds, between, log_share, at_limit = means
        outcomes = [(float(job.requested_time), at_limit)]
        if at_once > 0:
            outcomes.append((math.exp(log_seconds / at_once), at_once))
        if between > 0:
            outcomes.append((job.requested_time * math.exp(log_share / between), between))
        return clamped(math.ceil(self._quantile(sorted(outcomes))), job)

    def _quantile(self, outcomes: Sequence[tuple[float, float]]) -> float:
        """Give the first of ascending (runtime, probability) that reaches the level."""
        wanted = self.settings.level * sum(probability for _, probability in outcomes)
        reached = 0.0
        for runtime, probability in outcomes[:-1]:
            reached += probability
            if reached >= wanted * (1 - 1e-12):
                return runtime
        return outcomes[-1][0]

    def learn_one(self, job: FinishedJob) -> None:
        """Count the job with those of its outcome."""
        if evidence_of(job) is Evidence.NONE:
            return
        asked, took = job.request.requested_time, max(job.actual_runtime, 1)
        figures = (0.0, 0.0, 0.0, 0.0, 1.0)
        if job.ending is not Ending.TIMED_OUT and took < self.settings.at_limit * asked:
            if took <= self.settings.at_once_s:
                figures = (1.0, math.log(took), 0.0, 0.0, 0.0)
            else:
                figures = (0.0, 0.0, 1.0, math.log(took / asked), 0.0)
        self._sums.add(job.request, figures, job.end_time)

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "outcome_classes": 1,
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
        if state.get("outcome_classes") != 1 or state["settings"] != asdict(self.settings):
            raise StateError(
                "outcome classes: the state given was saved by another estimator or learned under"
                " other settings: learn the history anew"
            )
        self._sums.restore(state["kinds"])
