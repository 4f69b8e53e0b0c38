"""From an estimator to rows of a table: what it says of the kinds of jobs that there have been.

Of each kind, and each user in it, the latest job that has finished stands for the next one: what
the estimator predicts for it now, as a share of what it asks for, is the user's vote.

- A row of a user's own kind is their vote, once enough of their submissions are of the kind. Nobody
  else's jobs move it, but for what the estimator itself learns from others.
- A row of several users' kind is the percentile (nearest rank) of their votes, each user having
  one however many jobs they ran, once they are a group. To lower it takes more than that share of
  them; whoever raises it has jobs planned with what they ask for.
- A row applies to jobs up to the largest of its history; of several users', up to the size that so
  many of them as make a group have run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.endings import MICRO, Evidence, evidence_of
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.table.row_kinds import KINDS, BackOff, Kind, LearnedRow

RowKey = tuple[str, str, tuple[int, ...]]
"""Kind, name, values."""


@dataclass(slots=True, eq=False)
class Vote:
    """A job that stands for the next of its kinds.

    Attributes
    ----------
    request
        The job.
    micro
        What it would be planned with, in millionths of what it asks for; ``None`` if unknown.
    uses
        In so many kinds it is the latest of its user's.
    """

    request: JobRequest
    micro: int | None = None
    uses: int = 0


@dataclass(slots=True)
class _Own:
    """What one user's jobs of a kind have been."""

    vote: Vote
    ended_at: int
    largest: int
    submissions: int = 0
    arrays: set[str] = field(default_factory=set)


class LearnedRows:
    """Rows of all kinds of a back-off order.

    Parameters
    ----------
    back_off
        The kinds.
    accuracy
        Classes of requested time, percentile, arrays, window and whether jobs larger than any are
        left alone: as for the other schemes.
    threshold
        Finished submissions that a user needs in a kind.
    smallest_group
        Users that a kind of several needs.
    """

    def __init__(
        self, back_off: BackOff, accuracy: AccuracySettings, threshold: int, smallest_group: int
    ) -> None:
        self.back_off = back_off
        self._kinds = [KINDS[word] for word in back_off.kinds]
        self._accuracy = accuracy
        self._threshold = threshold
        self._smallest_group = smallest_group
        self._users: dict[RowKey, dict[str, _Own]] = {}
        self._unasked: dict[Vote, None] = {}
        self._asked: dict[Vote, None] = {}  # the longest ago first
        self._changed: set[RowKey] = set()
        self._rows: dict[RowKey, LearnedRow] = {}
        self._next_cleaning = 0

    def learn_one(self, job: FinishedJob) -> None:
        """Take note that a job has finished; call in the order of ends."""
        user = job.request.user
        if user is None or evidence_of(job) is not Evidence.EXACT:
            return
        request = job.request
        vote = Vote(request)
        size = request.processors * request.requested_time
        for key in self._keys(request):
            users = self._users.setdefault(key, {})
            own = users.get(user)
            if own is None:
                own = users[user] = _Own(vote, job.end_time, size)
            else:
                self._drop(own.vote)
                own.vote, own.ended_at = vote, max(own.ended_at, job.end_time)
                own.largest = max(own.largest, size)
            vote.uses += 1
            self._count(own, request.array_id)
        self._unasked[vote] = None

    def _count(self, own: _Own, array_id: str | None) -> None:
        if own.submissions >= self._threshold:
            own.arrays.clear()  # enough is enough
        elif array_id is None or not self._accuracy.arrays_count_once:
            own.submissions += 1
        elif array_id not in own.arrays:
            own.arrays.add(array_id)
            own.submissions += 1

    def _drop(self, vote: Vote) -> None:
        vote.uses -= 1
        if vote.uses == 0:
            self._unasked.pop(vote, None)
            self._asked.pop(vote, None)

    def _keys(self, job: JobRequest) -> list[RowKey]:
        found = []
        for kind in self._kinds:
            key = self._key(kind, job)
            if key is not None:
                found.append(key)
        return found

    def _key(self, kind: Kind, job: JobRequest) -> RowKey | None:
        name = kind.name(job)
        if not name:
            return None
        bounds = self._accuracy.class_bounds_s
        return kind.word, name, kind.values(job, bounds, self.back_off.size_bounds)

    # Asking the estimator

    def to_ask(self, most_again: int) -> list[Vote]:
        """Give what the estimator is to be asked: all that is new, then what was asked long ago.

        Parameters
        ----------
        most_again
            At most so many of those that were asked before.
        """
        return [*self._unasked, *islice(self._asked, most_again)]

    def answered(self, answers: Iterable[tuple[Vote, int | None]]) -> None:
        """Take the estimator's answers: scheduled times in seconds, ``None`` where it has none."""
        for vote, scheduled_time in answers:
            if vote.uses == 0:
                continue  # another job stands there now
            self._unasked.pop(vote, None)
            self._asked.pop(vote, None)
            self._asked[vote] = None
            micro = None
            if scheduled_time is not None:
                micro = micro_of(scheduled_time, vote.request)
            vote.micro = micro
            self._changed.update(self._keys(vote.request))

    # Rows

    def refresh(self, now: int) -> bool:
        """Work out the rows that may have changed, as of ``now``; say whether any has."""
        if now >= self._next_cleaning:
            self._forget_before(now - (self._accuracy.window_s or now))
            self._next_cleaning = now + DAY_S
        changed = False
        for key in self._changed:
            row = self._row(key)
            if row == self._rows.get(key):
                continue
            changed = True
            if row is None:
                del self._rows[key]
            else:
                self._rows[key] = row
        self._changed.clear()
        return changed

    def _forget_before(self, oldest: int) -> None:
        for key, users in list(self._users.items()):
            for user, own in list(users.items()):
                if own.ended_at < oldest:
                    self._drop(own.vote)
                    del users[user]
                    self._changed.add(key)
            if not users:
                del self._users[key]

    def _row(self, key: RowKey) -> LearnedRow | None:
        """Give a row; ``None`` without enough history."""
        voters = [own for own in self._users.get(key, {}).values() if own.vote.micro is not None]
        own_kind = KINDS[key[0]].who == "user"
        needed = 1 if own_kind else self._smallest_group
        if len(voters) < needed or (own_kind and voters[0].submissions < self._threshold):
            return None
        micros = sorted(own.vote.micro or 0 for own in voters)
        place = max(math.ceil(self._accuracy.percentile * len(micros) - 1e-9), 1)
        largest = None
        if self._accuracy.within_largest_job:
            largest = sorted((own.largest for own in voters), reverse=True)[needed - 1]
        return LearnedRow(*key, micros[place - 1], largest)

    def rows(self) -> tuple[LearnedRow, ...]:
        """Give all rows, as of the last `refresh`."""
        return tuple(self._rows.values())

    def row_of(self, job: JobRequest) -> LearnedRow | None:
        """Give the row that a hook finds for a job; ``None`` if there is none."""
        size = job.processors * job.requested_time
        for kind in self._kinds:
            key = self._key(kind, job)
            row = None if key is None else self._rows.get(key)
            if row is not None and (
                row.largest_processor_seconds is None or size <= row.largest_processor_seconds
            ):
                return row
        return None


def micro_of(scheduled_time: int, job: JobRequest) -> int:
    """Give a scheduled time in seconds as millionths of what a job asks for, rounded down.

    The hook rounds up to whole minutes: rounded up here, too, a time of whole minutes would get one
    more.
    """
    return scheduled_time * MICRO // job.requested_time


def as_if_now(request: JobRequest, now: int) -> JobRequest:
    """Give a job as if it were submitted now, epoch seconds."""
    return replace(request, submit_time=now)
