"""Which nodes a job gets: worked out by hand."""

from __future__ import annotations

import pytest
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.reference.slurm.jobs.job import Allocation, SlurmJob
from foretime_sim.reference.slurm.nodes.node_choice import Mode, NodeChoice
from foretime_sim.reference.slurm.nodes.nodes import NodeUse, nodes_of
from foretime_sim.workloads.node_request import JobResources, fit_request


def machine_of(*groups: NodeGroup, selection: Selection = Selection.CPU_MEMORY) -> Machine:
    return Machine(
        groups, (SlurmPartition("all", tuple(group.name for group in groups)),), selection
    )


def chosen(
    machine: Machine,
    used: dict[int, int],
    asked: JobResources | None = None,
    tasks: int = 1,
    *,
    use: NodeUse | None = None,
    max_cpus_per_node: int | None = None,
    version: tuple[int, int] = (25, 11),
) -> Allocation | None:
    request = fit_request(machine, asked or JobResources(), tasks, 60)
    job = SlurmJob(0, request, ("all",), 0, 60, 60)
    if use is None:
        use = NodeUse()
        for node, cpus in used.items():
            use.add(Allocation({node: cpus}), 0)
    nodes = nodes_of(machine)
    choice = NodeChoice(nodes, job, 0, max_cpus_per_node, version)
    return choice.choose(range(len(nodes)), use, Mode.NOW)


def cpus(allocation: Allocation | None) -> dict[int, int] | None:
    return None if allocation is None else dict(allocation.cpus)


FOUR = NodeGroup("n", nodes=6, cpus=4)


def test_one_node_is_chosen_by_best_fit() -> None:
    # Free: 4, 2, 3, 4, 4, 4. Two CPUs fit tightest on node 1.
    assert cpus(chosen(machine_of(FOUR), {1: 2, 2: 1}, tasks=2)) == {1: 2}
    assert cpus(chosen(machine_of(FOUR), {1: 2, 2: 1}, tasks=3)) == {2: 3}


def test_the_smallest_sufficient_set_of_neighbours_is_taken() -> None:
    # Node 2 is full: sets 0-1 (8 CPUs) and 3-5 (12 CPUs).
    assert cpus(chosen(machine_of(FOUR), {2: 4}, tasks=8)) == {0: 4, 1: 4}
    assert cpus(chosen(machine_of(FOUR), {2: 4}, tasks=9)) == {3: 4, 4: 4, 5: 1}


def test_the_largest_set_is_taken_first_where_none_is_enough() -> None:
    assert cpus(chosen(machine_of(FOUR), {2: 4}, tasks=14)) == {0: 2, 3: 4, 4: 4, 5: 4}


def test_best_fit_looks_only_within_the_tightest_set() -> None:
    # Node 1 is full, node 0 alone has 4; of 2-5 node 4 has 2 left. The set of node 0 has fewer
    # CPUs, so it is taken for two tasks although node 4 would fit exactly.
    assert cpus(chosen(machine_of(FOUR), {1: 4, 4: 2}, tasks=2)) == {0: 2}


def test_light_nodes_come_first() -> None:
    groups = (NodeGroup("heavy", 2, 4, weight=9), NodeGroup("light", 2, 4, weight=1))
    assert cpus(chosen(machine_of(*groups), {}, tasks=4)) == {2: 4}
    assert cpus(chosen(machine_of(*groups), {2: 1, 3: 1}, tasks=8)) == {0: 2, 2: 3, 3: 3}


def test_tasks_are_dealt_out_one_node_after_the_other() -> None:
    # Ten tasks on three nodes: the third has two CPUs to give, the others four each.
    assert cpus(chosen(machine_of(FOUR), {}, JobResources(nodes=3, tasks=10), 10)) == {
        0: 4,
        1: 4,
        2: 2,
    }
    assert cpus(chosen(machine_of(FOUR), {}, JobResources(nodes=3, tasks=3), 3)) == {
        0: 1,
        1: 1,
        2: 1,
    }


def test_a_task_has_all_its_cpus_on_one_node() -> None:
    asked = JobResources(tasks=2, cpus_per_task=3)
    assert cpus(chosen(machine_of(FOUR), {}, asked, 6)) == {0: 3, 1: 3}
    assert chosen(machine_of(FOUR), dict.fromkeys(range(5), 2), asked, 6) is None


def test_one_node_must_hold_all_tasks_where_one_is_asked_for() -> None:
    asked = JobResources(nodes=1, tasks=3)
    assert cpus(chosen(machine_of(FOUR), {0: 2, 1: 2}, asked, 3)) == {2: 3}
    assert chosen(machine_of(FOUR), dict.fromkeys(range(6), 2), asked, 3) is None


def test_a_job_alone_gets_all_of_its_nodes() -> None:
    asked = JobResources(tasks=2, exclusive=True)
    allocation = chosen(machine_of(FOUR), {0: 1}, asked, 2)
    assert cpus(allocation) == {1: 4}
    assert allocation is not None
    assert allocation.whole
    use = NodeUse()
    use.add(allocation, 0)
    assert cpus(chosen(machine_of(FOUR), {}, tasks=4, use=use)) == {0: 4}


def test_memory_is_counted_where_it_is_given_out() -> None:
    group = NodeGroup("n", 2, 4, memory_mib=1000)
    asked = JobResources(memory_per_cpu_mib=400)
    assert cpus(chosen(machine_of(group), {}, asked, 2)) == {0: 2}
    assert cpus(chosen(machine_of(group), {}, asked, 3)) == {0: 2, 1: 1}
    counted = machine_of(group, selection=Selection.CPU)
    asked = JobResources(tasks=4, memory_per_node_mib=900)
    use = NodeUse()
    use.add(Allocation({0: 1}, {0: 900}), 0)
    assert cpus(chosen(machine_of(group), {}, JobResources(memory_per_node_mib=200), use=use)) == {
        1: 1
    }
    assert cpus(chosen(counted, {0: 1}, JobResources(memory_per_node_mib=200))) == {0: 1}


def test_a_job_that_asks_for_no_memory_gets_all_of_a_node() -> None:
    group = NodeGroup("n", 2, 4, memory_mib=1000)
    allocation = chosen(machine_of(group), {})
    assert allocation is not None
    assert allocation.memory_mib == {0: 1000}
    use = NodeUse()
    use.add(allocation, 0)
    assert cpus(chosen(machine_of(group), {}, use=use)) == {1: 1}


def test_gpus_are_counted() -> None:
    groups = (NodeGroup("cpu", 1, 4), NodeGroup("gpu", 2, 4, gpus=2))
    asked = JobResources(gpus_per_node=2)
    use = NodeUse()
    use.add(Allocation({1: 1}, {}, {1: 1}), 0)
    allocation = chosen(machine_of(*groups), {}, asked, use=use)
    assert cpus(allocation) == {2: 1}
    assert allocation is not None
    assert allocation.gpus == {2: 2}


def test_a_partition_may_have_so_many_cpus_of_a_node() -> None:
    assert cpus(chosen(machine_of(FOUR), {0: 2}, tasks=2, max_cpus_per_node=3)) == {1: 2}
    assert cpus(chosen(machine_of(FOUR), {0: 2}, tasks=1, max_cpus_per_node=3)) == {0: 1}


@pytest.mark.parametrize(
    ("version", "nodes"), [((22, 5), {0: 1}), ((24, 11), {3: 1}), ((25, 11), {0: 1})]
)
def test_24_11_counts_jobs_of_other_partitions_until_one_has_run(
    version: tuple[int, int], nodes: dict[int, int]
) -> None:
    # Jobs of partition 1 have 2, 3, 1 and 0 CPUs of four nodes; the job is of partition 0.
    machine = machine_of(NodeGroup("n", nodes=4, cpus=4))
    use = NodeUse()
    use.add(Allocation({0: 2, 1: 3, 2: 1}), 1)
    settings = {"use": use, "max_cpus_per_node": 1, "version": version}
    assert cpus(chosen(machine, {}, **settings)) == nodes  # type: ignore[arg-type]
    use.add(Allocation({2: 1}), 0)
    use.remove(Allocation({2: 1}), 0)
    assert cpus(chosen(machine, {}, **settings)) == {0: 1}  # type: ignore[arg-type]


def test_from_26_05_on_jobs_of_one_node_get_the_first_that_fits() -> None:
    # Seen on live 26.05.5; jobs of several tasks still get the tightest fit.
    used = {1: 2, 2: 1}
    one, two = JobResources(nodes=1, tasks=2), JobResources(tasks=2)
    assert cpus(chosen(machine_of(FOUR), used, one, 2)) == {1: 2}
    assert cpus(chosen(machine_of(FOUR), used, one, 2, version=(26, 5))) == {0: 2}
    assert cpus(chosen(machine_of(FOUR), used, tasks=1, version=(26, 5))) == {0: 1}
    assert cpus(chosen(machine_of(FOUR), used, two, 2, version=(26, 5))) == {1: 2}


def test_poor_nodes_are_left_out_where_a_job_does_not_fit_on_the_first() -> None:
    # Four nodes for 16 tasks; free are 0, 1, 1, 2, 3, 2 on light nodes, 8, 4 on heavy ones. The
    # first four light ones have 8. Without 1, 2 and 3 the others have enough, as 26.05 found live.
    groups = (NodeGroup("light", 6, 8), NodeGroup("heavy", 2, 8, weight=20))
    used = {0: 8, 1: 7, 2: 7, 3: 6, 4: 5, 5: 6, 7: 4}
    asked = JobResources(nodes=4, tasks=16)
    wanted = {4: 3, 5: 2, 6: 8, 7: 3}
    for version in ((22, 5), (25, 11)):  # all of one CPU and then of two, or one by one
        assert cpus(chosen(machine_of(*groups), used, asked, 16, version=version)) == wanted


def test_a_job_with_gpus_counts_no_more_cpus_of_a_node_than_its_tasks_need() -> None:
    # By CPUs the second node fits tighter; for four tasks with GPUs both have four.
    groups = (NodeGroup("gpu", 2, 8, gpus=2),)
    asked = JobResources(nodes=1, tasks=4)
    with_gpus = JobResources(nodes=1, tasks=4, gpus_per_node=1)
    assert cpus(chosen(machine_of(*groups), {1: 4}, asked, 4)) == {1: 4}
    assert cpus(chosen(machine_of(*groups), {1: 4}, with_gpus, 4)) == {0: 4}
