"""Waits count from when a job can start, whoever forecasts: no answer is before its begin."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Queue, QueuedJob, QueueState
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder
from foretime_sidecar.forecasts.fallback_forecaster import Backlog
from foretime_sidecar.forecasts.forecast_board import NewJobForecast, Waits
from foretime_sidecar.forecasts.job_question import JobParameters, question_of
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.queue.queue_events import START, Event, Listener, PastEvents, QueueEvents
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.api.forecast_answers import of_new
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.best_of import BestOf
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecaster
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets

NOW = 1_700_000_000
DAY = 86_400
WAIT = 1_000

FORECASTERS: dict[str, Callable[[], WaitForecaster]] = {
    "forward": lambda: ForecastLadder(20_000),
    "qbets": lambda: Qbets(60),
    "learned": lambda: LearnedForecaster(now_within_s=60),
    "backlog": Backlog,
    "best": lambda: BestOf([Qbets(60), Backlog()], "best"),
    "calibrated": lambda: CalibratedForecaster(Qbets(60), "calibrated", now_within_s=60),
    "served": lambda: CalibratedBest(20_000),
}


def request(job_id: str, submit_time: int = NOW, processors: int = 8) -> JobRequest:
    return JobRequest(job_id, "ann", "physics", processors, 3600, submit_time, "main")


def pending(job_id: str, begin: int | None = None, **changed: object) -> QueuedJob:
    changed = {"eligible_time": begin} | changed
    return replace(QueuedJob(request(job_id), QueueState.PENDING), **changed)  # type: ignore[arg-type]


def moment_of(now: int, job: JobRequest, begin: int | None = None) -> Moment:
    """Nothing runs on 64 processors, and one job waits, or is to begin later."""
    none, one = np.zeros(0, dtype=np.int64), np.ones(1, dtype=np.int64)
    eligible = None if begin is None else begin * one
    waiting = PendingJobs(job.submit_time * one, 8 * one, 3600 * one, eligible_time=eligible)
    snapshot = Snapshot(now, 64, RunningJobs(none, none, none), waiting)
    return Moment(snapshot, Policy(), (job,), np.zeros(1, dtype=np.int64))


def live(forecaster: WaitForecaster, jobs: int, begins_after_s: int = 0) -> int:
    """Let each job wait for a while from when it could start; give the time after it."""
    now = NOW
    for number in range(jobs):
        job, begin = request(str(number), now), now + begins_after_s
        forecaster.submitted(job)
        forecaster.forecast(moment_of(now, job, begin))
        now = begin + WAIT + number % 10
        event = Event(now, START, job, eligible_time=begin)
        event.tell_waits(forecaster)
        now += 60
    return now


@pytest.mark.parametrize("name", FORECASTERS)
@pytest.mark.parametrize("begins_after_s", [0, DAY // 4])
def test_the_wait_counts_from_the_begin(name: str, begins_after_s: int) -> None:
    forecaster = FORECASTERS[name]()
    now = live(forecaster, 250, begins_after_s)
    at_once = forecaster.forecast(moment_of(now, request("now", now)))
    later = forecaster.forecast(moment_of(now, request("later", now), now + DAY))
    after = later.wait_s[0] - DAY
    assert (after >= 0).all()
    assert later.starts_now.tolist() == [0]
    # The machine is free, as forward runs and the backlog have it; past waits say otherwise.
    expected = 0 if name in ("forward", "backlog") else WAIT
    for median in (after[MEDIAN], at_once.wait_s[0, MEDIAN]):
        assert median == pytest.approx(expected, abs=100)


def test_waiting_counts_from_when_a_job_could_start() -> None:
    forecaster = Qbets(60)
    now = live(forecaster, 100)
    job = request("1", now - DAY)
    moment = moment_of(now, job)
    # By its submission it has waited longer than anybody; it could start 400 s ago.
    assert forecaster.forecast(moment).wait_s[0, MEDIAN] == 0
    since = replace(moment, since=np.array([now - 400]))
    assert forecaster.forecast(since).wait_s[0, MEDIAN] == pytest.approx(WAIT - 400, abs=10)


def test_a_start_is_told_as_of_a_job_submitted_when_it_could(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    class Listening:
        def submitted(self, job: JobRequest) -> None:
            pass

        def started(self, job: JobRequest, start_time: int) -> None:
            told.append((job.job_id, start_time - job.submit_time, job.submit_time))

        def finished(self, job: FinishedJob) -> None:
            pass

    def tell(events: Iterable[Event]) -> None:
        listener: Listener = Listening()
        for event in events:
            event.tell_waits(listener)

    def ended(job_id: str, start: int) -> FinishedJob:
        return FinishedJob(request(job_id), start, start + 60, 60, Ending.COMPLETED)

    start = NOW + DAY + 30
    # From the store, as after a restart.
    store = Store(tmp_path / "store")
    records = [
        FinishedRecord(ended("1", start), NOW + DAY, "COMPLETED"),
        FinishedRecord(ended("2", start), None, "COMPLETED"),
    ]
    store.add_finished(records, Cursor(NOW))
    tell(PastEvents(store, threading.RLock()).all(0))
    store.close()
    assert told == [("1", 30, NOW + DAY), ("2", DAY + 30, NOW)]
    # From looks: seen to wait, and then to run, or to have ended.
    told.clear()
    events = QueueEvents()
    waiting = (pending("3", NOW + DAY), pending("4", NOW + DAY))
    tell(events.since_last(Look(NOW, Queue(64, waiting)), []))
    runs = replace(waiting[0], state=QueueState.RUNNING, start_time=start)
    tell(events.since_last(Look(start + 100, Queue(64, (runs,))), [ended("4", start)]))
    assert told == [("3", 30, NOW + DAY), ("4", 30, NOW + DAY)]


def taught(most_jobs: int) -> CalibratedBest:
    """What is served, past waits of about 1,000 s known."""
    forecaster = CalibratedBest(most_jobs)
    for number in range(100):
        job = request(f"old{number}", NOW - 100_000 + 60 * number)
        forecaster.submitted(job)
        forecaster.started(job, job.submit_time + WAIT + number % 10)
    return forecaster


@pytest.mark.parametrize("most_jobs", [1, 20_000])
def test_no_answer_is_before_the_begin_in_any_queue(most_jobs: int) -> None:
    rng = random.Random(most_jobs)
    waits = WaitForecasting(ForecastSettings(), taught(most_jobs))

    def begin() -> int | None:
        return rng.choice([None, NOW - 900, NOW + rng.randrange(1, 900), NOW + rng.randrange(DAY)])

    for turn in range(15):
        now = NOW + 300 * turn
        jobs = [
            pending(
                f"{turn}.{number}",
                begin(),
                held=rng.random() < 0.2,
                dependent=rng.random() < 0.2,
                tasks=rng.choice([1, 1, 3]),
                request=request(f"{turn}.{number}", NOW - 900, rng.choice([1, 8, 64])),
            )
            for number in range(rng.randrange(1, 12))
        ]
        waits.looked(Look(now, Queue(64, tuple(jobs))))
        assert waits.refresh(maps=False)
        assert waits.board is not None
        assert len(waits.board.rows) == len(jobs)
        told: list[tuple[Waits | None, int | None]] = [
            (row.waits, row.job.eligible_time) for row in waits.board.rows
        ]
        for _ in range(4):
            asked = NewJob(request("", now), eligible_time=begin())
            told.append((waits.what_if(waits.board, asked).waits, asked.eligible_time))
        for answer, eligible in told:
            assert answer is not None
            assert list(answer.wait_s) == sorted(answer.wait_s)
            if eligible is not None and eligible > now:
                assert now + answer.wait_s[0] >= eligible
                assert answer.starts_now == 0


def test_past_waits_are_added_to_a_begin_that_is_asked_for() -> None:
    waits = WaitForecasting(ForecastSettings(), taught(0))
    waits.looked(Look(NOW, Queue(64, ())))
    waits.refresh()
    board = waits.board
    assert board is not None
    parameters = JobParameters(ntasks=8, time="60", begin=str(NOW + DAY))
    question = question_of(parameters, "ann", NOW + 20)
    found = waits.what_if(board, NewJob(question.request, eligible_time=question.begin))
    assert found.waits is not None
    assert found.waits.at(0.5) == pytest.approx(DAY + WAIT, abs=10)
    answer = of_new(found, question, 3600, NOW + 20, None, "slurm").model_dump()
    assert answer["starts_now"] == 0
    assert answer["start_time"]["0.5"] == pytest.approx(NOW + DAY + WAIT, abs=10)
    then = "waits for 8 processors; no job ahead in the queue"
    assert answer["reason"] == {
        "code": "BeginTime",
        "text": f"waits for its begin time, and then {then}",
    }
    nothing = NewJobForecast(found.job, Waits((0,) * len(LEVELS), 1.0), 0, board)
    begun = of_new(nothing, question, 3600, NOW + DAY, None, "slurm").model_dump()
    assert begun["reason"]["code"] == "None"
