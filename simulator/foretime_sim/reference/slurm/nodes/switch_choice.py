"""Which nodes a job gets under topology/tree: those of as few leaf switches as possible."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping, Sequence
from typing import Protocol

from foretime_sim.reference.slurm.jobs.job import SlurmJob
from foretime_sim.reference.slurm.nodes.switch_tree import UNREACHABLE, SwitchTree

CPUS_COUNT_VERSION = (24, 11)
"""Some release between 22.05 and 25.11 asks of a switch enough CPUs, too, not only nodes."""


class NodesForJob(Protocol):
    """Who chooses nodes for a job."""

    @property
    def job(self) -> SlurmJob:
        """Whose."""

    @property
    def version(self) -> tuple[int, int]:
        """Of Slurm."""

    def weight(self, node: int) -> int:
        """Weight of a node; lighter ones come first."""

    def cpus_to_use(self, cpus: int, cpus_left: int, nodes_left: int) -> int:
        """CPUs to take of a node that has so many for the job."""


class SwitchChoice:
    """One attempt to choose nodes for a job (`_eval_nodes_topo`).

    25.11: topology/tree/eval_nodes_tree.c; 22.05: cons_tres/job_test.c.

    Parameters
    ----------
    tree
        The switches.
    asked
        What the job asks for, and takes of a node.
    available
        CPUs for the job by node; of nodes that are taken it becomes what is taken.
    nodes
        To choose from.
    most_nodes
        That the job may have, at least 1.

    Attributes
    ----------
    chosen
        CPUs by node, of an attempt that failed, too.

    Notes
    -----
    Slurm's own numbers are kept where they are odd: a switch's CPUs are never counted down, and
    those above a switch that is used up lose all its nodes. 22.05 looks at the most nodes of a job
    only between switches.
    """

    def __init__(
        self,
        tree: SwitchTree,
        asked: NodesForJob,
        available: MutableMapping[int, int],
        nodes: Collection[int],
        most_nodes: int,
    ) -> None:
        self.tree = tree
        self.asked = asked
        self.available = available
        self.cpus = {node: available[node] for node in nodes}
        self.counts_cpus = asked.version >= CPUS_COUNT_VERSION
        self.cpus_left = asked.job.min_cpus  # rem_cpus, and rem_max_cpus: there is no most of CPUs
        self.nodes_left = asked.job.min_nodes
        self.most_left = most_nodes
        self.chosen: dict[int, int] = {}
        self.of_switch = [of & self.cpus.keys() for of in tree.nodes]
        self.cpus_of = [self.sum_of(of) for of in self.of_switch]
        self.count = [len(of) for of in self.of_switch]

    def run(self) -> bool:
        """Choose, and say whether there is enough."""
        top = self.top_switch()
        if top is None:
            return False
        needed, last = self.lightest(self.of_switch[top])
        best = needed | last
        if not last:
            return False
        self.of_switch = [nodes & best for nodes in self.of_switch]
        self.count = [len(nodes) for nodes in self.of_switch]
        for node in sorted(needed):
            if self.most_left:
                self.take(node)
            else:
                self.chosen[node] = 0
        if self.most_left == 0:
            return False
        used = [bool(nodes & needed) for nodes in self.of_switch]
        filled = self.fill(used)
        return self.add_switches(used) if filled is None else filled

    # Where to look

    def top_switch(self) -> int | None:
        """Find the highest switch that reaches enough, and of those a lightest node.

        Of equal ones the last.
        """
        top: int | None = None
        lightest = 0
        for switch, nodes in enumerate(self.of_switch):
            if len(nodes) < self.nodes_left:
                continue
            if self.counts_cpus and self.cpus_of[switch] < self.cpus_left:
                continue
            weight = min(self.asked.weight(node) for node in nodes)
            if top is None or (
                self.tree.levels[switch] >= self.tree.levels[top] and weight <= lightest
            ):
                top, lightest = switch, weight
        return top

    def lightest(self, reachable: Collection[int]) -> tuple[set[int], set[int]]:
        """Divide nodes by weight: those that are all needed, and the next, of which some are.

        Weight by weight until there are enough; where all are not enough the second is empty.
        """
        needed: set[int] = set()
        for weight in sorted({self.asked.weight(node) for node in reachable}):
            alike = {node for node in reachable if self.asked.weight(node) == weight}
            both = needed | alike
            if len(both) >= self.nodes_left and self.sum_of(both) >= self.cpus_left:
                return needed, alike
            needed = both
        return needed, set()

    def sum_of(self, nodes: Collection[int]) -> int:
        """CPUs for the job on some nodes."""
        return sum(self.cpus[node] for node in nodes)

    # What to take

    def take(self, node: int) -> None:
        """Give the job a node."""
        cpus = self.asked.cpus_to_use(self.cpus[node], self.cpus_left, self.nodes_left)
        self.chosen[node] = self.available[node] = cpus
        self.nodes_left -= 1
        self.most_left -= 1
        self.cpus_left -= cpus

    @property
    def has_enough(self) -> bool:
        """Whether the job has all that it asks for."""
        return self.nodes_left <= 0 and self.cpus_left <= 0

    def fill(self, used: Sequence[bool]) -> bool | None:
        """Take more of the leaves of which nodes are taken already.

        Says whether the job has enough then; ``None`` while it may have more.
        """
        taken = 0  # of all these leaves so far, all of which counts against each
        for switch in self.leaves():
            if not used[switch]:
                continue
            for node in sorted(self.of_switch[switch] - self.chosen.keys()):
                self.take(node)
                taken += 1
                if self.has_enough:
                    return True
                if self.counts_cpus and self.most_left == 0:
                    return False
            if self.counts_cpus:
                self.count_down(switch, taken)
        return None

    def add_switches(self, used: Sequence[bool]) -> bool:
        """Take leaf after leaf, the best for what is still missing first."""
        distances = [0] * len(used)
        for switch, is_used in enumerate(used):
            if is_used:
                self.add_distances(distances, switch)
        before: int | None = None
        while before != self.nodes_left:
            before = self.nodes_left
            best = self.best_leaf(used, distances)
            if best is None:
                break
            self.add_distances(distances, best)
            for node in sorted(self.of_switch[best] - self.chosen.keys()):
                if self.most_left == 0:
                    break
                self.take(node)
                if self.has_enough:
                    return True
                if self.counts_cpus and self.most_left == 0:
                    return False
            if self.counts_cpus:
                self.count_down(best, self.count[best])
            self.count[best] = 0
        return False

    def leaves(self) -> list[int]:
        """Switches with nodes of their own."""
        return [switch for switch, level in enumerate(self.tree.levels) if level == 0]

    def add_distances(self, distances: list[int], switch: int) -> None:
        """Add how far all switches are from one (`_topo_add_dist`)."""
        for other, steps in enumerate(self.tree.distances[switch]):
            both = (steps, distances[other])
            distances[other] = UNREACHABLE if UNREACHABLE in both else sum(both)

    def count_down(self, switch: int, nodes: int) -> None:
        """Take nodes off the counts of a switch and all above it (`_decrement_node_cnt`)."""
        place: int | None = switch
        while place is not None:
            self.count[place] = max(self.count[place] - nodes, 0)
            place = self.tree.parents[place]

    # The best leaf

    def best_leaf(self, used: Sequence[bool], distances: Sequence[int]) -> int | None:
        """Find the leaf to go on with (`_topo_choose_best_switch`), as they are compared in turn.

        A nearer one that fits, or of those as near the one that `compared` puts first.
        """
        best: int | None = None
        for leaf in self.leaves():
            if used[leaf] or not self.count[leaf] or distances[leaf] == UNREACHABLE:
                continue
            if best is None:
                best = leaf
                continue
            order, fits = self.compared(leaf, best)
            is_good = fits if self.counts_cpus else order >= 0
            if (distances[leaf] < distances[best] and is_good) or (
                distances[leaf] == distances[best] and order > 0
            ):
                best = leaf
        return best

    def fits(self, switch: int) -> bool:
        """Whether a switch has what is still missing."""
        enough_cpus = not self.counts_cpus or self.cpus_of[switch] >= self.cpus_left
        return enough_cpus and self.count[switch] >= self.nodes_left

    def compared(self, one: int, other: int) -> tuple[int, bool]:
        """Say which of two is the better fit (1: the first), and whether the first fits at all.

        `_topo_compare_switches`: the smaller of two that fit. Where none does, those above them
        are compared, up to a common one; there the one with more nodes is better. Slurm reads
        beyond its table where one has nothing above it and the other has: that ends it here.
        """
        while True:
            mine, yours = self.fits(one), self.fits(other)
            if mine and yours:
                if self.count[one] != self.count[other]:
                    return (1 if self.count[one] < self.count[other] else -1), mine
                break
            if mine or yours:
                return (1 if mine else -1), mine
            above, above_other = self.tree.parents[one], self.tree.parents[other]
            if above == above_other or above is None or above_other is None:
                break
            one, other = above, above_other
        if self.count[one] != self.count[other]:
            return (1 if self.count[one] > self.count[other] else -1), mine
        level, other_level = self.tree.levels[one], self.tree.levels[other]
        return (level < other_level) - (level > other_level), mine
