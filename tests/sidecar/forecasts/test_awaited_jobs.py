"""A job that waits for others is let go when these are forecast to start or end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.forecasts.awaited_jobs import let_go_s
from foretime_sidecar.forecasts.forecast_board import Board, Waits
from foretime_sidecar.forecasts.job_question import JobParameters, question_of
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sidecar.web.api.forecast_answers import of_new
from foretime_sim.waits.forecaster import LEVELS
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_700_000_000
MEDIAN = LEVELS.index(0.5)
NOTHING = (0,) * len(LEVELS)


def everybody(_: JobRequest) -> bool:
    return True


def request(job_id: str, user: str = "ann") -> JobRequest:
    return JobRequest(job_id, user, "p", 8, 3600, NOW - 900, "main")


def waiting(job_id: str, **more: Any) -> QueuedJob:
    return QueuedJob(request(job_id, more.pop("user", "ann")), QueueState.PENDING, **more)


@pytest.fixture(scope="module")
def forecasting() -> WaitForecasting:
    """Job 1 has the machine but for two tasks of 5; 2 waits for it, 3 is held, and 4 an array."""
    jobs = (
        QueuedJob(request("1"), QueueState.RUNNING, start_time=NOW - 600),
        waiting("2", user="bob"),
        waiting("3", held=True),
        waiting("4", tasks=3),
        *(
            QueuedJob(
                replace(request(f"5_{task}"), processors=1, array_id="5"),
                QueueState.RUNNING,
                start_time=NOW - 60 * task,
            )
            for task in (1, 2)
        ),
    )
    waits = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    waits.looked(Look(NOW, Queue(10, jobs)))
    assert waits.refresh(maps=False)
    return waits


@pytest.fixture
def board(forecasting: WaitForecasting) -> Board:
    assert forecasting.board is not None
    return forecasting.board


def test_it_is_let_go_at_the_start_or_the_end_of_what_it_waits_for(board: Board) -> None:
    second = board.tasks["2"].waits
    assert second is not None
    assert second.at(0.5) > 0
    assert let_go_s("afterok:1", board, everybody) == board.ends["1"]
    assert let_go_s("after:1", board, everybody) == NOTHING
    assert let_go_s("afterany:2", board, everybody) == second.end_s
    assert let_go_s("after:2+5", board, everybody) == tuple(s + 300 for s in second.wait_s)
    both = tuple(map(max, board.ends["1"], second.end_s))
    assert let_go_s("afterok:1,afterany:2", board, everybody) == both
    either = tuple(map(min, board.ends["1"], second.end_s))
    assert let_go_s("afterok:1?afterany:2", board, everybody) == either


@pytest.mark.parametrize("dependency", ["afterok:3", "afterok:4", "afternotok:1", "singleton"])
def test_what_nobody_can_foresee_is_not_known(board: Board, dependency: str) -> None:
    assert let_go_s(dependency, board, everybody) is None
    assert let_go_s(f"{dependency},afterok:1", board, everybody) is None
    assert let_go_s(f"{dependency}?afterok:1", board, everybody) == board.ends["1"]


def test_of_an_array_all_tasks_count(board: Board) -> None:
    both = tuple(map(max, board.ends["5_1"], board.ends["5_2"]))
    assert both[MEDIAN] > 0
    assert let_go_s("afterok:5", board, everybody) == both
    assert let_go_s("afterok:5_2", board, everybody) == board.ends["5_2"]


def test_a_delay_counts_from_when_it_happened(board: Board) -> None:
    assert let_go_s("after:5_2+5", board, everybody) == (180,) * len(LEVELS)
    assert let_go_s("after:1+5", board, everybody) == NOTHING, "that was ten minutes ago"
    assert let_go_s("afterok:99+5", board, everybody) == NOTHING, "nobody knows since when"


def test_a_job_that_is_gone_or_hidden_keeps_nobody(board: Board) -> None:
    assert let_go_s("afterok:99", board, everybody) == NOTHING
    assert let_go_s("afterok:2", board, lambda asks: asks.user == "ann") == NOTHING


def test_a_question_waits_for_the_jobs_that_it_depends_on(
    forecasting: WaitForecasting, board: Board
) -> None:
    until = let_go_s("afterok:2", board, everybody)
    assert until is not None
    job = NewJob(replace(request(""), processors=1), let_go_s=until)
    found = forecasting.what_if(board, job)
    assert found.waits is not None
    assert all(wait >= at for wait, at in zip(found.waits.wait_s, until, strict=True))
    assert all(end > wait for wait, end in zip(found.waits.wait_s, found.waits.end_s, strict=True))
    question = question_of(JobParameters(ntasks=1, time="60", dependency="afterok:2"), "ann", NOW)
    reason = of_new(found, question, 3600, NOW, None, "slurm").reason
    assert reason.code == "Dependency"
    assert reason.text.startswith("waits for other jobs that it depends on")


levels = st.lists(st.integers(0, 10_000), min_size=len(LEVELS), max_size=len(LEVELS)).map(
    lambda seconds: tuple(sorted(seconds))
)


@given(levels, levels)
def test_no_start_is_before_it_is_let_go(until: tuple[int, ...], later: tuple[int, ...]) -> None:
    wait_s = tuple(until[MEDIAN] + each for each in later)
    waits = Waits(wait_s, 0.0, tuple(each + 60 for each in wait_s)).let_go(until)
    assert waits.wait_s == tuple(at + each for at, each in zip(until, later, strict=True))
    assert waits.end_s == tuple(each + 60 for each in waits.wait_s)
