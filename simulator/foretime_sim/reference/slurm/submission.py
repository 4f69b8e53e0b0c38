"""What happens when a job is submitted: it may be refused, and it may start at once."""

from __future__ import annotations

from foretime_sim.reference.slurm.controller import Controller, Verdict
from foretime_sim.reference.slurm.job import SlurmJob
from foretime_sim.reference.slurm.schedule import Loop


def submit(controller: Controller, job: SlurmJob) -> None:
    """Take a job up; start it at once if no waiting job comes before it and it finds room.

    `job_allocate` (job_mgr.c). With ``defer`` no job starts at its submission, and no task of a job
    array does.
    """
    refusal = why_refused(controller, job)
    if refusal is not None:
        job.refused, job.reason = True, refusal
        return
    independent = job.array is None and controller.is_independent(job)
    controller.limits.submitted(job, controller.now)
    controller.priorities.submitted(job, controller.now)
    is_top = independent and not controller.parameters.defer and is_top_priority(controller, job)
    controller.pending.append(job)
    controller.last_update = controller.now
    if not is_top:
        job.reason = job.reason or "Priority"
        return
    for number, name in enumerate(job.slurm_partitions):
        if controller.site.rules_of(name).state != "UP":
            continue
        verdict = controller.select_nodes(job, number, controller.all_nodes, Loop.SUBMIT)
        if verdict is Verdict.STARTED:
            return


def why_refused(controller: Controller, job: SlurmJob) -> str | None:
    """Say why a job is refused: its slurm_partitions take none, or limits."""
    states = [controller.site.rules_of(name).state for name in job.slurm_partitions]
    if all(state in ("DRAIN", "INACTIVE") for state in states):
        return "PartitionInactive"
    return controller.limits.why_refused(job)


def is_top_priority(controller: Controller, job: SlurmJob) -> bool:
    """Whether no waiting job comes before a new one (`_top_priority`, job_mgr.c).

    Not counted are jobs that limits hold, that wait for something else than the queue, or whose
    slurm_partitions share no node with its own.
    """
    priority = _priority(controller, job)
    tiers = [_tier(controller, choice.slurm_partition) for choice in job.request.choices]
    mine = _nodes(controller, job)
    if priority == 0:
        return False
    for other in controller.pending:
        if other is job or other.policy_reason or other.reason == "ReqNodeNotAvail":
            continue
        if not controller.is_independent(other) or _priority(controller, other) == 0:
            continue
        if other.waited_s(controller.now) < controller.parameters.bf_min_age_reserve:
            continue
        if job.reservation is not None and other.reservation is None:
            continue
        if job.reservation is None and other.reservation is not None:
            before = True
        else:
            tier = other.request.priority_tier
            before = min(tiers) < tier or (
                min(tiers) == tier
                and (-_priority(controller, other), other.submit_time, other.index)
                < (-priority, job.submit_time, job.index)
            )
        if before and mine & _nodes(controller, other):
            return False
    return True


def _priority(controller: Controller, job: SlurmJob) -> int:
    return max(controller.priority(job, number) for number in range(len(job.slurm_partitions)))


def _tier(controller: Controller, partition_index: int) -> int:
    return controller.machine.slurm_partitions[partition_index].priority_tier


def _nodes(controller: Controller, job: SlurmJob) -> frozenset[int]:
    choices = job.request.choices
    return frozenset().union(
        *(controller.nodes_of_partition[choice.slurm_partition] for choice in choices)
    )
