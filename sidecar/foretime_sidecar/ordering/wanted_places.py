"""From the order that jobs should stand in to their site factors, whatever else weighs in them.

A job's site factor is the priority that it should have, less its other factors: age, fair share,
QOS, and a site factor that somebody else has set. Those drift, so this is worked out anew at each
look, and only jobs that stand in a wrong place are changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.queue_order import can_start, site_factors
from foretime_sidecar.queue.site_factors import name_of

_ROUNDED_TO = 10  # parts of the band that places are in


@dataclass(frozen=True, slots=True)
class Place:
    """What a job, or a whole job array, stands by.

    Attributes
    ----------
    base
        Its priority without what is ours.
    ours
        What is ours of its priority.
    earlier
        Its site factor without what is ours.
    """

    base: int
    ours: int
    earlier: int


def places_of(
    jobs: Iterable[QueuedJob],
    factors: Mapping[str, int],
    given: Mapping[str, Mapping[int, int]],
) -> dict[str, Place]:
    """Give where each pending job stands that Slurm weighs, arrays as one.

    Parameters
    ----------
    jobs
        The queue.
    factors
        Site factors that jobs have.
    given
        Those that we gave, and what stood there before.
    """
    found: dict[str, Place] = {}
    for job in jobs:
        name = name_of(job)
        if job.state is not QueueState.PENDING or name not in factors:
            continue
        factor = factors[name]
        earlier = given.get(name, {}).get(factor, factor)
        ours = factor - earlier
        base = job.priority - ours
        if name not in found or base > found[name].base:
            found[name] = Place(base, ours, earlier)
    return found


def heads_of(jobs: Iterable[QueuedJob], places: Mapping[str, Place], now: int) -> list[str]:
    """Name the first job of each slurm_partition by the site's own priorities, best first."""
    own: dict[str, tuple[int, int, str]] = {}
    for job in jobs:
        name = name_of(job)
        if name not in places or not can_start(job, now) or job.reason not in _WAITS_FOR_NODES:
            continue
        rank = (-places[name].base, job.request.submit_time, name)
        for slurm_partition in (job.request.queue or "").split(","):
            own[slurm_partition] = min(own.get(slurm_partition, rank), rank)
    return [name for _, _, name in sorted(set(own.values()))]


_WAITS_FOR_NODES = ("", "None", "Resources", "Priority")


def wanted_factors(
    in_order: Sequence[str], places: Mapping[str, Place], highest: int
) -> dict[str, int]:
    """Give the site factors that put jobs in an order, of those that must change, first job first.

    Slurm may start jobs between two changes of one request: none stands before one that it should
    come after.

    Parameters
    ----------
    in_order
        Jobs, first to last.
    places
        Where each stands.
    highest
        How far above the others' highest priority the first may be.
    """
    if not in_order:
        return {}
    step = max(highest // _ROUNDED_TO, 1)
    # So that it moves seldom, and no factor is below 1.
    floor = -(-max(places[name].base for name in in_order) // step) * step
    now_at = {
        name: places[name].base + places[name].ours - floor
        for name in in_order
        if places[name].ours
    }
    levels = site_factors(in_order, now_at, highest)
    return {
        name: places[name].earlier + floor + levels[name] - places[name].base
        for name in in_order
        if name in levels
    }
