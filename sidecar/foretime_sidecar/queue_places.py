"""Who stands where in the queue."""

from __future__ import annotations

import numpy as np
from foretime_sim.metrics import Float64Array
from foretime_sim.policy import Order, Policy
from foretime_sim.snapshot import Snapshot
from foretime_sim.workload import Int64Array

from foretime_sidecar.queue_order import score


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
        times = pending.requested_time
        if isinstance(pending.scheduled_time, np.ndarray):
            times = pending.scheduled_time
        waits = np.maximum(snapshot.now - joined, 0)
        columns = zip(waits.tolist(), times.tolist(), pending.processors.tolist(), strict=True)
        first = np.array([-score(order, *column) for column in columns], dtype=np.float64)
    place = np.empty(len(pending), dtype=np.int64)
    place[np.lexsort((np.arange(len(pending)), joined, first))] = np.arange(len(pending))
    return place
