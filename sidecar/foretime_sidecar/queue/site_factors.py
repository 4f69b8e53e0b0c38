"""Which jobs of a queue still have a site factor of the daemon's, and what they had before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import JobChange, QueuedJob, QueueState, SchedulerClient


def name_of(job: QueuedJob) -> str:
    """Give the name that a job's site factor goes by: of a task its array's."""
    return job.request.array_id or job.request.job_id


def pending_names(jobs: Sequence[QueuedJob]) -> set[str]:
    """Give the names, as site factors go by, of what is still pending: of arrays and of tasks."""
    pending = [job for job in jobs if job.state is QueueState.PENDING]
    return {name_of(job) for job in pending} | {job.request.job_id for job in pending}


def ranked(jobs: Iterable[QueuedJob]) -> list[str]:
    """Give the pending jobs of a PBS that have a rank; nobody but the daemon gives any."""
    pending = (job for job in jobs if job.state is QueueState.PENDING)
    return [job.request.job_id for job in pending if job.priority]


def take_ranks(client: SchedulerClient, jobs: Iterable[QueuedJob] | None = None) -> list[str]:
    """Take its rank from every pending job of a PBS; give those that had one.

    A job that has started or ended since the look can't be changed, and need not be.

    Parameters
    ----------
    client
        The scheduler.
    jobs
        The queue as it is; ``None`` asks for it.

    Raises
    ------
    SchedulerError
        If PBS did not answer, or a job that waits has its rank still.
    """
    given = ranked(client.queue().jobs if jobs is None else jobs)
    if given:
        try:
            client.update([JobChange(job_id, site_factor=0) for job_id in given])
        except SchedulerError:
            if ranked(client.queue().jobs):
                raise
    return given


def given_back(
    ours: Mapping[str, Mapping[int, int]], factors: Mapping[str, int], jobs: Sequence[QueuedJob]
) -> dict[str, int]:
    """Give the pending jobs whose site factor is ours, and what each had before.

    Parameters
    ----------
    ours
        What we gave them, and what stood there before.
    factors
        What they have. One that Slurm does not weigh now (held since, say) has what we last gave.
    jobs
        The queue.
    """
    return {
        name: earlier_of(ours[name], factors.get(name))
        for name in sorted(ours.keys() & pending_names(jobs))
        if name not in factors or factors[name] in ours[name]
    }


def earlier_of(given: Mapping[int, int], factor: int | None) -> int:
    """Give what stood there before a factor of ours; where it does not show, before the highest."""
    return given[max(given) if factor is None else factor]
