"""What happens when a job is submitted."""

from __future__ import annotations

from foretime_sim.reference.slurm.jobs.job import SlurmJob
from foretime_sim.reference.slurm.loops.controller import Controller


def submit(controller: Controller, job: SlurmJob) -> None:
    """Take a job up, or refuse it.

    `job_allocate` (job_mgr.c). A batch job never starts at its submission, as one of salloc and
    srun can: it waits for a loop (`_slurm_rpc_submit_batch_job` asks for no allocation).
    """
    refusal = why_refused(controller, job)
    if refusal is not None:
        job.refused, job.reason = True, refusal
        return
    controller.is_independent(job)
    controller.test_submission(job)
    controller.limits.submitted(job, controller.now)
    controller.priorities.submitted(job, controller.now)
    controller.pending.append(job)
    controller.last_update = controller.now


def why_refused(controller: Controller, job: SlurmJob) -> str | None:
    """Say why a job is refused: its slurm_partitions take none, or limits."""
    states = [controller.site.rules_of(name).state for name in job.slurm_partitions]
    if all(state in ("DRAIN", "INACTIVE") for state in states):
        return "PartitionInactive"
    return controller.limits.why_refused(job)
