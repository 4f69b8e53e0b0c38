"""Which nodes a job gets under topology/tree: worked out by hand."""

from __future__ import annotations

import pytest
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.jobs.job import Allocation, SlurmJob
from foretime_sim.reference.slurm.nodes.node_choice import NodeChoice
from foretime_sim.reference.slurm.nodes.nodes import NodeUse, nodes_of
from foretime_sim.reference.slurm.nodes.switch_tree import UNREACHABLE, SwitchTree
from foretime_sim.sites.slurm.switches import Switch
from foretime_sim.workloads.node_request import JobResources, fit_request

NEW, OLD = (25, 11), (22, 5)
BOTH = pytest.mark.parametrize("version", [NEW, OLD])


def cluster(*leaves: tuple[int, int], weights: tuple[int, ...] = ()) -> Machine:
    """Groups a, b, c, ... of so many nodes of so many CPUs, numbered through."""
    groups = tuple(
        NodeGroup("abcdefg"[at], nodes, cpus, weight=weights[at] if weights else 1)
        for at, (nodes, cpus) in enumerate(leaves)
    )
    return Machine(groups, (SlurmPartition("all", tuple(group.name for group in groups)),))


def leaves(names: str) -> tuple[Switch, ...]:
    return tuple(Switch(name.upper(), (name,)) for name in names)


def tree_of(machine: Machine, switches: tuple[Switch, ...]) -> SwitchTree:
    firsts = machine.first_nodes
    return SwitchTree.of(
        switches,
        {
            group.name: frozenset(range(first, first + group.nodes))
            for group, first in zip(machine.node_groups, firsts, strict=True)
        },
    )


def chosen(
    machine: Machine,
    used: dict[int, int],
    tasks: int,
    nodes: int | None = None,
    *,
    switches: tuple[Switch, ...] | None = None,
    version: tuple[int, int] = NEW,
) -> dict[int, int] | None:
    """CPUs by node of a job, where so many CPUs of some nodes are in use; one switch above all."""
    names = "".join(group.name for group in machine.node_groups)
    if switches is None:
        switches = (*leaves(names), Switch("top", switches=tuple(names.upper())))
    request = fit_request(machine, JobResources(nodes=nodes, tasks=tasks), tasks, 60)
    job = SlurmJob(0, request, ("all",), 0, 60, 60)
    use = NodeUse()
    for node, cpus in used.items():
        use.add(Allocation({node: cpus}), 0)
    all_nodes = nodes_of(machine)
    choice = NodeChoice(all_nodes, job, 0, None, version, tree_of(machine, switches))
    allocation = choice.choose(range(len(all_nodes)), use)
    return None if allocation is None else dict(allocation.cpus)


THREE = cluster((4, 4), (3, 4), (2, 4))  # nodes 0-3, 4-6, 7-8


@BOTH
def test_the_smallest_leaf_that_is_enough_is_taken(version: tuple[int, int]) -> None:
    assert chosen(THREE, {}, 8, 2, version=version) == {7: 4, 8: 4}
    assert chosen(THREE, {}, 12, 3, version=version) == {4: 4, 5: 4, 6: 4}
    assert chosen(THREE, {}, 16, 4, version=version) == {0: 4, 1: 4, 2: 4, 3: 4}


@BOTH
def test_nodes_of_a_leaf_are_taken_in_order_not_by_best_fit(version: tuple[int, int]) -> None:
    # Node 8 has one CPU left, which would fit tightest; without switches it is taken.
    assert chosen(THREE, {8: 3}, 1, 1, version=version) == {7: 1}


@BOTH
def test_a_job_of_many_leaves_begins_with_the_largest(version: tuple[int, int]) -> None:
    # No leaf has five nodes: A has most. Then for the fifth node the smallest of those that fit.
    assert chosen(THREE, {}, 20, 5, version=version) == {0: 4, 1: 4, 2: 4, 3: 4, 7: 4}


@BOTH
def test_a_leaf_that_is_in_use_counts_what_is_left(version: tuple[int, int]) -> None:
    # Of A two nodes are left, as of C: the first of equal ones.
    assert chosen(THREE, {0: 4, 1: 4}, 8, 2, version=version) == {2: 4, 3: 4}


def test_only_later_releases_ask_whether_a_leaf_has_the_cpus() -> None:
    # Two CPUs each are in use of the nodes of C, the smallest leaf. Eight tasks on any nodes: 22.05
    # counts nodes alone, takes C, then of the others, as near, again the smallest.
    used = {7: 2, 8: 2}
    assert chosen(THREE, used, 8, version=NEW) == {4: 4, 5: 4}
    assert chosen(THREE, used, 8, version=OLD) == {4: 4, 7: 2, 8: 2}


@BOTH
def test_poor_nodes_are_left_out_until_it_fits(version: tuple[int, int]) -> None:
    # Two nodes for seven tasks; the smallest leaf has 1 + 4 CPUs. Without node 7 that leaf has too
    # few nodes.
    assert chosen(THREE, {7: 3}, 7, 2, version=version) == {4: 4, 5: 3}


def test_later_releases_leave_out_the_poorest_of_the_nodes_that_were_tried() -> None:
    # A has 2, 4 and 4 CPUs left, B 1, 4 and 4. Two nodes for seven tasks: the first two of A have
    # six. Without the first A is the smaller leaf. 22.05 leaves out the poorest of all, of B.
    machine = cluster((3, 4), (3, 4))
    assert chosen(machine, {0: 2, 3: 3}, 7, 2, version=NEW) == {1: 4, 2: 3}
    assert chosen(machine, {0: 2, 3: 3}, 7, 2, version=OLD) == {4: 4, 5: 3}


@BOTH
def test_light_nodes_are_all_taken_before_heavier_ones(version: tuple[int, int]) -> None:
    # A is heavy: all of B is needed, and one node more.
    machine = cluster((4, 4), (2, 4), (2, 4), weights=(5, 1, 5))
    assert chosen(machine, {}, 8, 2, version=version) == {4: 4, 5: 4}
    # The rest comes from the smallest leaf with enough: C has two, A four.
    assert chosen(machine, {}, 12, 3, version=version) == {4: 4, 5: 4, 6: 4}


@BOTH
def test_what_else_hangs_on_a_used_leaf_comes_first(version: tuple[int, int]) -> None:
    # One leaf has light nodes (b) and heavy ones (c); the other only heavy ones (a).
    machine = cluster((2, 4), (1, 4), (3, 4), weights=(5, 1, 5))
    switches = (Switch("A", ("a",)), Switch("BC", ("b", "c")), Switch("T", switches=("A", "BC")))
    # A alone would be smaller for the two nodes that are missing.
    assert chosen(machine, {}, 12, 3, switches=switches, version=version) == {2: 4, 3: 4, 4: 4}


@BOTH
def test_near_leaves_are_added_first(version: tuple[int, int]) -> None:
    # Rows of two leaves: A B and C D, of 3, 2, 2 and 2 nodes. Five nodes: the largest is A; then B,
    # two steps away, not C or D, four away.
    machine = cluster((3, 1), (2, 1), (2, 1), (2, 1))
    found = chosen(machine, {}, 5, 5, switches=rows("abcd", "ab", "cd"), version=version)
    assert found is not None
    assert set(found) == {0, 1, 2, 3, 4}
    # With 2, 2, 3 and 2 the right row is enough, the left is not.
    machine = cluster((2, 1), (2, 1), (3, 1), (2, 1))
    found = chosen(machine, {}, 5, 5, switches=rows("abcd", "ab", "cd"), version=version)
    assert found is not None
    assert set(found) == {4, 5, 6, 7, 8}


def rows(order: str, left: str, right: str) -> tuple[Switch, ...]:
    """Leaves in an order, in two rows below one switch."""
    return (
        *leaves(order),
        Switch("left", switches=tuple(left.upper())),
        Switch("right", switches=tuple(right.upper())),
        Switch("top", switches=("left", "right")),
    )


@pytest.mark.parametrize(
    ("version", "groups"), [(NEW, {"a", "c", "d"}), (OLD, {"a", "b", "c"})], ids=["new", "old"]
)
def test_only_later_releases_count_a_row_down_as_its_leaves_are_taken(
    version: tuple[int, int], groups: set[str]
) -> None:
    # Eight nodes: first A, the first of the largest. Of five more the left row has two in B. Only
    # 22.05 still counts all five of it, so B, which is nearer than C, is as good.
    machine = cluster((3, 1), (2, 1), (3, 1), (2, 1))
    switches = rows("acdb", "ab", "cd")
    found = chosen(machine, {}, 8, 8, switches=switches, version=version)
    assert found is not None
    whose = nodes_of(machine)
    assert {machine.node_groups[whose[node].group].name for node in found} == groups


def test_later_releases_prefer_a_nearer_leaf_only_where_it_fits() -> None:
    # Ten nodes: A has five. For five more no leaf and no row is enough: later releases stay with C,
    # the first leaf, and take three of B then; 22.05 goes to B, which is nearer, then to D.
    machine = cluster((5, 1), (4, 1), (2, 1), (1, 1))
    found = chosen(machine, {}, 10, 10, switches=rows("acdb", "ab", "cd"), version=NEW)
    assert found is not None
    assert set(found) == {*range(5), 9, 10, 5, 6, 7}
    found = chosen(machine, {}, 10, 10, switches=rows("acdb", "ab", "cd"), version=OLD)
    assert found is not None
    assert set(found) == {*range(9), 11}


@BOTH
def test_what_the_used_leaves_give_counts_again_for_each(version: tuple[int, int]) -> None:
    # Light nodes a and b, each on a leaf with two heavy ones, c and d; e is the third leaf of that
    # row, f and g are the other row. Nine nodes: both leaves, then two of three more. The row of e
    # has four nodes left with a and b, but counts two (22.05: the other row is the smaller fit).
    machine = cluster(
        (1, 1), (1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), weights=(1, 1, 5, 5, 5, 5, 5)
    )
    switches = (
        *leaves("fg"),
        Switch("A", ("a", "c")),
        Switch("B", ("b", "d")),
        *leaves("e"),
        Switch("left", switches=("A", "B", "E")),
        Switch("right", switches=("F", "G")),
        Switch("top", switches=("left", "right")),
    )
    found = chosen(machine, {}, 9, 9, switches=switches, version=version)
    assert found is not None
    assert set(found) == {*range(6), 8, 9, 6}


@BOTH
def test_the_order_of_the_switches_decides_little(version: tuple[int, int]) -> None:
    switches = (Switch("top", switches=("A", "B", "C")), *leaves("bca"))
    assert chosen(THREE, {}, 8, 2, switches=switches, version=version) == {7: 4, 8: 4}
    switches = (*leaves("cba"), Switch("top", switches=("A", "B", "C")))
    found = chosen(THREE, {}, 20, 5, switches=switches, version=version)
    assert found == {0: 4, 1: 4, 2: 4, 3: 4, 7: 4}


@BOTH
def test_of_trees_the_last_one_that_is_enough_is_taken(version: tuple[int, int]) -> None:
    machine = cluster((2, 4), (2, 4))
    assert chosen(machine, {}, 8, 2, switches=leaves("ab"), version=version) == {2: 4, 3: 4}
    # Of B two CPUs are left. (22.05 comes to it as it leaves out the nodes of B.)
    used = {2: 3, 3: 3}
    assert chosen(machine, used, 8, 2, switches=leaves("ab"), version=version) == {0: 4, 1: 4}
    # Light nodes go first.
    machine = cluster((2, 4), (2, 4), weights=(1, 5))
    assert chosen(machine, {}, 8, 2, switches=leaves("ab"), version=version) == {0: 4, 1: 4}


@BOTH
def test_leaves_without_a_way_between_them_are_not_used_together(version: tuple[int, int]) -> None:
    machine = cluster((2, 4), (3, 4))
    assert chosen(machine, {}, 16, 4, switches=leaves("ab"), version=version) is None
    assert chosen(machine, {}, 12, 3, switches=leaves("ab"), version=version) == {2: 4, 3: 4, 4: 4}


@BOTH
def test_nodes_on_no_switch_are_given_to_no_job(version: tuple[int, int]) -> None:
    machine = cluster((2, 4), (2, 4))
    assert chosen(machine, {}, 8, 2, switches=leaves("b"), version=version) == {2: 4, 3: 4}
    assert chosen(machine, {}, 12, 3, switches=leaves("b"), version=version) is None


def test_the_tree_is_worked_out() -> None:
    machine = cluster((1, 1), (2, 1), (1, 1))
    switches = (
        Switch("top", switches=("mid", "A")),
        *leaves("abc"),
        Switch("mid", switches=("B",)),
    )
    tree = tree_of(machine, switches)
    assert tree.nodes[0] == {0, 1, 2}
    assert tree.levels == (2, 0, 0, 0, 1)
    assert tree.parents == (None, 0, 4, None, 0)
    assert tree.distances[1] == (1, 0, 3, UNREACHABLE, 2)
