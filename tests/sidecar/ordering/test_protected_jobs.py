"""Jobs that are too late hold reservations: by their start without Foretime, or by their waits."""

from __future__ import annotations

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.protected_jobs import is_protected

AFTER_S, NOW = 500, 1000


class Late:
    """Knows how late jobs are by their identifiers, seconds."""

    def __init__(self, **late_s: int) -> None:
        self._late_s = late_s

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        return self._late_s.get(job.request.job_id)


def job(name: str, submit_time: int = 0, *, held: bool = False) -> QueuedJob:
    request = JobRequest(name, "ann", None, 1, 3600, submit_time, "long")
    return QueuedJob(request, QueueState.PENDING, eligible_time=submit_time, held=held)


def test_who_is_late_over_the_plain_start_is_protected_and_nobody_else_whose_is_known() -> None:
    late = Late(late=1, early=0)
    assert is_protected(late, AFTER_S, job("late", submit_time=NOW), NOW)
    assert not is_protected(late, AFTER_S, job("early"), NOW), "it would have waited so long anyway"


def test_whose_plain_start_is_not_known_is_protected_once_it_has_waited_for_long() -> None:
    for late in (None, Late(other=900)):
        assert is_protected(late, AFTER_S, job("a", submit_time=NOW - AFTER_S), NOW)
        assert not is_protected(late, AFTER_S, job("a", submit_time=NOW - AFTER_S + 1), NOW)
        assert not is_protected(late, 0, job("a"), NOW)


def test_a_held_job_holds_no_reservation() -> None:
    assert not is_protected(Late(late=1), AFTER_S, job("late", held=True), NOW)
