"""Laws that hold for every workload on a model of Slurm."""

from __future__ import annotations

from collections import Counter

import numpy as np
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.reference.slurm.jobs.schedule import SlurmSchedule
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.slurm.loop_settings import VERSIONS, loop_parameters
from tests.support.slurm.slurm_jobs import Asked, workload_of
from tests.support.workloads.node_workloads import machines, workloads
from tests.support.workloads.small_workloads import workloads as flat_workloads


def check(workload: Workload, machine: Machine, schedule: SlurmSchedule) -> None:
    """No node is given out twice, nobody starts before submission, limits end jobs."""
    for job, outcome in enumerate(schedule.jobs):
        assert outcome.start is not None, f"job {job} never ran: {outcome.reason}"
        assert outcome.end is not None
        assert outcome.start >= workload.submit_time[job]
        limit = max(-(-int(workload.requested_time[job]) // 60), 1) * 60
        assert outcome.end == outcome.start + min(int(workload.actual_runtime[job]), limit)
    size = [group.cpus for group in machine.node_groups for _ in range(group.nodes)]
    for moment in schedule.start_times:
        used: Counter[int] = Counter()
        for outcome in schedule.jobs:
            assert outcome.start is not None
            assert outcome.end is not None
            assert moment is not None
            if outcome.start <= moment < outcome.end:
                used.update(dict(outcome.nodes))
        assert all(cpus <= size[node] for node, cpus in used.items())


@settings(max_examples=40)
@given(st.data(), loop_parameters(), VERSIONS)
def test_every_job_runs_once_and_no_processor_twice(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    processors = data.draw(st.integers(1, 8))
    workload = data.draw(flat_workloads(processors))
    machine = Machine.flat(processors)
    schedule = simulate_slurm(workload, SlurmSite(machine, version, parameters))
    check(workload, machine, schedule)


@settings(max_examples=40)
@given(st.data(), loop_parameters(), VERSIONS)
def test_no_cpu_of_a_node_is_given_out_twice(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    machine = data.draw(machines())
    workload = data.draw(workloads(machine, most_jobs=15))
    schedule = simulate_slurm(workload, SlurmSite(machine, version, parameters))
    ran = np.array(
        [job for job, one in enumerate(schedule.jobs) if one.start is not None], dtype=int
    )
    # Some fit in this model by their tasks, and not for Slurm: by memory of all CPUs of a node.
    kept = SlurmSchedule(tuple(schedule.jobs[job] for job in ran), 0, 0, {})
    check(workload.take(ran), machine, kept)


@settings(max_examples=20)
@given(st.data())
def test_one_processor_each_in_order_is_first_come_first_served(data: st.DataObject) -> None:
    processors = data.draw(st.integers(1, 4))
    workload = data.draw(flat_workloads(processors))
    workload.processors[:] = processors  # everybody needs the whole machine
    schedule = simulate_slurm(workload, SlurmSite(Machine.flat(processors)))
    starts = [start for start in schedule.start_times if start is not None]
    assert starts == sorted(starts)


def test_a_node_shared_by_two_partitions_is_given_out_once() -> None:
    machine = Machine(
        (NodeGroup("n", 1, 4),),
        (SlurmPartition("a", ("n",), default=True), SlurmPartition("b", ("n",))),
    )
    jobs = [Asked(0, 60, 60, tasks=3, slurm_partitions=name) for name in ("a", "b", "a", "b")]
    workload, _ = workload_of(jobs)
    schedule = simulate_slurm(workload, SlurmSite(machine, (22, 5)))
    check(workload, machine, schedule)
    assert schedule.start_times == [3, 63, 123, 183]
