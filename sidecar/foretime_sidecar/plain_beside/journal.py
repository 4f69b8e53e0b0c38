"""What happens to the jobs of a queue, noted look by look, and from the accounting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import FinishedJob
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.queue.queue_events import Key

_GONE_AFTER_S = 2 * DAY_S
"""A job that is in no look for so long has ended though the accounting does not tell."""

Expected = Callable[[QueuedJob, int], RolePrediction | None]


class Journal:
    """The jobs that runs still need, by what tells them apart.

    Attributes
    ----------
    jobs
        All of them.
    """

    def __init__(self, jobs: Iterable[KnownJob] = ()) -> None:
        self.jobs: dict[Key, KnownJob] = {job.key: job for job in jobs}

    def note(
        self, look: Look, ended: Iterable[tuple[FinishedJob, int | None]], expected: Expected
    ) -> list[KnownJob]:
        """Note what a look and the accounting tell; give the jobs of which that was news.

        Parameters
        ----------
        look
            The queue as it is.
        ended
            Jobs that have ended since the last time, and when each could first start.
        expected
            How long a job that is seen for the first time is expected to run.
        """
        changed: dict[Key, KnownJob] = {}
        now = look.taken_at
        for job in look.queue.jobs:
            for task in dict.fromkeys(job.task_ids):
                self._see((task, job.request.submit_time), job, now, expected, changed)
        for finished, could_start in ended:
            self._end(finished, could_start, now, changed)
        for known in self.jobs.values():
            known.last_seen = known.last_seen or now  # since a restart
            if not known.has_ended and known.last_seen < now - _GONE_AFTER_S:
                known.end_time = known.last_seen
                if known.start_time is not None:
                    known.runtime_s = max(known.last_seen - known.start_time, 0)
                changed[known.key] = known
        return list(changed.values())

    def _see(
        self,
        key: Key,
        job: QueuedJob,
        now: int,
        expected: Expected,
        changed: dict[Key, KnownJob],
    ) -> None:
        known = self.jobs.get(key)
        if known is None:
            known = self.jobs[key] = KnownJob(_kept(job, key), now, expected(job, now))
            changed[key] = known
        known.last_seen = now
        if known.has_ended:  # the accounting was quicker, or is wrong
            return
        if job.state is QueueState.PENDING:
            since = None
            if not job.held and not job.dependent:
                since = max(job.eligible_time or 0, job.request.submit_time)
            if since != known.could_start:
                known.could_start = since
                changed[key] = known
        elif known.start_time is None:
            known.start_time = now if job.start_time is None else min(job.start_time, now)
            known.could_start = _could_start(known, job.eligible_time)
            changed[key] = known

    def _end(
        self,
        finished: FinishedJob,
        could_start: int | None,
        now: int,
        changed: dict[Key, KnownJob],
    ) -> None:
        key = finished.request.job_id, finished.request.submit_time
        known = self.jobs.get(key)
        if known is None:
            record = QueuedJob(finished.request, QueueState.PENDING, eligible_time=could_start)
            known = self.jobs[key] = KnownJob(record, now)
        if finished.start_time is not None:
            known.start_time = finished.start_time
            known.runtime_s = finished.actual_runtime
            known.could_start = _could_start(known, could_start)
        known.end_time = finished.end_time
        changed[key] = known


def _could_start(known: KnownJob, eligible_time: int | None) -> int | None:
    """Give when a job that has started could first: never later than it did."""
    since = eligible_time or known.could_start or known.job.request.submit_time
    since = max(since, known.job.request.submit_time)
    return since if known.start_time is None else min(since, known.start_time)


def _kept(job: QueuedJob, key: Key) -> QueuedJob:
    """Give a job with what its user asked for, as one task, without what no run needs."""
    return replace(
        job,
        request=replace(as_submitted(job), job_id=key[0]),
        tasks=1,
        pending_tasks="",
        array_limit=None,
        has_nodes=(),
        admin_comment="",
        name="",
    )
