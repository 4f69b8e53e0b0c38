"""A question about a deep queue is answered by those that wait in it, and by the room there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder
from foretime_sidecar.forecasts.alike_waits import MOST, AlikeWaits
from foretime_sidecar.forecasts.forecast_board import Board
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.waits.forecaster import MEDIAN

NOW = 1_700_000_000
RUNS = QueuedJob(
    JobRequest("1", "ann", "p", 48, 36_000, NOW - 900), QueueState.RUNNING, start_time=NOW - 600
)


def waits(name: int, processors: int, requested: int, queue: str | None = None) -> QueuedJob:
    request = JobRequest(str(name), "bob", "p", processors, requested, NOW - 10_000 + name, queue)
    return QueuedJob(request, QueueState.PENDING)


def board_of(*jobs: QueuedJob) -> tuple[WaitForecasting, Board]:
    forecasting = WaitForecasting(ForecastSettings(order="fcfs"), CalibratedBest(20_000))
    forecasting.looked(Look(NOW, Queue(64, (RUNS, *jobs))))
    forecasting.refresh(maps=False)
    assert forecasting.board is not None
    return forecasting, forecasting.board


WIDE = [waits(number, 64, 7200) for number in range(10, 40)]
NARROW = [waits(number, 32, 600) for number in range(50, 80)]


def test_those_most_alike_answer() -> None:
    _, board = board_of(*WIDE, *NARROW)
    alike = AlikeWaits(board)
    medians = {row.request.job_id: row.waits.at(0.5) for row in board.rows if row.waits}
    narrow = [medians[job.request.job_id] for job in NARROW]
    found = alike.wait_s(JobRequest("", "cat", None, 32, 600, NOW), 60)
    assert found is not None
    assert found[MEDIAN] == pytest.approx(np.mean(narrow[-MOST:]))
    wide = alike.wait_s(JobRequest("", "cat", None, 60, 7200, NOW), 0)
    assert wide is not None
    assert wide[MEDIAN] == pytest.approx(
        np.mean([medians[job.request.job_id] for job in WIDE[:MOST]])
    )
    assert alike.wait_s(JobRequest("", "cat", None, 32, 600, NOW, "elsewhere"), 60) is None


def test_where_runs_are_slow_it_is_told_so_and_room_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forecasting, board = board_of(*WIDE, *NARROW)
    asked = NewJob(JobRequest("", "cat", None, 32, 600, NOW))
    exact = forecasting.what_if(board, asked)
    assert exact.assumed == ()
    monkeypatch.setattr(ForecastLadder, "is_quick_for_one", lambda _: False)
    alike = forecasting.what_if(board, asked)
    assert exact.waits is not None
    assert alike.waits is not None
    assert "waiting jobs most like it" in alike.assumed[0]
    assert alike.waits.at(0.5) == pytest.approx(exact.waits.at(0.5), rel=0.1)
    assert alike.waits.end_s[MEDIAN] > alike.waits.at(0.5)
    # Sixteen processors are free, and until the first of the queue starts this job is done.
    small = forecasting.what_if(board, NewJob(JobRequest("", "cat", None, 8, 60, NOW)))
    assert small.waits is not None
    assert small.waits.wait_s[-1] == 0
    assert small.waits.room_now
    later = forecasting.what_if(board, replace(asked, eligible_time=NOW + 10**6))
    assert later.waits is not None
    assert later.waits.wait_s[0] == 10**6


def test_a_queue_of_which_nobody_is_alike_is_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    forecasting, board = board_of(waits(2, 64, 600, "a"))
    monkeypatch.setattr(ForecastLadder, "is_quick_for_one", lambda _: False)
    found = forecasting.what_if(board, NewJob(JobRequest("", "cat", None, 32, 600, NOW, "b")))
    assert found.assumed == ()
    assert found.waits is not None
