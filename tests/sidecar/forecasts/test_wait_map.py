"""The map of expected waits: by size and time limit, and what chance alone would say left out."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.forecasts.forecast_board import Board, Waits
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.forecasts.wait_map import TIMES_S, MapDrawing
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.waits.forecaster import LEVELS

NOW = 1_700_000_000


@pytest.fixture(scope="module")
def board() -> Board:
    request = JobRequest("1", "ann", "physics", 64, 3600, NOW - 900, "main")
    running = QueuedJob(request, QueueState.RUNNING, start_time=NOW - 600)
    forecasting = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    forecasting.looked(Look(NOW, Queue(64, (running,))))
    forecasting.refresh(maps=False)
    assert forecasting.board is not None
    return forecasting.board


def test_more_processors_or_time_start_no_sooner(board: Board) -> None:
    """Each cell is forecast by itself, of few samples: chance would let larger jobs go first."""
    rng = random.Random(7)
    drawing = MapDrawing(board, None)
    asked = []
    while (cell := drawing.next_cell) is not None:
        asked.append((cell.request.processors, cell.request.requested_time))
        too_large = asked[-1] == (64, TIMES_S[-1])
        wait_s = rng.randint(0, 10_000)
        drawing.add(None if too_large else Waits(tuple(wait_s + each for each in range(24)), 0.0))
    drawn = drawing.done()
    assert asked == [(size, time_s) for size in drawn.sizes for time_s in drawn.times_s]
    for waits, level in ((drawn.median_wait_s, 0.5), (drawn.bound_95_s, 0.95)):
        assert waits[-1][-1] is None
        assert waits[0][0] is not None
        shown = [[float("inf") if each is None else each for each in row] for row in waits]
        for lines in (shown, list(zip(*shown, strict=True))):
            assert all(one <= next_one for line in lines for one, next_one in pairwise(line))
        largest = 10_000 + LEVELS.index(level)
        assert all(each <= largest for row in shown[:-1] for each in row)
