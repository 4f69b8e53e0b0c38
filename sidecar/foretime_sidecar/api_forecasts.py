"""What the daemon answers about waits: of jobs in the queue, and of those not submitted yet."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query
from foretime_estimators.jobs import JobRequest

from foretime_sidecar import forecast_answers
from foretime_sidecar.api_callers import ApiError, Caller, caller_of
from foretime_sidecar.forecast_board import Board
from foretime_sidecar.job_question import JobParameters, JobQuestion, question_of
from foretime_sidecar.queue_moment import NewJob
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.wait_forecasting import WaitForecasting

logger = logging.getLogger("foretime")

_PATIENCE_S = 10  # for the first forecasts after a start

Asker = Annotated[Caller, Depends(caller_of)]
Parameters = Annotated[JobParameters, Query()]


def add_forecasts(app: FastAPI, sidecar: Sidecar, clock: Callable[[], float]) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""
    desk = ForecastDesk(sidecar, clock)

    @app.get("/v1/forecast")
    def forecast(caller: Asker, parameters: Parameters) -> dict[str, Any]:
        """Say when a job submitted now would start."""
        return desk.answer(desk.question(parameters, caller), caller)

    @app.get("/v1/jobs/forecasts")
    def forecasts(caller: Asker, brief: bool = False) -> dict[str, Any]:
        """Say when the pending jobs that the caller may see will start."""
        return desk.pending(caller, brief=brief)

    @app.get("/v1/jobs/{job_id}/forecast")
    def of_job(
        caller: Asker, job_id: Annotated[str, Path(min_length=1, max_length=64)]
    ) -> dict[str, Any]:
        """Say when a job in the queue will start, or did."""
        return desk.of_job(job_id, caller)


class ForecastDesk:
    """Answers questions about waits, from the latest board.

    Parameters
    ----------
    sidecar
        Whose knowledge it is.
    clock
        Epoch seconds.
    """

    def __init__(self, sidecar: Sidecar, clock: Callable[[], float]) -> None:
        self._sidecar = sidecar
        self._clock = clock

    def now(self) -> int:
        """Epoch seconds."""
        return math.floor(self._clock())

    def board(self) -> tuple[WaitForecasting, Board]:
        """Give what keeps the forecasts, and the latest."""
        forecasting = self._sidecar.forecasting
        board = None if forecasting is None else forecasting.latest_board(_PATIENCE_S)
        if forecasting is None or board is None:
            raise ApiError(
                503,
                "the queue has not been read yet",
                "scheduler",
                "try again in a minute; if it stays so, look at the daemon's log",
            )
        return forecasting, board

    # -- jobs in the queue -----------------------------------------------------------------------

    def of_job(self, job_id: str, caller: Caller) -> dict[str, Any]:
        """Answer for one job of the queue."""
        _, board = self.board()
        pending, running = board.tasks.get(job_id), board.running.get(job_id)
        # Whether there is such a job is not told to those who may not see it.
        if pending is not None and caller.sees_job(pending.request.user):
            scheduled = self._scheduled_time(pending.request)
            return forecast_answers.of_pending(board, pending, scheduled, self.now())
        if running is not None and caller.sees_job(running.request.user):
            scheduled = self._scheduled_time(running.request)
            return forecast_answers.of_running(board, running, scheduled, self.now())
        raise ApiError(
            404,
            f"no job {job_id} of yours is in the queue as it was "
            f"{max(self.now() - board.made_at, 0)} s ago",
            "job_id",
            "look at the number; a job that was submitted just now is there in a minute",
        )

    def pending(self, caller: Caller, *, brief: bool) -> dict[str, Any]:
        """Answer for all pending jobs that a caller may see."""
        _, board = self.board()
        seen = [row for row in board.rows if caller.sees_job(row.request.user)]
        now = self.now()
        others = sum(row.job.tasks for row in board.rows) - sum(row.job.tasks for row in seen)
        return {
            "made_at": board.made_at,
            "jobs": [
                forecast_answers.of_pending(
                    board, row, self._scheduled_time(row.request), now, brief=brief
                )
                for row in seen
            ],
            "others": {"pending": others},
        }

    # -- jobs that nobody has submitted ----------------------------------------------------------

    def question(self, parameters: JobParameters, caller: Caller) -> JobQuestion:
        """Read a question, of a caller who may ask it."""
        return question_of(parameters, caller.may_see(parameters.user), self.now())

    def answer(self, question: JobQuestion, caller: Caller) -> dict[str, Any]:
        """Answer for a job that nobody has submitted."""
        forecasting, board = self.board()
        job, withheld = question.request, self._withheld(question.request, caller)
        if withheld:
            said = (
                f"nothing of project {job.project!r} is used: fewer than "
                f"{self._sidecar.settings.api.smallest_group} users made its history of such jobs"
            )
            question = replace(question, not_modelled=(*question.not_modelled, said))
        scheduled = self._scheduled_time(replace(job, project=None) if withheld else job)
        forecast = forecasting.what_if(board, self._new_job(question, scheduled, board))
        return forecast_answers.of_new(forecast, question, scheduled, self.now())

    def _new_job(self, question: JobQuestion, scheduled_time_s: int, board: Board) -> NewJob:
        """Give a job as the scheduler would plan it."""
        planned = None
        if self._sidecar.progress.mode == "enforce":
            planned = min(scheduled_time_s, question.request.requested_time)
        elif board.moment.look.soft_limit:
            planned = question.time_min_s
        return NewJob(question.request, planned, question.begin)

    def _scheduled_time(self, job: JobRequest) -> int:
        with self._sidecar.lock:
            return self._sidecar.learner.scheduled_time(job)

    def _withheld(self, job: JobRequest, caller: Caller) -> bool:
        if job.project is None or caller.sees_everybody:
            return False
        learner = self._sidecar.learner
        with self._sidecar.lock:
            return not learner.is_group(job.project, learner.class_of(job))
