"""Slack-based backfilling in the native core is the plain Python specification, job for job."""

from __future__ import annotations

from typing import Any

import numpy as np
from foretime_sim import reference
from foretime_sim.advance_reservations import AdvanceReservation
from foretime_sim.availability_profile import AvailabilityProfile
from foretime_sim.engine import simulate
from foretime_sim.policy import Backfill, Correction, EventOrder, Order, Policy, Roles
from foretime_sim.slack import InsertionOrder, SlackJobs, SlackSettings
from foretime_sim.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_families_agreement import MACHINE, assert_same, reservations, workloads

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
    policy = Policy(
        order, Backfill.SLACK, correction, roles=roles, event_order=event_order, slack=chosen
    )
    columns = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    workload = Workload("random", MACHINE, None, names, np.cumsum(columns[0]), *columns[1:4])
    slack_jobs = None
    if told is not None:
        user, political, waits = np.array(told[: len(rows)], dtype=np.float64).T
        slack_jobs = SlackJobs(user, political, waits if own_waits else None)
    given_s: dict[str, Any] = {"reservations": claims, "slack_jobs": slack_jobs}
    native = simulate(workload, policy, *columns[4:7], check=True, **given_s)
    plain = reference.simulate(
        workload, policy, *columns[4:7], new_profile=AvailabilityProfile, **given_s
    )
    assert_same(native, plain)
    assert native.latest_start is not None
    assert plain.latest_start is not None
    np.testing.assert_array_equal(native.latest_start, plain.latest_start)
