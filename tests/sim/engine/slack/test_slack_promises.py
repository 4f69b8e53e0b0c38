"""What slack-based backfilling promises, natively on larger workloads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule, ScheduleError, check_promises
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Compression, Conservative, Slack
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.slack import INFINITE_SLACK, InsertionOrder, SlackJobs, SlackSettings
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.real_logs import Load


def slack(chosen: SlackSettings, event_order: EventOrder = EventOrder.PER_TIMESTEP) -> Policy:
    return Policy(backfill=Slack(chosen), event_order=event_order)


def assert_kept(schedule: Schedule) -> None:
    assert schedule.latest_start is not None
    assert schedule.first_planned_start is not None
    assert (schedule.start_time <= schedule.latest_start).all()
    assert (schedule.first_planned_start <= schedule.latest_start).all()


WEIGHTS = st.sampled_from([1.0, 0.5, 0.0])
SETTINGS = st.builds(
    SlackSettings,
    slack_factor=st.sampled_from([0.0, 1.0, 3.0, 9.0]),
    average_wait_s=st.sampled_from([None, 600.0, 7_200.0]),
    utilization_weight=WEIGHTS,
    time_weight=WEIGHTS,
    priority_weight=WEIGHTS,
    fairness_weight=WEIGHTS,
    insertion_order=st.sampled_from(InsertionOrder),
)


@given(
    seed=st.integers(0, 2**20),
    load=st.sampled_from([0.6, 0.9, 1.3]),
    chosen=SETTINGS,
    event_order=st.sampled_from(EventOrder),
    apart=st.booleans(),
)
@settings(max_examples=25)
def test_nobody_starts_after_his_latest_start(
    seed: int, load: float, chosen: SlackSettings, event_order: EventOrder, apart: bool
) -> None:
    """With overestimated runtimes; jobs over quota have no latest start."""
    workload = lublin2003.generate(700, processors=64, seed=seed, load=load)
    slack_jobs = None
    if apart:
        rng = np.random.default_rng(seed)
        political = rng.choice([0, 0.5, 1, -np.inf], len(workload))
        slack_jobs = SlackJobs(rng.uniform(0, 1, len(workload)), political)
    policy = slack(chosen, event_order)
    schedule = simulate(workload, policy, slack_jobs=slack_jobs, check=True)
    assert_kept(schedule)
    assert schedule.latest_start is not None
    unbounded = schedule.latest_start == INFINITE_SLACK
    expected = np.isneginf(slack_jobs.political_priority) if slack_jobs else False
    assert np.array_equal(unbounded, np.broadcast_to(expected, len(workload)))


def test_jobs_are_delayed_for_others_at_all() -> None:
    """Else the promises above would say nothing."""
    workload = lublin2003.generate(1_000, processors=64, seed=1, load=1.0)
    schedule = simulate(workload, slack(SlackSettings(average_wait_s=3_600)))
    assert_kept(schedule)
    assert schedule.first_planned_start is not None
    assert (schedule.start_time > schedule.first_planned_start).any()
    check_promises(workload, schedule)
    with pytest.raises(ScheduleError, match="was promised"):
        check_promises(workload, replace(schedule, latest_start=None))


@given(
    seed=st.integers(0, 2**20),
    load=st.sampled_from([0.7, 1.0]),
    insertion_order=st.sampled_from(InsertionOrder),
    event_order=st.sampled_from(EventOrder),
)
@settings(max_examples=15)
def test_without_slack_and_with_exact_runtimes_it_is_conservative(
    seed: int, load: float, insertion_order: InsertionOrder, event_order: EventOrder
) -> None:
    logged = lublin2003.generate(1_000, processors=64, seed=seed, load=load)
    runtime = np.maximum(logged.actual_runtime, 1)
    workload = Workload(
        "exact", 64, None, logged.job_id, logged.submit_time, logged.processors, runtime, runtime
    )
    none = SlackSettings(slack_factor=0, insertion_order=insertion_order)
    found = simulate(workload, slack(none, event_order), check=True)
    plain = Policy(backfill=Conservative(Compression.RESERVATION_ORDER), event_order=event_order)
    conservative = simulate(workload, plain)
    assert np.array_equal(found.start_time, conservative.start_time)
    assert np.array_equal(found.started_by, conservative.started_by)
    assert found.latest_start is not None
    assert found.first_planned_start is not None
    assert np.array_equal(found.latest_start, found.first_planned_start)


def test_who_outlives_an_estimate_may_break_promises() -> None:
    """Planned for half of what was asked for, with every correction; the schedule is lawful."""
    workload = lublin2003.generate(700, processors=64, seed=3, load=1.0)
    half = np.maximum(workload.requested_time // 2, 1)
    late = 0
    for correction in Correction:
        policy = Policy(backfill=Slack(SlackSettings(average_wait_s=600)), correction=correction)
        schedule = simulate(workload, policy, half, check=True)
        assert schedule.latest_start is not None
        late += int((schedule.start_time > schedule.latest_start).sum())
    assert late > 0


@pytest.mark.traces
@pytest.mark.parametrize("insertion_order", InsertionOrder)
def test_promises_are_kept_on_a_real_log(load: Load, insertion_order: InsertionOrder) -> None:
    workload = load("KTH-SP2-1996-2.1-cln").head(10_000)
    assert_kept(simulate(workload, slack(SlackSettings(insertion_order=insertion_order))))
