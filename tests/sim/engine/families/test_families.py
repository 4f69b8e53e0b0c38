"""The families that plan more than the head job: by hand, and against other ways to a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import (
    Backfill,
    Candidates,
    Compression,
    Conservative,
    Easy,
    with_settings,
)
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plans.availability_profile import AvailabilityProfile

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
CONSERVATIVE = Policy(backfill=Backfill.CONSERVATIVE)
PLANNING = Policy(backfill=Backfill.PLANNING)
FIRST_FIT = Policy(backfill=Backfill.FIRST_FIT)
DEPTH_TWO = Policy(backfill=Easy(depth=2))


def workload_of(jobs: Sequence[tuple[int, ...]], machine: int = MACHINE) -> Workload:
    gaps, processors, actual, requested = np.array(jobs, dtype=np.int64).T[:4]
    names = np.arange(len(jobs))
    return Workload("jobs", machine, None, names, np.cumsum(gaps), processors, actual, requested)


def starts(
    jobs: Sequence[tuple[int, ...]], machine: int, policy: Policy, **options: Any
) -> list[int]:
    """Give the starts that the core and the reference agree on."""
    workload = workload_of(jobs, machine)
    core = simulate(workload, policy, check=True, **options)
    plain = reference.simulate(workload, policy, **options)
    assert core.start_time.tolist() == plain.start_time.tolist()
    return [int(time) for time in core.start_time]


# By hand. gap, processors, actual runtime, requested time.

# In the manner of Talby and Feitelson 1999, 3.1 and 3.2 (whose figures did not survive as text),
# on 4 processors: J2 runs on 2 until 4, J1 on 2 until 1; J3 needs all 4 and is first in the queue.
TALBY = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 4, 2, 2), (0, 2, 3, 3), (0, 2, 4, 4)]


def test_easy_lets_a_job_pass_that_delays_another_than_the_head() -> None:
    """J3 needs 3 of 4 at time 4, so J5 (1 processor, 10 s) delays only J4, which needs all 4."""
    jobs = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 3, 2, 2), (0, 4, 1, 1), (0, 1, 10, 10)]
    assert starts(jobs, 4, Policy()) == [0, 0, 4, 11, 1]
    # Conservative keeps J4's place at 6: J5 must wait until after it.
    assert starts(jobs, 4, CONSERVATIVE) == [0, 0, 4, 6, 7]
    # With two reservations EASY protects J4 as well.
    assert starts(jobs, 4, DEPTH_TWO) == [0, 0, 4, 6, 7]


def test_depth_sorts_only_who_comes_behind_the_reservations() -> None:
    """J2 and J3 have to wait for J1; of J4 (8 s) and J5 (6 s) one fits beside it until 10."""
    jobs = [(0, 3, 10, 10), (0, 4, 5, 5), (0, 4, 5, 5), (0, 1, 8, 8), (0, 1, 6, 6)]
    by_length = Policy(backfill=Easy(Candidates.SJBF, depth=2))
    assert starts(jobs, 4, by_length) == [0, 10, 15, 20, 0]
    assert starts(jobs, 4, DEPTH_TWO) == [0, 10, 15, 0, 20]
    # A third reservation goes to whoever cannot start, and J4 comes first.
    assert starts(jobs, 4, Policy(backfill=Easy(Candidates.SJBF, depth=3))) == [0, 10, 15, 0, 20]


def test_conservative_fills_holes_that_delay_nobody() -> None:
    # J1 leaves 2 processors from 1 to 4: J4 (3 s) fits exactly; J5 (4 s) would delay J3.
    assert starts(TALBY, 4, CONSERVATIVE) == [0, 0, 4, 1, 6]


def test_first_fit_lets_a_narrow_job_delay_the_head() -> None:
    # From 1 on J4 takes the 2 free processors until 6, though J3 could have had all 4 at 4.
    jobs = [(0, 2, 1, 1), (0, 2, 4, 4), (0, 4, 2, 2), (0, 2, 5, 5)]
    assert starts(jobs, 4, FIRST_FIT) == [0, 0, 6, 1]
    assert starts(jobs, 4, CONSERVATIVE) == [0, 0, 4, 6]


def test_planning_goes_by_the_queue_order_not_by_promises() -> None:
    # One processor; J2 (10 s) has been promised 5 when the shorter J3 (1 s) comes.
    jobs = [(0, 1, 5, 5), (0, 1, 10, 10), (1, 1, 1, 1)]
    by_length = Policy(order=Order.SJF, backfill=Backfill.PLANNING)
    assert starts(jobs, 1, by_length) == [0, 6, 5]
    assert starts(jobs, 1, Policy(order=Order.SJF, backfill=Backfill.CONSERVATIVE)) == [0, 5, 15]


def test_early_completion_compresses() -> None:
    jobs = workload_of([(0, 4, 3, 10), (0, 4, 5, 5), (0, 1, 1, 1)], 4)
    for simulated in (simulate(jobs, CONSERVATIVE), reference.simulate(jobs, CONSERVATIVE)):
        assert simulated.first_planned_start is not None
        assert simulated.first_planned_start.tolist() == [0, 10, 15]
        assert simulated.start_time.tolist() == [0, 3, 8]


def test_jobs_are_planned_around_an_advance_reservation() -> None:
    claim = AdvanceReservation(start=10, duration=5, processors=3)
    jobs = [(0, 2, 11, 11), (0, 2, 10, 10), (0, 1, 100, 100)]
    for policy in (CONSERVATIVE, PLANNING, FIRST_FIT, Policy(), DEPTH_TWO):
        assert starts(jobs, 4, policy, reservations=[claim]) == [15, 0, 0]
    # Without backfilling the head job keeps everybody waiting.
    none = Policy(backfill=Backfill.NONE)
    assert starts(jobs, 4, none, reservations=[claim]) == [15, 15, 25]


def test_a_job_of_the_requested_time_keeps_off_even_if_its_estimate_would_not_touch() -> None:
    claim = AdvanceReservation(start=10, duration=5, processors=4)
    jobs = [(0, 1, 12, 12)]
    estimate = np.array([5])
    options = {"scheduled_time": estimate, "reservations": [claim]}
    assert starts(jobs, 4, CONSERVATIVE, **options) == [15]
    # What counts is when it is killed.
    assert starts(jobs, 4, CONSERVATIVE, **options, time_limit=np.array([10])) == [0]


def test_a_job_past_its_requested_time_may_end_any_moment() -> None:
    """J1 has a limit of 30 s and asked for 10 s; J2 waits for it, and starts when it ends."""
    jobs = [(0, 4, 25, 10), (0, 4, 5, 5), (12, 1, 1, 1)]
    limits = np.array([30, 5, 1])
    for policy in (CONSERVATIVE, PLANNING, DEPTH_TWO):
        assert starts(jobs, 4, policy, time_limit=limits) == [0, 25, 30]
    engine = Engine(4, CONSERVATIVE)
    engine.submit(0, 4, 25, 10, time_limit=30)
    waiting = engine.submit(0, 4, 5, 5)
    engine.advance(12)
    assert engine.planned_start(waiting) == 12
    later = engine.submit(12, 1, 1, 1)
    engine.settle()
    assert engine.planned_start(waiting) == 12  # now, as far as anyone knows
    assert engine.planned_start(later) == 17


def test_planned_starts_of_a_stepwise_engine() -> None:
    jobs = [(2, 1), (2, 4), (4, 2), (2, 3), (2, 4)]  # Talby's, as above
    planned = {
        CONSERVATIVE: [None, None, 4, 1, 6],
        PLANNING: [None, None, 4, 1, 6],
        DEPTH_TWO: [None, None, 4, 1, None],
        Policy(): [None, None, 4, None, None],
        FIRST_FIT: [None] * 5,
    }
    for policy, expected in planned.items():
        engine = Engine(4, policy)
        for processors, time in jobs:
            engine.submit(0, processors, time, time)
        engine.settle()
        assert [engine.planned_start(index) for index in range(5)] == expected
        assert engine.next_event_time == 1


def test_cancelling_and_changing_waiting_jobs_moves_the_others() -> None:
    engine = Engine(4, CONSERVATIVE)
    engine.submit(0, 4, 10, 10)
    second, third, fourth = (engine.submit(0, 4, 10, 10) for _ in range(3))
    engine.settle()
    assert [engine.planned_start(job) for job in (second, third, fourth)] == [10, 20, 30]
    engine.update(second, scheduled_time=4)
    engine.advance(1)
    assert [engine.planned_start(job) for job in (second, third, fourth)] == [10, 14, 24]
    engine.update(second, scheduled_time=9)
    engine.advance(2)
    assert [engine.planned_start(job) for job in (second, third, fourth)] == [10, 19, 29]
    engine.cancel(third)
    engine.advance(3)
    assert [engine.planned_start(job) for job in (second, third, fourth)] == [10, None, 19]
    engine.finish()
    assert engine.job(fourth).start_time == 20


# Against another way to the same schedule


@given(jobs=rows, order=st.sampled_from(Order), correction=st.sampled_from(Correction))
@settings(max_examples=100)
def test_the_reference_plans_one_reservation_as_easy(
    jobs: Sequence[tuple[int, ...]], order: Order, correction: Correction
) -> None:
    """A reservation that disturbs nobody makes the reference plan with claims all the same."""
    policy = Policy(order=order, correction=correction)
    workload = workload_of(jobs)
    past = AdvanceReservation(-9, 1, 1)
    easy = reference.simulate(workload, policy)
    one = reference.simulate(workload, policy, reservations=[past])
    np.testing.assert_array_equal(one.start_time, easy.start_time)


@given(jobs=rows, event_order=st.sampled_from(EventOrder))
@settings(max_examples=100)
def test_reinserting_by_submission_is_planning_first_come_first_served(
    jobs: Sequence[tuple[int, ...]], event_order: EventOrder
) -> None:
    workload = workload_of(jobs)
    planning = Policy(backfill=Backfill.PLANNING, event_order=event_order)
    by_submission = Policy(
        backfill=Conservative(Compression.SUBMISSION_ORDER), event_order=event_order
    )
    np.testing.assert_array_equal(
        simulate(workload, planning).start_time, simulate(workload, by_submission).start_time
    )


@given(jobs=rows)
@settings(max_examples=100)
def test_unbounded_depth_is_planning(jobs: Sequence[tuple[int, ...]]) -> None:
    workload = workload_of(jobs)
    np.testing.assert_array_equal(
        simulate(workload, Policy(backfill=Easy(depth=len(jobs)))).start_time,
        simulate(workload, PLANNING).start_time,
    )


@given(jobs=rows, policy=st.sampled_from([CONSERVATIVE, PLANNING, DEPTH_TWO]))
@settings(max_examples=50)
def test_the_reference_plans_alike_in_both_profiles(
    jobs: Sequence[tuple[int, ...]], policy: Policy
) -> None:
    workload = workload_of(jobs)
    plain = reference.simulate(workload, policy)
    fast = reference.simulate(workload, policy, new_profile=AvailabilityProfile)
    np.testing.assert_array_equal(fast.start_time, plain.start_time)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"correction_steps": 1}, "only incremental correction and doubling go in steps, not req"),
        ({"correction_steps": 2, "correction": Correction.SLURM}, "not slurm"),
        ({"correction_steps": 0, "correction": Correction.DOUBLING}, "give 1 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Policy(**options)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        (Backfill.EASY, {"depth": 0}, "depth is 0"),
        (Backfill.PLANNING, {"depth": 2}, "only the kinds of easy have a depth, not planning"),
        (Backfill.EASY, {"compression": Compression.ONE_BY_ONE}, "only conservative .* not easy"),
        (Backfill.EASY, {"ageing_s": 60}, "only candidates of easy-sjbf and easy-wspt"),
        (Backfill.PLANNING, {"ageing_s": 60}, "only candidates of easy-sjbf and easy-wspt"),
        (Backfill.EASY_SJBF, {"ageing_s": 0}, "give 1 s or more"),
        (Backfill.EASY_SJBF, {"ageing_s": 60, "depth": 2}, "with a depth of 1 age"),
        (
            Backfill.FIRST_FIT,
            {"guard": Guard(0)},
            "guard is for the kinds of easy.*not for first-fit",
        ),
        (Backfill.EASY, {"guard": Guard(0), "depth": 2}, "easy with a depth of 2: leave it out"),
    ],
)
def test_settings_of_other_families_are_refused(
    family: Backfilling, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        with_settings(family, **settings)


def test_options_at_their_defaults_say_nothing() -> None:
    said: dict[str, Any] = {
        "depth": 1,
        "compression": Compression.RESERVATION_ORDER,
        "ageing_s": None,
    }
    assert with_settings(Backfill.FIRST_FIT, **said) == Backfill.FIRST_FIT
    assert with_settings(Backfill.NONE, guard=Guard(0)) == Backfill.NONE
