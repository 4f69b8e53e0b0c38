"""How many others a waiting job would pass if it started now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.queue_order import can_start


def places_gained(
    waiting: Iterable[QueuedJob], own_priority: Callable[[QueuedJob], int], now: int
) -> dict[str, int]:
    """Give for each waiting job how many stand before it by the site's own priorities.

    Only those count that could start now, each task of an array by itself.

    Parameters
    ----------
    waiting
        Pending jobs.
    own_priority
        A job's priority without what is ours.
    now
        Epoch seconds.
    """
    ready = [job for job in waiting if can_start(job, now)]
    ready.sort(key=lambda job: (-own_priority(job), job.request.submit_time))
    places: dict[str, int] = {}
    before = 0
    for job in ready:
        places[job.request.job_id] = before
        before += job.tasks
    return places
