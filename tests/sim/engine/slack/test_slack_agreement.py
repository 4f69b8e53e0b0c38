"""Slack-based backfilling in the native core is the plain Python specification, job for job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Slack
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackJobs, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.families.test_families_agreement import (
    MACHINE,
    assert_same,
    reservations,
    workloads,
)
from tests.support.plans.availability_profile import AvailabilityProfile

WEIGHTS = st.sampled_from([1.0, 1.0, 0.5, 0.2, 0.0])
SETTINGS = st.builds(
    SlackSettings,
    slack_factor=st.sampled_from([0.0, 0.5, 3.0, 9.0, 1e6]),
    average_wait_s=st.sampled_from([None, 0.0, 20.0, 333.3]),
    utilization_weight=WEIGHTS,
    time_weight=WEIGHTS,
    priority_weight=WEIGHTS,
    fairness_weight=WEIGHTS,
    insertion_order=st.sampled_from(InsertionOrder),
)
PRIORITIES = st.sampled_from([0.0, 0.0, 0.3, 1.0])
TOLD = st.lists(
    st.tuples(PRIORITIES, PRIORITIES | st.just(-np.inf), st.sampled_from([0.0, 5.0, 70.5, 1000.0])),
    min_size=40,
    max_size=40,
)


def workload_of(rows: list[tuple[int, ...]]) -> Workload:
    columns = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    return Workload("random", MACHINE, None, names, np.cumsum(columns[0]), *columns[1:4])


def slack_jobs_of(told: list[tuple[float, ...]] | None, jobs: int, waits: bool) -> SlackJobs | None:
    if told is None:
        return None
    user, political, average_wait_s = np.array(told[:jobs], dtype=np.float64).T
    return SlackJobs(user, political, average_wait_s if waits else None)


def assert_agree(workload: Workload, policy: Policy, *times: Any, **given_s: Any) -> None:
    """Natively it is what it is in Python."""
    native = simulate(workload, policy, *times, check=True, **given_s)
    plain = reference.simulate(workload, policy, *times, new_profile=AvailabilityProfile, **given_s)
    assert_same(native, plain)
    assert native.latest_start is not None
    assert plain.latest_start is not None
    np.testing.assert_array_equal(native.latest_start, plain.latest_start)


@given(
    rows=workloads,
    chosen=SETTINGS,
    told=st.none() | TOLD,
    own_waits=st.booleans(),
    order=st.sampled_from(Order),
    correction=st.sampled_from(Correction),
    roles=st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
    event_order=st.sampled_from(EventOrder),
    claims=st.just([]) | reservations,
)
@settings(max_examples=250)
def test_core_and_reference_agree(
    rows: list[tuple[int, ...]],
    chosen: SlackSettings,
    told: list[tuple[float, ...]] | None,
    own_waits: bool,
    order: Order,
    correction: Correction,
    roles: Roles,
    event_order: EventOrder,
    claims: list[AdvanceReservation],
) -> None:
    policy = Policy(order, Slack(chosen), correction, roles=roles, event_order=event_order)
    times = np.array(rows, dtype=np.int64).T[4:7]
    slack_jobs = slack_jobs_of(told, len(rows), own_waits)
    assert_agree(workload_of(rows), policy, *times, reservations=claims, slack_jobs=slack_jobs)


@pytest.mark.parametrize("insertion_order", InsertionOrder)
@pytest.mark.parametrize("seed", range(2))
def test_deeper_queues_agree(insertion_order: InsertionOrder, seed: int) -> None:
    """Of dozens of jobs, so that slots which are left out matter; some of them are over quota."""
    workload = lublin2003.generate(130, processors=64, seed=seed, load=1.6)
    rng = np.random.default_rng(seed)
    political = rng.choice([0, 1, -np.inf], len(workload), p=[0.75, 0.23, 0.02])
    slack_jobs = SlackJobs(rng.choice([0.0, 1.0], len(workload)), political)
    for average_wait_s in (None, 5_000.0):
        chosen = SlackSettings(average_wait_s=average_wait_s, insertion_order=insertion_order)
        policy = Policy(backfill=Slack(chosen))
        assert_agree(workload, policy, slack_jobs=slack_jobs if average_wait_s else None)


@given(
    rows=workloads,
    chosen=SETTINGS,
    told=st.none() | TOLD,
    overruns=st.sampled_from(Overruns),
    roles=st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
)
@settings(max_examples=150)
def test_jobs_whose_time_is_up_are_judged_alike(
    rows: list[tuple[int, ...]],
    chosen: SlackSettings,
    told: list[tuple[float, ...]] | None,
    overruns: Overruns,
    roles: Roles,
) -> None:
    chosen = replace(chosen, overruns=overruns)
    policy = Policy(backfill=Slack(chosen), roles=roles)
    slack_jobs = slack_jobs_of(told, len(rows), waits=False)
    scheduled_s = np.array(rows, dtype=np.int64).T[4]
    assert_agree(workload_of(rows), policy, scheduled_s, slack_jobs=slack_jobs)
