"""Who wants news of which of their jobs: told, asked for, and stopped."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Query
from pydantic import BaseModel, ConfigDict

from foretime_sidecar.notify.notifier import Notifier, TooManyJobsError
from foretime_sidecar.notify.ways import Kind
from foretime_sidecar.web.api.forecasts import ForecastDesk
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of

Asker = Annotated[Caller, Depends(caller_of)]
JobId = Annotated[str, Query(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.\[\]-]+$")]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class NotifiedJob(_Answer):
    """A job that its user has news of."""

    job_id: str
    """As its user has named it."""
    asked_at: int
    """When they asked, epoch seconds."""


class Notifications(_Answer):
    """What the daemon sends a user."""

    user: str
    """Whose."""
    way: Kind | None
    """How news are sent; `null`: not at all."""
    address: str | None
    """Where they are mailed to; `null` if they are not."""
    jobs: list[NotifiedJob]
    """The jobs that they are of."""


def add_notifications(app: FastAPI, desk: ForecastDesk) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/me/notify")
    def notifications(caller: Asker) -> Notifications:
        """Say which news the caller gets."""
        user = caller.named()
        notifier = desk.sidecar.notifier
        if notifier is None:
            return Notifications(user=user, way=None, address=None, jobs=[])
        return _notifications(notifier, user)

    @app.post("/v1/me/notify")
    def notify(caller: Asker, job: JobId) -> Notifications:
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
                "look at the number; a job that was submitted just now is there in a minute",
            )
        try:
            notifier.ask(user, job, desk.now())
        except TooManyJobsError as error:
            what, _, remedy = str(error).partition("; ")
            raise ApiError(409, what, "job", remedy) from error
        return _notifications(notifier, user)

    @app.post("/v1/me/notify/stop")
    def stop(caller: Asker, job: JobId) -> Notifications:
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
    return Notifications(
        user=user,
        way=notifier.way.kind,
        address=notifier.way.address(user),
        jobs=[
            NotifiedJob(job_id=job.job_id, asked_at=job.asked_at) for job in notifier.jobs_of(user)
        ],
    )
