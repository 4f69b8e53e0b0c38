"""Who waits too long over its start on the plain scheduler; asked from the thread that polls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.queue_events import Key


class LateJobs:
    """When jobs that wait would have started without Foretime.

    Parameters
    ----------
    most_late_s
        How long a job may wait beyond that, seconds; 0: as long as it likes.
    """

    def __init__(self, most_late_s: int) -> None:
        self._most_late_s = most_late_s
        # The thread that polls reads it: it is replaced, never changed.
        self._plain_start: Mapping[Key, int] = {}

    def note(self, jobs: Iterable[KnownJob]) -> None:
        """Note what the latest run says of the jobs that wait."""
        self._plain_start = {
            job.key: job.plain_start
            for job in jobs
            if job.start_time is None and not job.has_ended and job.plain_start is not None
        }

    def plain_start(self, job: QueuedJob) -> int | None:
        """Give when a waiting job would have started without us; ``None`` if that is not known."""
        return self._plain_start.get((job.task_ids[0], job.request.submit_time))

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        """Give by how many seconds a job is later than it may be; 0 if it is not.

        ``None`` if its start without us is not known, or jobs may be as late as they like.
        """
        start = self.plain_start(job) if self._most_late_s else None
        return None if start is None else max(now - start - self._most_late_s, 0)

    def count(self, now: int) -> int:
        """Count the jobs that are later than they may be."""
        latest = now - self._most_late_s
        return sum(start < latest for start in self._plain_start.values() if self._most_late_s)
