"""What the daemon answers about waits: of jobs in the queue, and of those not submitted yet."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Path, Query
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import MINUTE_S
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import LEVELS

from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecast_answer.advice import Advice, Alternative
from foretime_sidecar.forecast_answer.coarsening import coarse_count
from foretime_sidecar.forecast_answer.forecast import (
    AnyForecast,
    BriefForecast,
    ForecastAnswer,
    OtherJobs,
    PendingForecasts,
    StartBound,
)
from foretime_sidecar.forecasts.awaited_jobs import let_go_s
from foretime_sidecar.forecasts.forecast_board import Board, JobForecast, NewJobForecast
from foretime_sidecar.forecasts.job_advice import Shape, like_jobs, shapes
from foretime_sidecar.forecasts.job_question import JobParameters, JobQuestion, question_of
from foretime_sidecar.forecasts.wait_forecasting import RELIABILITY_DAYS, WaitForecasting
from foretime_sidecar.forecasts.wait_map import MapDrawing, WaitMap
from foretime_sidecar.queue.forecast_question import NewJob
from foretime_sidecar.web.api import forecast_answers
from foretime_sidecar.web.api.answer_types import MapAnswer, PartitionMap, ReliabilityAnswer
from foretime_sidecar.web.api.bound_answers import bound_answer
from foretime_sidecar.web.api.described_answers import answers, refusals
from foretime_sidecar.web.api.private_answers import HIDE_ACCOUNTS, coarse_forecast, coarse_grid
from foretime_sidecar.web.auth.callers import SHOW_WHO_YOU_ARE, ApiError, Caller, caller_of
from foretime_sidecar.web.connections.fair_turns import FairTurns
from foretime_sidecar.wording.submit_words import submit_words
from foretime_sidecar.wording.waits import spoken_wait

_PATIENCE_S = 10  # for the first forecasts after a start
_FIRST_S = 30  # that these may take yet
_OWN_JOBS = 2_000  # that advice looks through
_MOST_ELSEWHERE = 3
_WORTH_S = 60  # done sooner by less than that, or than a twentieth of the time, is no advice

Asker = Annotated[Caller, Depends(caller_of)]
Parameters = Annotated[JobParameters, Query()]


def add_forecasts(app: FastAPI, desk: ForecastDesk, turns: FairTurns) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/forecast", **refusals())
    async def forecast(caller: Asker, parameters: Parameters) -> ForecastAnswer:
        """Say when a job submitted now would start."""
        return await turns.take(
            caller, lambda: desk.answer(desk.question(parameters, caller), caller)
        )

    @app.get("/v1/advice", **refusals())
    async def advice(caller: Asker, parameters: Parameters) -> Advice:
        """Say when the same work would start in other shapes."""
        return await turns.take(
            caller, lambda: desk.advice(desk.question(parameters, caller), caller)
        )

    @app.get("/v1/map", **answers(MapAnswer))
    def wait_map(
        caller: Asker,
        partition: Annotated[
            str | None,
            Query(min_length=1, max_length=255, description="Of this Slurm partition alone."),
        ] = None,
    ) -> MapAnswer:
        """Give expected waits over job size and requested time."""
        return desk.map(partition, caller)

    @app.get("/v1/reliability", **answers(ReliabilityAnswer))
    def reliability(
        _: Asker,
        days: Annotated[
            int, Query(ge=1, le=366, description="Of forecasts made in so many days up to now.")
        ] = RELIABILITY_DAYS,
    ) -> ReliabilityAnswer:
        """Say how well forecasts have done, over all users."""
        return desk.reliability(days)

    @app.get("/v1/jobs/forecasts", **refusals())
    def forecasts(
        caller: Asker,
        brief: Annotated[
            bool,
            Query(description="Leave out `quantiles` and what all jobs have in common."),
        ] = False,
    ) -> PendingForecasts:
        """Say when the pending jobs that the caller may see will start."""
        return desk.pending(caller, brief=brief)

    @app.get("/v1/jobs/{job_id}/forecast", **refusals(404))
    def of_job(
        caller: Asker,
        job_id: Annotated[
            str,
            Path(
                min_length=1,
                max_length=64,
                description="Of the queue; a task of an array is ARRAY_TASK on Slurm.",
                examples=["4711", "4711_3"],
            ),
        ],
    ) -> ForecastAnswer:
        """Say when a job in the queue will start, or did."""
        return desk.of_job(job_id, caller)


def _cost(processor_seconds: int, asked: int) -> Literal["more", "same", "less"]:
    if processor_seconds == asked:
        return "same"
    return "more" if processor_seconds > asked else "less"


def _elsewhere(own: Sequence[FinishedJob], request: JobRequest, board: Board) -> list[str]:
    """Give other slurm_partitions that a job fits in by its time, those used most lately first.

    Only those that the user has run jobs in: others may be hidden, or not for them. On a flat pool
    they are all alike.
    """
    live = board.moment.taken.live
    if live is None:
        return []
    machine = live.machine
    now_in = (request.queue or machine.slurm_partitions[machine.default_partition].name).split(",")
    longest = {part.name: part.max_time_s for part in live.partitions}
    used = dict.fromkeys(job.request.queue for job in own)
    return [
        name
        for name in used
        if name in longest
        and name not in now_in
        and request.requested_time <= (longest[name] or request.requested_time)
    ][:_MOST_ELSEWHERE]


def _no_map_yet(drawing: MapDrawing | None, pause_s: int) -> ApiError:
    """Say how far the first map is, and when it will be there as far as can be told."""
    what, left_s = "no map is drawn yet", pause_s
    if drawing is not None and (remaining_s := drawing.remaining_s(pause_s)) is not None:
        done, of = drawing.cells
        what, left_s = f"{what}: {done} of {of} expected waits are made", max(remaining_s, 1)
    remedy = f"ask again in about {spoken_wait(max(left_s, MINUTE_S), up=True)}"
    return ApiError(503, what, "map", remedy, {"Retry-After": str(left_s)})


def _on_dependency(dependency: str, until: tuple[int, ...] | None) -> str:
    """Say how the jobs that a job waits for were looked at."""
    named = f"dependency {dependency!r}"
    if until is None:
        return f"the wait counts from when the {named} is fulfilled"
    if not any(until):
        return f"{named}: no such job is in the queue that you see, so it keeps nothing waiting"
    likely = spoken_wait(until[LEVELS.index(0.5)])
    return f"{named}: by the forecasts of its jobs it is likely fulfilled in {likely}"


def _bound(forecasting: WaitForecasting, forecast: JobForecast, board: Board) -> StartBound | None:
    if forecasting.bounds is None:
        return None
    request = forecast.request
    bound = forecasting.bounds.bound_of(request.job_id, request.submit_time)
    return bound_answer(bound, forecasting.kept_bounds, board.made_at)


class ForecastDesk:
    """Answers questions about waits, from the latest board.

    Parameters
    ----------
    sidecar
        Whose knowledge it is.
    health
        Why it may have none yet.
    clock
        Epoch seconds.
    """

    def __init__(self, sidecar: Sidecar, health: Health, clock: Callable[[], float]) -> None:
        self._sidecar = sidecar
        self._scheduler = sidecar.settings.scheduler.kind
        self._health = health
        self._clock = clock

    def now(self) -> int:
        """Epoch seconds."""
        return math.floor(self._clock())

    @property
    def sidecar(self) -> Sidecar:
        """Whose knowledge it is."""
        return self._sidecar

    def board(self) -> tuple[WaitForecasting, Board]:
        """Give what keeps the forecasts, and the latest."""
        forecasting = self._sidecar.forecasting
        board = None if forecasting is None else forecasting.latest_board(_PATIENCE_S)
        first = None if forecasting is None else forecasting.first
        if board is None and first is not None:
            left_s = first.left_s()
            raise ApiError(
                503,
                f"the first forecasts are being made, of a queue of {first.jobs:,} jobs"
                + (f": about {left_s} s" if left_s else ""),
                "scheduler",
                f"ask again in {left_s or _FIRST_S} s",
                {"Retry-After": str(left_s or _FIRST_S)},
            )
        if forecasting is None or board is None:
            why, _, remedy = self._health.last_error.partition("; ")
            raise ApiError(
                503,
                f"the queue has not been read yet{f': {why}' if why else ''}",
                "scheduler",
                remedy or "try again in a minute; if it stays so, look at the daemon's log",
                {"Retry-After": str(self._sidecar.pause.seconds)},
            )
        return forecasting, board

    def why_coarse(self, caller: Caller) -> str | None:
        """Say why answers to a caller must be coarse; ``None``: they need not be."""
        if caller.sees_everybody:
            return None
        if self._hidden:
            return "this site hides other people's jobs"
        if caller.identity is None:
            _, board = self.board()
            users = {row.request.user for row in board.rows}
            users |= {job.request.user for job in board.running.values()}
            if 0 < len(users) < self._sidecar.settings.api.smallest_group:
                return "few users have jobs, and who asks is not known"
        return None

    @property
    def _hidden(self) -> bool:
        return "jobs" in self._sidecar.private_data

    def _coarse(self, answer: AnyForecast, caller: Caller) -> AnyForecast:
        why = self.why_coarse(caller)
        return answer if why is None else coarse_forecast(answer, why)

    def _admit(self, caller: Caller) -> None:
        """Refuse what tells of all jobs to those who are not known, where the site hides jobs."""
        if self._hidden and caller.identity is None:
            raise ApiError(
                403,
                "this site hides other people's jobs, and this connection does not tell who you "
                "are",
                "user",
                SHOW_WHO_YOU_ARE,
            )

    # -- jobs in the queue -----------------------------------------------------------------------

    def of_job(self, job_id: str, caller: Caller) -> ForecastAnswer:
        """Answer for one job of the queue."""
        forecasting, board = self.board()
        pending, running = board.pending_job(job_id), board.running_job(job_id)
        # Whether there is such a job is not told to those who may not see it.
        if pending is not None and caller.sees_job(pending.request.user):
            if pending.kept_back is None:
                forecasting.asked("asked", board.made_at, pending.request, pending.waits)
            return self._coarse(self._of_row(board, pending), caller)
        if running is not None and caller.sees_job(running.request.user):
            scheduled = self._scheduled_time(running.request)
            answer = forecast_answers.of_running(
                board, running, scheduled, self.now(), self._scheduler
            )
            return self._coarse(answer, caller)
        if caller.identity is None:
            raise ApiError(
                404,
                f"whether job {job_id} is yours is not known, as this connection does not tell who "
                "you are",
                "job_id",
                SHOW_WHO_YOU_ARE,
            )
        raise ApiError(
            404,
            f"no job {job_id}{'' if caller.sees_everybody else ' of yours'} is in the queue as it "
            f"was {max(self.now() - board.made_at, 0)} s ago",
            "job_id",
            "check the number; a job that was submitted just now is there in a minute",
        )

    def pending(self, caller: Caller, *, brief: bool) -> PendingForecasts:
        """Answer for all pending jobs that a caller may see."""
        _, board = self.board()
        seen = self.seen(board, caller)
        return PendingForecasts(
            made_at=board.made_at,
            jobs=self.briefly(board, seen, caller) if brief else self._of_rows(board, seen, caller),
            others=OtherJobs(pending=self.others(board, seen, caller)),
        )

    def seen(self, board: Board, caller: Caller) -> list[JobForecast]:
        """Give the pending jobs that a caller may see."""
        return [row for row in board.rows if caller.sees_job(row.request.user)]

    def others(self, board: Board, seen: Sequence[JobForecast], caller: Caller) -> int:
        """Count the pending jobs that a caller may not see; roughly, of one who is told roughly."""
        others = sum(row.job.tasks for row in board.rows) - sum(row.job.tasks for row in seen)
        return coarse_count(others) if self.why_coarse(caller) else others

    def briefly(
        self, board: Board, rows: Sequence[JobForecast], caller: Caller
    ) -> list[BriefForecast]:
        """Answer for pending jobs that a caller may see, without what takes long to read."""
        return [self._coarse(self._of_row(board, row).brief(), caller) for row in rows]

    def _of_rows(
        self, board: Board, rows: Sequence[JobForecast], caller: Caller
    ) -> list[ForecastAnswer]:
        return [self._coarse(self._of_row(board, row), caller) for row in rows]

    def _of_row(self, board: Board, row: JobForecast) -> ForecastAnswer:
        forecasting = self.sidecar.waits
        return forecast_answers.of_pending(
            board,
            row,
            self._scheduled_time(row.request),
            self.now(),
            forecasting.reliability,
            _bound(forecasting, row, board),
            self._scheduler,
        )

    # -- jobs that nobody has submitted ----------------------------------------------------------

    def question(self, parameters: JobParameters, caller: Caller) -> JobQuestion:
        """Read a question, of a caller who may ask it."""
        self._admit(caller)
        asked = parameters
        said: tuple[str, ...] = ()
        if parameters.select is not None and self._scheduler != "pbs":
            asked = parameters.model_copy(update={"select": None, "place": None})
            said = ("select and place are PBS's, and not looked at on Slurm",)
        if parameters.qos is not None and self._scheduler == "pbs":
            raise InputError(
                f"qos = {parameters.qos!r}: PBS has queues instead; name one with -q, or partition"
                " in a question"
            )
        question = question_of(asked, caller.may_see(asked.user), self.now())
        return replace(question, not_modelled=(*question.not_modelled, *said))

    def answer(self, question: JobQuestion, caller: Caller) -> ForecastAnswer:
        """Answer for a job that nobody has submitted."""
        answer, forecast = self._answer(question, caller)
        if question.begin is None and not question.dependency:
            waits = forecast.waits
            age_s = max(answer.made_at - forecast.board.made_at, 0)
            later = None if waits is None else waits.later(age_s)
            forecasting, _ = self.board()
            forecasting.asked("what-if", answer.made_at, question.request, later)
        return answer

    def advice(self, question: JobQuestion, caller: Caller) -> Advice:
        """Answer for a job, and for the same work in other shapes.

        The cheapest is, of those that are done sooner and are no later by their 95% bound, the one
        that asks for least processor-time, of several such the one that is done soonest, and of
        several such the one that changes least.
        """
        asked, forecast = self._answer(question, caller)
        sidecar, board = self._sidecar, forecast.board
        own = self._own_jobs(question.request.user)
        words = submit_words(self._scheduler)
        found = shapes(
            question,
            like_jobs(own, question.request),
            elsewhere=_elsewhere(own, question.request, board),
            machine_processors=board.moment.taken.snapshot.machine_processors,
            longest_s=sidecar.limits.longest_time(question.request.queue),
            soft_limit=board.moment.look.soft_limit,
            takes_time_min=sidecar.scheduler.users_set_time_min,
            words=words,
        )
        # Nobody can be sooner than the job is to begin: of the rest a part counts.
        done_s = (asked.end_s or {}).get("0.5", 0) - max((question.begin or 0) - asked.made_at, 0)
        area = question.request.processors * question.request.requested_time
        alternatives: list[Alternative] = []
        worthwhile = []
        for shape in found:
            try:
                answer, _ = self._answer(shape.question, caller, board, shape, question.request)
            except InputError:  # such a job can't run
                continue
            sooner_s = None
            if asked.likely_wait_s is not None and answer.likely_wait_s is not None:
                sooner_s = asked.likely_wait_s - answer.likely_wait_s
            done_sooner_s = answer.done_sooner_s(asked)
            is_worth_it = (done_sooner_s or 0) >= max(_WORTH_S, done_s // 20)
            if is_worth_it and answer.is_surely_done_no_later(asked):
                place = len(alternatives)
                worthwhile.append((shape.processor_seconds, -(done_sooner_s or 0), place))
            alternatives.append(
                Alternative(
                    change=shape.change,
                    text=shape.text,
                    command=f"{words.command} {shape.options}",
                    cost=_cost(shape.processor_seconds, area),
                    sooner_s=sooner_s,
                    done_sooner_s=done_sooner_s,
                    forecast=answer,
                )
            )
        cheapest = min(worthwhile)[-1] if worthwhile else None
        return Advice(asked=asked, alternatives=alternatives, cheapest=cheapest)

    def map(self, slurm_partition: str | None, caller: Caller) -> MapAnswer:
        """Give the latest maps, or that of one slurm_partition."""
        self._admit(caller)
        forecasting, _ = self.board()
        drawn = forecasting.maps()
        if not drawn:
            raise _no_map_yet(forecasting.drawing, self._sidecar.pause.seconds)
        shown = [one for one in drawn if slurm_partition in (None, one.slurm_partition)]
        return {
            "made_at": min(one.made_at for one in drawn),
            "maps": [self._map(one, caller) for one in shown],
        }

    def _map(self, drawn: WaitMap, caller: Caller) -> PartitionMap:
        one: PartitionMap = {
            "partition": drawn.slurm_partition,
            "made_at": drawn.made_at,
            "sizes": drawn.sizes,
            "times_s": drawn.times_s,
            "median_wait_s": drawn.median_wait_s,
            "bound_95_s": drawn.bound_95_s,
        }
        if self.why_coarse(caller):
            one["median_wait_s"] = coarse_grid(drawn.median_wait_s, drawn.made_at)
            one["bound_95_s"] = coarse_grid(drawn.bound_95_s, drawn.made_at)
        return one

    def reliability(self, days: int) -> ReliabilityAnswer:
        """Answer how well forecasts have done."""
        forecasting, _ = self.board()
        done = forecasting.reliability_of(self.now(), days)
        if done is None:
            raise StateError("forecasts are not kept here; look at the daemon's log")
        bounds = forecasting.bounds
        parts = {field.name: getattr(done, field.name) for field in dataclasses.fields(done)}
        return ReliabilityAnswer(
            **parts,
            start_no_later_than=None if bounds is None else bounds.kept(self.now(), days),
            smallest_group=self._sidecar.settings.api.smallest_group,
        )

    def _own_jobs(self, user: str | None) -> list[FinishedJob]:
        if user is None:
            return []
        with self._sidecar.lock:
            return self._sidecar.store.jobs_of(user, _OWN_JOBS)

    def _answer(
        self,
        question: JobQuestion,
        caller: Caller,
        of_board: Board | None = None,
        shape: Shape | None = None,
        work: JobRequest | None = None,
    ) -> tuple[ForecastAnswer, NewJobForecast]:
        forecasting, board = self.board()
        board = of_board or board
        job, withheld = question.request, self._withheld(question.request, caller)
        if said := self._unused_account(job, board, withheld=withheld):
            question = replace(question, not_modelled=(*question.not_modelled, said))
        if question.qos is not None and not isinstance(board.site, SlurmSite):
            said = (
                f"what QOS {question.qos!r} allows, and the priority it gives, is not looked at, as"
                " the queue is not run forward by the site's own rules"
            )
            question = replace(question, not_modelled=(*question.not_modelled, said))
        scheduled = self._scheduled_time(replace(job, project=None) if withheld else job)
        new = self._new_job(question, scheduled, board)
        if question.dependency:
            until = let_go_s(question.dependency, board, lambda asks: caller.sees_job(asks.user))
            said = _on_dependency(question.dependency, until)
            question = replace(question, not_modelled=(*question.not_modelled, said))
            new = replace(new, let_go_s=until or ())
        if shape is not None:
            new = replace(new, runs_as=work, runtime_factor=shape.runtime_factor)
            if shape.planned_s is not None:
                new = replace(new, planned_s=shape.planned_s)
        forecast = forecasting.what_if(board, new)
        answer = forecast_answers.of_new(
            forecast,
            question,
            scheduled,
            self.now(),
            forecasting.reliability,
            self._scheduler,
        )
        return self._coarse(answer, caller), forecast

    def _new_job(self, question: JobQuestion, scheduled_time_s: int, board: Board) -> NewJob:
        """Give a job as the scheduler would plan it."""
        planned = None
        if self._sidecar.progress.mode == "enforce":
            planned = min(scheduled_time_s, question.request.requested_time)
        elif board.moment.look.soft_limit:
            planned = question.time_min_s
        return NewJob(
            question.request,
            planned,
            question.begin,
            question.asked,
            question.chunks,
            question.qos,
        )

    def _scheduled_time(self, job: JobRequest) -> int:
        with self._sidecar.lock:
            return self._sidecar.learner.scheduled_time(job)

    def _withheld(self, job: JobRequest, caller: Caller) -> bool:
        if job.project is None or caller.sees_everybody:
            return False
        if self._sidecar.private_data & HIDE_ACCOUNTS:
            return True
        learner = self._sidecar.learner
        with self._sidecar.lock:
            return not learner.is_group(job.project, learner.class_of(job))

    def _unused_account(self, job: JobRequest, board: Board, *, withheld: bool) -> str | None:
        """Say why nothing of a job's account is used; ``None``: it is, or the job names none."""
        account, site = job.project, board.site
        if account is None:
            return None
        if withheld and self._sidecar.private_data & HIDE_ACCOUNTS:
            return f"nothing of project {account!r} is used, as the site hides accounts"
        if isinstance(site, SlurmSite) and site.associations:
            if account.lower() not in {one.account.lower() for one in site.associations}:
                return f"account {account!r} is not known: this site's Slurm has none of this name"
        elif not withheld and not self._heard_of(account, board):
            return f"account {account!r} is not known: no job of it has been seen"
        if withheld:
            return (
                f"nothing of project {account!r} is used: fewer than "
                f"{self._sidecar.settings.api.smallest_group} users made its history of such jobs"
            )
        return None

    def _heard_of(self, account: str, board: Board) -> bool:
        with self._sidecar.lock:
            known = self._sidecar.learner.knows(account)
        return known or any(job.project == account for job in board.moment.requests)
