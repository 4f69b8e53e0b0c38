"""Every edge that Talby and Feitelson leave open, as decided in `foretime_sim.reference.slack`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Backfill, Slack
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.slack import INFINITE_SLACK, InsertionOrder, SlackJobs, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.reference.slack import SlackPlan, cost, own_price
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.engine.families.test_families import workload_of
from tests.sim.engine.slack.test_slack_laws import JOBS, SETTINGS
from tests.sim.engine.slack.test_slack_optimum import PROFILES, Case, planned
from tests.support.plans.slack_plans import plan_of, waiting_job

ALL = SlackSettings()
INFINITE = {"slack": INFINITE_SLACK, "of": INFINITE_SLACK}
EXCEEDED = {"priority": -math.inf, **INFINITE}
MACHINE = 6


def run(
    jobs: Sequence[tuple[int, ...]], chosen: SlackSettings, machine: int = 4, **options: Any
) -> Schedule:
    order = options.pop("order", Order.FCFS)
    policy = Policy(order, Slack(chosen))
    return reference.simulate(workload_of(jobs, machine), policy, **options)


# The cost of a move


def test_a_moved_job_of_no_priority_costs_nothing() -> None:
    for priority in (0.0, -math.inf):
        job = waiting_job(1, 5, 3, 2, priority=priority, **INFINITE)
        assert cost(ALL, job, 7, 0.5) == cost(ALL, job, -7, 0.5) == 0
        by_size = SlackSettings(priority_weight=0)
        assert cost(by_size, job, 7, 0.5) == 14, "without a weight it is a job like others"


def test_whose_quota_is_exceeded_can_delay_nobody_at_any_weights() -> None:
    for weight in (0, 0.5, 1):
        settings = SlackSettings(priority_weight=weight)
        for moved in (waiting_job(1, 5, 3, 2), waiting_job(1, 5, 3, 2, **EXCEEDED)):  # type: ignore[arg-type]
            assert cost(settings, moved, 1, -math.inf) == math.inf


def test_a_delay_costs_more_the_less_slack_is_left() -> None:
    def factor(slack: int, of: int) -> float:
        return cost(ALL, waiting_job(1, 5, 3, 1, slack=slack, of=of), -1, 0.5) / -1

    assert factor(10, 10) == factor(0, 0) == factor(INFINITE_SLACK, INFINITE_SLACK) == 1
    assert factor(5, 10) == 2
    assert factor(1, 10) == factor(0, 10) == factor(-50, 10) == 10
    assert factor(20, 10) == 0.5, "moved up by ten: it may be delayed at half the price"
    assert factor(5, 0) == 0, "and for nothing if all of its slack comes from moving up"


def test_moves_up_gain_what_moves_down_cost() -> None:
    job = waiting_job(1, 50, 3, 4)
    for weight in (0, 0.25, 0.5, 1):
        settings = SlackSettings(time_weight=weight)
        assert cost(settings, job, -9, 0.5) == -cost(settings, job, 9, 0.5) == -4 * 9**weight
    assert cost(ALL, job, 0, 0.5) == 0
    assert cost(SlackSettings(time_weight=0), job, 0, 0.5) == 0, "who stays has not been moved"


def test_who_is_late_may_be_moved_up_but_not_delayed() -> None:
    late = waiting_job(1, 50, 3, 4, slack=-20, of=10)
    assert cost(ALL, late, 1, 0.5) == math.inf
    assert cost(ALL, late, -5, 0.5) == -4 * 5 * 10


def test_no_weight_of_time() -> None:
    flat = SlackSettings(time_weight=0)
    assert own_price(flat, 0, 9) == own_price(flat, 1000, 9) == 9


# Slots and choices


def test_slots_are_where_any_claim_starts_or_ends() -> None:
    waiting = [waiting_job(1, 4, 3, 2), waiting_job(2, 7, 3, 2)]
    assert plan_of(4, waiting, running=[(4, 3), (9, 1)]).slots() == [0, 4, 7, 9, 10]


def test_a_slot_at_which_the_new_job_does_not_fit_is_passed_over() -> None:
    """Two of four processors are taken until 9: a job of three can't be tried before."""
    waiting = [waiting_job(1, 0, 4, 1)]
    plan = plan_of(4, waiting, running=[(9, 2)])
    tried = plan.schedules_with(waiting_job(2, 0, 5, 3))
    assert [schedule.slot for schedule in tried] == [9, 9]


def test_of_equal_prices_the_fewest_moves_then_the_earliest() -> None:
    """As in the first row of section 4.4 the new job might go before J1 for what it pays at 2."""
    waiting = [waiting_job(1, 0, 2, 4)]
    assert plan_of(4, waiting).insert(waiting_job(2, 0, 2, 4)) == {1: 0, 2: 2}
    everywhere = SlackSettings(time_weight=0)
    assert plan_of(4, waiting, everywhere).insert(waiting_job(2, 0, 2, 2)) == {1: 0, 2: 2}


def test_what_conservative_backfilling_would_do_is_always_possible() -> None:
    """By size J2 goes back before J1, which then comes too late: slot 5 has no price of its own."""
    waiting = [
        waiting_job(1, 5, 1, 3, slack=0, of=0),
        waiting_job(2, 6, 9, 3, slack=0, of=0),
    ]
    new = waiting_job(3, 0, 1, 1)
    by_size = plan_of(
        4, waiting, SlackSettings(insertion_order=InsertionOrder.DU), running=[(5, 4)]
    )
    assert [schedule.slot for schedule in by_size.schedules_with(new)] == [5, 6, 15]
    assert by_size.insert(new) == {1: 5, 2: 6, 3: 5}
    by_time = plan_of(4, waiting, running=[(5, 4)])
    assert [schedule.slot for schedule in by_time.schedules_with(new)] == [5, 5, 6, 15]


@given(PROFILES, st.sampled_from(InsertionOrder))
def test_whose_quota_is_exceeded_delays_nobody(case: Case, order: InsertionOrder) -> None:
    jobs, running, (processors, time, _) = case
    waiting = planned(jobs, running, MACHINE)
    plan = plan_of(MACHINE, waiting, SlackSettings(insertion_order=order), running=running)
    new = waiting_job(99, 0, time, processors, **EXCEEDED)  # type: ignore[arg-type]
    starts = plan.insert(new)
    assert {job.rank: job.start for job in waiting} == {k: v for k, v in starts.items() if k != 99}
    profile = plan.profile_with(waiting)
    assert starts[99] == profile.earliest_fit(0, time, processors)


def test_whose_quota_is_exceeded_gives_way_for_nothing_and_comes_back_last() -> None:
    exceeded = waiting_job(1, 3, 5, 4, **EXCEEDED)  # type: ignore[arg-type]
    for order in InsertionOrder:
        plan = plan_of(4, [exceeded], SlackSettings(insertion_order=order), running=[(3, 4)])
        assert plan.insert(waiting_job(2, 0, 7, 4)) == {1: 10, 2: 3}
        other = waiting_job(2, 8, 2, 4)
        assert [job.rank for job in plan_of(4, [exceeded, other], plan.settings).order(0, 1)] == [
            2,
            1,
        ]


@given(JOBS, SETTINGS)
def test_the_last_to_come_changes_nothing_if_its_quota_is_exceeded(
    rows: list[tuple[int, ...]], chosen: SlackSettings
) -> None:
    """With exact runtimes: nothing is planned again after it."""
    exact = [(gap, processors, requested, requested) for gap, processors, _, requested in rows]
    last = np.zeros(len(rows))
    last[-1] = -np.inf
    told = SlackJobs(np.zeros(len(rows)), last)
    with_it = run(exact, chosen, 8, slack_jobs=told)
    if len(rows) > 1:
        without = run(exact[:-1], chosen, 8)
        assert np.array_equal(with_it.start_time[:-1], without.start_time)


# Ends


def test_moving_up_for_nothing_is_done_all_the_same() -> None:
    """The paper's cheapest schedule is the one without a move; processors would stay idle."""
    free = waiting_job(1, 30, 5, 4, **EXCEEDED)  # type: ignore[arg-type]
    assert plan_of(4, [free]).remove() == {1: 0}
    moved_before = waiting_job(1, 30, 5, 4, slack=5, of=0)
    assert plan_of(4, [moved_before]).remove() == {1: 0}


@given(PROFILES, st.sampled_from(InsertionOrder), st.data())
def test_after_an_end_nobody_can_move_up_alone(
    case: Case, order: InsertionOrder, data: st.DataObject
) -> None:
    jobs, running, _ = case
    waiting = planned(jobs, running, MACHINE)
    left = data.draw(st.lists(st.sampled_from(running), max_size=1)) if running else []
    plan = plan_of(MACHINE, waiting, SlackSettings(insertion_order=order), running=left)
    starts = plan.remove()
    for job in waiting:
        assert starts[job.rank] - job.start <= job.slack
        profile = plan.profile_of_claims()
        for other in waiting:
            if other is not job:
                profile.reserve(starts[other.rank], other.time, other.processors)
        assert profile.earliest_fit(0, job.time, job.processors) == starts[job.rank]
        if order is InsertionOrder.AST:
            assert starts[job.rank] <= job.start


@given(JOBS, SETTINGS)
def test_an_end_on_time_moves_nobody(rows: list[tuple[int, ...]], chosen: SlackSettings) -> None:
    exact = [(gap, processors, requested, requested) for gap, processors, _, requested in rows]
    with patch.object(SlackPlan, "remove", side_effect=AssertionError("nothing ended early")):
        run(exact, chosen, 8)


def test_ends_of_one_second_are_one() -> None:
    jobs = [(0, 2, 5, 9), (0, 2, 5, 9), (1, 4, 5, 5)]
    with patch.object(SlackPlan, "remove", autospec=True, side_effect=SlackPlan.remove) as asked:
        assert run(jobs, ALL).start_time.tolist() == [0, 0, 5]
    assert asked.call_count == 1


# What comes in one second


def test_who_starts_at_once_is_not_passed_by_one_of_the_same_second() -> None:
    """The third would save four processors 9 s each by delaying the second, which has slack."""
    jobs = [(0, 1, 9, 9), (0, 3, 9, 9), (0, 3, 1, 1)]
    patient = SlackSettings(average_wait_s=100.0)
    assert run(jobs, patient).start_time.tolist() == [0, 0, 9]
    assert run(jobs, patient, order=Order.SJF).start_time.tolist() == [0, 1, 0]


# Average waits


def test_the_average_wait_is_learned_from_those_that_have_started() -> None:
    """Nobody has slack before somebody has waited."""
    jobs = [(0, 4, 10, 10), (1, 4, 10, 10), (1, 4, 10, 10), (20, 4, 10, 10)]
    found = run(jobs, ALL)
    assert found.start_time.tolist() == [0, 10, 20, 30]
    assert found.latest_start is not None
    # At 22 three jobs have started after 0, 9 and 18 s. The last is planned 8 s ahead, so that
    # SP = 8 / 18, and (1 - 4/27) * 3 * 9 = 23 s of slack.
    assert found.latest_start.tolist() == [0, 10, 20, 30 + 23]


def test_average_waits_of_jobs_go_before_that_of_the_settings() -> None:
    jobs = [(0, 4, 10, 10), (0, 4, 10, 10)]
    told = SlackJobs(np.zeros(2), np.zeros(2), np.array([100.0, 10.0]))
    found = run(jobs, SlackSettings(average_wait_s=1000.0), slack_jobs=told)
    assert found.latest_start is not None
    assert found.latest_start.tolist() == [300, 10 + 25], "(1 - (10/20) / 3) * 3 * 10"


# Promises


def test_slack_that_came_from_moving_up_can_be_used_with_a_slack_factor_of_0() -> None:
    """With inexact runtimes it isn't conservative backfilling: who was moved up may go back.

    The second job, planned for 20, is moved up to 5. The third comes at 2 (planned for 24 s) and
    the fourth, which is short, at 6.
    """
    jobs = [(0, 4, 5, 20), (1, 3, 9, 9), (0, 4, 4, 4), (5, 2, 3, 3)]
    none = SlackSettings(slack_factor=0)
    ours = run(jobs, none)
    assert ours.latest_start is not None
    conservative = simulate(workload_of(jobs, 4), Policy(backfill=Backfill.CONSERVATIVE))
    assert conservative.start_time.tolist() == [0, 5, 14, 18]
    assert ours.start_time.tolist() == [0, 5, 17, 14]
    assert ours.latest_start.tolist() == [0, 20, 29, 14]


def test_only_who_outlives_an_estimate_breaks_a_promise() -> None:
    """The first was thought to end at 5 and ends at 12: without slack the second is late."""
    jobs = [(0, 4, 12, 20), (1, 4, 5, 5)]
    none = SlackSettings(slack_factor=0)
    thought = np.array([5, 5])
    broken = run(jobs, none, scheduled_time=thought)
    assert broken.latest_start is not None
    assert broken.latest_start.tolist() == [0, 5]
    assert broken.start_time.tolist() == [0, 12]


@given(JOBS, SETTINGS, st.integers(0, 30), st.integers(1, 20), st.sampled_from(EventOrder))
def test_promises_hold_around_advance_reservations(
    rows: list[tuple[int, ...]],
    chosen: SlackSettings,
    start: int,
    duration: int,
    event_order: EventOrder,
) -> None:
    jobs = [(*row[:2], min(row[2], row[3]), row[3]) for row in rows]
    policy = Policy(backfill=Slack(chosen), event_order=event_order)
    claims = [AdvanceReservation(start, duration, 5)]
    found = reference.simulate(workload_of(jobs, 8), policy, reservations=claims)
    assert found.latest_start is not None
    assert (found.start_time <= found.latest_start).all()


@given(JOBS, SETTINGS, st.integers(1, 10**6))
def test_the_clock_and_the_unit_of_processors_mean_nothing(
    rows: list[tuple[int, ...]], chosen: SlackSettings, later: int
) -> None:
    """Twice the processors everywhere double every price, and a power of two changes no digit."""
    exact = replace(chosen, utilization_weight=1.0)
    rows = [(*row[:2], min(row[2], row[3]), row[3]) for row in rows]
    found = run(rows, exact, 8)
    first = (rows[0][0] + later, *rows[0][1:])
    assert np.array_equal(run([first, *rows[1:]], exact, 8).start_time, found.start_time + later)
    twice = [(row[0], 2 * row[1], *row[2:]) for row in rows]
    assert np.array_equal(run(twice, exact, 16).start_time, found.start_time)


THREE = [(0, 4, 10, 10), (1, 4, 10, 10), (1, 4, 10, 10)]
IMPORTANT = SlackJobs(np.array([0, 0, 1.0]), np.array([0, 0, 1.0]))


@pytest.mark.parametrize("order", InsertionOrder)
def test_a_higher_priority_starts_earlier(order: InsertionOrder) -> None:
    """Requirement XIII: the last to come has the higher priority and goes before its equal."""
    settings = SlackSettings(average_wait_s=5.0, insertion_order=order)
    assert run(THREE, settings).start_time.tolist() == [0, 10, 20]
    assert run(THREE, settings, slack_jobs=IMPORTANT).start_time.tolist() == [0, 20, 10]


@pytest.mark.parametrize("order", InsertionOrder)
def test_requirement_xii_is_not_met_by_the_papers_formulas(order: InsertionOrder) -> None:
    """A new job goes before its equal that came earlier, if that was to wait less than the average.

    The new one's priority is worked out with SP = 1/2, that of the other with its own SP: here
    9 / 200, so that to delay it costs a tenth of what the new one would pay for waiting.
    """
    settings = SlackSettings(average_wait_s=100.0, insertion_order=order)
    assert run(THREE, settings).start_time.tolist() == [0, 20, 10]


def test_the_longer_slack_is_delayed() -> None:
    """Requirement XIV: of two alike that might make room the one goes that has more slack left."""
    for used, room in ((1, 2), (2, 1)):
        left = {1: 10, 2: 10}
        left[used] = 5
        waiting = [waiting_job(rank, 0, 2, 2, slack=left[rank]) for rank in (1, 2)]
        settings = SlackSettings(insertion_order=InsertionOrder.DC)
        starts = plan_of(4, waiting, settings).insert(waiting_job(3, 0, 2, 2, priority=1.0))
        assert starts[3] == 0
        assert starts[room] == 2
