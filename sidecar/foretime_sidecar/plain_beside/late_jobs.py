"""Who waits too long over its start on the plain scheduler; asked from the thread that polls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.queue_events import Key


@dataclass(frozen=True, slots=True)
class _PlainStart:
    """When a job starts without Foretime (epoch seconds), and its work (processor seconds)."""

    at: int
    work: int


class LateJobs:
    """When jobs that wait would have started without Foretime.

    Parameters
    ----------
    most_late_s
        How long a job may wait beyond that, seconds; 0: as long as it likes.
    most_behind_s
        How much work all jobs that wait beyond it may have, in seconds of the whole machine; 0: as
        much as they like.

    Attributes
    ----------
    behind_s, is_behind
        How much work they had when `are_behind` was last asked, and what it answered.
    """

    def __init__(self, most_late_s: int, most_behind_s: int) -> None:
        self.behind_s = 0.0
        self.is_behind = False
        self._most_late_s = most_late_s
        self._most_behind_s = most_behind_s
        # The thread that polls reads it: it is replaced, never changed.
        self._plain_starts: Mapping[Key, _PlainStart] = {}

    def note(self, waiting: Iterable[KnownJob]) -> None:
        """Note what the latest run says of the jobs that wait."""
        self._plain_starts = {
            job.key: _PlainStart(job.plain_start, job.job.request.processors * job.expected_s)
            for job in waiting
            if job.plain_start is not None
        }

    def plain_start(self, job: QueuedJob) -> int | None:
        """Give when a waiting job would have started without us; ``None`` if that is not known."""
        found = self._plain_starts.get((job.task_ids[0], job.request.submit_time))
        return None if found is None else found.at

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        """Give by how many seconds a job is later than it may be; 0 if it is not.

        ``None`` if its start without us is not known, or jobs may be as late as they like.
        """
        start = self.plain_start(job) if self._most_late_s else None
        return None if start is None else max(now - start - self._most_late_s, 0)

    def are_behind(self, waiting: Iterable[QueuedJob], now: int, processors: int) -> bool:
        """Whether jobs that could start, and would have without us, have too much work together.

        Parameters
        ----------
        waiting
            Those that could start now.
        now
            Epoch seconds.
        processors
            Of the whole machine.
        """
        work = 0
        if self._plain_starts:  # else nobody need look at thousands of jobs
            keys = ((task, job.request.submit_time) for job in waiting for task in job.task_ids)
            starts = (self._plain_starts.get(key) for key in keys)
            work = sum(start.work for start in starts if start is not None and start.at <= now)
        self.behind_s = work / max(processors, 1)
        self.is_behind = 0 < self._most_behind_s < self.behind_s
        return self.is_behind

    def count(self, now: int) -> int:
        """Count the jobs that are later than they may be."""
        latest = now - self._most_late_s
        return sum(start.at < latest for start in self._plain_starts.values() if self._most_late_s)
