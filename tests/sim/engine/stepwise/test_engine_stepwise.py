"""The engine step by step: snapshots, changes to jobs, and what is held back when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import (
    FAMILIES,
    Backfill,
    Candidates,
    Compression,
    Conservative,
    Easy,
)
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.role_times import JobTimesUpdate
from hypothesis import given
from hypothesis import strategies as st


def test_pass_is_held_until_the_clock_moves_on() -> None:
    engine = Engine(4)
    engine.submit(0, 4, 10, 10)
    engine.settle()
    waiting = engine.submit(5, 4, 10, 10)
    assert engine.advance(10).finished.tolist() == [0]
    better = engine.submit(10, 1, 5, 5)  # takes part in the same pass
    assert engine.job(waiting).state == "pending"
    assert engine.settle().started.tolist() == [waiting]
    assert engine.job(better).state == "pending"
    assert engine.now == 10


def test_per_event_holds_everything_back() -> None:
    engine = Engine(4, Policy(event_order=EventOrder.PER_EVENT))
    engine.submit(0, 4, 10, 10)
    engine.settle()
    assert engine.advance(10).finished.tolist() == []
    assert engine.settle().finished.tolist() == [0]


def test_the_next_event_is_an_arrival_a_pass_an_expiry_or_an_end() -> None:
    engine = Engine(4, now=100)
    job = engine.submit(107, 4, 50, 60, scheduled_time=20)
    assert engine.next_event_time == 107
    engine.advance(107)
    assert engine.next_event_time == 107  # the pass
    engine.settle()
    assert engine.next_event_time == 127  # t_sched is over
    engine.advance(127)
    engine.settle()
    assert engine.job(job).expected_end == 167
    assert engine.next_event_time == 157  # it ends
    engine.finish()
    assert engine.next_event_time is None


def test_snapshot_goes_on_as_the_run_it_was_taken_from() -> None:
    policy = Policy(backfill=Backfill.EASY_SJBF, correction=Correction.DOUBLING)
    rows = [(0, 2, 50, 90, 10), (0, 1, 30, 60, 60), (3, 4, 20, 20, 20), (4, 1, 9, 9, 9)]
    whole = Engine(4, policy)
    for row in rows:
        whole.submit(*row)
    whole.advance(15)
    snapshot = Engine(4, policy, now=15)
    for index in whole.running().tolist():
        job = whole.job(index)
        assert job.start_time is not None
        times = (job.actual_runtime, job.requested_time, job.drain_time)
        copy = snapshot.add_running(job.start_time, job.processors, *times)
        assert snapshot.job(copy).expected_end == job.expected_end
    pending = [snapshot.submit(15, *rows[index][1:]) for index in whole.queue().tolist()]
    ends = [whole.job(index).end_time for index in whole.queue().tolist()]
    waiting = whole.queue().tolist()
    whole.finish()
    snapshot.finish()
    assert ends == [None] * len(waiting)
    assert waiting
    for one, other in zip(waiting, pending, strict=True):
        assert whole.job(one).start_time == snapshot.job(other).start_time


def test_running_job_that_should_have_ended_ends_now() -> None:
    engine = Engine(4, now=100)
    job = engine.add_running(0, 4, 50, 60)
    assert engine.finish().finished.tolist() == [job]
    assert engine.job(job).end_time == 100


def test_running_jobs_must_fit() -> None:
    engine = Engine(4, now=10)
    engine.add_running(0, 3, 50, 60)
    with pytest.raises(InputError, match="only 1 of 4 are free"):
        engine.add_running(0, 2, 50, 60)
    with pytest.raises(InputError, match="start_time 11 is after the clock's time 10"):
        engine.add_running(11, 1, 50, 60)


def test_update_moves_a_pending_job_in_the_queue() -> None:
    engine = Engine(4, Policy(order=Order.PRIORITY, backfill=Backfill.NONE))
    for priority in (0, 3, 2):
        engine.submit(0, 4, 10, 10, priority=priority)
    assert engine.advance(0).started.tolist() == []
    assert engine.queue().tolist() == [1, 2, 0]
    engine.update(0, priority=9)
    assert engine.queue().tolist() == [0, 1, 2]
    assert engine.finish().finished.tolist() == [0, 1, 2]


def test_update_of_a_running_jobs_estimate_lets_others_in() -> None:
    engine = Engine(2)
    running = engine.submit(0, 1, 100, 100)
    head = engine.submit(0, 2, 10, 10)
    engine.submit(1, 1, 50, 50)
    engine.advance(2)
    assert engine.free_processors == 0  # the third fits beside the first
    engine.update(running, scheduled_time=JobTimesUpdate(drain=60), requested_time=80)
    assert engine.job(running).expected_end == 60
    assert engine.job(running).time_limit == 100  # a matter of its own
    engine.finish()
    assert engine.job(head).start_time == 100


def test_limit_below_what_a_job_has_run_ends_it_now() -> None:
    engine = Engine(2)
    job = engine.submit(0, 2, 100, 100)
    engine.advance(50)
    engine.update(job, time_limit=20)
    engine.finish()
    assert engine.job(job).end_time == 50
    assert engine.job(job).killed


def test_cancelling_the_head_job_lets_the_next_start() -> None:
    engine = Engine(4)
    engine.submit(0, 3, 10, 10)
    head = engine.submit(0, 4, 10, 10)
    behind = engine.submit(0, 1, 99, 99)
    later = engine.submit(500, 1, 1, 1)
    engine.advance(2)
    assert engine.job(behind).state == "pending"
    engine.cancel(head)
    engine.cancel(later)
    assert engine.settle().started.tolist() == [behind]
    engine.finish()
    assert engine.job(head).state == engine.job(later).state == "cancelled"
    with pytest.raises(InputError, match="job 1 is cancelled: run the engine to its end first"):
        engine.schedule()


def test_a_job_tells_how_it_was_started() -> None:
    engine = Engine(4)
    for row in [(0, 2, 10, 10), (0, 3, 10, 10), (0, 1, 99, 99), (0, 1, 8, 8)]:
        engine.submit(*row)
    engine.advance(1)
    assert [engine.job(index).started_by for index in range(4)] == [
        StartedBy.HEAD,
        None,
        StartedBy.OUT_OF_ORDER,
        StartedBy.BACKFILLED,
    ]


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(InputError, match="machine_processors is 0"):
        Engine(0)
    engine = Engine(4, now=10)
    job = engine.submit(10, 4, 10, 10)
    with pytest.raises(InputError, match="can't go back from 10 to 9"):
        engine.advance(9)
    with pytest.raises(InputError, match="submit_time 9 is before"):
        engine.submit(9, 1, 1, 1)
    with pytest.raises(InputError, match="needs 5 processors, the machine has 4"):
        engine.submit(10, 5, 1, 1)
    with pytest.raises(InputError, match="there is no job 1"):
        engine.job(1)
    with pytest.raises(InputError, match="time_limit is 0 s"):
        engine.update(job, time_limit=0)
    engine.finish()
    with pytest.raises(InputError, match="job 0 is finished: it can't be changed"):
        engine.update(job, time_limit=50)
    with pytest.raises(InputError, match="job 0 is finished: it can't be cancelled"):
        engine.cancel(job)


families = st.sampled_from(
    [
        *(Policy(backfill=backfill) for backfill in FAMILIES.values()),
        Policy(backfill=Easy(depth=2)),
        Policy(backfill=Easy(Candidates.SJBF, depth=3)),
        *(Policy(backfill=Conservative(how)) for how in Compression),
    ]
)
seconds = st.integers(1, 60)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 20), st.integers(1, 4), seconds, seconds),
        st.tuples(st.just("run"), st.integers(0, 20), st.integers(1, 4), seconds, seconds),
        st.tuples(st.just("advance"), st.integers(0, 40)),
        st.tuples(st.just("update"), st.integers(0, 30), seconds, seconds, seconds),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("settle")),
    ),
    max_size=40,
)


@given(
    steps=steps,
    order=st.sampled_from(Order),
    family=families,
    correction=st.sampled_from(Correction),
    guard_s=st.none() | st.integers(0, 30),
    event_order=st.sampled_from(EventOrder),
    reserved=st.booleans(),
)
def test_processors_are_conserved_whatever_is_changed(
    steps: list[tuple[str, int, int, int, int]],
    order: Order,
    family: Policy,
    correction: Correction,
    guard_s: int | None,
    event_order: EventOrder,
    reserved: bool,
) -> None:
    policy = replace(
        family,
        order=order,
        correction=correction,
        event_order=event_order,
    )
    if family.backfill.head_only:
        policy = policy.guarded(parse_guard(guard_s))
    engine = Engine(4, policy, reservations=[AdvanceReservation(15, 30, 2)] if reserved else [])
    for what, *values in steps:
        change(engine, what, values)
        used = sum(engine.job(index).processors for index in engine.running().tolist())
        assert used + engine.free_processors == 4
        for index in engine.running().tolist():
            job = engine.job(index)
            assert job.expected_end is not None
            assert job.start_time is not None
            assert job.expected_end <= job.start_time + job.requested_time
    engine.finish()
    assert engine.free_processors == 4
    for index in range(len(engine)):
        job = engine.job(index)
        if job.state == "cancelled":
            continue
        assert job.state == "finished"
        assert job.start_time is not None
        assert job.start_time >= job.submit_time


def change(engine: Engine, what: str, values: list[int]) -> None:
    """Do one step, where it can be done."""
    if what == "submit":
        delay, processors, actual, scheduled = values
        engine.submit(engine.now + delay, processors, actual, 60, scheduled)
    elif what == "run":
        age, processors, actual, scheduled = values
        promises = engine.policy.backfill is Backfill.SLACK  # it takes nobody who began elsewhere
        if processors <= engine.free_processors and not promises:
            engine.add_running(engine.now - age, processors, actual, 60, scheduled)
    elif what == "advance":
        engine.advance(engine.now + values[0])
    elif what == "settle":
        engine.settle()
    elif values[0] < len(engine):
        state = engine.job(values[0]).state
        if what == "cancel" and state in ("submitted", "pending"):
            engine.cancel(values[0])
        elif what == "update" and state not in ("finished", "cancelled"):
            engine.update(
                values[0],
                scheduled_time=values[1],
                requested_time=values[2],
                actual_runtime=values[3],
                time_limit=max(values[1], 1),
            )
