"""The state of one slurmctld: jobs, what they have, and how one is started."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from foretime_sim.machines.machine import Machine
from foretime_sim.reference.slurm.jobs.job import Allocation, Run, SlurmJob
from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.reference.slurm.loops.interfaces import Limits, Priorities
from foretime_sim.reference.slurm.nodes.node_choice import Mode, NodeChoice
from foretime_sim.reference.slurm.nodes.nodes import NodeUse, nodes_of
from foretime_sim.reference.slurm.nodes.reservations import Reservations
from foretime_sim.reference.slurm.nodes.switch_tree import SwitchTree
from foretime_sim.reference.slurm.nodes.will_run import JobEnds
from foretime_sim.sites.slurm.site import SlurmSite

SOFT_LIMIT_VERSION = (23, 11)
"""time_min_as_soft_limit came with it; the select plugin knows it from 25.05 on (CHANGELOG)."""


PERIODIC_TIMEOUT = 30
"""How often running jobs are looked at, seconds (slurmctld.h)."""


class Verdict(enum.Enum):
    """What came of an attempt to start a job: the error codes of `select_nodes`."""

    STARTED = "SLURM_SUCCESS"
    BUSY = "ESLURM_NODES_BUSY"
    NOT_AVAILABLE = "ESLURM_NODE_NOT_AVAIL"
    RESERVED = "ESLURM_RESERVATION_BUSY"
    POLICY = "ESLURM_ACCOUNTING_POLICY"
    LICENSES = "ESLURM_LICENSES_UNAVAILABLE"


class Controller:
    """What slurmctld knows at a moment.

    Parameters
    ----------
    site, jobs, priorities, limits
        What is simulated; ``jobs`` in the order of their ids.
    epoch
        What to add to a time of the jobs for epoch seconds.

    Attributes
    ----------
    looks
        When slurmctld looks for jobs over their limits, which end then; every `PERIODIC_TIMEOUT`
        before and after each of these seconds. Empty: they end at their limits.
    """

    def __init__(
        self,
        site: SlurmSite,
        jobs: Sequence[SlurmJob],
        priorities: Priorities,
        limits: Limits,
        epoch: int,
    ) -> None:
        self.site = site
        self.parameters = site.parameters
        self.machine: Machine = site.machine
        self.jobs = jobs
        self.priorities = priorities
        self.limits = limits
        self.epoch = epoch
        self.now = 0
        self.looks: Sequence[int] = ()
        self.nodes = nodes_of(site.machine)
        self.nodes_of_group = self._nodes_of_group()
        self.nodes_of_partition = [
            self._nodes_of_groups(site.machine.groups_of(index))
            for index in range(len(site.machine.slurm_partitions))
        ]
        by_name = {
            group.name: self.nodes_of_group[index]
            for index, group in enumerate(site.machine.node_groups)
        }
        self.reservations = Reservations(site.reservations, by_name)
        self.tree = SwitchTree.of(site.switches, by_name) if site.switches else None
        self.use = NodeUse()
        self.gpu_marks: dict[int, int] = {}
        self.pending: list[SlurmJob] = []
        self.running: list[Run] = []
        self.licenses_used: dict[str, int] = {}
        self.last_update = -1
        self.ends = JobEnds(
            self.soft_limits and site.version >= (25, 5),
            self.parameters.kill_wait_s,
            [site.over_time_limit_s(part.name) for part in site.machine.slurm_partitions],
            epoch,
        )

    # What there is

    def _nodes_of_group(self) -> dict[int, frozenset[int]]:
        nodes: dict[int, set[int]] = {}
        for node in self.nodes:
            nodes.setdefault(node.group, set()).add(node.number)
        return {group: frozenset(numbers) for group, numbers in nodes.items()}

    def _nodes_of_groups(self, groups: Sequence[int]) -> frozenset[int]:
        return frozenset().union(*(self.nodes_of_group[group] for group in groups))

    @property
    def all_nodes(self) -> frozenset[int]:
        """Every node, none being down."""
        return frozenset(range(len(self.nodes)))

    @property
    def soft_limits(self) -> bool:
        """Whether least times are soft limits."""
        return self.parameters.time_min_as_soft_limit and self.site.version >= SOFT_LIMIT_VERSION

    def partition_name(self, partition_index: int) -> str:
        """Name of a slurm_partition."""
        return self.machine.slurm_partitions[partition_index].name

    def choice(self, job: SlurmJob, number: int) -> NodeChoice:
        """Give who chooses nodes for a job in its ``number``-th slurm_partition."""
        name = self.partition_name(job.request.choices[number].slurm_partition)
        most = self.site.rules_of(name).max_cpus_per_node
        version, marks = self.site.version, self.gpu_marks
        return NodeChoice(self.nodes, job, number, most, version, self.tree, marks)

    def configured_nodes(self, job: SlurmJob, number: int) -> frozenset[int]:
        """Nodes of a slurm_partition that are large enough and have the features.

        Nodes without the job's GPUs are among them: which running jobs count in the will-run test,
        and whether enough nodes are left, goes by these.
        """
        groups = job.node_groups or tuple(choice.node_groups for choice in job.request.choices)
        return self._nodes_of_groups(groups[number])

    # Who may be looked at

    def is_independent(self, job: SlurmJob) -> bool:
        """Whether only the queue holds a job (`job_independent`, job_mgr.c).

        Dependencies, the most running tasks of its array, its begin time, its reservation.
        """
        if job.after is not None:
            first = self.jobs[job.after]
            if first.is_pending or (job.after_end and first.run in self.running):
                job.reason = "Dependency"
                return False
        if not self.array_may_start(job):
            job.reason = "JobArrayTaskLimit"
            return False
        if job.begin_time > self.now:
            job.reason = "BeginTime"
            return False
        if not self.reservations.has_begun(job, self.now):
            job.reason = "Reservation"
            return False
        if job.eligible_time is None:
            job.eligible_time = self.now
        return True

    def array_may_start(self, job: SlurmJob) -> bool:
        """Whether fewer tasks of its array run than may (`job_array_start_test`)."""
        if not (job.array and job.array_most_running):
            return True
        return self.running_tasks(job) < job.array_most_running

    def running_tasks(self, job: SlurmJob) -> int:
        """Count the running tasks of a job's array."""
        return sum(run.job.array == job.array for run in self.running)

    def licenses_free(self, job: SlurmJob) -> bool:
        """Whether the licenses of a job are there now."""
        return all(
            self.site.licenses.get(name, 0) - self.licenses_used.get(name, 0) >= count
            for name, count in job.licenses.items()
        )

    def enter(self, job: SlurmJob, number: int) -> None:
        """Try a job in one of its slurm_partitions from now on."""
        job.slurm_partition = job.slurm_partitions[number]

    # Start and end

    def select_nodes(
        self,
        job: SlurmJob,
        number: int,
        available: frozenset[int],
        loop: Loop,
        time_limit_s: int | None = None,
    ) -> Verdict:
        """Start a job on some of the available nodes, or say why not.

        ``time_limit_s`` is its own again once it runs, where it is tried with a least time.

        `select_nodes`, `_get_req_features` and `_pick_best_nodes` (node_scheduler.c). All nodes
        are tried at once, their weights being part of the choice (`running_cons_tres`).
        """
        self.enter(job, number)
        partition_index = job.request.choices[number].slurm_partition
        policy = self.limits.why_not_considered(job, self.now)
        if policy is not None:
            self.refuse(job, policy, policy=True)
            return Verdict.POLICY
        if not self.licenses_free(job):
            self.refuse(job, "Licenses")
            return Verdict.LICENSES
        usable = self.reservations.usable(job, self.now, self.nodes_of_partition[partition_index])
        if usable is None:
            self.refuse(job, "Reservation")
            return Verdict.RESERVED
        choice = self.choice(job, number)
        configured = self.configured_nodes(job, number) - usable.closed
        candidates = configured & available
        self.forget_marks(configured)
        allocation = choice.choose(candidates, self.use)
        possible = allocation or choice.choose(candidates, self.use, Mode.EVER)
        if possible is None and job.request.gpus_per_node:
            choice.choose(configured, self.use, Mode.EVER)
        tres = possible.tres if allocation and possible else self.asked_tres(job, possible)
        nodes = allocation.nodes if allocation is not None else frozenset()
        policy = self.limits.why_not_started(job, tres, self.now, nodes)
        policy = policy or self.over_nodes_in_use(partition_index, tres["node"])
        if policy is not None:
            self.refuse(job, policy, policy=True)
            return Verdict.POLICY
        if allocation is not None:
            job.time_limit_s = time_limit_s or job.time_limit_s
            self.start(job, number, allocation, loop)
            return Verdict.STARTED
        if possible is None and not self.any_busy(candidates, whole=choice.whole):
            self.refuse(job, "ReqNodeNotAvail")
            return Verdict.NOT_AVAILABLE
        self.refuse(job, "Resources")
        return Verdict.BUSY

    def forget_marks(self, nodes: frozenset[int]) -> None:
        """Give nodes their own weights again (`_sync_node_weight`, node_scheduler.c)."""
        for node in nodes:
            self.gpu_marks.pop(node, None)

    def test_submission(self, job: SlurmJob) -> None:
        """Test whether a job could ever run, which leaves marks on nodes.

        `_select_nodes_parts` without an allocation, by `job_allocate` (job_mgr.c).
        """
        for number, choice in enumerate(job.request.choices):
            in_partition = self.nodes_of_partition[choice.slurm_partition]
            usable = self.reservations.usable(job, self.now, in_partition)
            if usable is not None:
                configured = self.configured_nodes(job, number) - usable.closed
                self.forget_marks(configured)
                self.choice(job, number).choose(configured, self.use, Mode.EVER)

    def asked_tres(self, job: SlurmJob, possible: Allocation | None) -> dict[str, int]:
        """Give what limits see of a job that can't start now: its request, on nodes for it."""
        nodes = job.min_nodes if possible is None else len(possible.cpus)
        return job.tres | {"node": nodes}

    def any_busy(self, nodes: frozenset[int], *, whole: bool) -> bool:
        """Whether some nodes are not there to be shared, or not idle for a job that shares none."""
        if whole:
            return any(not self.use.is_idle(node) for node in nodes)
        return bool(nodes & self.use.whole)

    def over_nodes_in_use(self, partition_index: int, nodes: int) -> str | None:
        """Say whether a job's nodes are too many for `SlurmPartition.max_nodes_in_use`."""
        most = self.machine.slurm_partitions[partition_index].max_nodes_in_use
        if most is None:
            return None
        used = sum(
            len(run.allocation.cpus)
            for run in self.running
            if run.partition_index == partition_index
        )
        return "QOSGrpNodeLimit" if used + nodes > most else None

    @staticmethod
    def refuse(job: SlurmJob, reason: str, *, policy: bool = False) -> None:
        """Note why a job waits."""
        job.reason, job.policy_reason = reason, policy

    def start(self, job: SlurmJob, number: int, allocation: Allocation, loop: Loop) -> None:
        """Let a job run.

        The limit that counts is the one it has once it runs: backfill puts it right afterwards.
        """
        partition_index = job.request.choices[number].slurm_partition
        job.run = run = Run(job, self.now, allocation, partition_index, loop)
        job.reason, job.policy_reason = None, False
        self.set_ends(run)
        self.use.add(allocation, partition_index)
        for name, count in job.licenses.items():
            self.licenses_used[name] = self.licenses_used.get(name, 0) + count
        self.pending.remove(job)
        self.running.append(run)
        self.running.sort(key=lambda other: other.job.index)
        self.priorities.started(job, allocation.tres, self.now)
        self.limits.started(job, allocation.tres, self.now, allocation.nodes)
        self.last_update = self.now

    def set_ends(self, run: Run) -> None:
        """Work out anew when a running job ends: its time limit has changed."""
        run.set_ends(self.ends.over_time_limit_s[run.partition_index])
        if run.killed and self.looks:
            known = min(self.looks, key=lambda look: abs(look - run.end))
            run.end += (known - run.end) % PERIODIC_TIMEOUT
            run.killed = run.end < run.start + run.job.runtime
            run.end = min(run.end, run.start + run.job.runtime)

    def finish(self, run: Run) -> None:
        """Take back what an ended job had."""
        self.use.remove(run.allocation, run.partition_index)
        for name, count in run.job.licenses.items():
            self.licenses_used[name] -= count
        self.running.remove(run)
        self.priorities.ended(run.job, self.now)
        self.limits.ended(run.job, self.now)
        self.last_update = self.now

    def priority(self, job: SlurmJob, number: int) -> int:
        """Priority of a job in its ``number``-th slurm_partition."""
        return self.priorities.priority_of(job, job.slurm_partitions[number], self.now)
