"""An answer for every job, kept and learned over restarts; and a forecaster that breaks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    Queue,
    QueuedJob,
    QueueState,
)
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts import adaptive_forward_runs as forecast_ladder
from foretime_sidecar.forecasts import wait_forecasting
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder
from foretime_sidecar.forecasts.fallback_forecaster import Backlog
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob, QueueMoment
from foretime_sidecar.settings.settings import ForecastSettings, Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.server import Daemon
from foretime_sim.engine.forward import start_times_of
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits import forward_forecaster
from foretime_sim.waits.forecaster import LEVELS
from foretime_sim.waits.newcomers import Newcomers

NOW = 1_700_000_000


def request(job_id: str, processors: int = 8, submit_time: int = NOW - 500) -> JobRequest:
    return JobRequest(job_id, "ann", "physics", processors, 3600, submit_time, "main")


RUNNING = QueuedJob(request("1", 64), QueueState.RUNNING, start_time=NOW - 400)
PENDING = QueuedJob(request("2"), QueueState.PENDING)


def forecasting(**settings: object) -> WaitForecasting:
    options = ForecastSettings.model_validate(settings)
    return WaitForecasting(options, CalibratedBest(options.most_jobs))


@pytest.mark.parametrize(
    "job",
    [
        replace(PENDING, held=True, reason="JobHeldUser"),
        replace(PENDING, dependent=True, reason="Dependency"),
        replace(PENDING, reservation="maint"),
        replace(PENDING, reason="AssocGrpCpuLimit"),
        replace(PENDING, reason="ReqNodeNotAvail, May be reserved for other job"),
        replace(PENDING, reason="PartitionDown"),
        replace(PENDING, request=request("2", 65)),
        replace(PENDING, eligible_time=NOW + 7200, reason="BeginTime"),
        replace(PENDING, tasks=30, pending_tasks="1-30", held=True),
    ],
)
def test_every_pending_job_has_an_answer(job: QueuedJob) -> None:
    waits = forecasting()
    waits.looked(Look(NOW, Queue(64, (RUNNING, job))))
    waits.refresh()
    assert waits.board is not None
    (row,) = waits.board.rows
    assert row.waits is not None
    # Until 3,600 s after its start the running job may go on.
    assert 0 < row.waits.at(0.5) <= max(3200, (job.eligible_time or 0) - NOW)
    assert (row.kept_back is None) == (job.eligible_time is not None)
    assert len(row.assumed) == (row.kept_back is not None)


def test_who_waits_for_the_board_does_not_wait_for_its_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = forecasting()
    happened = []

    class Bounds:
        def note(self, moment: QueueMoment) -> None:
            assert waits.board is not None
            assert waits.board.moment is moment
            happened.append("bounds noted")

        def kept(self, now: int, days: int) -> None:
            pass

    monkeypatch.setattr(waits, "bounds", Bounds())
    monkeypatch.setattr(waits._has_board, "set", lambda: happened.append("board told"))
    waits.looked(Look(NOW, Queue(64, (RUNNING, PENDING))))
    waits.refresh()
    assert happened == ["board told", "bounds noted"]


def test_tasks_of_an_array_are_found_by_their_names() -> None:
    waits = forecasting()
    array = replace(PENDING, tasks=20, pending_tasks="1-20")
    waits.looked(Look(NOW, Queue(64, (RUNNING, array))))
    waits.refresh()
    board = waits.board
    assert board is not None
    assert [row.request.job_id for row in board.rows] == ["2_1"]
    assert board.tasks["2"] is board.rows[0]
    first, last = board.tasks["2_1"].waits, board.tasks["2_20"].waits
    assert first is not None
    assert last is not None
    # Eight at a time: the last have to wait for others of the array.
    assert last.at(0.5) > first.at(0.5)
    assert "2_21" not in board.tasks


def test_a_queue_too_long_to_be_run_forward_is_answered_all_the_same() -> None:
    waits = forecasting(most_jobs=20)
    jobs = [replace(PENDING, request=request(str(number))) for number in range(2, 42)]
    waits.looked(Look(NOW, Queue(64, (RUNNING, *jobs))))
    waits.refresh()
    board = waits.board
    assert board is not None
    # Nothing is known of waits yet: what stands before a job must be worked off.
    before = [(64 * 3200 + 8 * 3600 * place) / 64 for place in range(40)]
    plain = Backlog().forecast(board.moment.everybody())
    assert plain.wait_s == pytest.approx(np.outer(before, LEVELS))
    assert plain.starts_now.tolist() == [0] * 40
    assert len(board.rows) == 40
    for row, work in zip(board.rows, before, strict=True):
        assert row.waits is not None
        assert row.waits.at(0.5) == pytest.approx(work / 2, rel=0.05)
        assert list(row.waits.wait_s) == sorted(row.waits.wait_s)
    assert "more than are simulated (forecast.most_jobs = 20)" in " ".join(board.assumptions)
    new = waits.what_if(board, NewJob(request("")))
    assert new.waits is not None
    assert new.waits.at(0.5) > 0


def test_with_waits_known_a_long_queue_goes_by_them() -> None:
    forecaster = CalibratedBest(most_jobs=1)
    for number in range(100):
        job = request(f"old{number}", submit_time=NOW - 100_000 + 60 * number)
        forecaster.submitted(job)
        forecaster.started(job, job.submit_time + 1000 + number)
    waits = WaitForecasting(ForecastSettings(), forecaster)
    waits.looked(Look(NOW, Queue(64, (RUNNING, replace(PENDING, request=request("2", 8, NOW))))))
    waits.refresh()
    assert waits.board is not None
    (row,) = waits.board.rows
    assert row.waits is not None
    assert 1000 <= row.waits.at(0.5) < 1100
    said = " ".join(waits.board.assumptions)
    assert "from recent waits of jobs" in said
    assert "more than are simulated (forecast.most_jobs = 1)" in said
    assert "order" not in said  # of the queue: nothing hangs on it


def test_longer_queues_get_fewer_samples_and_a_busy_machine_a_quarter() -> None:
    ladder = ForecastLadder(most_jobs=20_000)
    assert [ladder.samples(jobs) for jobs in (0, 1000, 3000, 20_000, 20_001)] == [
        200, 200, 50, 10, 0,
    ]  # fmt: skip
    ladder.hurried = True
    assert [ladder.samples(jobs) for jobs in (10, 1000, 20_000)] == [50, 50, 10]
    # Once it is known how long a sample takes: 10 s for all jobs.
    ladder.hurried = False
    for sample_s, samples in ((0.01, 200), (0.2, 50)):
        ladder._s_per_sample = sample_s
        assert ladder.samples(1000) == samples


class Clock:
    """Stands still but for what it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def thread_time(self) -> float:
        return self.now


class Runs:
    """Forward runs that take a time of the test's own, by how many at once."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def timed(self, clock: Clock, run_s: float) -> Callable[..., Int64Array]:
        def run(*asked: Any, **settings: Any) -> Int64Array:
            samples = len(asked[3])
            assert settings.pop("until", None) is None
            self.batches.append(samples)
            clock.now += run_s * samples
            return start_times_of(*asked, **settings)

        return run


@pytest.mark.parametrize(
    ("run_s", "samples"),
    # One run says who starts now, and a tenth of the time is for how far arrivals matter.
    [(0.0, 200), (0.01, 200), (0.1, 88), (0.5, 17), (2.5, 2), (7.5, 1), (100.0, 1)],
)
def test_the_first_board_keeps_to_its_time_however_long_a_run_takes(
    run_s: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, runs = Clock(), Runs()
    monkeypatch.setattr(forecast_ladder, "time", clock)
    monkeypatch.setattr(forward_forecaster, "start_times_of", runs.timed(clock, run_s))
    waits = forecasting()
    jobs = [replace(PENDING, request=request(str(number), 64)) for number in range(2, 12)]
    waits.looked(Look(NOW, Queue(64, (RUNNING, *jobs))))
    waits.refresh(maps=False)
    assert waits.board is not None
    assert all(row.waits is not None for row in waits.board.rows)
    # A single run of each kind at the least.
    assert clock.now <= max(10.0, 3 * run_s)
    assert runs.batches[2:][0] == 1
    assert sum(runs.batches[2:]) == samples
    assert f"up to {samples} random draw" in " ".join(waits.board.assumptions)


def test_two_daemons_that_saw_the_same_say_the_same() -> None:
    """Of a queue that is run forward within the time; chance has the same seeds."""
    daemons = [forecasting(), forecasting()]
    told = []
    for waits in daemons:
        for number in range(6):
            jobs = [
                QueuedJob(request(f"{each}", 16 + 8 * (each % 3)), QueueState.PENDING)
                for each in range(2, 12 + number)
            ]
            waits.looked(Look(NOW + 60 * number, Queue(64, (RUNNING, *jobs))))
            waits.refresh(maps=False)
        assert waits.board is not None
        new = waits.what_if(waits.board, NewJob(request("", 32)))
        told.append(([row.waits for row in waits.board.rows], new.waits))
    assert told[0] == told[1]
    assert len({row.wait_s for row in told[0][0] if row is not None}) > 1


@pytest.mark.parametrize(
    ("hurried", "run_s", "samples"),
    # One run says who starts now, and a tenth of the time is for how far arrivals matter: of 0.4 s,
    # on a busy machine of 0.1 s.
    [
        *((False, 0.0005, 200), (False, 0.01, 35), (False, 0.5, 10)),
        *((True, 0.0002, 200), (True, 0.001, 89), (True, 0.5, 10)),
    ],
)
def test_a_question_stands_on_as_many_samples_as_there_is_time_for(
    hurried: bool, run_s: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of the whole queue take 40 ms each, but end sooner where only one job must start."""
    clock, runs = Clock(), Runs()
    monkeypatch.setattr(forecast_ladder, "time", clock)
    monkeypatch.setattr(forecast_ladder, "usable_cores", lambda: 1)
    monkeypatch.setattr(forward_forecaster, "start_times_of", runs.timed(clock, 0.04))
    waits = forecasting()
    jobs = [replace(PENDING, request=request(str(number), 64)) for number in range(2, 12)]
    waits.looked(Look(NOW, Queue(64, (RUNNING, *jobs))))
    waits.refresh(hurried=hurried, maps=False)
    assert waits.board is not None
    asking = Runs()
    monkeypatch.setattr(forward_forecaster, "start_times_of", asking.timed(clock, run_s))
    waits.what_if(waits.board, NewJob(request("", 64)))
    plan, _few, *sampled = asking.batches
    assert (plan, sum(sampled)) == (1, samples)


def test_a_map_is_drawn_a_few_cells_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(thread_time=iter(range(1000)).__next__)
    monkeypatch.setattr(wait_forecasting, "time", clock)
    monkeypatch.setattr(wait_forecasting, "_MAP_AT_A_TIME_S", 3.5)
    waits = forecasting()
    looks = 0
    while not waits.maps() and looks < 60:
        looks += 1
        waits.looked(Look(NOW + looks, Queue(64, (RUNNING, PENDING))))
        waits.refresh()
    # 42 cells, three at a time.
    assert (looks, [one.made_at for one in waits.maps()]) == (14, [NOW + 1])
    assert not waits._forecaster.hurried


def test_jobs_to_come_that_are_wider_than_what_is_up_fail_no_forecast() -> None:
    waits = forecasting()
    for number in range(400):
        job = request(f"old{number}", 64, NOW - 86_400 + 200 * number)
        waits._forecaster.submitted(job)
        start = job.submit_time + 60
        waits._forecaster.finished(FinishedJob(job, start, start + 600, 600, Ending.COMPLETED))
    for processors in (64, 32):  # half of the nodes go down
        running = replace(RUNNING, request=request("1", processors))
        waits.looked(Look(NOW, Queue(processors, (running, PENDING))))
        waits.refresh()
        assert waits.board is not None
        assert waits.board.moment.taken.snapshot.machine_processors == processors
        assert [row.waits is not None for row in waits.board.rows] == [True]


# -- learning, over restarts -----------------------------------------------------------------------


def finished(number: int, wait_s: int, runtime: int) -> FinishedRecord:
    submitted = NOW - 200_000 + 900 * number
    job = JobRequest(f"old{number}", "ann", "physics", 8, 3600, submitted, "main")
    start = submitted + wait_s
    ended = FinishedJob(job, start, start + runtime, runtime, Ending.COMPLETED)
    return FinishedRecord(ended, submitted, "COMPLETED")


def settings_in(folder: Path) -> Settings:
    return Settings.model_validate(
        {
            "store": {"path": str(folder / "store")},
            "table": {"path": str(folder / "table")},
            "api": {"listen": f"unix:{folder}/socket"},
            "hook": {"disable_file": str(folder / "off")},
        }
    )


def test_what_was_learned_outlives_a_restart(tmp_path: Path) -> None:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    store = Store(tmp_path / "store")
    store.add_finished([finished(number, 100, 900) for number in range(60)], Cursor(NOW - 1))

    def sidecar() -> tuple[Sidecar, WaitForecasting]:
        made = Sidecar(settings_in(tmp_path), SlurmCommands(slurm.run), store, forecasts=True)
        assert made.forecasting is not None
        return made, made.forecasting

    def look(one: Sidecar, now: int) -> None:
        slurm.advance(now)
        one.look(now)
        one.poll(now)
        assert one.forecasting is not None
        one.forecasting.refresh()

    first, before = sidecar()
    for _ in range(3):
        slurm.submit(Submission("ann", "physics", None, 64, 3600, 600))
    for minute in range(1, 15):
        look(first, NOW + 60 * minute)
    before.save()
    state = before._forecaster.state()
    second, after = sidecar()
    look(second, NOW + 14 * 60 + 30)
    again = after._forecaster.state()
    assert again["calibration"]["asked"] == state["calibration"]["asked"]
    of_job = state["calibration"]["remembered"]["of_job"]
    assert again["calibration"]["remembered"]["of_job"] == of_job
    assert again["choice"] == state["choice"]
    assert list(state["choice"]["said"]) == ["3"]
    ((_, judged),) = state["choice"]["all_losses"].values()
    assert judged[0] == 1  # the second has started
    # The running job is like those stored: 900 s and not 3,600.
    look(first, NOW + 14 * 60 + 40)
    boards = [before.board, after.board]
    medians = [board.rows[0].waits.at(0.5) for board in boards if board and board.rows[0].waits]
    assert medians[0] - medians[1] in range(-15, 16)
    assert 0 < medians[0] < 900
    store.close()


def test_a_state_that_can_not_be_read_is_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "store")
    store.write("spoil", "INSERT INTO model_states VALUES ('calibration', 1, ?)", [("{",)])
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    one = Sidecar(settings_in(tmp_path), SlurmCommands(slurm.run), store, forecasts=True)
    assert one.forecasting is not None
    one.look(NOW)
    assert one.forecasting.refresh()
    assert "what was learned of forecasts begins anew" in caplog.text
    store.close()


# -- what goes wrong stays here --------------------------------------------------------------------


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    for _ in range(2):
        slurm.submit(Submission("ann", "physics", None, 64, 3600, 600))
    slurm.advance(NOW + 1)
    daemon = Daemon(settings_in(tmp_path), SlurmCommands(slurm.run), clock=lambda: NOW + 1)
    yield daemon
    daemon.end()
    daemon.forecasts.end()
    daemon.forecasts.has_ended(10)
    daemon.sidecar.store.close()
    daemon._listener.close()


def test_a_forecaster_that_breaks_leaves_everything_else_working(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.poll_once()
    daemon.forecasts.refresh()
    waits = daemon.sidecar.forecasting
    assert waits is not None
    board = waits.board
    assert board is not None

    def broken(*_: object) -> None:
        raise FloatingPointError("it broke")

    monkeypatch.setattr(ForecastLadder, "forecast", broken)
    with caplog.at_level(logging.ERROR):
        daemon.poll_once()
        daemon.forecasts.refresh()
    assert "forecasts of waits were not refreshed" in caplog.text
    assert (waits.failures, waits.last_failure) == (1, "FloatingPointError: it broke")
    # The polls went through, and the last forecasts are there.
    assert daemon.health.last_error == ""
    assert daemon.sidecar.progress.generation is not None
    assert waits.board is board
    monkeypatch.undo()
    daemon.poll_once()
    daemon.forecasts.refresh()
    assert waits.last_failure == ""
    assert waits.board is not board


def test_a_forecaster_that_hangs_holds_nobody_up(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, hangs = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hangs.set()
        let_go.wait(60)
        raise FloatingPointError("it hung")

    monkeypatch.setattr(ForecastLadder, "forecast", hang)
    daemon.forecasts.start()
    daemon.poll_once()
    assert hangs.wait(30)
    for _ in range(3):
        began = time.monotonic()
        daemon.poll_once()
        assert time.monotonic() - began < 20
    assert daemon.health.last_error == ""
    # Neither the sidecar's lock nor the look is held.
    assert daemon.sidecar.lock.acquire(timeout=5)
    daemon.sidecar.lock.release()
    let_go.set()


def test_the_thread_rests_after_its_work(daemon: Daemon) -> None:
    daemon.forecasts.start()
    daemon.poll_once()
    waits = daemon.sidecar.forecasting
    assert waits is not None
    assert waits.latest_board(30) is not None
    daemon.forecasts.end()
    assert daemon.forecasts.has_ended(30)
    assert daemon.forecasts.has_ended(-1)


def test_newcomers_go_where_jobs_of_their_size_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = ForecastLadder(most_jobs=20_000)
    for number in range(200):
        ladder.submitted(request(f"old{number}", submit_time=NOW - 20_000 + 100 * number))
    seen = []
    placed = Newcomers.placed

    def noted(self: Newcomers, *arguments: Any) -> Any:
        seen.append(list(self._sent))
        return placed(self, *arguments)

    monkeypatch.setattr(Newcomers, "placed", noted)
    look = Look(NOW, Queue(64, (RUNNING, PENDING)))
    ladder.forecast(QueueMoment.of(look, ForecastSettings()).everybody())
    assert [len(sent) for sent in seen] == [200]
