"""How jobs like a new one become its scheduled times: every setting of `similar`."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_estimators.estimators.job_kinds import Ageing
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S


@dataclass(frozen=True, slots=True)
class RoleRule:
    """How one role's scheduled time follows from what is known of R = t_act / t_req.

    t_sched = t_req * max(R*, least)^trust, R* being a percentile or the mean of R.

    Attributes
    ----------
    percentile
        Share of jobs that are to end within R*, above 0 and at most 1; ``None`` for the mean.
    trust
        0: the request stands; 1: history alone decides; between them a mean of the logarithms.
    least
        R* is never below it, 0 to 1.
    """

    percentile: float | None
    trust: float = 1.0
    least: float = 0.0

    def __post_init__(self) -> None:
        share = self.percentile
        if share is not None and not 0 < share <= 1:
            raise InputError(f"percentile is {share:g}: give more than 0 and at most 1")
        if not 0 <= self.trust <= 1:
            raise InputError(f"trust is {self.trust:g}: give 0 to 1")
        if not 0 <= self.least <= 1:
            raise InputError(f"least is {self.least:g}: give 0 to 1")


@dataclass(frozen=True, slots=True)
class SimilarJobsSettings:
    """Settings of `foretime_estimators.estimators.similar_jobs_estimator.SimilarJobsEstimator`.

    The defaults were found on CTC-SP2, SDSC-BLUE and Mira (docs/studies/tang2010-beyond.md).

    Attributes
    ----------
    queue, backfill, drain
        Each role's rule.
    ageings
        Candidates; which of them serves best is found out as jobs finish. The first serves until
        ``judged_jobs`` have been judged.
    remembered_jobs
        Jobs of each kind that are kept.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    judge_every
        One in so many finished jobs is judged.
    judged_jobs
        Judged jobs from which on ageing and percentiles are tuned.
    judgement_half_life_jobs
        What was found by judging a job weighs half after so many further ones.
    minimum_scheduled_time_s
        t_sched is never below this (nor above t_req), seconds, at least 1.
    """

    queue: RoleRule = RoleRule(0.4, trust=0.5, least=0.01)
    backfill: RoleRule = RoleRule(None, trust=0.5)
    drain: RoleRule = RoleRule(None, trust=0.0)
    ageings: tuple[Ageing, ...] = (
        Ageing(8.0, 2.0),
        Ageing(15.0, 2.0),
        Ageing(30.0, 3.0),
    )
    remembered_jobs: int = 40
    window_s: int = 180 * DAY_S
    judge_every: int = 4
    judged_jobs: int = 50
    judgement_half_life_jobs: float = 500.0
    minimum_scheduled_time_s: int = 300

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                value = getattr(self, name)
                raise InputError(f"similar jobs: {name} = {value!r}: it must be {rule}")

        require("ageings", len(self.ageings) >= 1, "at least one")
        require("remembered_jobs", self.remembered_jobs >= 1, "at least 1")
        require("window_s", self.window_s >= 1, "at least 1 second")
        require("judge_every", self.judge_every >= 1, "at least 1")
        require("judged_jobs", self.judged_jobs >= 1, "at least 1")
        require("judgement_half_life_jobs", self.judgement_half_life_jobs > 0, "above 0")
        require("minimum_scheduled_time_s", self.minimum_scheduled_time_s >= 1, "at least 1 second")
