"""Forecasts as the daemon answers them; every field is described in ``docs/api.md``."""

from __future__ import annotations

from typing import Any

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.waits.forecaster import BOUNDS, LEVELS

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.forecasts.forecast_board import Board, JobForecast, NewJobForecast, Waits
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.job_question import JobQuestion
from foretime_sidecar.forecasts.wait_reasons import BEGINS_LATER, queue_text, wait_reason
from foretime_sidecar.queue.queue_snapshot import as_submitted


def of_pending(
    board: Board,
    forecast: JobForecast,
    scheduled_time_s: int,
    now: int,
    done: Reliability | None,
    *,
    bound: dict[str, Any] | None = None,
    brief: bool = False,
) -> dict[str, Any]:
    """Answer for a pending job.

    Parameters
    ----------
    board, forecast
        What is forecast, and of it this job.
    scheduled_time_s
        t_sched of the job.
    now
        Epoch seconds.
    done
        How forecasts have done.
    bound
        When it would start no later than, as `foretime_sidecar.web.api.bound_answers` gives it.
    brief
        Whether to leave out the whole grid of quantiles and what all jobs have in common.
    """
    answer = {
        **_job(forecast.request.job_id, "pending", forecast.request, scheduled_time_s),
        "tasks": forecast.job.tasks,
        **_times(board.made_at, now - board.made_at, forecast.waits),
        "start_no_later_than": bound,
        "started_at": None,
        "reason": wait_reason(forecast),
        "calibration": _calibration(done),
    }
    if brief:
        del answer["quantiles"]
        return answer
    assumed = [*board.assumptions, *forecast.assumed]
    if forecast.job.tasks > 1 and forecast.request.job_id != forecast.job.request.job_id:
        assumed.append(f"of the array's {forecast.job.tasks} waiting tasks this is one")
    return {**answer, **_queue(board), "assumptions": assumed}


def of_running(board: Board, job: QueuedJob, scheduled_time_s: int, now: int) -> dict[str, Any]:
    """Answer for a job that has started."""
    return {
        **_job(job.request.job_id, "running", as_submitted(job), scheduled_time_s),
        "tasks": job.tasks,
        **_times(board.made_at, now - board.made_at, None),
        "start_no_later_than": None,
        "started_at": job.start_time,
        "reason": {"code": "None", "text": "it has started"},
        "calibration": None,
        **_queue(board),
        "assumptions": [],
    }


def of_new(
    forecast: NewJobForecast,
    question: JobQuestion,
    scheduled_time_s: int,
    now: int,
    done: Reliability | None,
) -> dict[str, Any]:
    """Answer for a job that nobody has submitted yet; waits count from ``now``."""
    board, waits = forecast.board, forecast.waits
    age_s = max(now - board.made_at, 0)
    processors, ahead = question.request.processors, forecast.ahead
    reason = {"code": "None", "text": "can start at once"}
    if question.begin is not None and question.begin > now:
        reason = {"code": "BeginTime", "text": BEGINS_LATER}
    elif waits is None or waits.at(0.5) > 0:
        code = "Priority" if ahead else "Resources"
        reason = {"code": code, "text": queue_text(processors, ahead)}
    return {
        **_job(None, "not-submitted", question.request, scheduled_time_s, question.nodes),
        "tasks": 1,
        **_times(now, age_s, None if waits is None else waits.later(age_s)),
        "start_no_later_than": None,
        "started_at": None,
        "reason": reason,
        "calibration": _calibration(done),
        **_queue(board),
        "assumptions": [
            *board.assumptions,
            *question.not_modelled,
            *(question.left_out_of_a_pool() if board.moment.taken.live is None else ()),
        ],
    }


def _job(
    job_id: str | None,
    state: str,
    request: JobRequest,
    scheduled_time_s: int,
    nodes: int | None = None,
) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "state": state,
        "user": request.user,
        "account": request.project,
        "partition": request.queue,
        "nodes": nodes,
        "processors": request.processors,
        "requested_time_s": request.requested_time,
        "scheduled_time_s": min(scheduled_time_s, request.requested_time),
    }


def _times(made_at: int, snapshot_age_s: int, waits: Waits | None) -> dict[str, Any]:
    at = {"made_at": made_at, "snapshot_age_s": max(snapshot_age_s, 0)}
    if waits is None:
        none = dict.fromkeys(("starts_now", "likely_wait_s", "wait_s", "start_time", "quantiles"))
        return {**at, **none}
    bounds = {str(level): waits.at(level) for level in BOUNDS}
    return {
        **at,
        "starts_now": round(waits.starts_now, 4),
        "likely_wait_s": waits.at(0.5),
        "wait_s": bounds,
        "start_time": {level: made_at + wait for level, wait in bounds.items()},
        "quantiles": [list(pair) for pair in zip(LEVELS, waits.wait_s, strict=True)],
    }


def _queue(board: Board) -> dict[str, Any]:
    taken = board.moment.taken
    return {
        "machine_processors": taken.snapshot.machine_processors,
        "running_jobs": len(taken.snapshot.running),
        "pending_jobs": len(taken.snapshot.pending),
        "left_out": taken.left_out_by_reason(),
    }


def _calibration(done: Reliability | None) -> dict[str, Any] | None:
    if done is None or not done.scored:
        return None
    within_95 = done.share_within[LEVELS.index(0.95)]
    return {
        "forecasts_scored": done.scored,
        "within_95": None if within_95 is None else round(within_95, 4),
        "days": done.days,
    }
