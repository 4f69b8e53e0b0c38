"""Which jobs of a queue still have a site factor that the daemon gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foretime_sidecar.clients.client import QueuedJob, QueueState


def name_of(job: QueuedJob) -> str:
    """Give the name that a job's site factor goes by: of a task its array's."""
    return job.request.array_id or job.request.job_id


def pending_names(jobs: Sequence[QueuedJob]) -> set[str]:
    """Give the names, as site factors go by, of what is still pending: of arrays and of tasks."""
    pending = [job for job in jobs if job.state is QueueState.PENDING]
    return {name_of(job) for job in pending} | {job.request.job_id for job in pending}


def still_ours(
    ours: Mapping[str, frozenset[int]], factors: Mapping[str, int], jobs: Sequence[QueuedJob]
) -> list[str]:
    """Name the pending jobs whose site factor is ours.

    Parameters
    ----------
    ours
        What we gave them.
    factors
        What they have. One that Slurm does not weigh now (held since, say) has what we last gave.
    jobs
        The queue.
    """
    return [
        name
        for name in sorted(ours.keys() & pending_names(jobs))
        if name not in factors or factors[name] in ours[name]
    ]
