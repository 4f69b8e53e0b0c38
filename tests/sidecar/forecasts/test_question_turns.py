"""Questions overtake the forecast of the whole queue, and get their answers of the board before."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder, _Budget
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.question_turns import QuestionTurns
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.forward_forecaster import planned_waits
from foretime_sim.waits.moment import Moment

NOW = 1_700_000_000
LONG_S = 20


def in_thread(*names: str, turns: QuestionTurns, order: list[str]) -> list[threading.Thread]:
    def work(name: str) -> None:
        with turns:
            order.append(name)

    threads = [threading.Thread(target=work, args=[name], daemon=True) for name in names]
    for thread in threads:
        thread.start()
    return threads


def test_who_waits_goes_in_between_and_others_after() -> None:
    turns, order = QuestionTurns(), list[str]()
    with turns:
        turns.give_way()  # nobody waits: it goes on
        order.append("begun")
        waiting = in_thread("a", "b", turns=turns, order=order)
        while turns._waiting < 2:
            pass
        turns.give_way()
        order.append("done")
    for thread in waiting:
        thread.join(LONG_S)
    assert order[0] == "begun"
    assert sorted(order[1:3]) == ["a", "b"]
    assert order[3] == "done"


def test_a_run_for_one_job_has_as_many_samples_as_its_bounds_need() -> None:
    slow = _Budget(budget_s=0.0, threads=2, fewest=10)
    done = 0
    while more := slow.more(done, 50):
        done += more
    assert done == slow.run == 10


@pytest.mark.parametrize("meanwhile", ["the queue is planned", "forecasts are calibrated"])
def test_a_question_overtakes_the_forecast_of_the_whole_queue(
    meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked while the second board is made, and answered by the first."""
    runs = QueuedJob(
        JobRequest("1", "ann", "p", 8, 3600, NOW - 900), QueueState.RUNNING, start_time=NOW - 600
    )
    waits = QueuedJob(JobRequest("2", "bob", "p", 8, 1800, NOW - 800), QueueState.PENDING)
    forecasting = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    forecasting.looked(Look(NOW, Queue(8, (runs, waits))))
    forecasting.refresh(maps=False)
    first = forecasting.board
    assert first is not None
    begun, answered = threading.Event(), threading.Event()
    calibrated = CalibratedForecaster._calibrated

    def plan(moment: Moment) -> Float64Array:
        if threading.current_thread() is refresh:
            begun.set()
            assert answered.wait(LONG_S)
        return planned_waits(moment)

    def calibrate(self: CalibratedForecaster, *rest: Any) -> tuple[Float64Array, Float64Array]:
        if threading.current_thread() is refresh:
            begun.set()
            while not answered.is_set():
                self.turns.give_way()
        return calibrated(self, *rest)

    if meanwhile == "the queue is planned":
        monkeypatch.setattr(f"{ForecastLadder.__module__}.planned_waits", plan)
    else:
        monkeypatch.setattr(CalibratedForecaster, "_calibrated", calibrate)
    forecasting.looked(Look(NOW + 60, Queue(8, (runs, waits))))
    refresh = threading.Thread(target=forecasting.refresh, daemon=True)
    refresh.start()
    assert begun.wait(LONG_S)
    found, boards = [], []

    def ask() -> None:
        found.append(forecasting.what_if(first, NewJob(JobRequest("", "cat", None, 8, 600, NOW))))
        boards.append(forecasting.board)  # before the refresh, which waits for this, can end
        answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    in_time = answered.wait(LONG_S)
    assert in_time
    assert boards == [first]
    refresh.join(LONG_S)
    assert forecasting.board is not first
    assert found[0].waits is not None
