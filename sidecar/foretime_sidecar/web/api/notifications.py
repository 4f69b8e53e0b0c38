"""Who wants news of which of their jobs: told, asked for, and stopped."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Query

from foretime_sidecar.notify.notifier import Notifier, TooManyJobsError
from foretime_sidecar.web.api.answer_types import Notifications
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.forecasts import ForecastDesk
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of

Asker = Annotated[Caller, Depends(caller_of)]
NotifiedJobId = Annotated[
    str,
    Query(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9_.\[\]-]+$",
        description="A job's id; a task of an array is ARRAY_TASK on Slurm.",
        examples=["4711", "4711_3"],
    ),
]


def add_notifications(app: FastAPI, desk: ForecastDesk) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/me/notify", **answers(Notifications))
    def notifications(caller: Asker) -> Notifications:
        """Say which news the caller gets."""
        user = caller.named()
        notifier = desk.sidecar.notifier
        if notifier is None:
            return {"user": user, "way": None, "address": None, "jobs": []}
        return _notifications(notifier, user)

    @app.post("/v1/me/notify", **answers(Notifications, 404, 409))
    def notify(caller: Asker, job: NotifiedJobId) -> Notifications:
        """Send the caller news of a job of their own that waits."""
        user, notifier = caller.named(), _notifier(desk)
        _, board = desk.board()
        pending = board.pending_job(job)
        # Operators, too: nobody is sent what they have not asked for.
        if pending is None or pending.request.user != user:
            raise ApiError(
                404,
                f"no job {job} of yours waits in the queue as it was "
                f"{max(desk.now() - board.made_at, 0)} s ago",
                "job",
                "check the number; a job that was submitted just now is there in a minute",
            )
        try:
            notifier.ask(user, job, desk.now())
        except TooManyJobsError as error:
            what, _, remedy = str(error).partition("; ")
            raise ApiError(409, what, "job", remedy) from error
        return _notifications(notifier, user)

    @app.post("/v1/me/notify/stop", **answers(Notifications, 404))
    def stop(caller: Asker, job: NotifiedJobId) -> Notifications:
        """Send the caller no more news of a job."""
        user, notifier = caller.named(), _notifier(desk)
        if not notifier.stop(user, job):
            raise ApiError(
                404, f"you get no news of job {job}", "job", "GET /v1/me/notify lists your jobs"
            )
        return _notifications(notifier, user)


def _notifier(desk: ForecastDesk) -> Notifier:
    if desk.sidecar.notifier is None:
        raise ApiError(
            404,
            "the daemon of this site sends no notifications",
            "notify.way",
            "watch the job yourself: foretime wait JOB --notify bell",
        )
    return desk.sidecar.notifier


def _notifications(notifier: Notifier, user: str) -> Notifications:
    return {
        "user": user,
        "way": notifier.way.kind,
        "address": notifier.way.address(user),
        "jobs": [
            {"job_id": job.job_id, "asked_at": job.asked_at} for job in notifier.jobs_of(user)
        ],
    }
