"""Who is in a queue at one moment, and who stands where in it."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array

from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.role_times import by_role


def waiting_now(snapshot: Snapshot) -> BoolArray:
    """Say which pending jobs are in the queue: eligible, without an open dependency, at no limit.

    A limit on what a group has at once may keep one from starting all the same.
    """
    pending = snapshot.pending
    waits = np.asarray(pending.joins_at() <= snapshot.now) & ~kept_by_limits(snapshot)
    if pending.dependencies is not None:
        waits[pending.dependencies.job] = False
    return waits


def kept_by_limits(snapshot: Snapshot) -> BoolArray:
    """Say which pending jobs a limit keeps waiting now, as they are told."""
    pending = len(snapshot.pending)
    told = snapshot.told or ()
    return np.array(
        [job.at_limit for job in told[len(told) - pending :]] or [False] * pending, bool
    )


def score(order: Order, wait_s: int, scheduled_time_s: int, processors: int) -> float:
    """Say how far in front a job stands, higher first; times in seconds."""
    time_s = max(scheduled_time_s, 1)
    match order:
        case Order.FCFS:
            return wait_s
        case Order.SJF:
            return -time_s
        case Order.LJF:
            return time_s
        case Order.XF:
            return (wait_s + time_s) / time_s
        case Order.WFP:
            ratio = wait_s / time_s
            return ratio * ratio * ratio * processors
        case Order.PRIORITY:
            raise ValueError(f"{order} can't be worked out of a wait and a time")
        case _:
            assert_never(order)


def places(snapshot: Snapshot, policy: Policy) -> Int64Array:
    """Give each pending job's place in the queue's order, from 0; backfilling may change it."""
    pending, order = snapshot.pending, policy.order
    if not isinstance(order, Order):
        raise TypeError(f"the queue's order is {order!r}, not one of the settings'")
    joined = pending.joins_at()
    first: Int64Array | Float64Array
    if order is Order.PRIORITY:
        first = -pending.priorities()
    elif order is Order.FCFS:
        first = joined
    else:
        times, _, _ = by_role(pending.requested_time, pending.scheduled_time, policy.roles)
        waits = np.maximum(snapshot.now - joined, 0)
        columns = zip(waits.tolist(), times.tolist(), pending.processors.tolist(), strict=True)
        first = np.array([-score(order, *column) for column in columns], dtype=np.float64)
    place = np.empty(len(pending), dtype=np.int64)
    place[np.lexsort((np.arange(len(pending)), joined, first))] = np.arange(len(pending))
    return place
