"""What the daemon answers to administrators, and to users about their own jobs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.safety.ab_report import AbReport, ab_report
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.store.decisions import Decision
from foretime_sidecar.table.table import Scheme
from foretime_sidecar.web.api.answer_types import DecisionsAnswer, Explanation, OwnJobs
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.operator_types import BreakerAnswer, BreakerReset
from foretime_sidecar.web.api.parameters import AnyJobId, AnySince, JobId, Since, User
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of, operators_only

MOST_DECISIONS = 100_000

Asker = Annotated[Caller, Depends(caller_of)]


def add_administration(app: FastAPI, sidecar: Sidecar, clock: Callable[[], float]) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""
    oversight = sidecar.oversight

    @app.get("/v1/decisions", **answers(DecisionsAnswer))
    def decisions(
        caller: Asker,
        job: AnyJobId = None,
        user: User = None,
        since: AnySince = None,
        limit: Annotated[
            int, Query(ge=1, le=MOST_DECISIONS, description="The latest so many.")
        ] = 1000,
    ) -> DecisionsAnswer:
        """Give the audit: of the caller's own jobs, or of everybody's to an administrator."""
        whose = user
        if not caller.sees_everybody:
            caller.named()
            whose = caller.may_see(user)
        with sidecar.lock:
            found = oversight.decisions.find(job_id=job, user=whose, since=since, limit=limit)
        return {"decisions": found}

    @app.get("/v1/explain", **answers(Explanation, 404))
    def explain(caller: Asker, job: JobId) -> Explanation:
        """Say what became of one job, and what is known of such jobs."""
        whose = None if caller.sees_everybody else caller.named()
        with sidecar.lock:
            found = oversight.decisions.find(job_id=job, user=whose)
            if not found:
                raise ApiError(
                    404,
                    f"nothing is known of job {job}"
                    + ("" if whose is None else f" of user {whose}"),
                    "job",
                    "it may have come and gone between two looks at the queue, or is not yours",
                )
            # A job's id may be used again; a requeued job is submitted anew.
            latest = [one for one in found if one.submit_time == found[-1].submit_time]
            return _explanation(sidecar, latest)

    @app.get("/v1/ab", **answers(AbReport))
    def ab(caller: Asker, since: Since) -> AbReport:
        """Compare planned jobs with those that were only observed."""
        operators_only(caller)
        with sidecar.lock:
            return ab_report(sidecar.store, since)

    @app.get("/v1/breaker", **answers(BreakerAnswer))
    def breaker(caller: Asker) -> BreakerAnswer:
        """Give the circuit breaker's figures, its limits and whether it is open."""
        operators_only(caller)
        with sidecar.lock:
            figures = oversight.breaker.figures(math.floor(clock()))
            trip = oversight.breaker.trip()
        return {
            "open": trip is not None,
            "tripped_at": None if trip is None else trip.tripped_at,
            "reason": None if trip is None else trip.reason,
            "figures": figures,
            "limits": sidecar.settings.breaker.model_dump(),
        }

    @app.post("/v1/breaker/reset", **answers(BreakerReset))
    def reset(caller: Asker) -> BreakerReset:
        """Close the circuit breaker."""
        operators_only(caller)
        with sidecar.lock:
            trip = oversight.breaker.reset(math.floor(clock()))
        return {"was_open": trip is not None, "reason": None if trip is None else trip.reason}


def _request(decision: Decision) -> JobRequest:
    return JobRequest(
        decision.job_id,
        decision.user,
        decision.project,
        decision.processors,
        decision.requested_time_s,
        decision.submit_time,
        decision.queue,
    )


def _explanation(sidecar: Sidecar, latest: list[Decision]) -> Explanation:
    first, last = latest[0], latest[-1]
    history = []
    for name, of in (("user", first.user), ("project", first.project)):
        if of is not None:
            history += sidecar.learner.describe(**{name: of})
    time_class = sidecar.learner.class_of_requested_time(first.requested_time_s)
    learned = sidecar.learner.scheme is Scheme.LEARNED
    needed = sidecar.settings.learned.threshold if learned else None
    own: list[OwnJobs] = [
        {
            "submissions": one.submissions,
            "threshold": needed or one.threshold,
            "adjustment": one.adjustment,
            "used_share": one.used_share,
        }
        for one in history
        if one.requested_time_class == time_class and one.name == first.user
    ]
    return Explanation(
        **dataclasses.asdict(last),
        why=REASONS.get(last.reason, last.reason),
        history=latest,
        own_jobs=own[0] if own else None,
        estimated_from=sidecar.learner.kind_of(_request(last)),
        mode=sidecar.progress.mode,
    )
