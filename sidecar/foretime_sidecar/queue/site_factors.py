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


def queued_names(jobs: Sequence[QueuedJob]) -> set[str]:
    """Give the names, as site factors go by, of all that waits or runs: of arrays and of tasks."""
    return {name_of(job) for job in jobs} | {job.request.job_id for job in jobs}


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


def put_back(
    client: SchedulerClient,
    ours: Mapping[str, Mapping[int, int]],
    jobs: Sequence[QueuedJob] | None = None,
) -> list[str]:
    """Put back what Slurm's jobs had before the daemon's site factors; give those jobs.

    Jobs that have started keep theirs, and would wait with it again if they were requeued: so
    theirs are put back, too. One that has ended since the look can't be changed, and need not be.

    Parameters
    ----------
    client
        The scheduler.
    ours
        As of `given_back`.
    jobs
        The queue as it is; ``None`` asks for it if there is anything to put back.

    Raises
    ------
    SchedulerError
        If Slurm did not answer, or refused to change a job that is still there.
    """
    if not ours:
        return []
    queue = client.queue().jobs if jobs is None else jobs
    if ours.keys().isdisjoint(queued_names(queue)):
        return []
    shown = client.site_factors()
    before = given_back(ours, shown, queue)
    if before:
        try:
            client.update([JobChange(name, site_factor=to) for name, to in before.items()])
        except SchedulerError:
            there, factors = queued_names(client.queue().jobs), client.site_factors()
            if any(name in there and factors.get(name) != to for name, to in before.items()):
                raise
    return [name for name, to in before.items() if shown.get(name) != to]


def given_back(
    ours: Mapping[str, Mapping[int, int]], factors: Mapping[str, int], jobs: Sequence[QueuedJob]
) -> dict[str, int]:
    """Give the jobs of the queue whose site factor is ours, and what each had before.

    Parameters
    ----------
    ours
        What we gave them, and what stood there before.
    factors
        What they have. One that Slurm does not weigh now (it is held, has a fixed priority, or
        runs) has what we last gave; so may one that shows 0, under a fixed priority of next to
        nothing.
    jobs
        The queue.
    """
    waiting = {
        name: earlier
        for name in sorted(ours.keys() & pending_names(jobs))
        for factor, earlier in [(factors.get(name), earlier_of(ours[name], factors.get(name)))]
        if factor is None or factor in ours[name] or factor == earlier == 0
    }
    return waiting | of_started(ours, jobs)


def of_started(ours: Mapping[str, Mapping[int, int]], jobs: Sequence[QueuedJob]) -> dict[str, int]:
    """Give the jobs that have started with a site factor of ours, and what each had before.

    Of an array that has started as a whole it is each task that runs: Slurm says no to a change of
    all, done as it is, where one has ended. While a task waits its array's factor is all of theirs.
    """
    waiting, found = pending_names(jobs), {}
    for job in jobs:
        names = {job.request.job_id, name_of(job)} & ours.keys()
        if job.state is not QueueState.PENDING and names and not names & waiting:
            found[job.request.job_id] = earlier_of(ours[max(names, key=len)], None)
    return found


def earlier_of(given: Mapping[int, int], factor: int | None) -> int:
    """Give what stood there before a factor of ours; where it does not show, before the highest."""
    return given[max(given) if factor is None or factor not in given else factor]
