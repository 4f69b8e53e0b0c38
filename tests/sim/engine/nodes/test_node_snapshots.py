"""On nodes a snapshot of a run goes on as the run does, whatever the moment and the policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import SampledArrivals, forward_runs, start_times_of
from foretime_sim.engine.node_snapshot import HeldNodes, NodeRequests
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.role_times import JobTimesUpdate
from foretime_sim.reference.forward import forward_run
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.node_workloads import machines, policies, workloads


def submitted(workload: Workload, policy: Policy, data: st.DataObject) -> Engine:
    """Give an engine to which all jobs of a workload are submitted, nothing done yet."""
    machine = workload.machine
    assert machine is not None
    begin = int(workload.submit_time[0])
    engine = Engine(workload.machine_processors, policy, begin, machine=machine)
    for job in range(len(workload)):
        scheduled = data.draw(st.none() | st.integers(1, 400))
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
            scheduled,
            data.draw(st.none() | st.integers(1, 400)),
            data.draw(st.integers(0, 3)),
            resources=job_resources(workload, job),
        )
    return engine


@given(
    workload=machines().flatmap(workloads),
    policy=policies(),
    at=st.integers(0, 400),
    settle=st.booleans(),
    data=st.data(),
)
@settings(max_examples=300)
def test_it_goes_on_as_the_engine_does(
    workload: Workload, policy: Policy, at: int, settle: bool, data: st.DataObject
) -> None:
    """And with one more job as if it were submitted."""
    if len(workload) == 0:
        return
    engine = submitted(workload, policy, data)
    engine.advance(engine.now + at)
    if settle or policy.event_order is EventOrder.PER_EVENT:
        engine.settle()
    if data.draw(st.booleans()) and len(waiting := engine.queue()):
        engine.update(int(waiting[0]), scheduled_time=JobTimesUpdate(backfill=7), priority=2)
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    index = snapshot.engine_index.tolist()
    runtimes = np.array([[engine.job(job).actual_runtime for job in index]], dtype=np.int64)
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    if data.draw(st.booleans()):
        like = data.draw(st.integers(0, len(workload) - 1))
        row = (int(workload.processors[like]), int(workload.requested_time[like]))
        resources = job_resources(workload, like)
        index.append(engine.submit(engine.now, row[0], 50, row[1], priority=1, resources=resources))
        snapshot = snapshot.with_job(*row, priority=1, resources=resources)
        runtimes = np.append(runtimes, [[50]], axis=1)
        starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
        assert start_times_of(-1, snapshot, policy, runtimes).tolist() == [starts[-1]]
    engine.finish()
    assert starts.tolist() == [engine.job(job).start_time for job in index]


def small_machine() -> Machine:
    """Two nodes of four CPUs in `main`, one of eight in `large` too, which `night` reserves."""
    return Machine(
        (NodeGroup("small", 2, 4), NodeGroup("big", 1, 8)),
        (
            SlurmPartition("main", ("small", "big"), default=True),
            SlurmPartition("large", ("big",)),
        ),
    )


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


NIGHT = NodeReservation("night", 100, 100, ("big",))


def small_snapshot(
    *resources: JobResources, reservations: tuple[NodeReservation, ...] = ()
) -> Snapshot:
    """A job runs on the first node until 50, as it is planned; the others ask for 4 CPUs, 60 s."""
    machine, jobs = small_machine(), len(resources)
    processors, requested = np.full(jobs, 4), np.full(jobs, 60)
    requests = NodeRequests.of(machine, resources, processors, requested, reservations)
    held = HeldNodes.of_rows([(0, 0, 1, 4, 0, 0)])
    return Snapshot(
        0,
        16,
        RunningJobs(column(0), column(4), column(50), slurm_partition=column(0), held=held),
        PendingJobs(np.arange(jobs) - jobs, processors, requested, requests=requests),
        reservations,
        machine=machine,
    )


def starts_of(snapshot: Snapshot, *runtimes: int, policy: Policy | None = None) -> list[int]:
    both = column(*runtimes)[np.newaxis]
    starts: list[int] = forward_runs(snapshot, policy or Policy(), both)[0].tolist()
    if snapshot.pass_due:
        assert forward_run(snapshot, policy or Policy(), both[0]).tolist() == starts
    return starts


def test_jobs_wait_for_the_nodes_that_they_may_have() -> None:
    whole = JobResources(nodes=2, exclusive=True, node_groups=("small",))
    assert starts_of(small_snapshot(whole), 40, 60) == [0, 40]
    assert starts_of(small_snapshot(JobResources(node_groups=("big",))), 40, 60) == [0, 0]
    # The big node has room for two at once.
    large = JobResources(slurm_partitions=("large",))
    assert starts_of(small_snapshot(large, large, large), 40, 60, 30, 10) == [0, 0, 0, 30]


def test_a_reservation_of_nodes_holds_others_back() -> None:
    large = JobResources(slurm_partitions=("large",))
    inside = JobResources(slurm_partitions=("large",), reservation="night")
    # 60 s from now end before it; what asks for longer, or comes later, starts after it.
    asked = small_snapshot(large, large, large, inside, reservations=(NIGHT,))
    assert starts_of(asked, 40, 50, 50, 10, 10) == [0, 0, 0, 200, 100]
    longer = asked.with_job(4, 150, resources=large)
    assert starts_of(longer, 40, 50, 50, 10, 10, 10)[-1] == 200
    elsewhere = asked.with_job(4, 150)
    assert starts_of(elsewhere, 40, 50, 50, 10, 10, 10)[-1] == 0
    with pytest.raises(InputError, match="there is no reservation 'nihgt'; did you mean 'night'"):
        asked.with_job(4, 60, resources=JobResources(reservation="nihgt"))


def test_a_running_job_may_have_nodes_that_the_machine_has_not() -> None:
    snapshot = small_snapshot(JobResources(nodes=2, exclusive=True, node_groups=("small",)))
    gone = replace(snapshot, running=replace(snapshot.running, held=HeldNodes.of_rows([])))
    assert starts_of(gone, 40, 60) == [0, 0]


def test_arrivals_go_to_their_slurm_partitions() -> None:
    snapshot = small_snapshot(JobResources(slurm_partitions=("large",)))
    arrivals = SampledArrivals(
        sample=column(0, 0, 0),
        submit_time=column(5, 5, 6),
        processors=column(8, 17, 4),
        requested_time=column(30, 30, 30),
        actual_runtime=column(30, 30, 30),
        slurm_partitions=Labels(np.array([0, 0, 0], dtype=np.int32), ("large",)),
    )
    asked = snapshot.with_job(4, 60, submit_time=7, resources=JobResources(("large",)))
    runs = column(40, 60, 10)[np.newaxis]
    # The eight CPUs of 5 start at 60, 17 never; the four of 6 fit beside the first job until 36;
    # those asked about would delay the eight.
    assert forward_runs(asked, Policy(), runs, arrivals=arrivals)[0].tolist() == [0, 0, 90]
    # In `main` eight start at once on two nodes, until 35; then four have the smaller node.
    by_default = replace(arrivals, slurm_partitions=None)
    assert forward_runs(asked, Policy(), runs, arrivals=by_default)[0].tolist() == [0, 0, 35]


def test_what_is_impossible_is_said() -> None:
    snapshot = small_snapshot(JobResources())
    rows = {
        "running jobs use 5 cpus of node 0, which has 4": [(0, 0, 1, 5, 0, 0)],
        "3 nodes from node 0 on are not of one group": [(0, 0, 3, 4, 0, 0)],
        "row 0: job is 1": [(1, 0, 1, 4, 0, 0)],
        "row 0: node is 3": [(0, 3, 1, 4, 0, 0)],
    }
    for message, held in rows.items():
        running = replace(snapshot.running, held=HeldNodes.of_rows(held))
        with pytest.raises(InputError, match=message):
            replace(snapshot, running=running)
    with pytest.raises(InputError, match="processors is 3, the tasks of its request have 4"):
        replace(snapshot, pending=replace(snapshot.pending, processors=column(3)))
    with pytest.raises(InputError, match="the machine has 16 CPUs"):
        replace(snapshot, machine_processors=15)
    with pytest.raises(InputError, match="on a machine of nodes give"):
        replace(snapshot, running=replace(snapshot.running, held=None))
    with pytest.raises(InputError, match="the snapshot has no machine"):
        replace(snapshot, machine=None)
    with pytest.raises(InputError, match="there is no group of nodes 'huge'"):
        replace(snapshot, reservations=(NodeReservation("x", 0, 1, ("huge",)),))
    with pytest.raises(InputError, match="pending jobs: row 0: it needs 3 nodes"):
        small_snapshot(JobResources(nodes=3, node_groups=("small",)))
