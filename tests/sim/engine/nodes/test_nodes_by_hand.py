"""Small machines on which everybody can work out who runs where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import MaskedInt64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.reservations import AdvanceReservation, NodeReservation
from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.families import FAMILIES, Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.reference import nodes as reference_nodes
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

NONE = Policy(backfill=Backfill.NONE)


def masked(values: list[int | None]) -> MaskedInt64Array:
    return np.ma.MaskedArray([value or 0 for value in values], mask=[v is None for v in values])


def jobs_of(
    machine: Machine, *jobs: tuple[int, int, int], requests: ResourceRequests | None = None
) -> Workload:
    """Jobs of (submission, CPUs, exact runtime)."""
    table = np.array(jobs)
    workload = Workload(
        "hand", machine.cpus, None, np.arange(len(jobs)), table[:, 0], table[:, 1],
        table[:, 2], table[:, 2], requests=requests,
    )  # fmt: skip
    return with_machine(workload, machine)


def in_partitions(machine: Machine, *names: str) -> Labels:
    known = list(dict.fromkeys(names))
    return Labels(np.array([known.index(n) for n in names], dtype=np.int32), tuple(known))


def starts(workload: Workload, policy: Policy) -> list[int]:
    native = simulate(workload, policy, check=True)
    plain = reference_nodes.simulate(workload, policy)
    assert native.start_time.tolist() == plain.start_time.tolist()
    return [int(time) for time in native.start_time]


def rows(workload: Workload) -> list[tuple[int, int, int]]:
    """Job, node and CPUs of every row, by job and node."""
    allocation = simulate(workload, check=True).allocation
    assert allocation is not None
    table = zip(allocation.job, allocation.node, allocation.cpus, strict=True)
    return sorted((int(job), int(node), int(cpus)) for job, node, cpus in table)


def nodes(*groups: NodeGroup) -> Machine:
    return Machine(groups, (SlurmPartition("all", tuple(group.name for group in groups)),))


def test_the_best_fitting_node_is_taken() -> None:
    machine = nodes(NodeGroup("cpu", 3, 4))
    assert rows(jobs_of(machine, (0, 3, 9), (1, 2, 9), (2, 1, 9), (3, 2, 9))) == [
        (0, 0, 3), (1, 1, 2), (2, 0, 1), (3, 1, 2),
    ]  # fmt: skip


def test_a_wide_job_is_on_few_nodes() -> None:
    """Job 0 leaves 2 CPUs of node 0: of the next 9 four each are on nodes 1 and 2."""
    machine = nodes(NodeGroup("cpu", 4, 4))
    assert rows(jobs_of(machine, (0, 2, 9), (1, 9, 9))) == [
        (0, 0, 2), (1, 0, 1), (1, 1, 4), (1, 2, 4),
    ]  # fmt: skip


def test_so_many_nodes_have_the_tasks_evenly() -> None:
    machine = nodes(NodeGroup("cpu", 4, 4))
    requests = ResourceRequests(nodes=masked([None, 3]))
    assert rows(jobs_of(machine, (0, 2, 9), (1, 7, 9), requests=requests)) == [
        (0, 0, 2), (1, 0, 2), (1, 1, 3), (1, 2, 2),
    ]  # fmt: skip


def test_light_nodes_are_taken_first_and_large_ones_where_needed() -> None:
    machine = nodes(
        NodeGroup("big", 1, 4, memory_mib=64, weight=5),
        NodeGroup("small", 1, 4, memory_mib=16),
        NodeGroup("gpu", 1, 4, memory_mib=16, gpus=2, features=("a100",)),
    )
    requests = ResourceRequests(
        memory_per_node_mib=masked([4, 32, 4, None]),
        gpus_per_node=masked([None, None, 1, None]),
        constraints=Labels(np.array([-1, -1, -1, 0], dtype=np.int32), ("a100",)),
    )
    jobs = jobs_of(machine, (0, 1, 9), (0, 1, 9), (0, 1, 9), (0, 1, 9), requests=requests)
    assert rows(jobs) == [(0, 1, 1), (1, 0, 1), (2, 2, 1), (3, 2, 1)]


def test_memory_is_given_out_and_under_cr_cpu_is_not() -> None:
    group = NodeGroup("cpu", 1, 4, memory_mib=10)
    requests = ResourceRequests(memory_per_cpu_mib=masked([6, 6]))
    by_memory = jobs_of(nodes(group), (0, 1, 9), (0, 1, 9), requests=requests)
    assert starts(by_memory, NONE) == [0, 9]
    machine = nodes(group)
    by_cpu = replace(machine, selection=type(machine.selection)("CR_CPU"))
    assert starts(jobs_of(by_cpu, (0, 1, 9), (0, 1, 9), requests=requests), NONE) == [0, 0]


def test_an_exclusive_job_waits_for_an_idle_node() -> None:
    machine = nodes(NodeGroup("cpu", 1, 4))
    requests = ResourceRequests(exclusive=masked([None, 1]))
    jobs = jobs_of(machine, (0, 1, 9), (0, 1, 5), requests=requests)
    assert starts(jobs, NONE) == [0, 9]
    assert rows(jobs) == [(0, 0, 1), (1, 0, 4)]


def test_a_blocked_slurm_partition_does_not_block_another() -> None:
    machine = Machine(
        (NodeGroup("a", 1, 2), NodeGroup("b", 1, 2)),
        (SlurmPartition("pa", ("a",)), SlurmPartition("pb", ("b",))),
    )
    requests = ResourceRequests(slurm_partitions=in_partitions(machine, "pa", "pa", "pa", "pb"))
    jobs = jobs_of(machine, (0, 1, 10), (0, 2, 10), (0, 1, 10), (0, 2, 7), requests=requests)
    assert starts(jobs, NONE) == [0, 10, 20, 0]
    # Job 2 ends as job 1 can start.
    assert starts(jobs, Policy()) == [0, 10, 0, 0]


def test_each_slurm_partition_has_a_reservation() -> None:
    """The heads of pa and pb, on other nodes each, are both kept from being passed over."""
    machine = Machine(
        (NodeGroup("a", 1, 2), NodeGroup("b", 1, 2)),
        (SlurmPartition("pa", ("a",)), SlurmPartition("pb", ("b",))),
    )
    names = in_partitions(machine, "pa", "pb", "pa", "pb", "pa", "pb")
    jobs = jobs_of(
        machine, (0, 1, 10), (0, 1, 10), (1, 2, 5), (1, 2, 5), (2, 1, 50), (2, 1, 8),
        requests=ResourceRequests(slurm_partitions=names),
    )  # fmt: skip
    assert starts(jobs, Policy()) == [0, 0, 10, 10, 15, 2]
    assert starts(jobs, Policy(backfill=Backfill.FIRST_FIT)) == [0, 0, 52, 10, 2, 2]


def test_a_higher_tier_comes_first() -> None:
    machine = Machine(
        (NodeGroup("cpu", 1, 2),),
        (SlurmPartition("low", ("cpu",)), SlurmPartition("high", ("cpu",), priority_tier=2)),
    )
    names = in_partitions(machine, "low", "low", "high")
    jobs = jobs_of(
        machine, (0, 2, 10), (1, 2, 10), (2, 2, 10),
        requests=ResourceRequests(slurm_partitions=names),
    )  # fmt: skip
    assert starts(jobs, NONE) == [0, 20, 10]


def test_a_slurm_partition_uses_only_so_many_nodes() -> None:
    group = NodeGroup("cpu", 3, 2)
    machine = Machine((group,), (SlurmPartition("p", ("cpu",), max_nodes_in_use=2),))
    jobs = jobs_of(machine, (0, 2, 10), (0, 2, 20), (0, 2, 10), (0, 1, 10))
    assert starts(jobs, NONE) == [0, 0, 10, 20]


def test_the_first_slurm_partition_that_can_run_it() -> None:
    machine = Machine(
        (NodeGroup("a", 1, 2), NodeGroup("b", 1, 2)),
        (SlurmPartition("pa", ("a",)), SlurmPartition("pb", ("b",))),
    )
    names = in_partitions(machine, "pa,pb", "pa,pb", "pa,pb", "pb")
    jobs = jobs_of(
        machine, (0, 2, 10), (0, 2, 4), (0, 2, 10), (1, 1, 2),
        requests=ResourceRequests(slurm_partitions=names),
    )  # fmt: skip
    schedule = simulate(jobs, NONE, check=True)
    assert schedule.slurm_partition is not None
    assert schedule.slurm_partition.tolist() == [0, 1, 1, 1]
    # Job 2 waits in both, so job 3 waits behind it in pb.
    assert starts(jobs, NONE) == [0, 0, 4, 14]


@pytest.mark.parametrize(
    "backfill", [b for b in FAMILIES.values() if b.refusal(Place.NODES) is None]
)
def test_everything_at_once_and_nothing_to_do(backfill: Backfilling) -> None:
    """Zero runtimes, one node, a job as wide as the machine, all in the same second."""
    machine = nodes(NodeGroup("cpu", 1, 4))
    jobs = jobs_of(machine, (5, 4, 1), (5, 1, 1), (5, 3, 1), (5, 4, 1))
    assert starts(jobs, Policy(backfill=backfill)) == [5, 6, 6, 7]
    idle = replace(jobs, actual_runtime=np.zeros(4, dtype=np.int64))
    assert starts(idle, Policy(backfill=backfill)) == [5, 5, 5, 5]


def test_running_and_pending_jobs_can_be_added_to_an_engine() -> None:
    machine = nodes(NodeGroup("cpu", 2, 4))
    engine = Engine(8, now=100, machine=machine, allocation=True)
    engine.add_running(50, 4, 80, 80)
    engine.add_running(60, 3, 100, 100)
    waiting = engine.add_pending(90, 4, 10, 10, resources=JobResources(nodes=1))
    small = engine.add_pending(95, 1, 20, 20)
    with pytest.raises(InputError, match="a running job has 4 processors, but only 1"):
        engine.add_running(60, 4, 100, 100)
    with pytest.raises(InputError, match="does not fit on what is free of the nodes"):
        engine.add_running(60, 1, 9, 9, resources=JobResources(nodes=1, exclusive=True))
    engine.finish()
    assert engine.job(waiting).start_time == 130
    assert engine.job(small).start_time == 100


def test_what_is_not_for_nodes_is_refused() -> None:
    machine = nodes(NodeGroup("cpu", 1, 4))
    claims = [AdvanceReservation(0, 10, 1)]
    with pytest.raises(InputError, match="advance reservations are of a flat pool"):
        simulate(jobs_of(machine, (0, 1, 1)), reservations=claims)
    with pytest.raises(InputError, match="the machine has 4 CPUs"):
        Engine(5, machine=machine)
    with pytest.raises(InputError, match="this engine has none"):
        Engine(5).submit(0, 1, 1, 1, resources=JobResources())
    with pytest.raises(InputError, match="of a flat pool's processors, the machine has nodes"):
        Engine(4, machine=machine, reservations=claims)
    night = NodeReservation("night", 0, 10, ("cpu",))
    with pytest.raises(InputError, match="night is of groups of nodes"):
        Engine(4, reservations=[night])


def test_policies_in_python_see_no_nodes() -> None:
    jobs = jobs_of(nodes(NodeGroup("cpu", 1, 4)), (0, 1, 1))
    longest_first = PythonOrder(lambda queue, now: queue.requested_time)
    with pytest.raises(InputError, match="policies in Python see a flat pool"):
        simulate(jobs, Policy(order=longest_first))


def test_the_queue_is_listed_by_tier() -> None:
    machine = Machine(
        (NodeGroup("cpu", 1, 2),),
        (SlurmPartition("low", ("cpu",)), SlurmPartition("high", ("cpu",), priority_tier=2)),
    )
    engine = Engine(2, machine=machine)
    low, high = JobResources(("low",)), JobResources(("high",))
    for resources in (low, low, high):
        engine.submit(0, 2, 10, 10, resources=resources)
    engine.settle()
    assert engine.running().tolist() == [2]
    assert engine.queue().tolist() == [0, 1]
    engine.submit(1, 2, 10, 10, resources=high)
    engine.advance(2)
    assert engine.queue().tolist() == [3, 0, 1]
