"""When a waiting job could start if every running one took all of its limit."""

from __future__ import annotations

from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState


def start_on_requests(head: QueuedJob, queue: Queue, now: int) -> int:
    """Give when a job could start if every running job took all of its limit, epoch seconds.

    Processors are counted as one pool. A job that is larger than it counts from now on.
    """
    running = [job for job in queue.jobs if job.state is QueueState.RUNNING]
    free = queue.processors - sum(job.request.processors for job in running)
    if free >= head.request.processors:
        return now
    ends = sorted(
        (max((job.start_time or now) + job.request.requested_time, now), job.request.processors)
        for job in running
    )
    for end, processors in ends:
        free += processors
        if free >= head.request.processors:
            return end
    return now
