"""A snapshot taken of a run goes on as the run does, whatever the moment and the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.forward import forward_runs, start_times_of
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Backfill, Compression, Conservative, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.role_times import JobTimesUpdate
from hypothesis import given
from hypothesis import strategies as st

jobs = st.lists(
    st.tuples(
        st.integers(0, 30),  # seconds since the submission before
        st.integers(1, 8),  # processors
        st.integers(0, 120),  # actual runtime
        st.integers(1, 120),  # requested time
        st.integers(1, 120),  # scheduled time
        st.integers(1, 150),  # time limit
        st.integers(-3, 3),  # priority
    ),
    min_size=1,
    max_size=40,
)


def runtimes_of(engine: Engine, snapshot: Snapshot) -> Int64Array:
    """Give the runtimes that the engine's jobs really have, as one sample."""
    assert snapshot.engine_index is not None
    views = [engine.job(index) for index in snapshot.engine_index.tolist()]
    return np.array([[view.actual_runtime for view in views]], dtype=np.int64)


reservations = st.lists(
    st.builds(AdvanceReservation, st.integers(0, 400), st.integers(1, 90), st.integers(1, 4)),
    max_size=2,
)


asked = st.none() | st.tuples(
    st.integers(1, 8),  # processors
    st.integers(1, 120),  # requested time
    st.integers(0, 120),  # actual runtime
    st.integers(-3, 3),  # priority
)


@given(
    jobs=jobs,
    at=st.integers(0, 500),
    settle=st.booleans(),
    data=st.data(),
    claims=reservations,
    asked=asked,
)
def test_it_goes_on_as_the_engine_does(
    any_policy: st.SearchStrategy[Policy],
    jobs: list[tuple[int, int, int, int, int, int, int]],
    at: int,
    settle: bool,
    data: st.DataObject,
    claims: list[AdvanceReservation],
    asked: tuple[int, int, int, int] | None,
) -> None:
    """And with one more job as if it were submitted."""
    policy = data.draw(any_policy)
    if claims:
        policy = replace(policy, scheduling_interval_s=None)
    engine = Engine(8, policy, reservations=claims)
    clock = 0
    for gap, *row in jobs:
        clock += gap
        engine.submit(clock, *row)
    engine.advance(at)
    # Per event, everything at this second is still to come and the order of it is not a snapshot's.
    if settle or policy.event_order is EventOrder.PER_EVENT:
        engine.settle()
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    runtimes = runtimes_of(engine, snapshot)
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    states = [engine.job(index).state for index in snapshot.engine_index.tolist()]
    assert states[: len(snapshot.running)] == ["running"] * len(snapshot.running)
    assert set(states[len(snapshot.running) :]) <= {"pending", "submitted"}
    index = snapshot.engine_index.tolist()
    if asked is not None:
        processors, requested, actual, priority = asked
        index.append(engine.submit(at, processors, actual, requested, priority=priority))
        more = snapshot.with_job(processors, requested, priority=priority)
        runtimes = np.append(runtimes, [[actual]], axis=1)
        starts = forward_runs(more, policy, runtimes, threads=1)[0]
        assert start_times_of(-1, more, policy, runtimes).tolist() == [starts[-1]]
    engine.finish()
    assert starts.tolist() == [engine.job(job).start_time for job in index]


def test_what_was_updated_and_cancelled_is_in_it() -> None:
    engine = Engine(4, Policy(Order.PRIORITY))
    first = engine.submit(0, 4, 100, 100)
    gone = engine.submit(1, 4, 10, 10)
    wide = engine.submit(2, 4, 10, 10)
    urgent = engine.submit(3, 2, 10, 10)
    engine.advance(20)
    engine.cancel(gone)
    engine.update(first, requested_time=60, time_limit=60)
    engine.update(urgent, scheduled_time=JobTimesUpdate(backfill=5), priority=9)
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    assert snapshot.engine_index.tolist() == [first, wide, urgent]
    assert snapshot.now == 20
    starts = forward_runs(snapshot, engine.policy, np.array([[100, 10, 10]]))
    assert starts.tolist() == [[0, 70, 60]]
    assert (len(engine), engine.now, engine.job(wide).state) == (4, 20, "pending")


def test_a_job_added_to_a_snapshot_starts_where_it_fits() -> None:
    engine = Engine(4)
    engine.submit(0, 3, 100, 100)
    engine.submit(1, 4, 10, 10)
    engine.advance(20)
    snapshot = Snapshot.of(engine)
    fits = snapshot.with_job(1, 60)  # until 80, and the wide job is planned at 100
    late = snapshot.with_job(1, 90)
    runtimes = np.array([[100, 10, 50], [30, 10, 50]])
    assert start_times_of(-1, fits, Policy(), runtimes).tolist() == [20, 20]
    assert start_times_of(-1, late, Policy(), runtimes).tolist() == [110, 40]
    with_guard = Engine(4, Policy(backfill=Easy(guard=Guard(5))))
    with_guard.submit(0, 3, 100, 100)
    with_guard.submit(1, 4, 10, 10)
    with_guard.advance(20)
    noted = Snapshot.of(with_guard).with_job(1, 60).pending.guard
    assert noted is not None
    assert noted.planned_start.tolist() == [100, None]


KTH_POLICIES = {
    "easy": Policy(),
    "none": Policy(backfill=Backfill.NONE),
    "easy-sjbf doubling": Policy(backfill=Backfill.EASY_SJBF, correction=Correction.DOUBLING),
    "wfp slurm guard": Policy(Order.WFP, Easy(guard=Guard(3_600)), correction=Correction.SLURM),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    "conservative one by one doubling": Policy(
        backfill=Conservative(Compression.ONE_BY_ONE), correction=Correction.DOUBLING
    ),
    "sjf planning": Policy(Order.SJF, Backfill.PLANNING),
    "easy depth 4": Policy(backfill=Easy(depth=4)),
    "first-fit": Policy(backfill=Backfill.FIRST_FIT),
    "per event": Policy(correction=Correction.INCREMENTAL, event_order=EventOrder.PER_EVENT),
}


@pytest.mark.parametrize("name", KTH_POLICIES)
def test_at_moments_of_a_real_log_jobs_start_as_in_the_whole_run(
    trace: Callable[[str], Path], name: str
) -> None:
    """A hundred moments of KTH: whoever waits starts as in the whole run of the jobs until then."""
    policy = KTH_POLICIES[name]
    log = workload_of_log(read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz")))[0].head(6_000)
    scheduled = np.maximum(log.requested_time // 2, 1)
    rng = np.random.default_rng(5)
    submitted = np.sort(rng.choice(np.arange(500, len(log)), 100, replace=False))
    gaps = np.diff(log.submit_time, append=log.submit_time[-1] + 600)
    moments = [int(log.submit_time[job] + rng.integers(0, gaps[job] + 1)) for job in submitted]
    engine = Engine(log.machine_processors, policy, int(log.submit_time[0]))
    done, waited = 0, 0
    for last, moment in zip(submitted.tolist(), moments, strict=True):
        for job in range(done, last + 1):
            engine.submit(
                int(log.submit_time[job]),
                int(log.processors[job]),
                int(log.actual_runtime[job]),
                int(log.requested_time[job]),
                int(scheduled[job]),
            )
        done = last + 1
        engine.advance(moment)
        snapshot = Snapshot.of(engine)
        waited += len(snapshot.pending)
        assert snapshot.engine_index is not None
        runtimes = log.actual_runtime[snapshot.engine_index][np.newaxis]
        starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
        whole = simulate(log.head(done), policy, scheduled[:done])
        assert np.array_equal(starts, whole.start_time[snapshot.engine_index]), moment
    assert waited > 300


def test_promises_are_kept_and_without_them_made_anew() -> None:
    engine = Engine(4, Policy(Order.SJF, Backfill.CONSERVATIVE))
    engine.submit(0, 4, 100, 100)
    engine.submit(1, 4, 50, 50)  # promised 100
    engine.submit(2, 4, 10, 10)  # promised 150
    engine.advance(5)
    asked = Snapshot.of(engine).with_job(4, 5)
    plans = asked.pending.plans
    assert plans is not None
    assert plans.planned_start.tolist() == [100, 150, None]
    runtimes = np.array([[100, 50, 10, 5]])
    assert forward_runs(asked, engine.policy, runtimes).tolist() == [[0, 100, 150, 160]]
    forgotten = replace(asked, pending=replace(asked.pending, plans=None))
    assert forward_runs(forgotten, engine.policy, runtimes).tolist() == [[0, 115, 105, 100]]
