"""The backfill loop: a plan for every job that it looks at, and starts that delay no plan."""

from __future__ import annotations

from foretime_sim.reference.slurm.loops.backfill_plans import BackfillPlans
from foretime_sim.reference.slurm.loops.backfill_test import BackfillTest, Next
from foretime_sim.reference.slurm.loops.controller import Controller
from foretime_sim.reference.slurm.loops.queue import QueueRecord, build_job_queue

RUNNING_TASKS_COUNT_VERSION = (23, 2)
"""Before 23.02.4 a cycle planned tasks of an array beyond its ``%N`` (CHANGELOG)."""


class BackfillCycle:
    """One cycle of the backfill loop (`_attempt_backfill`, backfill.c).

    Parameters
    ----------
    controller
        Whose jobs.

    Notes
    -----
    Plans take whole nodes, whatever the job has of them, from the start, rounded down to
    bf_resolution, to its end, rounded up. A running job is not in the table of plans; the select
    plugin knows when it ends. A cycle takes no time: bf_max_time and bf_yield_interval never cut
    it short, and nothing changes in between.
    """

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.parameters = controller.parameters
        self.now = controller.now
        self.plans = BackfillPlans(controller)
        self.looked_at: dict[tuple[str, object], int] = {}

    def run(self) -> int:
        """Go through the queue; give how many jobs were started."""
        queue = build_job_queue(self.controller)
        if not queue:
            return 0
        for job in self.controller.pending:
            job.estimate = None
        if self.parameters.bf_running_job_reserve:
            for run in self.controller.running:
                self.plans.reserve_running(run)
        for record in queue:
            if self.plans.tested >= self.parameters.bf_max_job_test:
                break
            if record.job.is_pending and self.look_at(record) is Next.STOP:
                break
        return self.plans.started

    # Who is looked at

    def look_at(self, record: QueueRecord) -> Next:
        """Test a job in a slurm_partition, and start or plan it."""
        controller, parameters, job = self.controller, self.parameters, record.job
        limits = controller.limits
        array_plans = self.plans.of_array.get(job.array, 0) if job.array else 0
        if array_plans and array_plans >= parameters.bf_max_job_array_resv:
            return Next.JOB
        throttled = job.array_most_running and self.plans.version >= RUNNING_TASKS_COUNT_VERSION
        if array_plans and throttled:
            tasks = array_plans + controller.running_tasks(job)
            if tasks >= job.array_most_running:
                return Next.JOB
        controller.enter(job, record.number)
        if not parameters.assoc_limit_stop:
            reason = limits.why_not_considered(job, self.now)
            if reason is not None:
                controller.refuse(job, reason, policy=True)
                return Next.JOB
        now_only = self.is_tested_now_only(record)
        if self.plans.rejected_array.passes_over(record) or not controller.array_may_start(job):
            return Next.JOB
        if self.looked_at_enough(record):
            return Next.JOB
        if not parameters.bf_licenses and not controller.licenses_free(job):
            return Next.JOB
        if controller.choice(job, record.number).max_nodes < job.min_nodes:
            return Next.JOB
        return BackfillTest(self.plans, record, now_only).run()

    def is_tested_now_only(self, record: QueueRecord) -> bool:
        """Whether a job gets no plan (TEST_NOW_ONLY)."""
        parameters, job = self.parameters, record.job
        if parameters.bf_min_prio_reserve:
            now_only = record.priority < parameters.bf_min_prio_reserve
        else:
            now_only = False
        if not now_only and parameters.bf_min_age_reserve:
            now_only = job.waited_s(self.now) < parameters.bf_min_age_reserve
        if parameters.bf_one_resv_per_job and job.estimate is not None:
            now_only = True
        return now_only or self.plans.are_enough(record.partition_index)

    def looked_at_enough(self, record: QueueRecord) -> bool:
        """Whether jobs like this were looked at often enough; count it if not.

        `_job_exceeds_max_bf_param`. A job counts in each slurm_partition; where one limit is
        reached none is counted on.
        """
        parameters, job = self.parameters, record.job
        kinds: list[tuple[int, tuple[str, object]]] = [
            (
                parameters.bf_max_job_user_part,
                ("user and part", (job.user, record.partition_index)),
            ),
            (parameters.bf_max_job_part, ("part", record.partition_index)),
            (parameters.bf_max_job_assoc, ("assoc", (job.account, job.user))),
            (parameters.bf_max_job_user, ("user", job.user)),
        ]
        if any(0 < most <= self.looked_at.get(kind, 0) for most, kind in kinds):
            return True
        for _, kind in kinds:
            self.looked_at[kind] = self.looked_at.get(kind, 0) + 1
        return False
