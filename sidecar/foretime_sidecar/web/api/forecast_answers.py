"""Forecast answers, made in one place from what is forecast: `forecast_answer`'s models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.waits.forecaster import BOUNDS, LEVELS

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.forecast_answer.forecast import (
    Calibration,
    ForecastAnswer,
    Reason,
    StartBound,
)
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.forecast_board import Board, JobForecast, NewJobForecast, Waits
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.job_question import JobQuestion
from foretime_sidecar.forecasts.wait_reasons import (
    BEGINS_LATER,
    WAITS_FOR_JOBS,
    turn_text,
    wait_reason,
)
from foretime_sidecar.queue.prepared_jobs import as_submitted

Scheduler: TypeAlias = Literal["slurm", "pbs"]


@dataclass(frozen=True, slots=True)
class _Job:
    """A job that is answered for; as in `ForecastAnswer`."""

    state: Literal["not-submitted", "pending", "running"]
    request: JobRequest
    scheduled_time_s: int
    job_id: str | None
    tasks: int = 1
    nodes: int | None = None
    started_at: int | None = None


def of_pending(
    board: Board,
    forecast: JobForecast,
    scheduled_time_s: int,
    now: int,
    done: Reliability | None,
    bound: StartBound | None,
    scheduler: Scheduler,
) -> ForecastAnswer:
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
        When it would start no later than.
    scheduler
        Whose queue it is in.
    """
    request, tasks = forecast.request, forecast.job.tasks
    assumed = list(forecast.assumed)
    if tasks > 1 and request.job_id != forecast.job.request.job_id:
        assumed.append(f"of the array's {tasks} waiting tasks this is one")
    return _answer(
        _Job("pending", request, scheduled_time_s, request.job_id, tasks),
        board,
        forecast.waits,
        Reason(**wait_reason(forecast)),
        now,
        scheduler,
        done=done,
        bound=bound,
        planned_start=_scheduler_start(board, forecast),
        assumptions=[*board.assumptions, *assumed],
    )


def _scheduler_start(board: Board, forecast: JobForecast) -> int | None:
    """Give when the scheduler itself plans to start a job; of an array it plans the next task."""
    job = forecast.job
    return job.planned_start if board.tasks[job.request.job_id] is forecast else None


def of_running(
    board: Board, job: QueuedJob, scheduled_time_s: int, now: int, scheduler: Scheduler
) -> ForecastAnswer:
    """Answer for a job that has started."""
    request, job_id = as_submitted(job), job.request.job_id
    return _answer(
        _Job("running", request, scheduled_time_s, job_id, job.tasks, started_at=job.start_time),
        board,
        None,
        Reason(code="None", text="it has started"),
        now,
        scheduler,
        end_s=board.ends.get(job_id, ()),
    )


def of_new(
    forecast: NewJobForecast,
    question: JobQuestion,
    scheduled_time_s: int,
    now: int,
    done: Reliability | None,
    scheduler: Scheduler,
) -> ForecastAnswer:
    """Answer for a job that nobody has submitted yet; waits count from ``now``."""
    board, waits = forecast.board, forecast.waits
    live = board.moment.taken.live
    if live is not None:
        left_out = question.left_out_of_nodes(live.machine)
    elif board.site is not None:
        left_out = question.left_out_of_hosts()
    else:
        left_out = question.left_out_of_a_pool()
    processors, ahead = question.request.processors, forecast.ahead
    if waits is not None:
        waits = waits.later(max(now - board.made_at, 0))
    code = "Priority" if ahead else "Resources"
    if waits is not None and waits.likely_now:
        code = "None"
    reason = Reason(code=code, text=turn_text(processors, ahead, waits))
    let_go_s = forecast.job.let_go_s
    let_go = board.made_at + let_go_s[LEVELS.index(0.5)] if let_go_s else 0
    to_come_s = max(question.begin or 0, let_go) - now
    if to_come_s > 0:
        code, waits_for = "BeginTime", BEGINS_LATER
        if let_go > (question.begin or 0):
            code, waits_for = "Dependency", WAITS_FOR_JOBS
        then = "" if waits is None or waits.at(0.5) <= to_come_s + NOW_S else reason.text
        reason = Reason(code=code, text=f"{waits_for}, and then {then}" if then else waits_for)
    return _answer(
        _Job("not-submitted", question.request, scheduled_time_s, None, nodes=question.nodes),
        board,
        waits,
        reason,
        now,
        scheduler,
        done=done,
        assumptions=[
            *board.assumptions,
            *forecast.assumed,
            *question.not_modelled,
            *left_out,
        ],
    )


def _answer(
    job: _Job,
    board: Board,
    waits: Waits | None,
    reason: Reason,
    now: int,
    scheduler: Scheduler,
    *,
    done: Reliability | None = None,
    bound: StartBound | None = None,
    planned_start: int | None = None,
    assumptions: list[str] | None = None,
    end_s: Sequence[int] = (),
) -> ForecastAnswer:
    """Make the answer; a job of the queue is forecast as of the last look at it."""
    request, taken = job.request, board.moment.taken
    made_at = now if job.state == "not-submitted" else board.made_at
    wait_s = None if waits is None else _bounds(waits.wait_s)
    ends = _bounds(end_s if waits is None else waits.end_s)
    if waits is not None and bound is not None and bound.wait_s < waits.at(0.95):
        bound = None  # what is thought by now is later than it
    return ForecastAnswer(
        job_id=job.job_id,
        state=job.state,
        scheduler=scheduler,
        user=request.user,
        account=request.project,
        partition=request.queue,
        nodes=job.nodes,
        processors=request.processors,
        requested_time_s=request.requested_time,
        scheduled_time_s=min(job.scheduled_time_s, request.requested_time),
        tasks=job.tasks,
        made_at=made_at,
        snapshot_age_s=max(now - board.made_at, 0),
        starts_now=None if waits is None else round(waits.starts_now, 4),
        likely_wait_s=None if waits is None else waits.at(0.5),
        wait_s=wait_s,
        start_time=wait_s and {level: made_at + wait for level, wait in wait_s.items()},
        end_s=ends,
        end_time=ends and {level: made_at + end for level, end in ends.items()},
        planned_wait_s=None if waits is None else waits.planned_s,
        quantiles=None if waits is None else list(zip(LEVELS, waits.wait_s, strict=True)),
        scheduler_start_time=planned_start,
        start_no_later_than=bound,
        started_at=job.started_at,
        reason=reason,
        calibration=_calibration(done),
        machine_processors=taken.snapshot.machine_processors,
        running_jobs=len(taken.snapshot.running),
        pending_jobs=len(taken.snapshot.pending),
        left_out=dict(taken.left_out_by_reason()),
        assumptions=assumptions or [],
    )


def _bounds(seconds: Sequence[int]) -> dict[str, int] | None:
    """Pick the bounds that people are told; ``None`` of nothing."""
    if not seconds:
        return None
    return {str(level): seconds[LEVELS.index(level)] for level in BOUNDS}


def _calibration(done: Reliability | None) -> Calibration | None:
    if done is None or not done.scored:
        return None
    within_95 = done.share_within[LEVELS.index(0.95)]
    return Calibration(
        forecasts_scored=done.scored,
        within_95=None if within_95 is None else round(within_95, 4),
        days=done.days,
    )
