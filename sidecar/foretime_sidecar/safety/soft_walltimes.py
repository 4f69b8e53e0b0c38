"""soft_walltime of jobs on PBS, where it must go: the hook sees neither what comes later nor moves.

pbs_sched judges by soft_walltime whether a job ends before dedicated time, and the server whether a
reservation fits behind a running one. So a job that could reach one that was made known after its
submission is planned with all of its walltime again. A job without a walltime, as `qmove` may leave
one, would be planned with a soft_walltime that nothing bounds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import JobChange, QueuedJob, QueueState, SchedulerClient
from foretime_sidecar.learning.exclusions import Exclusions, Why, why_plain
from foretime_sidecar.safety.limit_repairs import Repair, changes_of

logger = logging.getLogger("foretime")

_MOST_NAMED = 10  # jobs in one line of the log
_WHOLE = (Why.RESERVATION, Why.NO_LIMIT)


def due_repairs(
    jobs: Iterable[QueuedJob],
    exclusions: Exclusions,
    now: int,
    start_within_s: int,
    planned_until: int | None,
) -> list[Repair]:
    """Give what is to be planned with all of its walltime now, waiting or running.

    Parameters
    ----------
    jobs
        The queue.
    exclusions
        What is left alone, with the reservations and dedicated times ahead.
    now
        Epoch seconds.
    start_within_s
        A waiting job may start until so long after ``now`` without being looked at again.
    planned_until
        Jobs submitted after this time can't be Foretime's (epoch seconds); ``None``: any may be.
    """
    return [
        _whole(job, why.phrase)
        for job in _ours(jobs, planned_until)
        if (why := why_plain(job, exclusions, now, start_within_s)) in _WHOLE
        # PBS changes no subjob by itself; those that wait change with their array.
        and (job.state is QueueState.PENDING or job.request.array_id is None)
    ]


def given_back(jobs: Iterable[QueuedJob], planned_until: int | None) -> list[Repair]:
    """Give the changes after which each waiting job is planned with all of its walltime."""
    return [
        _whole(job, "as planning is switched off")
        for job in _ours(jobs, planned_until)
        if job.state is QueueState.PENDING
    ]


def _ours(jobs: Iterable[QueuedJob], planned_until: int | None) -> Iterable[QueuedJob]:
    return (
        job
        for job in jobs
        if job.is_short and (planned_until is None or job.request.submit_time <= planned_until)
    )


def _whole(job: QueuedJob, why: str) -> Repair:
    return Repair(JobChange(job.request.job_id, time_min=0), why)


class SoftWalltimes:
    """Makes these changes at each look.

    Parameters
    ----------
    client
        The scheduler.

    Attributes
    ----------
    refused
        Whether PBS refused one at the last look.
    """

    def __init__(self, client: SchedulerClient) -> None:
        self._client = client
        self.refused = False

    def mend(
        self,
        jobs: Sequence[QueuedJob],
        exclusions: Exclusions,
        now: int,
        start_within_s: int,
        planned_until: int | None,
    ) -> list[JobChange]:
        """Make the changes that the queue needs, and give them; parameters as of `due_repairs`.

        Raises
        ------
        SchedulerError
            If PBS did not answer, or refused one; those that it did not refuse are made. A job that
            has ended since the queue was read does not count.
        """

        def due(queue: Sequence[QueuedJob]) -> list[Repair]:
            return due_repairs(queue, exclusions, now, start_within_s, planned_until)

        repairs = due(jobs)
        if not repairs:
            self.refused = False
            return []
        try:
            self._client.update(changes_of(repairs))
        except SchedulerError as error:
            left = due(self._client.queue().jobs)
            repairs_made = [repair for repair in repairs if repair not in left]
            _log(repairs_made)
            self.refused = any(repair in repairs for repair in left)
            if self.refused:
                raise
            logger.info("changes were refused of jobs that are gone: %s", error)
            return changes_of(repairs_made)
        self.refused = False
        _log(repairs)
        return changes_of(repairs)


def _log(repairs: Sequence[Repair]) -> None:
    """Write one line for each reason, naming some of its jobs."""
    by_reason: dict[str, list[str]] = {}
    for repair in repairs:
        by_reason.setdefault(repair.why, []).append(repair.change.job_id)
    for why, names in by_reason.items():
        named = ", ".join(names[:_MOST_NAMED]) + (" and more" if names[_MOST_NAMED:] else "")
        logger.warning("took soft_walltime from %d jobs %s: %s", len(names), why, named)
