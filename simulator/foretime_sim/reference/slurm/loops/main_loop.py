"""The main loop: jobs in the queue's order, until one of a partition has to wait."""

from __future__ import annotations

from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.reference.slurm.loops.controller import Controller, Verdict
from foretime_sim.reference.slurm.loops.queue import QueueRecord, RejectedArray, build_job_queue


class MainLoop:
    """One run of the main loop (`_schedule`, job_scheduler.c).

    Parameters
    ----------
    controller
        Whose jobs.
    full
        Look at the whole queue, as every sched_interval; otherwise at default_queue_depth.

    Notes
    -----
    The first job of a slurm_partition that finds no room blocks the slurm_partition, and all its
    nodes for jobs of others. What does not block: limits (unless assoc_limit_stop), licenses,
    reservations, too few nodes being left by other slurm_partitions, a wait below
    bf_min_age_reserve, a priority below bf_min_prio_reserve. A run takes no time, so max_sched_time
    and max_rpc_cnt never end it. CompleteWait has no effect, as jobs leave their nodes at once.
    """

    def __init__(self, controller: Controller, *, full: bool) -> None:
        self.controller = controller
        self.parameters = controller.parameters
        self.full = full
        self.available = controller.all_nodes  # avail_node_bitmap
        self.failed_partitions: set[int] = set()
        self.failed_reservations: set[str] = set()
        self.looked_at_in: dict[int, int] = {}
        self.rejected_array = RejectedArray()
        self.looked_at = 0
        self.started = 0

    def run(self) -> int:
        """Go through the queue; give how many jobs were started."""
        for record in build_job_queue(self.controller):
            if record.job.is_pending and not self.look_at(record):
                break
        return self.started

    def look_at(self, record: QueueRecord) -> bool:
        """Try one job; False ends the run."""
        controller, job = self.controller, record.job
        if 0 < self.parameters.sched_max_job_start <= self.started:
            return False
        if self.rejected_array.passes_over(record) or not controller.array_may_start(job):
            return True
        if self.parameters.partition_job_depth:
            looked_at = self.looked_at_in.get(record.partition_index, 0) + 1
            self.looked_at_in[record.partition_index] = looked_at
            if looked_at > self.parameters.partition_job_depth:
                return True
        if not self.full:  # one more than default_queue_depth: the test comes before the count
            self.looked_at += 1
            if self.looked_at > self.parameters.default_queue_depth + 1:
                return False
        if self.is_blocked(record):
            return True
        controller.enter(job, record.number)
        if job.policy_reason and controller.limits.why_not_considered(job, controller.now):
            return True
        in_partition = controller.nodes_of_partition[record.partition_index]
        if job.min_nodes > len(self.available & in_partition):
            controller.refuse(job, "Resources")
            return self.block(record)
        verdict = controller.select_nodes(job, record.number, self.available, Loop.MAIN)
        if verdict is Verdict.STARTED:
            self.rejected_array.clear()
            self.started += 1
            return True
        if verdict is Verdict.LICENSES and self.parameters.bf_licenses:
            return False
        if verdict is Verdict.RESERVED and job.reservation is not None:
            self.available -= controller.reservations.nodes[job.reservation]
        return not self.blocks(record, verdict) or self.block(record)

    def is_blocked(self, record: QueueRecord) -> bool:
        """Whether an earlier job keeps this one waiting."""
        job = record.job
        if job.reservation is not None:
            blocked = job.reservation in self.failed_reservations
        else:
            blocked = record.partition_index in self.failed_partitions
        if blocked:
            if job.reason in (None, "Resources"):
                job.reason = "Priority"
            self.controller.last_update = self.controller.now
        return blocked

    def blocks(self, record: QueueRecord, verdict: Verdict) -> bool:
        """Whether a job that did not start keeps those behind it waiting."""
        job = record.job
        blocks = verdict is Verdict.BUSY or (
            verdict is Verdict.POLICY and self.controller.limits.blocks_lower_jobs(job.reason or "")
        )
        if blocks and job.reservation is not None:
            self.failed_reservations.add(job.reservation)
            return False
        if blocks and self.parameters.bf_min_age_reserve:
            waited = job.waited_s(self.controller.now)
            blocks = waited >= self.parameters.bf_min_age_reserve
        return blocks and record.priority >= self.parameters.bf_min_prio_reserve

    def block(self, record: QueueRecord) -> bool:
        """Block a slurm_partition and its nodes; False ends the run.

        It does from 25.11 on where the slurm_partition is blocked already, as it can be for a job
        in a reservation.
        """
        partition_index = record.partition_index
        if partition_index in self.failed_partitions:
            return self.controller.site.version < (25, 11)
        self.failed_partitions.add(partition_index)
        self.available -= self.controller.nodes_of_partition[partition_index]
        return True
