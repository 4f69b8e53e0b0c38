"""Speed of the first forecasts over a deep queue: 10,000 pending jobs, on a pool and on nodes.

Nobody has measured yet how long a forward run takes there, so this is the board that can take too
long. Goal: the budget that docs/sidecar.md promises, 15 s of forward runs for all pending jobs.
"""

from __future__ import annotations

import random
import time
from typing import Any

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
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.queue.queue_events import events_of
from foretime_sidecar.settings.settings import ForecastSettings

from tests.benchmarks.test_forecast_serving_speed import NOW, drawn, history

PENDING, NODES, CPUS = 10_000, 64, 32

pytestmark = pytest.mark.benchmark(group="first forecasts, 10,000 queued jobs")


def deep_look(*, on_nodes: bool) -> Look:
    """A full machine of 2,048 processors, and 10,000 jobs that wait for it."""
    rng = random.Random(3)
    runs = [
        QueuedJob(
            JobRequest(f"r{number}", f"u{number}", "p0", CPUS, 86_400, NOW - 9000, "main"),
            QueueState.RUNNING,
            start_time=NOW - 60 * number,
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
        waits.append(QueuedJob(request, QueueState.PENDING, priority=PENDING - number))
    names = [f"n{number}" for number in range(NODES)]
    cluster = Cluster(
        tuple(ClusterNode(name, CPUS) for name in names),
        (ClusterPartition("main", frozenset(names), default=True),),
    )
    return Look(NOW, Queue(NODES * CPUS, (*runs, *waits)), cluster=cluster if on_nodes else None)


def taught() -> ForecastLadder:
    """Forward runs by 20,000 finished jobs."""
    ladder = ForecastLadder(20_000)
    events = [event for record in history() for event in events_of(record.job)]
    for event in sorted(events, key=lambda event: event[:2]):
        event.tell(ladder)
    return ladder


@pytest.mark.parametrize("on_nodes", [False, True], ids=["pool", "nodes"])
def test_first_forecasts_of_a_deep_queue(on_nodes: bool, benchmark: Any) -> None:
    ladder = taught()
    moment = QueueMoment.of(deep_look(on_nodes=on_nodes), ForecastSettings()).everybody()
    began = time.thread_time()
    benchmark.pedantic(lambda: ladder.forecast(moment), rounds=1)
    took_s = time.thread_time() - began
    benchmark.extra_info |= {"cpu_s": took_s, "goal_s": 15, "samples": ladder.samples(PENDING)}
