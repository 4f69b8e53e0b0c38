"""The starvation guard in production, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition, HeldNode
from foretime_sidecar.queue.start_on_requests import start_on_requests
from foretime_sidecar.safety.starvation_guard import StarvationGuard

NOW = 1_000_000
BOUND = 600


def running(processors: int, ends_in_s: int) -> QueuedJob:
    request = JobRequest(f"r{ends_in_s}", "ann", "p", processors, 1000, NOW - 5000, "main")
    return QueuedJob(request, QueueState.RUNNING, start_time=NOW + ends_in_s - 1000)


def waiting(job_id: str, processors: int, priority: int = 1, **changed: Any) -> QueuedJob:
    request = JobRequest(job_id, "bob", "p", processors, 1000, NOW - 50, "main")
    job = QueuedJob(request, QueueState.PENDING, priority=priority, reason="Resources")
    return replace(job, **changed)


RUNNING = (running(4, 500), running(2, 300), running(2, -100))


def test_a_start_is_planned_on_whole_limits() -> None:
    queue = Queue(
        10, RUNNING
    )  # two are free; at 0 four (the overdue job's), at 300 six, at 500 ten
    for processors, start in ((2, 0), (4, 0), (5, 300), (6, 300), (7, 500), (10, 500), (11, 0)):
        assert start_on_requests(waiting("h", processors), queue, NOW) == NOW + start


def test_of_a_partition_its_own_nodes_count() -> None:
    """Four of its six CPUs are held until 500; outside all are free."""
    nodes = tuple(ClusterNode(f"n{number}", 2) for number in range(10))
    fat = ClusterPartition("fat", frozenset({"n0", "n1", "n2"}))
    both = ClusterPartition("main", frozenset(node.name for node in nodes))
    has = (HeldNode("n0", 2), HeldNode("n1", 2), HeldNode("n5", 2))
    queue = Queue(20, (replace(running(6, 500), has_nodes=has),))
    job = waiting("h", 4)
    for name, start in (("main", 0), ("fat", 500), ("fat,main", 0), ("other", 0)):
        asked = replace(job, request=replace(job.request, queue=name))
        assert start_on_requests(asked, queue, NOW, Cluster(nodes, (fat, both))) == NOW + start


def test_it_steps_in_after_the_bound_and_until_the_start() -> None:
    guard = StarvationGuard(BOUND)
    head, other = waiting("h", 7, 5), waiting("o", 1, 3)
    for at in (0, 500, 500 + BOUND):
        guard.look(Queue(10, (*RUNNING, other, head)), NOW + at)
        assert guard.waiting_too_long is None
    guard.look(Queue(10, (*RUNNING, other, head)), NOW + 501 + BOUND)
    assert guard.waiting_too_long == "h"
    overtaken = waiting("p", 1, 9)
    guard.look(Queue(10, (*RUNNING, overtaken, head)), NOW + 502 + BOUND)
    assert guard.waiting_too_long == "h", "until it has started"
    guard.look(Queue(10, (*RUNNING, other)), NOW + 503 + BOUND)
    assert guard.waiting_too_long is None


def test_the_head_is_one_that_could_start() -> None:
    others = (
        waiting("held", 7, 9, held=True),
        waiting("dependent", 7, 9, dependent=True),
        waiting("later", 7, 9, eligible_time=NOW + 10**6),
        waiting("limited", 7, 9, reason="AssocGrpCpuLimit"),
        waiting("second", 7, 4),
    )
    guard = StarvationGuard(BOUND)
    for at in (0, 501 + BOUND):
        guard.look(Queue(10, (*RUNNING, *others, waiting("h", 7, 5))), NOW + at)
    assert guard.waiting_too_long == "h"


def test_each_slurm_partition_has_a_head() -> None:
    other = waiting("other", 1, 0)
    other = replace(other, request=replace(other.request, queue="gpu"))
    guard = StarvationGuard(BOUND)
    guard.look(Queue(10, (waiting("h", 1), other)), NOW)
    guard.look(Queue(10, (other,)), NOW + BOUND + 1)
    assert guard.waiting_too_long == "other"
