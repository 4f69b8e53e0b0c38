"""A job as slurmctld holds it, and what it has of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.workloads.node_request import PartitionChoice, Request


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one job has, or would have, of some nodes (`job_resources_t`).

    Attributes
    ----------
    cpus, memory_mib, gpus
        By node; memory only where it is counted.
    whole
        The nodes are the job's alone.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.job import Allocation
    >>> sorted(Allocation({3: 2, 1: 4}).nodes)
    [1, 3]
    """

    cpus: Mapping[int, int]
    memory_mib: Mapping[int, int] = field(default_factory=dict)
    gpus: Mapping[int, int] = field(default_factory=dict)
    whole: bool = False

    @property
    def nodes(self) -> frozenset[int]:
        """Numbers of the nodes."""
        return frozenset(self.cpus)

    @property
    def tres(self) -> dict[str, int]:
        """Sums by kind: cpu, mem (MiB), node, gres/gpu."""
        return {
            "cpu": sum(self.cpus.values()),
            "mem": sum(self.memory_mib.values()),
            "node": len(self.cpus),
            "gres/gpu": sum(self.gpus.values()),
        }


@dataclass(slots=True, eq=False)
class SlurmJob:
    """A job record (`job_record_t`): what was asked, and what has become of it.

    Times are seconds on the workload's clock, limits seconds that are whole minutes. Priorities
    and limits see it as the `PricedJob` of their rooms.

    Attributes
    ----------
    index
        Its place in the workload, which stands for its job id.
    request
        What it asks of the nodes; ``choices`` are its slurm_partitions, highest tier first.
    slurm_partitions
        Their names, in the same order.
    node_groups
        Of each, the groups of nodes that loops take for the job's: by CPUs, memory and features.
        GPUs do not count yet (`job_req_node_filter`, node_scheduler.c). Empty: those of the choice.
    slurm_partition
        The one that it is tried in or runs in.
    time_limit_s
        As it stands: while backfill tests a job with a least time, this is the least time.
    time_min_s
        ``--time-min``; 0: none.
    eligible_time
        Since when nothing but the queue holds it (`details->begin_time`); ``None``: not yet.
    array
        Which job array it is a task of; ``None``: none.
    array_most_running
        ``%N`` of the array; 0: no limit.
    run
        Once it has started.
    estimate
        Backfill's plan (`start_time` of a pending job); ``None``: none.
    reason
        Why it waits, in Slurm's words; policy reasons are those of limits.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.job import SlurmJob
    >>> from foretime_sim.workloads.node_request import Request
    >>> job = SlurmJob(0, Request(4, 1, 0, 0, 0, (), 1), ("all",), 0, 30, 60)
    >>> job.tres["cpu"], job.is_pending
    (4, True)
    """

    index: int
    request: Request
    slurm_partitions: tuple[str, ...]
    submit_time: int
    runtime: int
    time_limit_s: int
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    nice: int = 0
    site_factor: int = 0
    time_min_s: int = 0
    begin_time: int = 0
    reservation: str | None = None
    licenses: Mapping[str, int] = field(default_factory=dict)
    array: str | None = None
    array_most_running: int = 0
    after: int | None = None
    after_end: bool = False
    memory_per_node_mib: tuple[int, ...] = ()
    node_groups: tuple[tuple[int, ...], ...] = ()
    slurm_partition: str | None = None
    eligible_time: int | None = None
    run: Run | None = None
    estimate: int | None = None
    reason: str | None = None
    policy_reason: bool = False
    refused: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether it has not started, and still may."""
        return self.run is None and not self.refused

    def waited_s(self, now: int) -> int:
        """Give how long only the queue has held it."""
        return 0 if self.eligible_time is None else now - self.eligible_time

    @property
    def min_nodes(self) -> int:
        """`details->min_nodes`: with ``--nodes`` this number, else 1."""
        return max(self.request.nodes, 1)

    @property
    def max_nodes(self) -> int:
        """`details->max_nodes`: with ``--nodes`` this number, else 0 for the partition's."""
        return self.request.nodes

    @property
    def min_cpus(self) -> int:
        """`details->min_cpus`."""
        return self.request.cpus

    @property
    def tres(self) -> dict[str, int]:
        """What is asked (`tres_req_cnt`): of memory what its first slurm_partition makes of it."""
        memory = 0
        if self.request.choices:
            node_memory, cpu_memory = self.memory_in(0)
            memory = node_memory * self.min_nodes or cpu_memory * self.min_cpus
        return {
            "cpu": self.min_cpus,
            "mem": memory,
            "node": self.min_nodes,
            "gres/gpu": self.request.gpus_per_node * self.min_nodes,
        }

    def memory_in(self, number: int) -> tuple[int, int]:
        """Memory for each node and for each CPU, MiB, in its ``number``-th slurm_partition."""
        choice = self.request.choices[number]
        if choice.memory_per_task_mib:
            return 0, choice.memory_per_task_mib // self.request.cpus_per_task
        if self.request.memory_per_node_mib:
            return self.request.memory_per_node_mib, 0
        default = self.memory_per_node_mib[number] if self.memory_per_node_mib else 0
        return default, 0

    def choice_of(self, partition_index: int) -> tuple[int, PartitionChoice]:
        """Give the number and the choice for a slurm_partition."""
        for number, choice in enumerate(self.request.choices):
            if choice.slurm_partition == partition_index:
                return number, choice
        raise KeyError(partition_index)


@dataclass(slots=True, eq=False)
class Run:
    """A job that has started.

    Attributes
    ----------
    start
        Seconds.
    limit_end
        When it is over its time limit (`end_time` of a running job).
    end
        When it ends, by itself or killed at its limit and OverTimeLimit.
    used_up
        Whether it was ended because minutes that it, or its group, may use were used up.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.job import Allocation, Run, SlurmJob
    >>> from foretime_sim.reference.slurm.jobs.schedule import Loop
    >>> from foretime_sim.workloads.node_request import Request
    >>> job = SlurmJob(0, Request(1, 1, 0, 0, 0, (), 1), ("all",), 0, runtime=90, time_limit_s=60)
    >>> run = Run(job, 100, Allocation({0: 1}), 0, Loop.MAIN)
    >>> run.set_ends(over_time_limit_s=0)
    >>> run.end, run.killed
    (160, True)
    """

    job: SlurmJob
    start: int
    allocation: Allocation
    partition_index: int
    loop: Loop
    limit_end: int = 0
    end: int = 0
    killed: bool = False
    used_up: bool = False

    def set_ends(self, over_time_limit_s: int) -> None:
        """Work out both ends from the time limit as it stands.

        Slurm looks for jobs over their limit every 30 s (`Controller.looks`), and gives them
        KillWait to end; here they are gone at once.
        """
        self.limit_end = self.start + self.job.time_limit_s
        killed_at = self.limit_end + over_time_limit_s
        self.end = min(self.start + self.job.runtime, killed_at)
        self.killed = self.start + self.job.runtime > killed_at
