"""What holds on nodes whatever the jobs are."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import ScheduleError, check, check_promises
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.families import Backfill, Compression, Conservative, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.reference import nodes as reference_nodes
from foretime_sim.reference.nodes import NodePlanner
from foretime_sim.reference.placement import Share
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import fit_requests, with_machine
from foretime_sim.workloads.workload import Workload
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.workloads.job_rows import JOB_ROWS, workload_of_rows
from tests.support.workloads.node_workloads import machines, policies, workloads


# The guarded job is the first to start in a pass: what follows it goes by its own estimates again.
@example(
    rows=[
        (0, 1, 10, 1, 1, 19, 3),
        (7, 1, 7, 1, 1, 1, 0),
        (0, 1, 2, 1, 1, 40, 0),
        (0, 2, 0, 2, 1, 1, 0),
        (0, 3, 3, 3, 1, 104, 3),
        (0, 3, 7, 1, 10, 2, 3),
        (0, 4, 0, 1, 1, 1, 1),
        (0, 7, 0, 1, 1, 1, 1),
    ],
    policy=Policy(
        Order.PRIORITY,
        Easy(guard=Guard(0)),
        correction=Correction.DOUBLING,
        roles=Roles(queue=False, backfill=True, drain=False),
    ),
)
@given(
    rows=st.lists(JOB_ROWS, min_size=1, max_size=40),
    policy=policies(),
)
@settings(max_examples=200)
def test_nodes_of_one_cpu_are_a_flat_pool(rows: list[tuple[int, ...]], policy: Policy) -> None:
    jobs, columns = workload_of_rows(rows)
    flat = simulate(jobs, policy, columns[4], columns[5], columns[6])
    nodes = simulate(
        with_machine(jobs, Machine.flat(8)), policy, columns[4], columns[5], columns[6], check=True
    )
    for name in ("start_time", "end_time", "started_by", "corrections", "killed",
                 "first_planned_start"):  # fmt: skip
        np.testing.assert_array_equal(getattr(flat, name), getattr(nodes, name), err_msg=name)
    assert flat.counters == nodes.counters


class _WatchedHeads(NodePlanner):
    """Notes when the first waiting job of a slurm_partition is planned to start."""

    promised: ClassVar[dict[int, int]] = {}
    overlapping: ClassVar[bool]

    def planned(self, job: ReferenceJob) -> tuple[int, list[Share], int]:
        plan = super().planned(job)
        partitions = {choice.slurm_partition for choice in self.choices(job)}
        others = {claim.slurm_partition for claim in self.reserved}
        if not (others if self.overlapping else partitions & others):
            assert plan[0] <= self.promised.get(job.index, plan[0])
            self.promised[job.index] = plan[0]
        return plan


@given(data=st.data(), overlapping=st.booleans(), sjbf=st.booleans())
@settings(max_examples=150)
def test_no_backfilled_job_delays_a_head_job(
    data: st.DataObject, overlapping: bool, sjbf: bool
) -> None:
    """Exact runtimes, first come first served: what is promised to a head job is kept.

    Where slurm_partitions share nodes, this holds for the first of all; the next are planned around
    it, and it may come to stand on other nodes than before.
    """
    machine = data.draw(machines())
    if not overlapping:
        groups = [group.name for group in machine.node_groups]
        parts = [SlurmPartition(f"p{n}", (name,)) for n, name in enumerate(groups)]
        machine = replace(machine, slurm_partitions=tuple(parts))
    tiers = [replace(part, priority_tier=1) for part in machine.slurm_partitions]
    jobs = data.draw(workloads(replace(machine, slurm_partitions=tuple(tiers))))
    if not len(jobs):
        return
    requests = jobs.requests
    assert requests is not None
    if not overlapping and requests.slurm_partitions is not None:  # one slurm_partition a job
        names = tuple(name.split(",")[0] for name in requests.slurm_partitions.names)
        labels = Labels(requests.slurm_partitions.codes, names)
        jobs = replace(jobs, requests=replace(requests, slurm_partitions=labels))
        jobs = jobs.take(fit_requests(jobs).request_of >= 0)
    jobs = replace(jobs, requested_time=np.maximum(jobs.actual_runtime, 1))
    jobs = jobs.take(fit_requests(jobs).request_of >= 0)
    if not len(jobs):
        return
    policy = Policy(backfill=Backfill.EASY_SJBF if sjbf else Backfill.EASY)
    _WatchedHeads.promised, _WatchedHeads.overlapping = {}, overlapping
    watched = reference_nodes.simulate(jobs, policy, new_planner=_WatchedHeads)
    if not overlapping:
        for job, promised in _WatchedHeads.promised.items():
            assert watched.start_time[job] <= promised
    np.testing.assert_array_equal(watched.start_time, simulate(jobs, policy).start_time)


@given(
    workload=machines().flatmap(workloads),
    compression=st.sampled_from([Compression.RESERVATION_ORDER, Compression.ONE_BY_ONE]),
    order=st.sampled_from(Order),
)
@settings(max_examples=150)
def test_conservative_keeps_its_promises(
    workload: Workload, compression: Compression, order: Order
) -> None:
    """No job starts later than first planned, whatever ends early."""
    if len(workload):
        policy = Policy(order, Conservative(compression))
        check_promises(workload, simulate(workload, policy, check=True))


@given(workload=machines().flatmap(workloads), policy=policies())
@settings(max_examples=100)
def test_stepwise_is_the_same(workload: Workload, policy: Policy) -> None:
    if not len(workload):
        return
    assert isinstance(workload.machine, Machine)
    assert workload.requests is not None
    asked = workload.requests
    begin = int(workload.submit_time[0])
    engine = Engine(workload.machine.cpus, policy, begin, machine=workload.machine, allocation=True)
    for job in range(len(workload)):
        numbers = {
            name: int(column[job])
            for name in ("nodes", "cpus_per_task", "memory_per_node_mib", "memory_per_cpu_mib",
                         "gpus_per_node")
            if (column := getattr(asked, name))[job] is not np.ma.masked
        }  # fmt: skip
        assert asked.slurm_partitions is not None
        assert asked.constraints is not None
        assert asked.exclusive is not None
        names = asked.slurm_partitions.get(job)
        engine.advance(int(workload.submit_time[job]))
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
            resources=JobResources(
                slurm_partitions=tuple(names.split(",")) if names else None,
                constraint=asked.constraints.get(job) or "",
                exclusive=asked.exclusive[job] is not np.ma.masked,
                reservation=None,
                node_groups=None,
                **numbers,
            ),
        )
    engine.finish()
    whole, stepwise = simulate(workload, policy, check=True), engine.schedule()
    np.testing.assert_array_equal(whole.start_time, stepwise.start_time)
    np.testing.assert_array_equal(whole.slurm_partition, stepwise.slurm_partition)
    assert whole.allocation is not None
    assert stepwise.allocation is not None
    np.testing.assert_array_equal(whole.allocation.node, stepwise.allocation.node)


def test_a_broken_law_is_found() -> None:
    """Two jobs on a node of 4 CPUs; moved, shrunk or doubled allocations don't pass."""
    machine = Machine((NodeGroup("cpu", 2, 4, memory_mib=8),), (SlurmPartition("all", ("cpu",)),))
    jobs, _ = workload_of_rows([(0, 3, 10, 10), (0, 2, 10, 10)])
    memory = np.ma.MaskedArray([2, 2], mask=[False, False])
    jobs = with_machine(
        replace(jobs, requests=ResourceRequests(memory_per_cpu_mib=memory)), machine
    )
    good = simulate(jobs, check=True)
    assert good.allocation is not None
    assert good.allocation.node.tolist() == [0, 1]
    wrong = [
        ("CPUs", replace(good.allocation, node=np.array([0, 0]))),
        ("MiB", replace(good.allocation, memory_mib=np.array([9, 4]))),
        ("has not what it asked for", replace(good.allocation, cpus=np.array([3, 1]))),
        ("GPUs", replace(good.allocation, gpus=np.array([1, 0]))),
        ("0 nodes", replace(good.allocation, job=np.array([0, 0]), node=np.array([0, 1]))),
    ]
    for message, allocation in wrong:
        with pytest.raises(ScheduleError, match=message):
            check(jobs, replace(good, allocation=allocation), jobs.requested_time)
    elsewhere = replace(good, slurm_partition=np.array([1, 0], dtype=np.int32))
    with pytest.raises(ScheduleError, match="in which it may not"):
        check(jobs, elsewhere, jobs.requested_time)
