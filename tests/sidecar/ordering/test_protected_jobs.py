"""Jobs that wait too long over their start without Foretime: they hold reservations."""

from __future__ import annotations

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.ordering.protected_jobs import Protected


class Late:
    """Knows how late jobs are by their identifiers, seconds."""

    def __init__(self, **late_s: int) -> None:
        self._late_s = late_s

    def late_s(self, job: QueuedJob, now: int) -> int:
        return self._late_s.get(job.request.job_id, 0) if now == 1000 else 0


def job(name: str, queue: str | None) -> QueuedJob:
    return QueuedJob(JobRequest(name, "ann", None, 1, 3600, 0, queue), QueueState.PENDING)


def test_who_is_late_holds_a_reservation() -> None:
    jobs = [job(name, "long") for name in ("a", "b", "c")]
    protected = Protected.of(Late(a=60, b=900), jobs, 1000)
    assert [each in protected for each in jobs] == [True, True, False]


def test_nobody_goes_by_expectation_where_one_of_them_waits() -> None:
    protected = Protected.of(Late(a=60), [job("a", "long,short"), job("b", "debug")], 1000)
    waits = [protected.is_in(name) for name in ("long", "short", "debug")]
    assert waits == [True, True, False]
    anywhere = Protected.of(Late(a=60), [job("a", None)], 1000)
    assert anywhere.is_in("debug"), "it names no partition"


def test_without_anybody_late_all_is_as_before() -> None:
    jobs = [job("a", "long")]
    for protected in (Protected.of(None, jobs, 1000), Protected.of(Late(a=60), jobs, 999)):
        assert jobs[0] not in protected
        assert not protected.is_in("long")
