"""Which nodes jobs wait for, by the slurm_partitions that they name."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition
from foretime_sidecar.ordering.machine_parts import MachineParts


def _parts(cpus: int, drained: int = 0, **partitions: tuple[int, int]) -> MachineParts:
    """Give those of nodes of one CPU: the first and the one after the last of each partition."""
    nodes = [ClusterNode(f"n{n}", 1, takes_jobs=n < cpus - drained) for n in range(cpus)]
    return MachineParts(
        Cluster(
            tuple(nodes),
            tuple(
                ClusterPartition(name, frozenset(f"n{n}" for n in range(*span)), default=not at)
                for at, (name, span) in enumerate(partitions.items())
            ),
        )
    )


def _job(queue: str | None) -> QueuedJob:
    return QueuedJob(JobRequest("1", "ann", None, 1, 60, 0, queue), QueueState.PENDING)


def _sizes(parts: MachineParts, queue: str | None) -> tuple[list[int], list[int]]:
    """Give the processors of the parts that a job is only for, and of those it is also for."""
    of_job = parts.only_for(_job(queue)), parts.also_for(_job(queue))
    only, also = (sorted(part.processors for part in each) for each in of_job)
    return only, also


def test_a_part_of_a_partition_has_that_share_of_it() -> None:
    parts = _parts(32, main=(0, 32), fat=(20, 32), urgent=(0, 32))
    assert sorted((part.processors, part.share) for part in parts.parts) == [(12, 0.375), (32, 1)]
    assert _sizes(parts, "fat") == ([12, 32], [12, 32])
    for queue in ("main", "urgent", "main,fat", None, "gone"):
        assert _sizes(parts, queue) == ([32], [12, 32]), queue


def test_partitions_of_their_own_nodes_have_nothing_to_do_with_each_other() -> None:
    parts = _parts(8, cpu=(0, 6), gpu=(6, 8))
    assert sorted((part.processors, part.share) for part in parts.parts) == [(2, 1), (6, 1)]
    assert _sizes(parts, "cpu") == ([6], [6])
    assert _sizes(parts, "gpu") == ([2], [2])
    assert _sizes(parts, "cpu,gpu") == ([], [2, 6])


@pytest.mark.parametrize(("debug", "also"), [(24, [100]), (25, [25, 100])])
def test_a_small_part_of_a_partition_is_not_for_its_jobs(debug: int, also: list[int]) -> None:
    parts = _parts(100, main=(0, 100), debug=(0, debug))
    assert min(part.share for part in parts.parts) == 0.25
    assert _sizes(parts, "main") == ([100], also)
    assert _sizes(parts, "debug") == ([debug, 100], [debug, 100])


def test_nodes_that_take_no_jobs_do_not_count() -> None:
    parts = _parts(8, drained=2, main=(0, 8), last=(6, 8))
    assert [(part.processors, part.share) for part in parts.parts] == [(6, 1)]
    assert _sizes(parts, "main") == ([6], [6])
    assert _sizes(parts, "last") == ([6], [6]), "as a job that names none"


def test_without_a_cluster_there_are_no_parts() -> None:
    assert _sizes(MachineParts(None), "main") == ([], [])
