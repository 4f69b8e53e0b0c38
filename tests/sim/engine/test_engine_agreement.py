"""The native core, whole and stepwise, and the plain Python specification agree job for job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Backfill, Candidates, Easy
from foretime_sim.policies.guard import Guard, GuardBy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import IN_STEPS, Correction, EventOrder, Policy, Roles
from foretime_sim.reference import flat as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.job_rows import JOB_ROWS, workload_of_rows
from tests.support.workloads.scheduling_intervals import intervals

guards = st.builds(Guard, st.integers(0, 200))
guards_beside = st.builds(
    Guard,
    st.integers(0, 100),
    st.sampled_from([by for by in GuardBy if by is not GuardBy.REQUESTED_PLAN]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
ageing = st.none() | st.integers(1, 500)
sorted_candidates = st.sampled_from([Candidates.SJBF, Candidates.WSPT])


def easy(guard: st.SearchStrategy[Guard | None]) -> st.SearchStrategy[Easy]:
    """Those with a depth of 1; the others are in test_families_agreement.py."""
    return st.builds(Easy, guard=guard) | st.builds(
        Easy, sorted_candidates, guard=guard, ageing_s=ageing
    )


policies = st.builds(
    Policy,
    order=st.sampled_from(Order),
    backfill=st.just(Backfill.NONE) | easy(st.none() | guards),
    correction=st.sampled_from(Correction),
    roles=st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
    event_order=st.sampled_from(EventOrder),
)
beside_plain_easy = st.builds(
    Policy,
    order=st.sampled_from(Order),
    backfill=easy(guards_beside),
    correction=st.sampled_from(Correction),
    roles=st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
    event_order=st.sampled_from(EventOrder),
)


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.counters == other.counters


@given(
    data=st.data(),
    rows=st.lists(JOB_ROWS, min_size=1, max_size=40),
    policy=policies | beside_plain_easy,
)
@settings(max_examples=400)
def test_native_stepwise_and_reference_agree(
    data: st.DataObject, rows: list[tuple[int, ...]], policy: Policy
) -> None:
    jobs, columns = workload_of_rows(rows)
    interval_s = data.draw(intervals(policy.event_order))
    steps = None
    if policy.correction in IN_STEPS:
        steps = data.draw(st.none() | st.integers(1, 4))
    policy = replace(policy, scheduling_interval_s=interval_s, correction_steps=steps)
    whole = simulate(jobs, policy, columns[4], columns[5], columns[6], check=True)
    assert_same(whole, reference.simulate(jobs, policy, columns[4], columns[5], columns[6]))
    engine = Engine(8, policy, now=int(jobs.submit_time[0]))
    for submit, row in zip(jobs.submit_time.tolist(), rows, strict=True):
        engine.advance(submit)
        engine.submit(submit, *row[1:])
    engine.finish()
    assert_same(whole, engine.schedule())


def test_figure_2_of_gaussier_2015_comes_out() -> None:
    """Job 1 runs; job 2 needs more than is left; job 3 is backfilled beside job 1."""
    jobs, _ = workload_of_rows([(0, 4, 10, 10), (0, 6, 5, 5), (0, 3, 8, 8)])
    assert simulate(jobs).start_time.tolist() == [0, 10, 0]
    shorter = np.array([4, 5, 8])  # "if the estimated running time of job 1 was much shorter"
    assert simulate(jobs, Policy(), shorter).start_time.tolist() == [0, 10, 15]


def test_passes_come_at_the_multiples_of_an_interval() -> None:
    jobs, _ = workload_of_rows([(3, 8, 12, 12), (1, 8, 5, 5), (0, 1, 2, 2)])
    every_10_s = simulate(jobs, Policy(scheduling_interval_s=10))
    assert every_10_s.start_time.tolist() == [10, 30, 40]  # ends at 22 and 35
    assert every_10_s.counters.passes == 4  # at 10, 20, 30, 40


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"scheduling_interval_s": 0}, "give 1 s or more"),
        ({"event_order": EventOrder.PER_EVENT}, "every event has its pass"),
        ({"backfill": Backfill.PLANNING}, "under planning jobs start at the very second"),
        ({"backfill": Easy(depth=2)}, "under easy with a depth of 2 jobs start at the very"),
    ],
)
def test_intervals_that_make_no_sense_are_refused(chosen: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Policy(**{"scheduling_interval_s": 10} | chosen)


@pytest.mark.parametrize("run", [simulate, reference.simulate])
def test_an_interval_beside_reservations_is_refused(run: Any) -> None:
    jobs, _ = workload_of_rows([(0, 1, 1, 1)])
    with pytest.raises(InputError, match="around advance reservations"):
        run(jobs, Policy(scheduling_interval_s=10), reservations=[AdvanceReservation(0, 5, 1)])


def test_job_wider_than_the_machine_is_named() -> None:
    jobs, _ = workload_of_rows([(0, 9, 1, 1)])
    with pytest.raises(InputError, match="job 0 needs 9 processors"):
        simulate(jobs)


def test_raising_a_running_jobs_limit_saves_it() -> None:
    engine = Engine(4)
    job = engine.submit(0, 4, 100, 100, scheduled_time=20, time_limit=20)
    engine.settle()
    engine.update(job, time_limit=100)
    engine.finish()
    assert engine.job(job).end_time == 100
    assert not engine.job(job).killed


def test_cancelled_job_never_starts() -> None:
    engine = Engine(4)
    engine.submit(0, 4, 10, 10)
    waiting = engine.submit(0, 4, 10, 10)
    engine.settle()
    engine.cancel(waiting)
    assert engine.finish().finished.tolist() == [0]
    assert engine.job(waiting).start_time is None
