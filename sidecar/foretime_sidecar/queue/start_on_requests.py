"""When a waiting job could start if every running one took all of its limit."""

from __future__ import annotations

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster


def start_on_requests(
    head: QueuedJob, queue: Queue, now: int, cluster: Cluster | None = None
) -> int:
    """Give when a job could start if every running job took all of its limit, epoch seconds.

    Processors are counted as one pool: of the job's slurm_partitions where the nodes are known,
    else of all. A job that is larger than it counts from now on.
    """
    running = [job for job in queue.jobs if job.state is QueueState.RUNNING]
    held = {id(job): job.request.processors for job in running}
    has = queue.processors
    if cluster is not None and (nodes := _nodes_of(head, cluster)):
        has = sum(node.cpus for node in cluster.nodes if node.name in nodes)
        held = {
            id(job): sum(part.cpus for part in job.has_nodes if part.name in nodes)
            for job in running
        }
    free = has - sum(held.values())
    if free >= head.request.processors:
        return now
    ends = sorted(
        (max((job.start_time or now) + job.request.requested_time, now), held[id(job)])
        for job in running
    )
    for end, processors in ends:
        free += processors
        if free >= head.request.processors:
            return end
    return now


def _nodes_of(job: QueuedJob, cluster: Cluster) -> frozenset[str]:
    """Name the nodes of a job's slurm_partitions."""
    named = (job.request.queue or "").split(",")
    found = [part.nodes for part in cluster.partitions if part.name in named]
    return frozenset().union(*found)
