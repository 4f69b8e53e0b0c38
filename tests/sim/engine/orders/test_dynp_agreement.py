"""dynP in the core, whole, stepwise and from snapshots, is the plain Python specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foretime_sim import _core
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.policies.policy_switching import (
    ORDERS_OF_DYNP,
    SELF_TUNING,
    TABLE_1_CASES,
    Decider,
    PolicySwitching,
    Quality,
)
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.sim.engine.families.test_families_agreement import (
    MACHINE,
    assert_same,
    reservations,
    workloads,
)
from tests.sim.engine.orders.test_reference_dynp import TABLE_1
from tests.support.plans.availability_profile import AvailabilityProfile

weights = st.floats(0.01, 10)
qualities = st.sampled_from(Quality) | st.lists(
    st.tuples(st.sampled_from(Quality), weights), min_size=1, max_size=3, unique_by=lambda q: q[0]
).map(tuple)


@st.composite
def switchings(draw: st.DrawFn) -> PolicySwitching:
    decider = draw(st.sampled_from(Decider))
    settings: dict[str, Any] = {"decider": decider}
    if decider in SELF_TUNING:
        others = st.lists(st.sampled_from(Order), min_size=2, max_size=5, unique=True).map(tuple)
        settings["orders"] = draw(st.just(ORDERS_OF_DYNP) | others)
        settings["quality"] = draw(qualities)
        settings["slackness"] = draw(st.sampled_from([0.0, 0.0, 0.05, 0.5]))
        settings["slowdown_bound_s"] = draw(st.sampled_from([1, 60]))
        reduced = draw(st.sampled_from(["first_starts", "horizon_s", None, None]))
        if reduced is not None:
            settings[reduced] = draw(st.sampled_from([1, 3, 100]))
    else:
        settings["lower_bound_s"] = draw(st.sampled_from([50, 100]))
        settings["upper_bound_s"] = draw(st.sampled_from([100, 150]))
        settings["interactive_s"] = draw(st.sampled_from([50, 100]))
        settings["saturation"] = draw(st.sampled_from([0.5, 1.0, 1.3]))
    settings["least_waiting"] = draw(st.sampled_from([None, None, 1, 3]))
    return PolicySwitching(**settings)


@st.composite
def one_lists(draw: st.DrawFn) -> PolicySwitching:
    decider, least = draw(st.sampled_from(SELF_TUNING)), draw(st.sampled_from([None, None, 1, 3]))
    slackness = draw(st.sampled_from([0.0, 0.0, 0.05]))
    return PolicySwitching(
        decider,
        quality=draw(qualities),
        least_waiting=least,
        slackness=slackness,
        first_starts=draw(st.sampled_from([None, None, 2])),
        one_list=True,
    )


@st.composite
def policies(draw: st.DrawFn, settings: st.SearchStrategy[PolicySwitching] | None = None) -> Policy:
    switching = draw(switchings() if settings is None else settings)
    return Policy(
        draw(st.sampled_from(switching.orders)),
        Planning(switching),
        draw(st.sampled_from(Correction)),
        roles=draw(st.builds(Roles, st.booleans(), st.booleans(), st.booleans())),
        event_order=draw(st.sampled_from(EventOrder)),
    )


def assert_counted_alike(one: SwitchingCounters | None, other: SwitchingCounters | None) -> None:
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.started_under, other.started_under)
    for name in ("orders", "tries", "switches", "waiting_at_tries", "cases"):
        assert getattr(one, name) == getattr(other, name), name


@given(rows=workloads, policy=policies(), claims=st.just([]) | reservations)
@settings(max_examples=400)
def test_core_stepwise_and_reference_agree(
    rows: list[tuple[int, ...]], policy: Policy, claims: list[AdvanceReservation]
) -> None:
    columns = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    jobs = Workload("random", MACHINE, None, names, np.cumsum(columns[0]), *columns[1:4])
    known = columns[4:7]
    whole = simulate(jobs, policy, *known, reservations=claims, check=True)
    expected = reference.simulate(jobs, policy, *known, reservations=claims)
    assert_same(whole, expected)
    assert_counted_alike(whole.switching, expected.switching)
    assert whole.switching is not None
    event("switched" if sum(whole.switching.switches) else "kept its order")
    engine = Engine(MACHINE, policy, int(jobs.submit_time[0]), claims)
    for submit, row in zip(jobs.submit_time.tolist(), rows, strict=True):
        engine.advance(submit)
        engine.submit(submit, *row[1:])
    engine.finish()
    assert_same(whole, engine.schedule())
    assert_counted_alike(whole.switching, engine.schedule().switching)


@given(rows=workloads, policy=policies(one_lists()), claims=st.just([]) | reservations)
@settings(max_examples=400)
def test_one_list_in_the_core_is_that_of_the_reference(
    rows: list[tuple[int, ...]], policy: Policy, claims: list[AdvanceReservation]
) -> None:
    columns = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    jobs = Workload("random", MACHINE, None, names, np.cumsum(columns[0]), *columns[1:4])
    found = simulate(jobs, policy, *columns[4:7], reservations=claims, check=True)
    expected = reference.simulate(jobs, policy, *columns[4:7], reservations=claims)
    assert_same(found, expected)
    assert_counted_alike(found.switching, expected.switching)
    assert found.switching is not None
    event("switched" if sum(found.switching.switches) else "kept its order")


@given(
    rows=workloads,
    policy=policies(),
    claims=st.just([]) | reservations,
    at=st.integers(0, 1000),
    settle=st.booleans(),
    update=st.none() | st.tuples(st.integers(0, 9), st.integers(1, 300), st.integers(1, 300)),
    cancel=st.none() | st.integers(0, 9),
)
@settings(max_examples=300)
def test_a_snapshot_goes_on_in_the_order_that_is_current(
    rows: list[tuple[int, ...]],
    policy: Policy,
    claims: list[AdvanceReservation],
    at: int,
    settle: bool,
    update: tuple[int, int, int] | None,
    cancel: int | None,
) -> None:
    """Whatever was changed or cancelled before."""
    engine = Engine(MACHINE, policy, reservations=claims)
    clock = 0
    for row in rows:
        clock += row[0]
        engine.submit(clock, *row[1:])
    engine.advance(at // 2)
    if update is not None and update[0] < len(rows):
        index, requested, scheduled = update
        if engine.job(index).state in ("pending", "running"):
            engine.update(index, requested_time=requested, scheduled_time=scheduled)
    if cancel is not None and cancel < len(rows) and engine.job(cancel).state == "pending":
        engine.cancel(cancel)
    engine.advance(at)
    if settle or policy.event_order is EventOrder.PER_EVENT:
        engine.settle()
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    assert snapshot.current_order is engine.current_order
    index = snapshot.engine_index.tolist()
    runtimes = np.array([[engine.job(job).actual_runtime for job in index]], dtype=np.int64)
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    engine.finish()
    assert starts.tolist() == [engine.job(job).start_time for job in index]


@pytest.mark.parametrize("row", TABLE_1)
@pytest.mark.parametrize("current", ORDERS_OF_DYNP)
def test_the_core_has_the_case_and_choice_of_each_row_of_table_1(
    row: tuple[str, tuple[int, int, int], Order | None, Order, Order | None], current: Order
) -> None:
    case, ranks, only_current, simple, advanced = row
    if only_current not in (None, current):
        return
    place = ORDERS_OF_DYNP.index(current)
    assert TABLE_1_CASES[_core.case_of_table_1(list(ranks), place)] == case
    for decider, order in ((Decider.SIMPLE, simple), (Decider.ADVANCED, advanced or current)):
        chosen = _core.chosen_order(str(decider), list(ranks), place)
        assert ORDERS_OF_DYNP[chosen] is order


def test_the_queue_is_shown_in_the_current_order() -> None:
    """As a wide short job waits, and short ones of the running job's width go before it."""
    policy = Policy(backfill=Planning(PolicySwitching()))
    engine = Engine(2, policy)
    engine.submit(0, 2, 100, 100)
    long, short = engine.submit(1, 2, 50, 50), engine.submit(2, 2, 10, 10)
    engine.advance(3)
    assert engine.current_order is Order.SJF
    assert engine.queue().tolist() == [short, long]
    assert (engine.planned_start(short), engine.planned_start(long)) == (100, 110)


@pytest.mark.parametrize(
    "switching",
    [
        PolicySwitching(),
        PolicySwitching(orders=(Order.XF, Order.LJF, Order.WFP, Order.SJF)),
        PolicySwitching(one_list=True),
        PolicySwitching(Decider.SIMPLE, one_list=True),
    ],
    ids=str,
)
def test_core_and_reference_agree_with_hundreds_waiting(switching: PolicySwitching) -> None:
    """As many as no generated example has, with few requests that are alike."""
    rng = np.random.default_rng(5)
    jobs = 400
    requested = rng.choice([300, 900, 3600, 7200], jobs) + rng.choice([0, 0, 60, 77], jobs)
    deep = Workload(
        name="deep",
        machine_processors=64,
        unix_start_time=None,
        job_id=np.arange(jobs),
        submit_time=np.cumsum(rng.choice([0, 0, 5, 60], jobs)),
        processors=rng.choice([1, 1, 2, 4, 8, 17, 32, 64], jobs),
        actual_runtime=np.maximum(1, requested * rng.choice([1, 2, 5, 10], jobs) // 10),
        requested_time=requested,
    )
    policy = Policy(switching.orders[0], Planning(switching))
    found = simulate(deep, policy, check=True)
    expected = reference.simulate(deep, policy, new_profile=AvailabilityProfile)
    assert_same(found, expected)
    assert_counted_alike(found.switching, expected.switching)
    assert found.counters.deepest_queue > 200


@pytest.mark.parametrize(
    ("machine", "rows", "switching", "switches", "cases"),
    [
        # The mean request is the very bound: first come first.
        (
            1,
            [(0, 1, 50), *[(1, 1, 9000)] * 5],
            PolicySwitching(Decider.BASIC),
            (1, 0, 0),
            None,
        ),
        # As short-first the waiting jobs would end later than otherwise, but not last.
        (
            3,
            [(0, 1, 1000), (0, 2, 10), (1, 1, 100), (1, 1, 40), (1, 1, 30)],
            PolicySwitching(quality=Quality.MAKESPAN),
            (0, 0, 0),
            {"1"},
        ),
        # All start together; the first two in each order count.
        (
            3,
            [(0, 3, 10), (1, 1, 100), (1, 1, 10), (1, 1, 50)],
            PolicySwitching(quality=Quality.ART, first_starts=2),
            (0, 1, 0),
            {"2"},
        ),
    ],
)
def test_core_and_reference_agree_at_the_deciders_edges(
    machine: int,
    rows: list[tuple[int, int, int]],
    switching: PolicySwitching,
    switches: tuple[int, int, int],
    cases: set[str] | None,
) -> None:
    submit, processors, runtime = np.array(rows, dtype=np.int64).T
    names = np.arange(len(rows))
    jobs = Workload("edge", machine, None, names, submit, processors, runtime, runtime)
    order = Order.LJF if switching.decider is Decider.BASIC else Order.FCFS
    policy = Policy(order, Planning(switching))
    found = simulate(jobs, policy, check=True)
    expected = reference.simulate(jobs, policy)
    assert_same(found, expected)
    assert_counted_alike(found.switching, expected.switching)
    counted = found.switching
    assert counted is not None
    assert counted.switches == switches
    assert cases == (counted.cases and {case for case, times in counted.cases.items() if times})
