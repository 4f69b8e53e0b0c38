"""Every family in the core, whole and stepwise, is the plain Python specification, job for job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import (
    FAMILIES,
    Candidates,
    Compression,
    Conservative,
    Easy,
)
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MACHINE = 8
POLICIES: dict[str, Backfilling] = {
    **FAMILIES,
    "easy-2": Easy(depth=2),
    "easy-sjbf-3": Easy(Candidates.SJBF, depth=3),
    **{f"conservative-{compression}": Conservative(compression) for compression in Compression},
}
common = st.fixed_dictionaries(
    {
        "order": st.sampled_from(Order),
        "correction": st.sampled_from(Correction),
        "roles": st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
        "event_order": st.sampled_from(EventOrder),
    }
)
reservations = st.lists(
    st.builds(
        AdvanceReservation,
        start=st.integers(-5, 600),
        duration=st.integers(1, 200),
        processors=st.integers(1, 2),
    ),
    max_size=4,
)
gaps = st.sampled_from([0, 0, 1, 7, 60])
widths = st.integers(1, MACHINE)
# submission gap, processors, actual runtime, requested time, t_sched, time limit, priority
exact_rows = st.builds(
    lambda gap, width, time, priority: (gap, width, time, time, time, time, priority),
    gaps, widths, st.integers(1, 200), st.integers(0, 3),
)  # fmt: skip
overestimated_rows = st.builds(
    lambda gap, width, time, more, priority: (
        gap, width, time, time + more, time + more, time + more, priority,
    ),
    gaps, widths, st.integers(0, 100), st.integers(1, 300), st.integers(0, 3),
)  # fmt: skip
any_rows = st.tuples(
    gaps,
    widths,
    st.integers(0, 400),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 400),
    st.integers(0, 3),
)
workloads = st.one_of(
    *(st.lists(rows, min_size=1, max_size=40) for rows in (exact_rows, overestimated_rows)),
    *(st.lists(any_rows, min_size=1, max_size=size) for size in (12, 40)),
)


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.first_planned_start is None) == (other.first_planned_start is None)
    if one.first_planned_start is not None:
        np.testing.assert_array_equal(one.first_planned_start, other.first_planned_start)
    assert one.counters == other.counters


@pytest.mark.parametrize("family", POLICIES)
@given(rows=workloads, options=common, claims=st.just([]) | reservations)
@settings(max_examples=60)
def test_core_stepwise_and_reference_agree(
    family: str,
    rows: list[tuple[int, ...]],
    options: dict[str, Any],
    claims: list[AdvanceReservation],
) -> None:
    policy = Policy(backfill=POLICIES[family], **options)
    columns = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    jobs = Workload("random", MACHINE, None, names, np.cumsum(columns[0]), *columns[1:4])
    known = columns[4:7]
    whole = simulate(jobs, policy, *known, reservations=claims, check=True)
    assert_same(whole, reference.simulate(jobs, policy, *known, reservations=claims))
    engine = Engine(MACHINE, policy, int(jobs.submit_time[0]), claims)
    for submit, row in zip(jobs.submit_time.tolist(), rows, strict=True):
        engine.advance(submit)
        engine.submit(submit, *row[1:])
    engine.finish()
    assert_same(whole, engine.schedule())


@pytest.mark.parametrize(
    "family", [name for name, family in POLICIES.items() if family.plans_every_job]
)
@given(rows=workloads, options=common)
@settings(max_examples=20)
def test_every_waiting_job_has_a_plan(
    family: str, rows: list[tuple[int, ...]], options: dict[str, Any]
) -> None:
    """None is in the past, and the next one is an event."""
    policy = Policy(backfill=POLICIES[family], **options)
    engine = Engine(MACHINE, policy)
    clock = 0
    for row in rows:
        clock += row[0]
        engine.submit(clock, *row[1:])
    engine.settle()
    while (clock_next := engine.next_event_time) is not None:
        engine.advance(clock_next)
        engine.settle()
        planned = [engine.planned_start(index) for index in engine.queue().tolist()]
        assert all(start is not None and start >= clock_next for start in planned)
        later = [start for start in planned if start is not None and start > clock_next]
        following = engine.next_event_time
        assert not later or (following is not None and following <= min(later))
