"""Speed of the first forecasts over a deep queue: 10,000 pending jobs, on a pool and on nodes.

Nobody has measured yet how long a forward run takes there, so this is the board that can take too
long. Goals: 15 s of a processor for all pending jobs, and 1 s until a question is answered.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.queue.queue_events import events_of
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite

from tests.benchmarks.test_forecast_serving_speed import NOW, drawn, history

PENDING, NODES, CPUS = 10_000, 1_000, 32
QUESTIONS = 30

pytestmark = pytest.mark.benchmark(group="first forecasts, 10,000 queued jobs")


def deep_look(*, on_nodes: bool) -> Look:
    """A full machine of 1,000 nodes, and 10,000 jobs that wait for it."""
    rng = random.Random(3)
    runs = [
        QueuedJob(
            JobRequest(f"r{number}", f"u{number}", "p0", CPUS, 86_400, NOW - 9000, "main"),
            QueueState.RUNNING,
            start_time=NOW - 60 * (number % 1_200),
            asked=AskedNodes(nodes=1, tasks=CPUS, cpus_per_task=1),
            has_nodes=(HeldNode(f"n{number}", CPUS, 0),),
        )
        for number in range(NODES)
    ]
    waits = []
    for number in range(PENDING):
        user, project, processors, limit, _ = drawn(rng)
        submitted = NOW - 5 * (PENDING - number)
        request = JobRequest(str(number), user, project, processors, limit, submitted, "main")
        asked = AskedNodes(tasks=processors, cpus_per_task=1)
        waits.append(QueuedJob(request, QueueState.PENDING, priority=PENDING - number, asked=asked))
    names = [f"n{number}" for number in range(NODES)]
    cluster = Cluster(
        tuple(ClusterNode(name, CPUS) for name in names),
        (ClusterPartition("main", frozenset(names), default=True),),
    )
    return Look(NOW, Queue(NODES * CPUS, (*runs, *waits)), cluster=cluster if on_nodes else None)


class Known:
    """A site whose Slurm is set up as it is by default."""

    site: SlurmSite | PbsSite | None = SlurmSite(Machine.flat(64), (25, 11), SlurmParameters())
    read_at = None

    def note_runs(self, why_not: str) -> None:
        assert why_not == ""


@pytest.mark.parametrize("how", ["pool", "nodes", "site"])
def test_first_forecasts_of_a_deep_queue(how: str, benchmark: Any) -> None:
    """By 20,000 finished jobs; on a pool, on nodes, and by a Slurm's own rules."""
    forecaster = CalibratedBest(20_000, Known() if how == "site" else None)
    forecasting = WaitForecasting(ForecastSettings(), forecaster)
    events = [event for record in history() for event in events_of(record.job)]
    for event in sorted(events, key=lambda event: event[:2]):
        event.tell_waits(forecaster)
    forecasting.looked(deep_look(on_nodes=how != "pool"))
    began = time.process_time()
    benchmark.pedantic(lambda: forecasting.refresh(maps=False), rounds=1)
    took_s = time.process_time() - began
    board = forecasting.board
    assert board is not None
    assert (board.site is not None) == (how == "site")
    answered_s = []
    for number in range(QUESTIONS):
        job = JobRequest("", "u3", "p1", 1 + 37 * number, 7200, NOW, "main")
        asked_at = time.perf_counter()
        assert forecasting.what_if(board, NewJob(job)).waits is not None
        answered_s.append(time.perf_counter() - asked_at)
    # The first finds the alike jobs, the others have them; goals are of both.
    benchmark.extra_info |= {
        "cpu_s": took_s,
        "goal_cpu_s": 15,
        "question_s": max(answered_s),
        "questions_within_1_s": float(np.mean(np.array(answered_s) <= 1)),
    }
