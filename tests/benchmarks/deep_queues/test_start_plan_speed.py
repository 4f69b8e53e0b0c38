"""Who should start now, of 10,000 waiting jobs on 5,000 nodes: goal 2 s of CPU."""

from __future__ import annotations

import random
from typing import Any

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition, HeldNode
from foretime_sidecar.ordering.start_plan import plan_starts
from foretime_sidecar.queue.forecast_question import Look

NODES, CPUS, WAITING = 5_000, 32, 10_000
NOW = 1_800_000_000
GOAL_S = 2.0


def _look() -> Look:
    """Give a machine with 25 idle nodes, two partitions, and a queue."""
    rng = random.Random(1)
    names = [f"n{number}" for number in range(NODES)]
    cluster = Cluster(
        tuple(ClusterNode(name, CPUS) for name in names),
        (
            ClusterPartition("main", frozenset(names)),
            ClusterPartition("short", frozenset(names[: NODES // 2])),
        ),
    )
    jobs, taken = [], 0
    while taken < NODES - 25:
        nodes = min(rng.choice([1, 1, 2, 4, 16, 64]), NODES - 25 - taken)
        limit = rng.choice([3_600, 14_400, 86_400])
        request = JobRequest(f"r{taken}", "bob", None, CPUS * nodes, limit, NOW - 4_000, "main")
        has = tuple(HeldNode(name, CPUS, 0, 0) for name in names[taken : taken + nodes])
        since = NOW - rng.randint(0, 3_000)
        jobs.append(QueuedJob(request, QueueState.RUNNING, start_time=since, has_nodes=has))
        taken += nodes
    for number in range(WAITING):
        processors = rng.choice([1, 32, 64, 512, 4_096])
        limit = rng.choice([600, 3_600, 14_400, 86_400])
        submitted = NOW - rng.randint(0, 90_000)
        queue = rng.choice(["main", "main", "short"])
        request = JobRequest(f"{number}", "ann", None, processors, limit, submitted, queue)
        priority = rng.randint(1, 100_000)
        jobs.append(
            QueuedJob(request, QueueState.PENDING, eligible_time=submitted, priority=priority)
        )
    return Look(NOW, Queue(NODES * CPUS, tuple(jobs)), cluster=cluster)


@pytest.mark.benchmark(group="start now")
def test_a_deep_queue_is_planned(benchmark: Any) -> None:
    look = _look()

    def expected(job: QueuedJob) -> RolePrediction:
        limit = job.request.requested_time
        return RolePrediction(limit // 12, limit // 4, limit)

    plan = benchmark.pedantic(
        lambda: plan_starts(
            look, expected, lambda job: job.priority, lambda _: 0.0, lambda _: None
        ),
        rounds=3,
    )
    assert set(plan.heads) == {"main", "short"}
    benchmark.extra_info["goal_s"] = GOAL_S
