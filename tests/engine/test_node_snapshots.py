"""On nodes a snapshot of a run goes on as the run does, whatever the moment and the policy."""

from __future__ import annotations

import numpy as np
from foretime_sim.forward import forward_runs, start_times_of
from foretime_sim.policy import EventOrder, Policy
from foretime_sim.resource_requests import job_resources
from foretime_sim.role_times import JobTimesUpdate
from foretime_sim.snapshot import Snapshot
from foretime_sim.stepwise import Engine
from foretime_sim.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.node_workloads import machines, policies, workloads


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
