"""What happened to jobs, in the order of time: from the store, and from one look to the next."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.store.store import Store

END, SUBMISSION, START, _END_AT_ONCE = range(4)
_FORGOTTEN_AFTER_S = 7 * 86_400
_AT_A_TIME = 5_000

Key = tuple[str, int]


class Listener(Protocol):
    """Whoever is told what happens, in the order of time."""

    def submitted(self, job: JobRequest) -> None:
        """Take note that a job was submitted."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Take note that a job has started, epoch seconds."""

    def finished(self, job: FinishedJob) -> None:
        """Take note that a job has come to its end."""


class Event(NamedTuple):
    """A submission, a start or an end; they sort in the order in which listeners are told.

    Attributes
    ----------
    time
        Epoch seconds.
    kind
        `END`, `SUBMISSION` or `START`.
    request
        The job.
    ended
        Of an end: how.
    eligible_time
        Of a start: when the job could first, epoch seconds; ``None``: from its submission on.
    """

    time: int
    kind: int
    request: JobRequest
    ended: FinishedJob | None = None
    eligible_time: int | None = None

    @property
    def key(self) -> Key:
        """What tells jobs apart: a requeued one is submitted anew."""
        return self.request.job_id, self.request.submit_time

    def tell(self, listener: Listener) -> None:
        """Tell somebody."""
        if self.kind == SUBMISSION:
            listener.submitted(self.request)
        elif self.kind == START:
            listener.started(self.request, max(self.time, self.request.submit_time))
        elif self.ended is not None:
            listener.finished(self.ended)

    def tell_waits(self, listener: Listener) -> None:
        """Tell somebody who learns waits: of a start, as of a job submitted when it could."""
        since = max(self.request.submit_time, min(self.eligible_time or 0, self.time))
        if self.kind == START and since > self.request.submit_time:
            listener.started(replace(self.request, submit_time=since), self.time)
        else:
            self.tell(listener)


def _when(event: Event) -> tuple[int, int]:
    # What ended in the second of its start, or was withdrawn in that of its submission, came first.
    at_once = event.ended is not None and event.time in (
        event.request.submit_time,
        event.ended.start_time,
    )
    return event.time, _END_AT_ONCE if at_once else event.kind


def in_order(*streams: Iterable[Event]) -> Iterator[Event]:
    """Give the events of several streams, each in the order of time, in that order."""
    return heapq.merge(*streams, key=_when)


def events_of(job: FinishedJob, eligible_time: int | None = None) -> list[Event]:
    """Give all that happened to a job that has come to its end, and could start from a time on.

    Slurm writes some starts down a second early, so that a job would start before its submission.
    """
    request = job.request
    events = [Event(min(request.submit_time, job.end_time), SUBMISSION, request)]
    if job.start_time is not None:
        start = min(max(job.start_time, request.submit_time), job.end_time)
        events.append(Event(start, START, request, eligible_time=eligible_time))
    return [*events, Event(job.end_time, END, request, job)]


class PastEvents:
    """What happened to the finished jobs of a store, read a few at a time.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a reading of a few thousand jobs.

    Attributes
    ----------
    last_seq
        Number in the store of the last job that was read.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock
        self.last_seq = 0

    def new(self) -> list[FinishedJob]:
        """Give the jobs stored since the last reading."""
        found: list[FinishedJob] = []
        while True:
            with self._lock:
                jobs = self._store.finished_after(self.last_seq, _AT_A_TIME)
            if jobs:
                self.last_seq = jobs[-1][0]
            found += [job for _, job, _ in jobs]
            if len(jobs) < _AT_A_TIME:
                return found

    def all(self, since: int) -> Iterator[Event]:
        """Give the events of all jobs stored so far that ended since, in the order of time.

        Few jobs are held at a time: those that were in the queue together, nearly.
        """
        with self._lock:
            times = np.array(self._store.times_since(since), dtype=np.int64).reshape(-1, 4)
        seq, submitted, started, ended = times.T
        begun = started >= 0
        ends = np.where((started == ended) | (submitted == ended), _END_AT_ONCE, END)
        time = np.concatenate(
            [np.minimum(submitted, ended), np.minimum(started, ended)[begun], ended]
        )
        kind = np.concatenate(
            [np.full_like(seq, SUBMISSION), np.full_like(seq[begun], START), ends]
        )
        whose = np.concatenate([seq, seq[begun], seq])
        order = np.lexsort((whose, kind, time))
        held: dict[int, list[Event]] = {}
        wanted = bytearray(int(seq.max(initial=0)) + 1)
        for number in seq.tolist():
            wanted[number] = True
        for number in whose[order].tolist():
            if number not in held:
                held = self._some_from(number, wanted) | held
            if number not in held:
                continue  # deleted meanwhile
            events = held[number]
            yield events.pop(0)
            if not events:
                del held[number]
                wanted[number] = False
        self.last_seq = len(wanted) - 1

    def _some_from(self, number: int, wanted: bytearray) -> dict[int, list[Event]]:
        """Read some jobs from one on, of those that are wanted."""
        with self._lock:
            jobs = self._store.finished_after(number - 1, _AT_A_TIME)
        return {
            seq: sorted(events_of(job, eligible_time), key=_when)
            for seq, job, eligible_time in jobs
            if seq < len(wanted) and wanted[seq]
        }


class QueueEvents:
    """Tells from look to look who came and who started, and from the accounting who ended."""

    def __init__(self) -> None:
        # Jobs that were told of: the request, whether it was told to have started, last seen when.
        self._known: dict[Key, _Known] = {}
        # By identity, records of the last look, what they stand for, and that they were told of.
        self._last: dict[int, tuple[QueuedJob, list[tuple[Key, _Known]]]] = {}

    def since_last(self, look: Look, ended: Iterable[FinishedJob]) -> list[Event]:
        """Give what happened since the last look.

        Parameters
        ----------
        look
            The queue as it is now.
        ended
            Jobs that the accounting has told of since.
        """
        events: list[Event] = []
        last, self._last = self._last, {}
        for job in look.queue.jobs:
            before = last.get(id(job))
            if before is not None and all(
                self._known.get(key) is known for key, known in before[1]
            ):
                for _, known in before[1]:
                    known.seen_at = look.taken_at
                self._last[id(job)] = before
                continue
            requests = requests_of(job)
            for request in requests:
                events += self._seen(job, request, look.taken_at)
            keys = [(request.job_id, request.submit_time) for request in requests]
            self._last[id(job)] = job, [(key, self._known[key]) for key in keys]
        for finished in ended:
            gone = self._known.pop((finished.request.job_id, finished.request.submit_time), None)
            since = None if gone is None else gone.eligible_time
            for event in events_of(finished, since):
                if gone is None or event.kind == END or (event.kind == START and not gone.started):
                    events.append(event)
        oldest = look.taken_at - _FORGOTTEN_AFTER_S
        self._known = {key: job for key, job in self._known.items() if job.seen_at >= oldest}
        return sorted(events, key=_when)

    def state(self) -> list[list[Any]]:
        """Give what was told of jobs that have not ended, as JSON can hold it."""
        return [[*key, known.started, known.seen_at] for key, known in self._known.items()]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take over what `state` gave."""
        self._last = {}
        self._known = {
            (job_id, submit_time): _Known(started, seen_at)
            for job_id, submit_time, started, seen_at in state
        }

    def _seen(self, job: QueuedJob, request: JobRequest, now: int) -> Iterator[Event]:
        key = request.job_id, request.submit_time
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known()
            yield Event(min(request.submit_time, now), SUBMISSION, request)
        known.seen_at = now
        known.eligible_time = job.eligible_time
        if job.state is not QueueState.PENDING and not known.started:
            known.started = True
            start = now if job.start_time is None else job.start_time
            start = min(max(start, request.submit_time), now)
            yield Event(start, START, request, eligible_time=job.eligible_time)


@dataclass(slots=True)
class _Known:
    """A job that was told of: whether its start was, when it was last in the queue, and more."""

    started: bool = False
    seen_at: int = 0
    eligible_time: int | None = None


def requests_of(job: QueuedJob) -> list[JobRequest]:
    """Give the jobs that a record stands for as submitted, those of an array each by itself."""
    request = as_submitted(job)
    if not job.pending_tasks:
        return [request] if job.tasks else []
    return [replace(request, job_id=job_id) for job_id in dict.fromkeys(job.task_ids)]
