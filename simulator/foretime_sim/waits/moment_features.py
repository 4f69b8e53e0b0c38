"""Numbers that a learned forecast goes by: the queue at a moment, and what has happened lately."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, HOUR_S

from foretime_sim.waits.moment import Moment

THROUGHPUT_S = (HOUR_S, 6 * HOUR_S, DAY_S)
"""Spans over which starts are counted."""
_NEWEST = 0.2
"""Weight of the newest wait or runtime beside all before it."""


@dataclass(slots=True)
class _Recent:
    """Mean of numbers that come one at a time, each counting less the more have come since."""

    count: int = 0
    mean: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.mean += max(_NEWEST, 1 / self.count) * (value - self.mean)


def _kinds(job: JobRequest) -> tuple[Hashable, ...]:
    """Give the classes in which a job's wait is like others', the closest first."""
    size = job.processors.bit_length()
    length = int(math.log2(job.requested_time))
    return (
        ("user and size", job.user, job.queue, size),
        ("user", job.user),
        ("size", job.queue, size, length),
        ("queue", job.queue),
        "all",
    )


class RecentEvents:
    """What starts and ends have told lately."""

    def __init__(self) -> None:
        self._waits: dict[Hashable, _Recent] = {}
        self._used: dict[str | None, _Recent] = {}
        self._used_by_all = _Recent()
        self._starts: deque[tuple[int, int]] = deque()

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn a wait, and that the machine got on."""
        log_wait = math.log1p(start_time - job.submit_time)
        for kind in _kinds(job):
            self._waits.setdefault(kind, _Recent()).add(log_wait)
        self._starts.append((start_time, job.processors))
        while self._starts[0][0] < start_time - THROUGHPUT_S[-1]:
            self._starts.popleft()

    def finished(self, job: FinishedJob) -> None:
        """Learn what share of its requested time a user's job took."""
        if evidence_of(job) is Evidence.EXACT:
            share = min(job.accuracy, 1.0)
            self._used.setdefault(job.request.user, _Recent()).add(share)
            self._used_by_all.add(share)

    def waits(self, job: JobRequest) -> list[float]:
        """Give the mean log of the waits of each class of the job, -1 where there is none."""
        found = (self._waits.get(kind) for kind in _kinds(job))
        return [-1.0 if recent is None else recent.mean for recent in found]

    def throughput(self, now: int) -> list[float]:
        """Give the jobs and processors that started in each of `THROUGHPUT_S`."""
        spans: list[float] = []
        for span in THROUGHPUT_S:
            since = [processors for time, processors in self._starts if time > now - span]
            spans += [len(since), sum(since)]
        return spans

    def expected_share(self, jobs: Sequence[JobRequest]) -> Float64Array:
        """Give the share of its requested time that each job is expected to take."""
        general = self._used_by_all.mean if self._used_by_all.count else 1.0
        shares = {user: recent.mean for user, recent in self._used.items()}
        return np.array([shares.get(job.user, general) for job in jobs], dtype=np.float64)


def moment_features(moment: Moment, events: RecentEvents) -> Float64Array:
    """Give a row of numbers for each job asked about; amounts as their logarithms.

    A pending job is ahead of another if the policy's priority, else its submission, puts it there.
    """
    if not len(moment.asked):
        return np.zeros((0, 0))
    snapshot, now = moment.snapshot, moment.now
    running, pending = snapshot.running, snapshot.pending
    starts = len(running)
    processors = np.concatenate([running.processors, pending.processors]).astype(np.float64)
    requested = np.concatenate([running.requested_time, pending.requested_time])
    ages = moment.ages()
    left = np.maximum(requested - ages, 0) * processors
    expected_s = np.maximum(requested * events.expected_share(moment.requests) - ages, 0)
    expected = expected_s * processors
    order = np.lexsort((pending.submit_time, -pending.priorities())) + starts
    place = np.empty(len(requested), dtype=np.int64)
    place[order] = np.arange(len(order))
    runs = np.arange(len(requested)) < starts
    alike = [_codes([getattr(job, name) for job in moment.requests])
             for name in ("queue", "user", "project")]  # fmt: skip

    def sums(of: BoolArray) -> list[float]:
        return [float(of.sum()), *(float(each[of].sum()) for each in (processors, left, expected))]

    machine = snapshot.machine_processors
    seconds = now % DAY_S
    common = [
        machine - float(processors[:starts].sum()),
        *sums(runs),
        *sums(~runs),
        *events.throughput(now),
        seconds,
        now // DAY_S % 7,
    ]
    rows = []
    for column, waited_s in zip(moment.asked.tolist(), moment.waited_s().tolist(), strict=True):
        job = moment.requests[column]
        ahead = ~runs & (place < place[column])
        longer = ~runs & (left < left[column])
        row = [
            job.processors,
            job.requested_time,
            job.processors * job.requested_time,
            float(expected_s[column]),
            waited_s,
            *sums(ahead),
            *sums(longer),
            *common,
        ]
        for codes in alike:
            same = codes == codes[column]
            row += [*sums(same & runs), *sums(same & ahead)]
        rows.append([*(math.log1p(max(each, 0)) for each in row), *events.waits(job)])
    return np.array(rows)


def _codes(names: Sequence[str | None]) -> Int64Array:
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
