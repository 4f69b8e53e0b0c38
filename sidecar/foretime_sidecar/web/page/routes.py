"""The page at ``/``: forecasts for people, rendered here, with nothing fetched from elsewhere."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse
from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_estimators.time_units import MINUTE_S
from foretime_sim.files.toml_messages import message_of
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.forecast_answer.advice import Advice
from foretime_sidecar.forecast_answer.coarsening import coarse_count
from foretime_sidecar.forecast_answer.forecast import BriefForecast
from foretime_sidecar.forecasts.forecast_board import Board, JobForecast
from foretime_sidecar.forecasts.job_question import JobParameters
from foretime_sidecar.forecasts.wait_forecasting import RELIABILITY_DAYS
from foretime_sidecar.job_options.sbatch_options import OF_CHUNKS
from foretime_sidecar.job_options.sbatch_values import checked
from foretime_sidecar.ordering.order_words import ORDERS
from foretime_sidecar.web.api.forecasts import ForecastDesk
from foretime_sidecar.web.api.queue_order import queue_order_answer
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of
from foretime_sidecar.web.auth.rate_limits import RateLimits
from foretime_sidecar.web.connections.fair_turns import FairTurns
from foretime_sidecar.web.page.page_templates import HERE, page_templates, zone_shown
from foretime_sidecar.web.page.record import record_days, record_numbers, reliability
from foretime_sidecar.web.page.views import (
    bar,
    job_rows,
    scale_of,
    shade_names,
    shade_scale,
    wait_maps,
)
from foretime_sidecar.wording.clocks import in_zone, spoken_clock
from foretime_sidecar.wording.waits import OLD_S, SCHEDULERS, bounds, headline, spoken_wait

_FIELDS = (
    *("ntasks", "cpus_per_task", "time", "partition", "scales"),
    *("nodes", "ntasks_per_node", "mem", "gres", "time_min", "account", "qos", "reservation"),
    *("begin", "dependency", "exclusive", "select", "place"),
)
_LABELS = {
    "ntasks": "Tasks",
    "cpus_per_task": "CPUs per task",
    "time": "Time limit",
    "partition": "Partition",
    "nodes": "Nodes",
    "ntasks_per_node": "Tasks per node",
    "mem": "Memory per node",
    "gres": "Generic resources",
    "time_min": "Least time limit",
    "account": "Account",
    "qos": "QOS",
    "reservation": "Reservation",
    "begin": "Not before (cluster time)",
    "dependency": "Depends on",
    "select": "Chunks of several kinds (select)",
    "place": "Place",
}
_LABELS_OF_PBS = _LABELS | {
    "ntasks": "Chunks",
    "cpus_per_task": "CPUs per chunk",
    "time": "Walltime",
    "partition": "Queue",
    "ntasks_per_node": "Chunks per node",
    "account": "Project",
}
_FIRST_FIELDS = 5  # which are seen without opening more
_JOBS_A_PAGE = 25
_LONGEST = 255


def add_page(
    app: FastAPI,
    desk: ForecastDesk,
    health: Health,
    limits: RateLimits,
    turns: FairTurns,
    clock: Callable[[], float],
) -> None:
    """Add the page and its files to the application.

    Parameters
    ----------
    app
        The daemon's.
    desk
        What answers questions about waits.
    health
        How the polls went.
    limits
        Of how often a caller may ask: the form costs what advice costs.
    turns
        At which the form is answered.
    clock
        Epoch seconds.
    """
    templates = page_templates()
    page = _Page(desk, health, limits, clock)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def root(request: Request, caller: Annotated[Caller, Depends(caller_of)]) -> HTMLResponse:
        """Show the page."""
        parameters = dict(request.query_params)

        def drawn() -> HTMLResponse:
            with in_zone(parameters.get("zone")):
                status, shown = page.shown(parameters, caller)
            return HTMLResponse(templates.get_template("page.html").render(shown), status)

        if parameters.keys() & set(_FIELDS):
            return await turns.take(caller, drawn)
        return await run_in_threadpool(drawn)

    app.mount("/static", _Static(directory=HERE / "static"), name="static")


class _Static(StaticFiles):
    """The page's files, which change with the release only."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Answer with a file."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "private, max-age=300"
        return response


class _Page:
    def __init__(
        self,
        desk: ForecastDesk,
        health: Health,
        limits: RateLimits,
        clock: Callable[[], float],
    ) -> None:
        self._desk = desk
        self._health = health
        self._limits = limits
        self._clock = clock

    def shown(self, parameters: Mapping[str, str], caller: Caller) -> tuple[int, dict[str, Any]]:
        """Give the HTTP status and what the template shows."""
        now = math.floor(self._clock())
        asked = {
            name: text for name in _FIELDS if (text := parameters.get(name, "").strip()[:_LONGEST])
        }
        kind = self._desk.sidecar.settings.scheduler.kind
        scheduler, plan_command = SCHEDULERS[kind]
        labels = _LABELS_OF_PBS if kind == "pbs" else _LABELS
        shown: dict[str, Any] = {
            "sees_everybody": caller.sees_everybody,
            "known": caller.identity is not None,
            **zone_shown(),
            "asked": asked,
            "more_asked": any(name in asked for name in _FIELDS[_FIRST_FIELDS:]),
            "pbs": kind == "pbs",
            "labels": labels,
            "scheduler": scheduler,
            "plan_command": plan_command,
            "queues": [],
            "wrong": [],
            **dict.fromkeys(("trouble", "queue", "answer", "maps", "no_map", "record")),
            "linked": parameters.get("job", "").strip()[:_LONGEST],
            "said_of_linked": "",
            **_jobs([], 0, (1, 1), now),
        }
        try:
            _, board = self._desk.board()
            seen = self._desk.seen(board, caller)
        except ApiError as error:
            shown["trouble"] = _said(error.what, error.remedy)
            return error.status, shown
        shown["trouble"] = self._trouble(board.made_at, now)
        count = coarse_count if self._desk.why_coarse(caller) else int
        shown["queue"] = {
            "running": f"{count(len(board.running)):,}",
            "pending": f"{count(sum(row.job.tasks for row in board.rows)):,}",
            "processors": f"{board.moment.taken.snapshot.machine_processors:,}",
            "clock": spoken_clock(board.made_at, now),
            "iso": datetime.fromtimestamp(board.made_at, UTC).isoformat(),
            "order": self._order(caller, now),
        }
        rows: Sequence[JobForecast]
        if shown["linked"]:
            rows, numbers = self._linked(board, shown["linked"], caller), (1, 1)
            if not rows:
                shown["said_of_linked"] = self._said_of(shown["linked"], caller, now)
        else:
            rows, numbers = _on_page(seen, parameters.get("page", "1"))
        others = self._desk.others(board, seen, caller)
        shown |= _jobs(self._desk.briefly(board, rows, caller), others, numbers, now)
        shown |= self._maps(caller, now)
        shown["record"] = self._record(now)
        # Of jobs that the caller sees: others may be in some that are hidden.
        queues = {name for row in seen for name in (row.request.queue or "").split(",")}
        shown["queues"] = sorted(queues - {""})
        if not asked:
            return 200, shown
        try:
            shown["answer"] = self._answer(asked, caller, now)
        except ApiError as error:
            shown["wrong"] = [{"where": error.where, **_said(error.what, error.remedy)}]
            return error.status, shown
        except ExceptionGroup as errors:
            shown["wrong"] = [_wrong(error, labels, asked) for error in errors.exceptions]
            return 400, shown
        except ForetimeError as error:
            shown["wrong"] = [_wrong(error, labels, asked)]
            return 400 if isinstance(error, InputError) else 503, shown
        return 200, shown

    def _linked(self, board: Board, job_id: str, caller: Caller) -> list[JobForecast]:
        """Give the waiting job that a link names, if the caller may see it."""
        row = board.pending_job(job_id)
        return [row] if row is not None and caller.sees_job(row.request.user) else []

    def _said_of(self, job_id: str, caller: Caller, now: int) -> str:
        """Say of a job that does not wait that it has started, or that there is none."""
        try:
            return headline(self._desk.of_job(job_id, caller), now)
        except ApiError as error:
            return f"{_sentence(error.what)} {_sentence(error.remedy)}"

    def _trouble(self, made_at: int, now: int) -> dict[str, str] | None:
        """Say why what is shown is not of now, if it is not."""
        age_s = now - made_at
        if age_s <= OLD_S:
            return None
        return _said(
            f"The queue was last read {spoken_wait(age_s)} ago: what follows is of then",
            self._health.last_error or "the daemon is at work on a new look",
        )

    def _order(self, caller: Caller, now: int) -> dict[str, str] | None:
        """Say which order Foretime keeps the queue in, since when and why; ``None``: in none."""
        answer = queue_order_answer(self._desk, caller)
        if answer["order"] is None or answer["refused"] is not None:
            return None
        since = answer["since"]
        return {
            "name": ORDERS[answer["order"]],
            "since": "" if since is None else spoken_clock(since, now),
            "why": _sentence(answer["why"] or ""),
        }

    def _maps(self, caller: Caller, now: int) -> dict[str, Any]:
        """Give the maps, or why there are none and when there will be."""
        try:
            answer = self._desk.map(None, caller)
        except ApiError as error:  # not drawn yet, or not to be seen
            return {"maps": [], "no_map": _said(error.what, error.remedy)}
        return {"maps": wait_maps(answer, now), "shades": shade_names(shade_scale(answer))}

    def _record(self, now: int) -> dict[str, Any]:
        """Say how forecasts have done."""
        done = self._desk.reliability(RELIABILITY_DAYS)
        answer = dataclasses.asdict(done)
        return {
            "reliability": reliability(answer),
            "scored": f"{answer['scored']:,}",
            "days": answer["days"],
            "numbers": record_numbers(answer),
            "by_day": record_days(done.by_day, now),
        }

    def _answer(self, asked: Mapping[str, str], caller: Caller, now: int) -> dict[str, Any]:
        """Answer the form, with advice.

        Raises
        ------
        InputError
            If a field's value is none.
        """
        self._limits.charge("/v1/advice", caller)
        advised = self._desk.advice(self._desk.question(_job_parameters(asked), caller), caller)
        forecast = advised.asked
        scale = scale_of([forecast])
        return {
            "headline": headline(forecast, now),
            "bounds": bounds(forecast, now),
            "bar": bar(forecast, scale),
            "ticks": scale.ticks(),
            "why": _sentence(forecast.reason.text),
            "alternatives": _alternatives(advised),
            "sooner": advised.cheapest is not None,
            "assumptions": [_sentence(text) for text in forecast.assumptions],
        }


def _job_parameters(asked: Mapping[str, str]) -> JobParameters:
    """Read the form: sbatch's options, as sbatch takes them.

    Raises
    ------
    ExceptionGroup
        Of an `InputError` for each field that is wrong.
    """
    given, wrong = {}, []
    if "time" not in asked:
        said = "--time is missing; write how long the job may run, such as 2:00:00"
        wrong.append(InputError(said))
    for name, text in asked.items():
        option = name.replace("_", "-")
        if name in OF_CHUNKS or name == "scales":  # which the question checks
            given[name] = text
            continue
        try:
            given[name] = checked(option, "" if option == "exclusive" else text, "")
        except InputError as error:
            wrong.append(error)
    if wrong:
        raise ExceptionGroup("the form", wrong)
    for name in ("exclusive", "scales"):
        if name in given:
            given[name] = "true"
    if not given.keys() & {"ntasks", "nodes", "select"}:
        given["ntasks"] = "1"
    try:
        return JobParameters.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise InputError(f"--{name}: {message_of(first)}; write it as for sbatch") from error


def _wrong(error: Exception, labels: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Say what is wrong with which field, by the name that it has on the page."""
    what, _, remedy = str(error).removeprefix(": ").partition("; ")
    word = re.match(r"(?:--)?([a-z_-]+)", what)
    where = word[1].replace("-", "_") if word else ""
    if where == "processors":  # the machine has not so many: it is asked for by one of these
        where = next((name for name in ("ntasks", "nodes", "select") if name in asked), "ntasks")
    if word and where in labels:
        what = f"{labels[where]}{what[word.end() :]}"
    return {"where": where, **_said(what, remedy)}


def _said(what: str, remedy: str) -> dict[str, str]:
    return {"what": _sentence(what), "remedy": _sentence(remedy)}


def _sentence(text: str) -> str:
    """Begin with a capital letter, unless it is an option, and end with a full stop."""
    stripped = text.strip().rstrip(".")
    return f"{stripped[:1].upper()}{stripped[1:]}." if stripped else ""


def _alternatives(advised: Advice) -> list[dict[str, Any]]:
    """Give the same work in other shapes, those first that are done first."""
    rows = []
    for index, one in enumerate(advised.alternatives):
        if (times := one.forecast.times) is None:
            continue
        rows.append(
            {
                "order": (one.forecast.end_s or times.wait_s)["0.5"],
                "text": _sentence(one.text),
                "likely": spoken_wait(times.likely_wait_s),
                "done": _spoken_sooner(one.done_sooner_s, advised.asked),
                "cost": one.cost,
                "command": one.command,
                "cheapest": index == advised.cheapest,
            }
        )
    return sorted(rows, key=lambda row: row["order"])


def _spoken_sooner(sooner_s: int | None, asked: BriefForecast) -> str:
    if sooner_s is None or asked.end_s is None:
        return "–"
    if abs(sooner_s) < max(MINUTE_S, asked.end_s["0.5"] / 20):
        return "about as soon"
    return f"{spoken_wait(abs(sooner_s))} {'sooner' if sooner_s > 0 else 'later'}"


def _on_page(
    seen: Sequence[JobForecast], page: str
) -> tuple[Sequence[JobForecast], tuple[int, int]]:
    """Pick the jobs of one page, those that start first before others; its number, and of how many.

    Answers are made of these alone: of all jobs of a deep queue that takes seconds.
    """
    last = math.inf
    ordered = sorted(seen, key=lambda row: last if row.waits is None else row.waits.at(0.5))
    pages = max(-(-len(ordered) // _JOBS_A_PAGE), 1)
    number = min(max(int(page), 1), pages) if re.fullmatch(r"\d{1,6}", page, re.ASCII) else 1
    return ordered[(number - 1) * _JOBS_A_PAGE : number * _JOBS_A_PAGE], (number, pages)


def _jobs(
    jobs: Sequence[BriefForecast], others: int, numbers: tuple[int, int], now: int
) -> dict[str, Any]:
    """Lay out one page of jobs: its number, and of how many."""
    scale = scale_of(jobs)
    rows = job_rows(jobs, scale, now)
    return {
        "jobs": rows,
        "plans": any(row.plan is not None for row in rows),
        "job_ticks": scale.ticks(),
        "others": f"{others:,}" if others else "",
        "page": numbers[0],
        "pages": numbers[1],
    }
