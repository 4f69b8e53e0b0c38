"""What slack-based backfilling holds for any workload and settings, on its specification."""

from __future__ import annotations

from typing import Any

import numpy as np
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule, check
from foretime_sim.policies.families import Backfill, Slack
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.slack import INFINITE_SLACK, InsertionOrder, SlackJobs, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans.availability_profile import AvailabilityProfile

MACHINE = 8
JOB = st.tuples(st.integers(0, 8), st.integers(1, MACHINE), st.integers(0, 20), st.integers(1, 20))
JOBS = st.lists(JOB, min_size=1, max_size=16)
WEIGHT = st.sampled_from([0.0, 0.2, 0.5, 1.0])
SETTINGS = st.builds(
    SlackSettings,
    slack_factor=st.sampled_from([0.0, 1.0, 3.0, 9.5]),
    average_wait_s=st.sampled_from([None, 0.0, 0.7, 12.0]),
    utilization_weight=WEIGHT,
    time_weight=WEIGHT,
    priority_weight=WEIGHT,
    fairness_weight=WEIGHT,
    insertion_order=st.sampled_from(InsertionOrder),
)
PRIORITY = st.sampled_from([0.0, 0.3, 1.0])
TOLD = st.tuples(PRIORITY, PRIORITY | st.just(-np.inf))
CONSERVATIVE = Policy(backfill=Backfill.CONSERVATIVE)


def workload_of(rows: list[tuple[int, ...]], *, exact: bool = False) -> Workload:
    """Give jobs of (gap, processors, actual runtime, requested time)."""
    gaps, processors, actual, requested = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    actual = requested if exact else np.minimum(actual, requested)
    return Workload("jobs", MACHINE, None, names, np.cumsum(gaps), processors, actual, requested)


def run(workload: Workload, chosen: SlackSettings, told: Any = None, **options: Any) -> Schedule:
    """Run the specification, and check the laws of any schedule."""
    jobs = None
    if told is not None:
        user, political = np.array(told, dtype=np.float64)[: len(workload)].T
        jobs = SlackJobs(user, political)
    policy = Policy(backfill=Slack(chosen))
    found = reference.simulate(workload, policy, slack_jobs=jobs, **options)
    check(workload, found, workload.requested_time)
    return found


@given(JOBS, SETTINGS, st.lists(TOLD, min_size=16, max_size=16))
def test_nobody_starts_after_the_latest_start(
    rows: list[tuple[int, ...]], chosen: SlackSettings, told: Any
) -> None:
    workload = workload_of(rows)
    found = run(workload, chosen, told)
    assert found.latest_start is not None
    assert found.first_planned_start is not None
    assert (found.start_time <= found.latest_start).all()
    unbounded = np.isneginf(np.array(told)[: len(rows), 1])
    assert np.array_equal(found.latest_start == INFINITE_SLACK, unbounded)
    most = chosen.slack_factor * (chosen.average_wait_s or 0)
    if chosen.average_wait_s is not None:
        promised = (found.latest_start - found.first_planned_start)[~unbounded]
        assert ((promised >= 0) & (promised <= most)).all()


@given(JOBS, SETTINGS, st.sampled_from(EventOrder))
def test_without_slack_and_with_exact_runtimes_it_is_conservative(
    rows: list[tuple[int, ...]], chosen: SlackSettings, event_order: EventOrder
) -> None:
    workload = workload_of(rows, exact=True)
    none = SlackSettings(slack_factor=0, insertion_order=chosen.insertion_order)
    policy = Policy(backfill=Slack(none), event_order=event_order)
    found = reference.simulate(workload, policy)
    plain = Policy(backfill=Backfill.CONSERVATIVE, event_order=event_order)
    conservative = simulate(workload, plain)
    assert np.array_equal(found.start_time, conservative.start_time)
    assert np.array_equal(found.started_by, conservative.started_by)
    assert found.latest_start is not None
    assert conservative.first_planned_start is not None
    assert np.array_equal(found.latest_start, conservative.first_planned_start)


@given(JOBS, SETTINGS, st.integers(0, 20))
def test_nobody_knows_how_long_a_job_will_really_take(
    rows: list[tuple[int, ...]], chosen: SlackSettings, other: int
) -> None:
    """Of the last to come: until it ends nothing differs, and nobody's promise at all."""
    workload = workload_of(rows)
    changed = workload_of([*rows[:-1], (*rows[-1][:2], other, rows[-1][3])])
    one, two = run(workload, chosen), run(changed, chosen)
    assert one.latest_start is not None
    assert two.latest_start is not None
    assert np.array_equal(one.latest_start, two.latest_start)
    assert one.start_time[-1] == two.start_time[-1]
    until = min(one.end_time[-1], two.end_time[-1])
    before = one.start_time < until
    assert np.array_equal(before, two.start_time < until)
    assert np.array_equal(one.start_time[before], two.start_time[before])


@given(JOBS, SETTINGS)
def test_profiles_of_lists_and_of_steps_agree(
    rows: list[tuple[int, ...]], chosen: SlackSettings
) -> None:
    workload = workload_of(rows)
    listed = run(workload, chosen)
    stepped = run(workload, chosen, new_profile=AvailabilityProfile)
    assert np.array_equal(listed.start_time, stepped.start_time)
    assert listed.latest_start is not None
    assert stepped.latest_start is not None
    assert np.array_equal(listed.latest_start, stepped.latest_start)
