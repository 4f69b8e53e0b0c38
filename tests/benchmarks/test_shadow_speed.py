"""What all estimators in the shadow cost: 1,000 new jobs at one look, after 5,000 finished ones.

Goal: a look's share of a processor (``estimators.cpu_percent`` of ``scheduler.poll_interval_s``)
is enough for 1,000 jobs that come, and as many that end.
"""

from __future__ import annotations

import random
import threading
import time

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    Queue,
    QueuedJob,
    QueueState,
)
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.scoreboard.scoreboard import ShadowScoreboard
from foretime_sidecar.settings.estimator_settings import EstimatorsSettings
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.store.store import Store
from pytest_benchmark.fixture import BenchmarkFixture

NOW = 1_700_000_000
FINISHED, NEW = 5_000, 1_000

pytestmark = pytest.mark.benchmark(group="all estimators in the shadow")


def ended(rng: random.Random, number: int, submitted: int) -> FinishedRecord:
    limit = rng.choice((1800, 3600, 14_400, 86_400))
    runtime = min(int(rng.lognormvariate(7.5, 1.5)) + 1, limit)
    user, project = f"u{rng.randrange(300)}", f"p{rng.randrange(40)}"
    processors = rng.choice([1, 8, 64, 256])
    request = JobRequest(str(number), user, project, processors, limit, submitted, "main")
    start = submitted + rng.randrange(3600)
    job = FinishedJob(request, start, start + runtime, runtime, Ending.COMPLETED)
    return FinishedRecord(job, None, "COMPLETED")


def caught_up(scoreboard: ShadowScoreboard) -> None:
    while scoreboard.refresh():
        pass


def test_1000_new_jobs_at_a_look(benchmark: BenchmarkFixture) -> None:
    rng = random.Random(1)
    store = Store(":memory:")
    past = [ended(rng, number, NOW - 260 * (FINISHED - number)) for number in range(FINISHED)]
    past.sort(key=lambda record: record.job.end_time)
    store.add_finished([one for one in past if one.job.end_time < NOW], Cursor(NOW))
    settings = Settings(estimators=EstimatorsSettings(past_days=365))
    scoreboard = ShadowScoreboard(settings, store, threading.RLock())
    scoreboard.looked(Look(NOW, Queue(2048, ())))
    began = time.perf_counter()
    caught_up(scoreboard)
    first_s = time.perf_counter() - began
    at = [NOW]
    waiting: list[FinishedRecord] = []

    def prepare() -> None:
        """A minute later those that came have ended, and others have come."""
        at[0] += 60
        store.add_finished(
            [
                FinishedRecord(
                    FinishedJob(one.job.request, at[0] - 30, at[0], 30, Ending.COMPLETED), None, ""
                )
                for one in waiting
            ],
            Cursor(at[0]),
        )
        waiting[:] = [ended(rng, at[0] + number, at[0] - 1) for number in range(NEW)]
        queue = [QueuedJob(one.job.request, QueueState.PENDING) for one in waiting]
        scoreboard.looked(Look(at[0], Queue(2048, tuple(queue))))

    # pytest-benchmark leaves pedantic untyped.
    benchmark.pedantic(lambda: caught_up(scoreboard), setup=prepare, rounds=3)  # type: ignore[no-untyped-call]
    began = time.perf_counter()
    scoreboard.save()
    share_s = SchedulerSettings().poll_interval_s * settings.estimators.cpu_percent / 100
    board = scoreboard.board_as_of(at[0])
    assert not [row.set_aside for row in board.rows if row.set_aside]
    benchmark.extra_info |= {
        "goal_s": share_s,
        "jobs": NEW,
        "estimators": len(board.rows),
        "stored_jobs_s": first_s,
        "saving_s": time.perf_counter() - began,
    }
