"""Families that plan more than the head job: by hand, by their laws, and against EASY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.errors import InputError
from foretime_sim import engine, reference, reference_plans, schedule
from foretime_sim.availability_profile import AvailabilityProfile
from foretime_sim.filters import workload_of_log
from foretime_sim.policy import Backfill, Correction, EventOrder, Order, Policy
from foretime_sim.reference_plans import AdvanceReservation, Compression, Family
from foretime_sim.swf import read_swf
from foretime_sim.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MACHINE = 8
# submission gap, processors, actual runtime, requested time, t_sched
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 7, 60]),
        st.integers(1, MACHINE),
        st.integers(0, 300),
        st.integers(1, 300),
        st.integers(1, 300),
    ),
    min_size=1,
    max_size=25,
)
policies = st.builds(
    Policy,
    order=st.sampled_from(Order),
    correction=st.sampled_from(Correction),
    event_order=st.sampled_from(EventOrder),
)
reservations = st.lists(
    st.builds(
        AdvanceReservation,
        start=st.integers(0, 600),
        duration=st.integers(1, 200),
        processors=st.integers(1, 2),
    ),
    max_size=4,
)


def workload_of(jobs: Sequence[tuple[int, ...]], machine: int = MACHINE) -> Workload:
    gaps, processors, actual, requested = np.array(jobs, dtype=np.int64).T[:4]
    return Workload(
        "jobs",
        machine,
        None,
        np.arange(len(jobs)),
        np.cumsum(gaps),
        processors,
        actual,
        requested,
    )


def scheduled_of(jobs: Sequence[tuple[int, ...]]) -> np.ndarray:
    return np.array(jobs, dtype=np.int64)[:, 4]


def starts(
    jobs: Sequence[tuple[int, ...]], machine: int, family: Family, **options: object
) -> list[int]:
    planned = reference_plans.simulate(workload_of(jobs, machine), family, **options)  # type: ignore[arg-type]  # options are the function's own
    return [int(time) for time in planned.schedule.start_time]


# By hand. gap, processors, actual runtime, requested time.

# In the manner of Talby and Feitelson 1999, 3.1 and 3.2 (whose figures did not survive as text),
# on 4 processors: J2 runs on 2 until 4, J1 on 2 until 1; J3 needs all 4 and is first in the queue.
TALBY = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 4, 2, 2), (0, 2, 3, 3), (0, 2, 4, 4)]


def test_easy_lets_a_job_pass_that_delays_another_than_the_head() -> None:
    """J3 needs 3 of 4 at time 4, so J5 (1 processor, 10 s) delays only J4, which needs all 4."""
    jobs = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 3, 2, 2), (0, 4, 1, 1), (0, 1, 10, 10)]
    assert starts(jobs, 4, Family.EASY) == [0, 0, 4, 11, 1]
    # Conservative keeps J4's place at 6: J5 must wait until after it.
    assert starts(jobs, 4, Family.CONSERVATIVE) == [0, 0, 4, 6, 7]
    # With two reservations EASY protects J4 as well.
    assert starts(jobs, 4, Family.EASY, depth=2) == [0, 0, 4, 6, 7]


def test_conservative_fills_holes_that_delay_nobody() -> None:
    # J1 leaves 2 processors from 1 to 4: J4 (3 s) fits exactly; J5 (4 s) would delay J3.
    assert starts(TALBY, 4, Family.CONSERVATIVE) == [0, 0, 4, 1, 6]


def test_first_fit_lets_a_narrow_job_delay_the_head() -> None:
    # From 1 on J4 takes the 2 free processors until 6, though J3 could have had all 4 at 4.
    jobs = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 4, 2, 2), (0, 2, 5, 5)]
    assert starts(jobs, 4, Family.FIRST_FIT) == [0, 0, 6, 1]
    assert starts(jobs, 4, Family.CONSERVATIVE) == [0, 0, 4, 6]


def test_planning_goes_by_the_queue_order_not_by_promises() -> None:
    # One processor; J2 (10 s) has been promised 5 when the shorter J3 (1 s) comes.
    jobs = [(0, 1, 5, 5), (0, 1, 10, 10), (1, 1, 1, 1)]
    policy = Policy(order=Order.SJF)
    assert starts(jobs, 1, Family.PLANNING, policy=policy) == [0, 6, 5]
    assert starts(jobs, 1, Family.CONSERVATIVE, policy=policy) == [0, 5, 15]


def test_early_completion_compresses() -> None:
    jobs = [(0, 4, 3, 10), (0, 4, 5, 5), (0, 1, 1, 1)]
    planned = reference_plans.simulate(workload_of(jobs, 4), Family.CONSERVATIVE)
    assert planned.first_planned_start.tolist() == [0, 10, 15]
    assert planned.schedule.start_time.tolist() == [0, 3, 8]


def test_only_reinserting_by_submission_breaks_a_promise() -> None:
    """J1 ends at 4 instead of 10; J2 runs until 6. J3 (4 wide) was promised 10, J4 (2 wide) 6.

    By submission J3 comes first and takes 6 to 11; J4 (4 s) no longer fits before it.
    """
    jobs = [(0, 2, 4, 10), (0, 2, 6, 6), (0, 4, 5, 5), (0, 2, 4, 4)]
    planned = {
        compression: reference_plans.simulate(
            workload_of(jobs, 4), Family.CONSERVATIVE, compression=compression
        )
        for compression in Compression
    }
    for ran in planned.values():
        assert ran.first_planned_start.tolist() == [0, 0, 10, 6]
    assert {c: ran.schedule.start_time.tolist() for c, ran in planned.items()} == {
        Compression.RESERVATION_ORDER: [0, 0, 8, 4],
        Compression.SUBMISSION_ORDER: [0, 0, 6, 11],
        # J3 is tried before J4 has moved; the end of J2 brings the second try.
        Compression.ONE_BY_ONE: [0, 0, 8, 4],
    }


def test_jobs_are_planned_around_an_advance_reservation() -> None:
    claim = AdvanceReservation(start=10, duration=5, processors=3)
    jobs = [(0, 2, 11, 11), (0, 2, 10, 10), (0, 1, 100, 100)]
    for family in (Family.CONSERVATIVE, Family.PLANNING, Family.FIRST_FIT, Family.EASY):
        assert starts(jobs, 4, family, reservations=[claim]) == [15, 0, 0]


def test_a_job_of_the_requested_time_keeps_off_even_if_its_estimate_would_not_touch() -> None:
    claim = AdvanceReservation(start=10, duration=5, processors=4)
    planned = reference_plans.simulate(
        workload_of([(0, 1, 12, 12)], 4),
        Family.CONSERVATIVE,
        scheduled_time=np.array([5]),
        reservations=[claim],
    )
    assert planned.schedule.start_time.tolist() == [15]


# By their laws

planning_options = st.fixed_dictionaries(
    {
        "family": st.sampled_from(Family),
        "policy": policies,
        "compression": st.sampled_from(Compression),
        "depth": st.integers(1, 4),
        "reservations": reservations,
    }
)


@given(jobs=rows, options=planning_options)
@settings(max_examples=200)
def test_conservation_and_advance_reservations(
    jobs: Sequence[tuple[int, ...]], options: dict[str, Any]
) -> None:
    workload = workload_of(jobs)
    ran = reference_plans.simulate(workload, scheduled_time=scheduled_of(jobs), **options).schedule
    schedule.check(workload, ran, workload.requested_time)
    claims: list[AdvanceReservation] = options["reservations"]
    for moment in {c.start for c in claims} | {int(t) for t in ran.start_time}:
        claimed = sum(c.processors for c in claims if c.start <= moment < c.start + c.duration)
        running = (ran.start_time <= moment) & (moment < ran.end_time)
        assert int(workload.processors[running].sum()) + claimed <= MACHINE


@given(
    jobs=rows,
    compression=st.sampled_from([Compression.RESERVATION_ORDER, Compression.ONE_BY_ONE]),
    exact=st.booleans(),
    claims=reservations,
    event_order=st.sampled_from(EventOrder),
)
@settings(max_examples=200)
def test_never_later_than_first_reserved(
    jobs: Sequence[tuple[int, ...]],
    compression: Compression,
    exact: bool,
    claims: list[AdvanceReservation],
    event_order: EventOrder,
) -> None:
    if exact:
        jobs = [(gap, p, actual, max(actual, 1), t) for gap, p, actual, _, t in jobs]
    planned = reference_plans.simulate(
        workload_of(jobs),
        Family.CONSERVATIVE,
        Policy(event_order=event_order),
        compression=compression,
        reservations=claims,
    )
    assert (planned.schedule.start_time <= planned.first_planned_start).all()


def test_an_underestimate_makes_a_job_later_than_first_reserved() -> None:
    jobs = [(0, 4, 20, 30, 10), (0, 4, 5, 5, 5)]
    planned = reference_plans.simulate(
        workload_of(jobs, 4), Family.CONSERVATIVE, scheduled_time=scheduled_of(jobs)
    )
    assert planned.first_planned_start.tolist() == [0, 10]
    assert planned.schedule.start_time.tolist() == [0, 20]


# Against another way to the same schedule


@given(jobs=rows, order=st.sampled_from(Order), correction=st.sampled_from(Correction))
@settings(max_examples=200)
def test_depth_one_is_easy(
    jobs: Sequence[tuple[int, ...]], order: Order, correction: Correction
) -> None:
    policy = Policy(order=order, correction=correction, backfill=Backfill.EASY)
    workload, scheduled = workload_of(jobs), scheduled_of(jobs)
    easy = reference.simulate(workload, policy, scheduled)
    one = reference_plans.simulate(workload, Family.EASY, policy, scheduled).schedule
    np.testing.assert_array_equal(one.start_time, easy.start_time)


@given(jobs=rows)
def test_planning_in_submission_order_is_conservative_by_submission(
    jobs: Sequence[tuple[int, ...]],
) -> None:
    """While no job ends early both only ever append."""
    exact = [(gap, p, actual, max(actual, 1), t) for gap, p, actual, _, t in jobs]
    workload = workload_of(exact)
    planning = reference_plans.simulate(workload, Family.PLANNING)
    conservative = reference_plans.simulate(
        workload, Family.CONSERVATIVE, compression=Compression.SUBMISSION_ORDER
    )
    np.testing.assert_array_equal(planning.schedule.start_time, conservative.schedule.start_time)


@given(jobs=rows, options=planning_options)
@settings(max_examples=150)
def test_availability_profile_gives_the_same_plans(
    jobs: Sequence[tuple[int, ...]], options: dict[str, Any]
) -> None:
    options |= {"reservations": []}
    workload, scheduled = workload_of(jobs), scheduled_of(jobs)
    plain = reference_plans.simulate(workload, scheduled_time=scheduled, **options)
    fast = reference_plans.simulate(
        workload,
        scheduled_time=scheduled,
        new_profile=AvailabilityProfile,
        **options,
    )
    np.testing.assert_array_equal(fast.schedule.start_time, plain.schedule.start_time)
    np.testing.assert_array_equal(fast.first_planned_start, plain.first_planned_start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth is 0"),
        ({"policy": Policy(guard_s=0)}, "starvation guard"),
        ({"reservations": [AdvanceReservation(0, 0, 1)]}, "advance reservation 0"),
        ({"reservations": [AdvanceReservation(0, 9, 3)] * 2}, "6 processors are claimed at 0 s"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        starts([(0, 1, 1, 1)], 4, Family.EASY, **options)


# On a real log


@pytest.fixture(scope="module")
def kth(trace: Callable[[str], Path]) -> Workload:
    log = read_swf(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    return workload_of_log(log, processors=100)[0]


@pytest.mark.traces
@pytest.mark.parametrize(
    ("compression", "event_order", "mean_wait_s", "bounded_slowdown"),
    [
        # What two other simulators print.
        (Compression.ONE_BY_ONE, EventOrder.PER_EVENT, 7_313.68, 89.04),
        # Ours: recorded, so that a change shows.
        (Compression.RESERVATION_ORDER, EventOrder.PER_TIMESTEP, 7_199.51, 89.14),
    ],
)
def test_conservative_on_kth(
    kth: Workload,
    compression: Compression,
    event_order: EventOrder,
    mean_wait_s: float,
    bounded_slowdown: float,
) -> None:
    planned = reference_plans.simulate(
        kth,
        Family.CONSERVATIVE,
        Policy(event_order=event_order),
        compression=compression,
        new_profile=AvailabilityProfile,
    )
    schedule.check(kth, planned.schedule, kth.requested_time)
    assert (planned.schedule.start_time <= planned.first_planned_start).all()
    wait = planned.schedule.start_time - kth.submit_time
    assert round(float(wait.mean()), 2) == mean_wait_s
    runtime = kth.actual_runtime
    slowdown = np.maximum(1, (wait + runtime) / np.maximum(10, runtime))
    assert round(float(slowdown.mean()), 2) == bounded_slowdown


@pytest.mark.traces
def test_depth_one_is_the_native_easy_on_kth(kth: Workload) -> None:
    one = reference_plans.simulate(kth, Family.EASY, new_profile=AvailabilityProfile)
    easy = engine.simulate(kth, Policy(backfill=Backfill.EASY))
    np.testing.assert_array_equal(one.schedule.start_time, easy.start_time)
