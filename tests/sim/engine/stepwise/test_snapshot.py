"""An engine begun from a snapshot goes on as the one that the snapshot was taken of."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.families import FAMILIES, Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from hypothesis import given
from hypothesis import strategies as st

JOBS = st.lists(
    st.tuples(
        st.integers(0, 40),  # seconds since the submission before
        st.integers(1, 8),  # processors
        st.integers(0, 120),  # actual runtime
        st.integers(1, 120),  # requested time
        st.integers(1, 120),  # scheduled time
    ),
    min_size=1,
    max_size=40,
)


@given(
    jobs=JOBS,
    which=st.integers(0, 39),
    order=st.sampled_from([Order.FCFS, Order.SJF, Order.XF, Order.WFP]),
    # Promises are not known to add_pending (test_forward_snapshots.py has them).
    backfill=st.sampled_from(
        [
            family
            for family in FAMILIES.values()
            if family is not Backfill.CONSERVATIVE and family.refusal(Place.PENDING_BEFORE) is None
        ]
    ),
    event_order=st.sampled_from(list(EventOrder)),
)
def test_a_snapshot_goes_on_the_same(
    jobs: list[tuple[int, int, int, int, int]],
    which: int,
    order: Order,
    backfill: Backfilling,
    event_order: EventOrder,
) -> None:
    policy = Policy(order, backfill, event_order=event_order)
    whole = Engine(8, policy)
    clock = 0
    submissions = []
    for gap, processors, actual, requested, scheduled in jobs:
        clock += gap
        submissions.append(clock)
        whole.submit(clock, processors, actual, requested, scheduled)
    # An engine looks at its queue as soon as it begins. For orders that change with time the other
    # one must look at that second, too, so the snapshot is of a second with a submission.
    at = submissions[min(which, len(submissions) - 1)]
    whole.advance(at)
    whole.settle()
    resumed = Engine(8, policy, at)
    same: dict[int, int] = {}
    views = {index: whole.job(index) for index in range(len(whole))}
    for index, job in views.items():
        if job.state == "running":
            assert job.start_time is not None
            same[index] = resumed.add_running(
                job.start_time,
                job.processors,
                job.actual_runtime,
                job.requested_time,
                job.drain_time,
                submit_time=job.submit_time,
            )
    for index, job in views.items():
        if job.state in ("pending", "submitted"):
            add = resumed.add_pending if job.submit_time <= at else resumed.submit
            same[index] = add(
                job.submit_time,
                job.processors,
                job.actual_runtime,
                job.requested_time,
                job.queue_time,
            )
    whole.finish()
    resumed.finish()
    for index, other in same.items():
        assert resumed.job(other).start_time == whole.job(index).start_time
        assert resumed.job(other).submit_time == whole.job(index).submit_time


def test_a_pending_job_was_submitted_before() -> None:
    engine = Engine(8, now=100)
    with pytest.raises(InputError, match="submit_time 101 is after the clock's time 100"):
        engine.add_pending(101, 1, 1, 1)
    index = engine.add_pending(20, 8, 10, 10)
    engine.finish()
    assert (engine.job(index).submit_time, engine.job(index).start_time) == (20, 100)


def test_the_clock_does_not_go_back() -> None:
    # Under Slurm's rule the first job, past its estimate, is expected to end at 1250.
    engine = Engine(8, Policy(correction=Correction.SLURM), now=1_000)
    running = engine.add_running(500, 8, 900, 1_000, 100)
    waiting = engine.add_pending(200, 8, 10, 10)
    assert engine.job(running).expected_end == 1_250
    engine.settle()
    assert engine.now == 1_000
    engine.finish()
    assert engine.job(waiting).start_time == 1_400
