"""Jobs as they are known beside: what they asked for, and what has become of them so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foretime_estimators.estimators.estimator import RolePrediction
from pydantic import TypeAdapter

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import HeldNode
from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.store.plain_starts import PlainRow


@dataclass(frozen=True, slots=True)
class _Record:
    """What is kept of a job as JSON."""

    job: QueuedJob
    expected: RolePrediction | None


_RECORDS = TypeAdapter(_Record)


@dataclass(slots=True)
class KnownJob:
    """A job; of an array each task is one.

    Attributes
    ----------
    job
        As it was first seen.
    seen_at
        When it was first seen, epoch seconds.
    expected
        How long it was expected to run when it was first seen; ``None`` if nothing was.
    could_start
        When it could first start, epoch seconds; ``None`` while that is not known.
    start_time, end_time
        When it did, epoch seconds; an end without a start: it was withdrawn then.
    runtime_s
        How long it ran, seconds.
    plain_start, start_with_us
        When it starts in the model without and with Foretime; ``None``: not, or not known.
    with_us
        Whether Foretime was at work on its day; ``None`` while that day is not over.
    last_seen
        At which look it was last in the queue, epoch seconds.
    """

    job: QueuedJob
    seen_at: int
    expected: RolePrediction | None = None
    could_start: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    runtime_s: int | None = None
    plain_start: int | None = None
    start_with_us: int | None = None
    with_us: bool | None = None
    last_seen: int = 0

    @property
    def key(self) -> Key:
        """What tells jobs apart."""
        return self.job.request.job_id, self.job.request.submit_time

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.end_time is not None

    @property
    def waits(self) -> bool:
        """Whether it has neither started nor been withdrawn."""
        return self.start_time is None and not self.has_ended

    @property
    def expected_s(self) -> int:
        """How long it was expected to run when it was first seen, seconds; else what it asked."""
        limit = self.job.request.requested_time
        return limit if self.expected is None else min(self.expected.backfill, limit)

    def runtime_at(self, now: int) -> int:
        """Give how long it runs, seconds, as far as that is known at a time."""
        if self.runtime_s is not None and self.start_time is not None:
            return self.runtime_s
        limit, expected_s = self.job.request.requested_time, self.expected_s
        if self.start_time is None:
            return expected_s
        age_s = max(now - self.start_time, 1)
        return expected_s if age_s < expected_s else max(min(limit, 2 * age_s), age_s)

    def as_row(self, *, is_needed: bool = True) -> PlainRow:
        """Give it as it is kept; ``is_needed``: by runs to come."""
        request = self.job.request
        text = ""
        if is_needed:
            text = _RECORDS.dump_json(_Record(self.job, self.expected)).decode()
        return PlainRow(
            *self.key,
            request.user,
            request.processors,
            self.seen_at,
            self.could_start,
            self.start_time,
            self.end_time,
            self.runtime_s,
            self.plain_start,
            self.start_with_us,
            None if self.with_us is None else int(self.with_us),
            text,
        )

    @classmethod
    def of_row(cls, row: PlainRow) -> KnownJob:
        """Read what `as_row` gave; ValueError if it can't be read."""
        record = _RECORDS.validate_json(row.record)
        return cls(
            record.job,
            row.seen_at,
            record.expected,
            row.could_start,
            row.start_time,
            row.end_time,
            row.runtime_s,
            row.plain_start,
            row.start_with_us,
            None if row.with_us is None else bool(row.with_us),
        )

    def running_since(self, start_time: int, nodes: tuple[HeldNode, ...]) -> QueuedJob:
        """Give it as the queue has it while it runs."""
        return replace(
            self.job,
            state=QueueState.RUNNING,
            start_time=start_time,
            suspended_time=0,
            has_nodes=nodes,
        )

    def waiting_from(self, could_start: int) -> QueuedJob:
        """Give it as the queue has it while it waits, with nothing that keeps it but the rules."""
        return replace(
            self.job,
            state=QueueState.PENDING,
            start_time=None,
            eligible_time=could_start,
            time_min=None,
            suspended_time=0,
            held=False,
            dependent=False,
            dependency="",
            reason="",
            priority=0,
            ages_since=None,
        )
