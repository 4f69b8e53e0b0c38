"""Who waits too long over its start on the plain scheduler; asked from the thread that polls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.machine_parts import MachinePart, MachineParts
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
        How much work all jobs that wait beyond it may have, in seconds of the nodes that they wait
        for; of that the `MachinePart.share` of these nodes. 0: as much as they like.

    Attributes
    ----------
    behind_s, is_behind
        How much they had when `behind_in` was last asked, over the share of their nodes and where
        it was most; and whether that is over ``most_behind_s``.
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

    def behind_in(
        self, waiting: Iterable[QueuedJob], now: int, machine: MachineParts
    ) -> list[MachinePart]:
        """Give the parts whose jobs that would have started without us have too much work together.

        Parameters
        ----------
        waiting
            Those that could start now.
        now
            Epoch seconds.
        machine
            The parts that they wait for.
        """
        work: Counter[MachinePart] = Counter()
        for job in waiting if self._plain_starts else ():  # else nobody need look at thousands
            for task in job.task_ids:
                start = self._plain_starts.get((task, job.request.submit_time))
                if start is not None and start.at <= now:
                    for part in machine.only_for(job):
                        work[part] += start.work
        behind_s = {part: done / (part.processors * part.share) for part, done in work.items()}
        self.behind_s = max(behind_s.values(), default=0.0)
        behind = [part for part, much in behind_s.items() if 0 < self._most_behind_s < much]
        self.is_behind = bool(behind)
        return behind

    def count(self, now: int) -> int:
        """Count the jobs that are later than they may be."""
        latest = now - self._most_late_s
        return sum(start.at < latest for start in self._plain_starts.values() if self._most_late_s)
