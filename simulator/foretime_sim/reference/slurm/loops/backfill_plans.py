"""What one backfill cycle has planned so far, and how much it has looked at."""

from __future__ import annotations

from foretime_sim.reference.slurm.jobs.job import Run, SlurmJob
from foretime_sim.reference.slurm.loops.controller import Controller
from foretime_sim.reference.slurm.loops.queue import QueueRecord, RejectedArray
from foretime_sim.reference.slurm.nodes.node_space import NodeSpace
from foretime_sim.reference.slurm.nodes.will_run import soft_end

PLANS_ROUNDED_UP_VERSION = (24, 11)
"""Ends of plans are rounded up to bf_resolution from 24.05.4 on, down before (CHANGELOG)."""


class BackfillPlans:
    """The plans of a cycle, and its counts.

    Attributes
    ----------
    space
        Which nodes are free of plans when.
    tested, started
        Jobs given to the select plugin, and started.
    planned_nodes
        Nodes that some job was planned on.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.parameters = parameters = controller.parameters
        self.now = controller.now
        self.version = controller.site.version
        licenses: dict[str, int] = {}
        if parameters.bf_licenses:
            licenses = dict(controller.site.licenses)
            if not parameters.bf_running_job_reserve:
                for name, used in controller.licenses_used.items():
                    licenses[name] = licenses.get(name, 0) - used
        self.space = NodeSpace(
            self.now,
            parameters.bf_window,
            parameters.bf_resolution,
            controller.all_nodes,
            most_records=parameters.bf_max_job_test,
            licenses=licenses,
            epoch=controller.epoch,
        )
        self.tested = 0
        self.started = 0
        self.planned_nodes: set[int] = set()
        self.of_partition: dict[int, int] = {}
        self.of_array: dict[str, int] = {}
        self.rejected_array = RejectedArray()

    def are_enough(self, partition_index: int) -> bool:
        """Whether a slurm_partition has bf_job_part_count_reserve plans."""
        most = self.parameters.bf_job_part_count_reserve
        return 0 < most <= self.of_partition.get(partition_index, 0)

    def count(self, record: QueueRecord) -> None:
        """Count a plan."""
        partition_index, array = record.partition_index, record.job.array
        self.of_partition[partition_index] = self.of_partition.get(partition_index, 0) + 1
        if array is not None:
            self.of_array[array] = self.of_array.get(array, 0) + 1
        self.rejected_array.clear()

    def reserve_running(self, run: Run) -> None:
        """Take a running job into the table, if it has whole nodes or licenses.

        `_bf_reserve_running`; for jobs started in this cycle in any case.
        """
        job, whole = run.job, run.allocation.whole
        if not (whole or job.licenses) or self.space.is_full:
            return
        end = run.limit_end
        if self.controller.soft_limits and job.time_min_s:
            end = soft_end(run, self.now)
        nodes = run.allocation.nodes if whole else frozenset()
        begin = self.space.slots[0].begin
        self.space.reserve(begin, self.space.round_up(end), nodes, self.licenses_kept(job))

    def licenses_kept(self, job: SlurmJob) -> dict[str, int]:
        """Licenses of a job, if backfill keeps them."""
        return dict(job.licenses) if self.parameters.bf_licenses else {}

    def slot_of(self, start: int, time_limit_s: int) -> tuple[int, int]:
        """Begin and end of a plan, by the resolution (`_set_slot_time`)."""
        end = start + time_limit_s
        if self.version >= PLANS_ROUNDED_UP_VERSION:
            end += self.parameters.bf_resolution - 1
        return self.space.round_down(start), self.space.round_down(end)
