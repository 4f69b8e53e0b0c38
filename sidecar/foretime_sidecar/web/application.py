"""The daemon's HTTP interface; every path and field is described in ``docs/api.md``."""

from __future__ import annotations

from collections.abc import Callable
from http.client import METHOD_NOT_ALLOWED
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from foretime_estimators.accuracy.accuracy import ClassHistory
from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_sim.files.toml_messages import message_of
from foretime_sim.workloads.node_request import NeverRunsError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from foretime_sidecar.daemon.self_metrics import Health, SelfMetrics
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import poll_late_s
from foretime_sidecar.web.api.administration import add_administration
from foretime_sidecar.web.api.answer_types import AccuracyAnswer, ClassAccuracy
from foretime_sidecar.web.api.brought import add_brought
from foretime_sidecar.web.api.changes import add_change_token, refuse_without_token
from foretime_sidecar.web.api.described_answers import MetricsResponse, answers, refusals
from foretime_sidecar.web.api.estimators import add_estimators
from foretime_sidecar.web.api.forecasts import ForecastDesk, add_forecasts
from foretime_sidecar.web.api.notifications import add_notifications
from foretime_sidecar.web.api.openapi import describe
from foretime_sidecar.web.api.operator_types import AgedSite, HealthAnswer
from foretime_sidecar.web.api.operators import OperatorsDesk, add_operators
from foretime_sidecar.web.api.parameters import User
from foretime_sidecar.web.api.personal import add_personal
from foretime_sidecar.web.api.private_answers import HIDE_ACCOUNTS
from foretime_sidecar.web.api.queue_order import add_queue_order
from foretime_sidecar.web.auth.callers import ApiError, Caller, Callers, caller_of
from foretime_sidecar.web.auth.change_tokens import ChangeTokens
from foretime_sidecar.web.auth.rate_limits import RateLimits
from foretime_sidecar.web.connections.fair_turns import FairTurns
from foretime_sidecar.web.connections.request_guard import ANSWER_HEADERS, RequestGuard
from foretime_sidecar.web.page.operators_page import add_operators_page
from foretime_sidecar.web.page.routes import add_page

Project = Annotated[
    str | None,
    Query(min_length=1, max_length=255, description="Of this project or account, too."),
]


def create_app(sidecar: Sidecar, health: Health, clock: Callable[[], float]) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    sidecar
        Whose knowledge it serves.
    health
        How the polls went.
    clock
        Epoch seconds.
    """
    # No pages that load scripts from elsewhere; /openapi.json describes it all the same.
    limits, tokens = RateLimits(sidecar.settings.api), ChangeTokens()
    app = FastAPI(
        title="Foretime",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(limits.check), Depends(refuse_without_token(tokens))],
    )
    app.add_middleware(RequestGuard, hosts=sidecar.settings.api.hosts, answered=health.note_answer)
    app.state.callers = Callers(sidecar.settings.api, clock)
    _answer_errors(app)
    metrics = SelfMetrics(sidecar, health, clock)

    @app.get("/v1/accuracy", **answers(AccuracyAnswer))
    def accuracy(
        caller: Annotated[Caller, Depends(caller_of)],
        user: User = None,
        project: Project = None,
    ) -> AccuracyAnswer:
        """Say how accurate requests were: the caller's own, and of groups of users."""
        return _accuracy(sidecar, caller, user, project)

    desk, turns = ForecastDesk(sidecar, health, clock), FairTurns()
    add_forecasts(app, desk, turns)
    add_administration(app, sidecar, clock)
    add_queue_order(app, desk)
    add_estimators(app, sidecar)
    add_brought(app, sidecar, clock)
    add_personal(app, sidecar, clock)
    add_notifications(app, desk)
    add_change_token(app, tokens)
    operators = OperatorsDesk(sidecar, health, clock)
    add_operators(app, operators)
    add_page(app, desk, health, limits, turns, clock)
    add_operators_page(app, operators)

    @app.get("/healthz", **answers(HealthAnswer))
    def healthz() -> HealthAnswer:
        """Say whether the daemon does its work."""
        return _health(sidecar, health, clock())

    @app.get("/metrics", response_class=MetricsResponse, **refusals())
    def prometheus() -> MetricsResponse:
        """Give the daemon's own figures for Prometheus."""
        return MetricsResponse(metrics.text())

    describe(app, sidecar.settings.api)
    return app


# -- errors ------------------------------------------------------------------------------------


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    def _refused(_request: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    def _not_valid(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = str(first["loc"][-1])
        given = first.get("input")
        what = f"{where} is missing"
        if first["type"] != "missing":
            what = f"{where} = {given!r}: {message_of(first)}"
        return ApiError(400, what, where, "GET /openapi.json describes every parameter").response()

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        return ApiError(
            error.status_code,
            f"{request.method} {request.url.path}: {str(error.detail).lower()}",
            request.url.path,
            "GET /openapi.json lists every path",
            _allowed(app, request) if error.status_code == METHOD_NOT_ALLOWED else error.headers,
        ).response()

    @app.exception_handler(ForetimeError)
    def _ours(request: Request, error: ForetimeError) -> JSONResponse:
        what, _, remedy = str(error).rpartition("; ")
        if isinstance(error, NeverRunsError):  # reasons, one for each slurm_partition
            what, remedy = str(error), "ask for less, or for another partition"
        status = 400 if isinstance(error, InputError) else 503
        return ApiError(
            status,
            what or remedy,
            request.url.path,
            remedy if what else "ask the administrator to look at the daemon's log",
        ).response()

    @app.exception_handler(Exception)
    def _unforeseen(request: Request, _error: Exception) -> JSONResponse:
        # Starlette logs it with its traceback, and answers outside of the middleware.
        return ApiError(
            500,
            "the daemon made a mistake",
            request.url.path,
            "ask the administrator to report what the daemon's log says",
            ANSWER_HEADERS,
        ).response()


def _allowed(app: FastAPI, request: Request) -> dict[str, str]:
    """Name all methods of a path; Starlette names those of one route."""
    methods = {
        method
        for route in app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return {"Allow": ", ".join(sorted(methods or {"GET", "HEAD"}))}  # none: a file of the page


# -- answers -----------------------------------------------------------------------------------


def _accuracy(
    sidecar: Sidecar, caller: Caller, user: str | None, project: str | None
) -> AccuracyAnswer:
    name = caller.may_see(user)
    learner = sidecar.learner
    with sidecar.lock:
        own = [] if name is None else learner.describe(user=name)
        of_project = [] if project is None else learner.describe(project=project)
        everyone = learner.everyone()
        shown = [
            history
            for history in of_project
            if caller.sees_everybody
            or (
                not sidecar.private_data & HIDE_ACCOUNTS
                and learner.is_group(history.name, history.requested_time_class)
            )
        ]
    answer: AccuracyAnswer = {
        "user": name,
        "classes": [_class(history) for history in own],
        "everyone": everyone,
        "smallest_group": sidecar.settings.api.smallest_group,
    }
    if project is not None:
        answer["project"] = {
            "name": project,
            "classes": [_class(history) for history in shown],
            # A project that nobody knows looks the same as one too small to be shown.
            "complete": bool(shown) and len(shown) == len(of_project),
        }
    return answer


def _class(history: ClassHistory) -> ClassAccuracy:
    return {
        "requested_time_class": history.requested_time_class,
        "above_s": history.above_s,
        "up_to_s": history.up_to_s,
        "submissions": history.submissions,
        "threshold": history.threshold,
        "processor_seconds": history.processor_seconds,
        "largest_processor_seconds": history.largest_processor_seconds,
        "adjustment": history.adjustment,
        "used_share": history.used_share,
    }


def _health(sidecar: Sidecar, health: Health, now: float) -> HealthAnswer:
    progress = sidecar.progress
    seen_at = health.started_at if progress.polled_at is None else progress.polled_at
    age = max(int(now) - seen_at, 0)
    if age > poll_late_s(sidecar) or (progress.polled_at is None and health.last_error):
        raise ApiError(
            503,
            health.last_error or f"no poll has gone through for {age} s",
            "poll",
            "look at the daemon's log",
        )
    return {
        "status": "starting" if progress.polled_at is None else "ok",
        "poll_age_s": None if progress.polled_at is None else age,
        "pause_s": sidecar.pause.seconds,
        "pause_reason": sidecar.pause.reason,
        "table_generation": progress.generation,
        "table_age_s": None
        if progress.written_at is None
        else max(int(now) - progress.written_at, 0),
        "table_valid_s": None if progress.valid_until is None else progress.valid_until - int(now),
        "table_rows": progress.table_rows,
        "mode": progress.mode,
        "mode_reason": progress.mode_reason,
        "finished_jobs": progress.finished_jobs,
        "last_error": health.last_error,
        "last_forecast_error": ""
        if sidecar.forecasting is None
        else sidecar.forecasting.last_failure,
        "site": None if sidecar.site is None else AgedSite(**sidecar.site.standing.as_json(now)),
        "last_beside_error": "" if sidecar.beside is None else sidecar.beside.last_failure,
        "last_estimators_error": ""
        if sidecar.scoreboard is None
        else sidecar.scoreboard.last_failure,
    }
