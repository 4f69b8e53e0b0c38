"""Which nodes a job gets: select/cons_tres with CPUs, or with CPUs and memory."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foretime_sim.reference.slurm.jobs.job import Allocation, SlurmJob
from foretime_sim.reference.slurm.nodes.nodes import Node, NodeUse
from foretime_sim.reference.slurm.nodes.switch_choice import SwitchChoice
from foretime_sim.reference.slurm.nodes.switch_tree import SwitchTree

FIRST_FIT_VERSION = (26, 5)
"""From here on a job of one node or one task gets the first node that fits, seen on live 26.05.5:
of 30 such jobs with several nodes to choose from none got the tightest fit but the first."""


ONE_BY_ONE_VERSION = (24, 11)
"""Some release between 22.05 and 25.11 leaves poor nodes out one by one."""


OTHERS_COUNT_VERSION = (24, 11)
"""Here alone MaxCPUsPerNode may count jobs of other slurm_partitions. By its CHANGELOG Slurm does
so from 24.11.1 to 25.05.2."""


OWN_WEIGHTS_VERSION = (24, 11)
"""Some release between 22.05 and 25.11 has each will-run test begin with the nodes' own weights
(`_set_sched_weight`, cons_tres/job_test.c)."""


class Mode(enum.Enum):
    """What is asked (`SELECT_MODE_*`)."""

    EVER = "TEST_ONLY"
    """Could it run if nothing else did?"""
    NOW = "RUN_NOW"
    """Does it fit beside what is in use?"""


@dataclass(slots=True)
class ConsecutiveNodes:
    """A run of usable nodes with neighbouring numbers and one weight (`consec_*`)."""

    nodes: list[int]
    cpus: int
    weight: int


class NodeChoice:
    """Chooses nodes for one job in one of its slurm_partitions.

    Parameters
    ----------
    nodes
        All of the machine, in its order.
    job
        Whose.
    number
        Index of the slurm_partition among the job's choices.
    max_cpus_per_node
        MaxCPUsPerNode of the slurm_partition; ``None``: no limit.
    version
        Of Slurm.
    tree
        The switches that nodes hang on; ``None``: nodes are chosen by their order.
    gpu_marks
        GPUs that a job for GPUs would have had of a node, by node, as the last test found: of nodes
        with one weight those with more are lighter. A test of a job for GPUs writes them. Only
        before `OWN_WEIGHTS_VERSION`.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
    >>> from foretime_sim.reference.slurm.jobs.job import Allocation, SlurmJob
    >>> from foretime_sim.reference.slurm.nodes.node_choice import NodeChoice
    >>> from foretime_sim.reference.slurm.nodes.nodes import NodeUse, nodes_of
    >>> from foretime_sim.workloads.node_request import JobResources, fit_request
    >>> groups = (NodeGroup("cpu", nodes=3, cpus=4),)
    >>> machine = Machine(groups, (SlurmPartition("all", ("cpu",)),))
    >>> job = SlurmJob(0, fit_request(machine, JobResources(), 2, 60), ("all",), 0, 30, 60)
    >>> use = NodeUse()
    >>> use.add(Allocation({1: 2}), 0)  # the tightest fit is what is left of this node
    >>> choice = NodeChoice(nodes_of(machine), job, 0)
    >>> dict(choice.choose(range(3), use).cpus)
    {1: 2}
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        job: SlurmJob,
        number: int,
        max_cpus_per_node: int | None = None,
        version: tuple[int, int] = (25, 11),
        tree: SwitchTree | None = None,
        gpu_marks: dict[int, int] | None = None,
    ) -> None:
        self.all_nodes = nodes
        self.job = job
        self.request = job.request
        self.choice = job.request.choices[number]
        self.node_memory, self.cpu_memory = job.memory_in(number)
        self.max_cpus_per_node = max_cpus_per_node
        self.version = version
        self.tree = tree
        self.gpu_marks = {} if gpu_marks is None else gpu_marks
        self.whole = self.choice.exclusive
        single = job.max_nodes == 1 or job.request.tasks == 1
        self.first_fit = single and version >= FIRST_FIT_VERSION
        self.max_nodes = self.choice.most_nodes
        if job.max_nodes:
            self.max_nodes = min(job.max_nodes, self.max_nodes)

    def choose(
        self, candidates: Collection[int], use: NodeUse, mode: Mode = Mode.NOW
    ) -> Allocation | None:
        """Give what the job would get of some nodes; ``None`` if it does not fit.

        `_job_test` and `_select_nodes` (cons_tres/job_test.c): count what each node has for the
        job, choose among the nodes (`_eval_nodes_consec`), then lay out the tasks (`dist_tasks`).
        """
        if mode is Mode.EVER:
            use = NodeUse()
        if self.request.gpus_per_node and self.version < OWN_WEIGHTS_VERSION:
            self.mark(candidates, use)
        available = {node: self.cpus_for_job(node, use) for node in sorted(candidates)}
        available = {node: cpus for node, cpus in available.items() if cpus > 0}
        if len(available) < self.job.min_nodes:
            return None
        fits_first = self.first_fit
        chosen = self.first_by_weight(available) if fits_first else self.among(available, use)
        if chosen is None or len(chosen) > self.max_nodes:
            return None
        return self.lay_out(chosen)

    # What a test leaves behind

    def mark(self, candidates: Collection[int], use: NodeUse) -> None:
        """Note the job's GPUs of each node that it could have if all cores were free.

        `can_job_run_on_node` (cons_tres/job_test.c) writes them into the weight by which later
        tests choose (`sched_weight`); the first test of `_job_test` is with all cores.
        """
        all_cores = NodeUse(memory_mib=use.memory_mib, gpus=use.gpus, whole=use.whole)
        could_have = [
            node
            for node in candidates
            if self.cpus_for_job(node, all_cores) > 0 and not (self.whole and not use.is_idle(node))
        ]
        if len(could_have) >= self.job.min_nodes:
            for node in could_have:
                gpus = self.all_nodes[node].gpus if self.whole else self.request.gpus_per_node
                self.gpu_marks[node] = gpus

    def weight(self, node: int) -> int:
        """Give the weight of a node: that of slurm.conf, then more marked GPUs first."""
        return self.all_nodes[node].weight << 8 | (0xFF - self.gpu_marks.get(node, 0))

    # What a node has for the job

    def cpus_for_job(self, node: int, use: NodeUse) -> int:
        """CPUs that the job could have on one node; 0 if it could have none.

        `_verify_node_state`, `_can_job_run_on_node` and `_allocate_sc` (cons_tres/job_test.c).
        GPUs are counted without regard to sockets and cores.
        """
        here = self.all_nodes[node]
        cpus_per_task = self.request.cpus_per_task
        if node in use.whole or (self.whole and not use.is_idle(node)):
            return 0
        if here.gpus - use.gpus.get(node, 0) < self.request.gpus_per_node:
            return 0
        cpus = here.cpus - use.cpus.get(node, 0)
        if self.max_cpus_per_node is not None:
            used = self.counted_cpus(node, use)
            if cpus + used > self.max_cpus_per_node:
                if self.whole:
                    return 0
                cpus = max(self.max_cpus_per_node - used, 0)
        cpus -= cpus % cpus_per_task
        if cpus < self.least_tasks_on_node() * cpus_per_task:
            return 0
        if here.memory_mib:
            cpus = self._cpus_by_memory(cpus, here.memory_mib, use.memory_mib.get(node, 0))
        if cpus // cpus_per_task < self.least_tasks_on_node():  # eval_nodes_select_cores
            return 0
        if self.request.gpus_per_node:  # no more than all its tasks need (gres_filter_sock_core)
            cpus = min(cpus, self.job.min_cpus)
        return cpus

    def counted_cpus(self, node: int, use: NodeUse) -> int:
        """CPUs in use on a node that count for MaxCPUsPerNode: those of the job's slurm_partition.

        24.11 tells them from those of other slurm_partitions by a map (`part_core_map`) that is
        made as the first job starts in the slurm_partition. Until then the CPUs of all jobs count.
        """
        slurm_partition = self.choice.slurm_partition
        if self.version == OTHERS_COUNT_VERSION and slurm_partition not in use.ran_in:
            return use.cpus.get(node, 0)
        return use.cpus_of_partition.get((node, slurm_partition), 0)

    def least_tasks_on_node(self) -> int:
        """All of them with ``--nodes=1``, otherwise 1."""
        return self.request.tasks if self.job.max_nodes == 1 else 1

    def _cpus_by_memory(self, cpus: int, memory_mib: int, used_mib: int) -> int:
        """CPUs for which there is memory; a job that asks for none gets all of the node's."""
        free = memory_mib - used_mib
        if not self.node_memory and not self.cpu_memory:
            return 0 if used_mib else cpus
        if self.node_memory:
            return cpus if self.node_memory <= free else 0
        if self.whole:
            return cpus if self.cpu_memory * cpus <= free else 0
        cpus = min(cpus, free // self.cpu_memory)
        return cpus - cpus % self.request.cpus_per_task

    # Which nodes

    def first_by_weight(self, available: Mapping[int, int]) -> dict[int, int] | None:
        """Choose the first node of least weight with CPUs for all tasks."""
        fitting = [node for node, cpus in available.items() if cpus >= self.job.min_cpus]
        node = min(fitting, key=lambda node: (self.all_nodes[node].weight, node), default=None)
        if node is None:
            return None
        return {node: self.cpus_to_use(available[node], self.job.min_cpus, 1)}

    def among(self, available: dict[int, int], use: NodeUse) -> dict[int, int] | None:
        """Choose among all usable nodes; failing that, without the poorest of them.

        Taking nodes in order may end with too many poor ones. So they are left out step by step:
        in 22.05 all with so many CPUs (and GPUs, for a job that asks for some) or fewer
        (`choose_nodes`, cons_tres/job_test.c), later one by one (`common_topo_choose_nodes`,
        topology/common/common_topo.c), those with the least CPUs (times GPUs) first, of those that
        the attempt looked at. What an attempt has taken less of than there was stays at that for
        the next; it stands where it stood.
        """
        most = min(self.max_nodes, max(self.request.tasks, self.job.min_nodes))
        riches = self._riches(available, use)
        chosen, _ = self.attempt(available, most, available)
        if chosen is not None:
            return chosen
        if self.version < ONE_BY_ONE_VERSION:
            return self._without_all_below(available, self._riches(available, use), most)
        left = sorted(available, key=riches.__getitem__)
        while len(left) >= self.job.min_nodes:
            chosen, tried = self.attempt(available, self.max_nodes, left)
            if chosen is not None or len(left) == self.job.min_nodes:
                return chosen
            poorest = next((node for node in left if node in tried), None)
            if poorest is None:
                return None
            left.remove(poorest)
        return None

    def attempt(
        self, available: dict[int, int], most_nodes: int, nodes: Collection[int]
    ) -> tuple[dict[int, int] | None, Collection[int]]:
        """Choose among some nodes; if they won't do, say which were tried."""
        if self.tree is None:
            return self.consecutive(available, most_nodes, nodes), nodes
        choice = SwitchChoice(self.tree, self, available, nodes, most_nodes)
        enough = choice.run()
        return dict(sorted(choice.chosen.items())) if enough else None, choice.chosen

    def _riches(self, available: Mapping[int, int], use: NodeUse) -> dict[int, int]:
        """CPUs for the job, with its GPUs: their sum in 22.05, later their product."""
        riches = dict(available)
        if self.request.gpus_per_node:
            for node, cpus in available.items():
                gpus = self.all_nodes[node].gpus - use.gpus.get(node, 0)
                old = self.version < ONE_BY_ONE_VERSION
                riches[node] = cpus + gpus if old else cpus * gpus
        return riches

    def _without_all_below(
        self, available: dict[int, int], riches: Mapping[int, int], most: int
    ) -> dict[int, int] | None:
        left = sorted(available)
        for count in range(1, max(riches.values())):
            poor = [node for node in left if riches[node] <= count]
            poor = poor[: len(left) - self.job.min_nodes]
            left = [node for node in left if node not in poor]
            if not poor and count > 1:
                continue
            chosen, _ = self.attempt(available, most, left)
            if chosen is not None or len(left) <= self.job.min_nodes:
                return chosen
        return None

    def consecutive(
        self, available: dict[int, int], most_nodes: int, nodes: Collection[int]
    ) -> dict[int, int] | None:
        """Choose by sets of consecutive nodes: the one of least weight, then the tightest fit.

        `_eval_nodes_consec` (25.11: topology/common/eval_nodes.c; 22.05: `_eval_nodes` in
        cons_tres/job_test.c). Of a set that is large enough the smallest, otherwise the largest,
        is taken up, node by node, until the job has enough; a single node that is enough for the
        rest is chosen by best fit within its set.
        """
        left = {node: available[node] for node in nodes}
        sets = self.sets_of_consecutive(left)
        chosen: dict[int, int] = {}
        cpus_left = self.job.min_cpus  # rem_cpus, and rem_max_cpus: there is no most of CPUs
        nodes_left = self.job.min_nodes
        while sets and most_nodes > 0:
            best = self.best_set(sets, cpus_left, nodes_left)
            sets.remove(best)
            if nodes_left <= 1:
                single = self.best_single(best.nodes, left, cpus_left)
                if single is not None:
                    for node in best.nodes:
                        if node != single:
                            left[node] = 0
            for node in best.nodes:
                if most_nodes == 0 or (nodes_left <= 0 and cpus_left <= 0):
                    break
                cpus = left[node]
                if cpus <= 0 or (most_nodes == 1 and cpus < cpus_left):
                    continue
                cpus = available[node] = self.cpus_to_use(cpus, cpus_left, nodes_left)
                chosen[node] = cpus
                cpus_left -= cpus
                nodes_left -= 1
                most_nodes -= 1
            if nodes_left <= 0 and cpus_left <= 0:
                return dict(sorted(chosen.items()))
        return None

    def sets_of_consecutive(self, available: Mapping[int, int]) -> list[ConsecutiveNodes]:
        """Cut the usable nodes into runs, where one is missing or the weight changes."""
        sets: list[ConsecutiveNodes] = []
        for node in sorted(available):
            weight = self.weight(node)
            if not (sets and sets[-1].nodes[-1] == node - 1 and sets[-1].weight == weight):
                sets.append(ConsecutiveNodes([], 0, weight))
            sets[-1].nodes.append(node)
            sets[-1].cpus += available[node]
        return sets

    def best_set(
        self, sets: Sequence[ConsecutiveNodes], cpus_left: int, nodes_left: int
    ) -> ConsecutiveNodes:
        """Take the first of the best, as they are compared one after the other."""
        best, best_is_enough = sets[0], False
        for place, one in enumerate(sets):
            enough = one.cpus >= cpus_left and len(one.nodes) >= nodes_left
            better = place == 0 or one.weight < best.weight
            if not better and one.weight == best.weight:
                better = (enough and (not best_is_enough or one.cpus < best.cpus)) or (
                    not enough and one.cpus > best.cpus
                )
            if better:
                best, best_is_enough = one, enough
        return best

    def best_single(
        self, nodes: Sequence[int], available: Mapping[int, int], cpus_left: int
    ) -> int | None:
        """Find the first node with the fewest CPUs that are enough for the rest of the job."""
        fitting = [node for node in nodes if available[node] >= cpus_left]
        return min(fitting, key=lambda node: available[node], default=None)

    def cpus_to_use(self, cpus: int, cpus_left: int, nodes_left: int) -> int:
        """CPUs to take of a node, one being kept for each further node (`eval_nodes_cpus_to_use`).

        The least is that of a task (`pn_min_cpus`).
        """
        if self.whole:
            return cpus
        most = cpus_left - max(nodes_left - 1, 0)
        return cpus if cpus <= most else max(most, self.request.cpus_per_task)

    # How many CPUs of each

    def lay_out(self, chosen: Mapping[int, int]) -> Allocation | None:
        """Lay out the tasks: one on each node, then one more on each in turn.

        `_dist_tasks_compute_c_b` (cons_tres/dist_tasks.c). A node that is the job's alone is taken
        with all its CPUs and GPUs.
        """
        gpus = {node: self.request.gpus_per_node for node in chosen if self.request.gpus_per_node}
        if self.whole:
            cpus = {node: self.all_nodes[node].cpus for node in chosen}
            gpus = {node: self.all_nodes[node].gpus for node in chosen if self.all_nodes[node].gpus}
            return Allocation(cpus, self._memory_of(cpus), gpus, whole=True)
        cpus_per_task = self.request.cpus_per_task
        cpus = dict.fromkeys(chosen, 0)
        tasks = self.request.tasks
        for node, available in chosen.items():
            if tasks:
                cpus[node] = min(cpus_per_task, available)
                tasks -= 1
        while tasks:
            placed = False
            for node, available in chosen.items():
                if tasks and available - cpus[node] >= cpus_per_task:
                    cpus[node] += cpus_per_task
                    tasks -= 1
                    placed = True
            if not placed:
                return None  # ESLURM_BAD_TASK_COUNT
        return Allocation(cpus, self._memory_of(cpus), gpus)

    def _memory_of(self, cpus: Mapping[int, int]) -> dict[int, int]:
        memory = {}
        for node, count in cpus.items():
            if self.all_nodes[node].memory_mib:
                asked = self.node_memory or self.cpu_memory * count
                memory[node] = asked or self.all_nodes[node].memory_mib
        return memory
