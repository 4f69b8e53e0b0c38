"""Who stands where in the queue, and how much work stands before them."""

from __future__ import annotations

import numpy as np
from foretime_sim.metrics import Float64Array
from foretime_sim.policy import Order, Policy
from foretime_sim.snapshot import Snapshot
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.workload import Int64Array

from foretime_sidecar.queue_order import score


def places(snapshot: Snapshot, policy: Policy) -> Int64Array:
    """Give each pending job's place in the queue's order, from 0; backfilling may change it."""
    pending, order = snapshot.pending, policy.order
    assert isinstance(order, Order)  # noqa: S101 - the settings know no others
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


def backlog_waits(moment: Moment) -> WaitForecasts:
    """Say how long it takes to work off what stands before a job: all that a huge queue allows.

    If jobs took all the time that they asked for, the work that runs and that stands before the job
    would last for this work / processors. The share of it that is really used is taken to be
    uniform, as that of single jobs nearly is (Mu'alem and Feitelson 2001, figure 6).
    """
    snapshot = moment.snapshot
    running, pending = snapshot.running, snapshot.pending
    left = np.maximum(running.start_time + running.requested_time - moment.now, 0)
    place = places(snapshot, moment.policy)
    in_order = np.argsort(place)
    work = (pending.processors * pending.requested_time)[in_order]
    before = np.empty(len(pending), dtype=np.float64)
    before[in_order] = np.cumsum(work) - work + int((left * running.processors).sum())
    asked = before[moment.asked - len(running)] / snapshot.machine_processors
    wait_s: Float64Array = np.outer(asked, LEVELS)
    return WaitForecasts(wait_s, (asked == 0).astype(np.float64))
