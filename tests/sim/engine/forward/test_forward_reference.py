"""Forward runs agree with their plain Python specification: gates, nodes, reserved nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.admission import After, Dependencies, GroupLimit
from foretime_sim.engine.forward import forward_runs, start_times_of
from foretime_sim.engine.node_snapshot import NodeRequests
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.policies.families import Compression, Conservative
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.reference.forward import forward_run
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.forward.test_forward_runs import snapshots
from tests.sim.engine.nodes.test_node_snapshots import submitted
from tests.support.workloads.node_workloads import machines, policies, workloads


@st.composite
def gated(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    """Give a snapshot with dependencies on jobs of smaller columns, and limits on groups."""
    running, pending = len(snapshot.running), len(snapshot.pending)
    rows: list[tuple[int, int, int, int, int]] = []
    for job in range(pending):
        before = running + job
        if before == 0 or not draw(st.sampled_from([False, False, True])):
            continue
        any_suffices = draw(st.integers(0, 1))
        for _ in range(draw(st.integers(1, 3))):
            on, event = draw(st.integers(0, before - 1)), draw(st.integers(0, 1))
            rows.append((job, on, event, draw(st.sampled_from([0, 0, 30])), any_suffices))
    columns = np.arange(running + pending)
    processors = np.concatenate([snapshot.running.processors, snapshot.pending.processors])
    limits = []
    for _ in range(draw(st.integers(0, 2)) if len(columns) else 0):
        members = columns[
            draw(st.lists(st.booleans(), min_size=len(columns), max_size=len(columns)))
        ]
        widest = int(processors[members].max(initial=1))
        limits.append(
            GroupLimit(
                members,
                draw(st.none() | st.integers(1, 3)),
                draw(st.none() | st.integers(widest, widest + 8)),
            )
        )
    dependencies = Dependencies.of_rows(rows) if rows else None
    return replace(
        snapshot,
        pending=replace(snapshot.pending, dependencies=dependencies, guard=None, plans=None),
        limits=tuple(limits),
        pass_due=True,
        estimated_at=None,
    )


def runtimes_for(data: st.DataObject, snapshot: Snapshot) -> Int64Array:
    drawn = st.lists(st.integers(0, 300), min_size=len(snapshot), max_size=len(snapshot))
    return np.array([data.draw(drawn)], dtype=np.int64).reshape(1, len(snapshot))


@given(snapshot=snapshots().flatmap(gated), data=st.data())
@settings(max_examples=200)
def test_core_and_reference_agree_on_a_flat_pool(
    any_policy: st.SearchStrategy[Policy], snapshot: Snapshot, data: st.DataObject
) -> None:
    policy = replace(data.draw(any_policy), event_order=EventOrder.PER_TIMESTEP)
    snapshot = replace(snapshot, reservations=())
    runtimes = runtimes_for(data, snapshot)
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    assert starts.tolist() == forward_run(snapshot, policy, runtimes[0]).tolist()
    if len(snapshot.pending):
        assert start_times_of(-1, snapshot, policy, runtimes).tolist() == [starts[-1]]


def test_a_job_let_in_late_is_reinserted_at_the_place_of_its_submission() -> None:
    """Compressed by submission, though two jobs that no limit keeps were in the queue before it."""
    submitted, running = 11, 2
    after_the_first_start = Dependencies.of_rows(
        [(4, 0, int(After.START), 0, 0), (8, 0, int(After.START), 0, 0)]
    )
    snapshot = Snapshot(
        now=1000,
        machine_processors=8,
        running=RunningJobs(np.array([1000, 1000]), np.array([7, 1]), np.array([1, 1])),
        pending=PendingJobs(
            submit_time=np.full(submitted, 900),
            processors=np.array([1, 1, 1, 1, 8, 1, 1, 1, 1, 1, 1]),
            requested_time=np.full(submitted, 1),
            eligible_time=np.array([901] + [900] * 10),
            dependencies=after_the_first_start,
        ),
        limits=(GroupLimit(np.array([2]), None, None),),
    )
    policy = Policy(
        backfill=Conservative(Compression.SUBMISSION_ORDER), event_order=EventOrder.PER_TIMESTEP
    )
    runtimes = np.zeros((1, running + submitted), dtype=np.int64)
    runtimes[0, 10] = 1
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0].tolist()
    assert starts == forward_run(snapshot, policy, runtimes[0]).tolist()
    assert starts == [1000] * 6 + [1001] + [1000] * 6, "all but the one that needs the whole pool"


@given(workload=machines().flatmap(workloads), policy=policies(), data=st.data())
@settings(max_examples=200)
def test_core_and_reference_agree_on_nodes(
    workload: Workload, policy: Policy, data: st.DataObject
) -> None:
    if len(workload) == 0:
        return
    policy = replace(policy, event_order=EventOrder.PER_TIMESTEP)
    engine = submitted(workload, policy, data)
    engine.advance(engine.now + data.draw(st.integers(0, 120)))
    snapshot = Snapshot.of(engine)
    machine = workload.machine
    assert isinstance(machine, Machine)
    assert snapshot.engine_index is not None
    names = [group.name for group in machine.node_groups]
    claims = st.builds(
        NodeReservation,
        st.sampled_from(["maintenance", "course"]),
        st.integers(snapshot.now - 50, snapshot.now + 200),
        st.integers(1, 150),
        st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple),
    )
    reservations = data.draw(st.lists(claims, max_size=2, unique_by=lambda claim: claim.name))
    jobs = snapshot.engine_index[len(snapshot.running) :].tolist()
    resources = [job_resources(workload, job) for job in jobs]
    for row in range(len(jobs)):
        if not reservations or data.draw(st.integers(0, 3)):
            continue
        inside = replace(resources[row], reservation=reservations[0].name)
        try:
            requests_of(machine, [inside], snapshot.pending, np.array([row]), reservations)
        except InputError:
            continue  # it fits only outside
        resources[row] = inside
    requests = requests_of(machine, resources, snapshot.pending, np.arange(len(jobs)), reservations)
    snapshot = data.draw(
        gated(
            replace(
                snapshot,
                pending=replace(snapshot.pending, requests=requests),
                reservations=tuple(reservations),
            )
        )
    )
    runtimes = runtimes_for(data, snapshot)
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    assert starts.tolist() == forward_run(snapshot, policy, runtimes[0]).tolist()


def requests_of(
    machine: Machine,
    resources: list[JobResources],
    pending: PendingJobs,
    rows: Int64Array,
    reservations: list[NodeReservation],
) -> NodeRequests:
    processors, requested = pending.processors[rows], pending.requested_time[rows]
    return NodeRequests.of(machine, resources, processors, requested, reservations)
