"""Queues of many blocks: hundreds of jobs at one second, against the plain Python reference."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, with_settings
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

JOBS = 300
RNG = np.random.default_rng(11)
# Few distinct times, so that many jobs tie.
REQUESTED = 60 * RNG.integers(1, 8, JOBS)
DEEP = Workload(
    name="deep",
    machine_processors=16,
    unix_start_time=None,
    job_id=np.arange(JOBS),
    submit_time=np.zeros(JOBS, dtype=np.int64),
    processors=RNG.integers(1, 17, JOBS),
    actual_runtime=RNG.integers(0, 600, JOBS),
    requested_time=REQUESTED,
)
SCHEDULED = np.maximum(1, REQUESTED // RNG.integers(1, 4, JOBS))


@pytest.mark.parametrize("guard_s", [None, 0, 600])
@pytest.mark.parametrize("backfill", [Backfill.EASY, Backfill.EASY_SJBF])
@pytest.mark.parametrize("order", [Order.FCFS, Order.SJF, Order.XF, Order.WFP])
def test_a_deep_queue_is_scheduled_as_the_reference_does(
    order: Order, backfill: Backfilling, guard_s: int | None
) -> None:
    policy = Policy(order=order, backfill=with_settings(backfill, guard=parse_guard(guard_s)))
    native = simulate(DEEP, policy, SCHEDULED, check=True)
    plain = reference.simulate(DEEP, policy, SCHEDULED)
    np.testing.assert_array_equal(native.start_time, plain.start_time)
    np.testing.assert_array_equal(native.started_by, plain.started_by)
    assert native.counters == plain.counters
    assert native.counters.deepest_queue == JOBS


@pytest.mark.parametrize("backfill", [Backfill.EASY, Backfill.EASY_SJBF])
@pytest.mark.parametrize("order", [Order.FCFS, Order.XF, Order.WFP])
def test_jobs_changed_and_cancelled_in_the_queue_take_their_new_places(
    order: Order, backfill: Backfilling
) -> None:
    """Given other times while they wait, jobs run as if submitted with these."""
    policy = Policy(order, backfill)
    engine = Engine(16, policy)
    rows = zip(DEEP.processors.tolist(), DEEP.actual_runtime.tolist(), REQUESTED.tolist(),
               strict=True)  # fmt: skip
    for processors, actual, requested in rows:
        engine.submit(0, processors, actual, requested)
    engine.advance(0)  # all are pending; the pass is held back
    gone = set(range(5, JOBS, 7))
    for job, scheduled in enumerate(SCHEDULED.tolist()):
        if job in gone:
            engine.cancel(job)
        else:
            engine.update(job, scheduled_time=scheduled)
    engine.finish()
    left = np.array([job for job in range(JOBS) if job not in gone])
    expected = simulate(DEEP.take(left), policy, SCHEDULED[left])
    assert [engine.job(int(job)).start_time for job in left] == expected.start_time.tolist()
