"""Jobs that are too late hold reservations: by their start without Foretime, or by their waits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition
from foretime_sidecar.ordering.machine_parts import MachinePart, MachineParts
from foretime_sidecar.ordering.protected_jobs import WHOLLY_LATE_S, LateJobs, ProtectedJobs

AFTER_S, NOW = 500, 1000
LONG, SHORT = (frozenset({node}) for node in ("n0", "n1"))
MACHINE = MachineParts(
    Cluster(
        (ClusterNode("n0", 1), ClusterNode("n1", 1)),
        (ClusterPartition("long", LONG), ClusterPartition("short", SHORT)),
    )
)


class Late:
    """Knows how late jobs are by their identifiers, seconds; behind where more than one is."""

    def __init__(self, **late_s: int) -> None:
        self._late_s = late_s

    def behind_in(
        self, waiting: Iterable[QueuedJob], now: int, machine: MachineParts
    ) -> Collection[MachinePart]:
        late = [machine.only_for(job) for job in waiting if self.late_s(job, now)]
        return [part for part in machine.parts if sum(part in each for each in late) > 1]

    def late_s(self, job: QueuedJob, now: int) -> int | None:
        return self._late_s.get(job.request.job_id)


def job(name: str, submit_time: int = 0, *, held: bool = False, queue: str = "long") -> QueuedJob:
    request = JobRequest(name, "ann", None, 1, 3600, submit_time, queue)
    return QueuedJob(request, QueueState.PENDING, eligible_time=submit_time, held=held)


def is_protected(late: LateJobs | None, after_s: int, job: QueuedJob, now: int) -> bool:
    return ProtectedJobs(late, after_s, [job], now, MACHINE).late_by(job) is not None


def test_who_is_late_over_the_plain_start_is_protected_and_nobody_else_whose_is_known() -> None:
    late = Late(late=1, early=0)
    assert is_protected(late, AFTER_S, job("late", submit_time=NOW), NOW)
    assert not is_protected(late, AFTER_S, job("early"), NOW), "it would have waited so long anyway"


def test_whose_plain_start_is_not_known_is_protected_once_it_has_waited_for_long() -> None:
    for late in (None, Late(other=900)):
        assert is_protected(late, AFTER_S, job("a", submit_time=NOW - AFTER_S), NOW)
        assert not is_protected(late, AFTER_S, job("a", submit_time=NOW - AFTER_S + 1), NOW)
        assert not is_protected(late, 0, job("a"), NOW)


def test_how_late_a_job_is_grades_until_it_is_wholly_late() -> None:
    late = Late(a=WHOLLY_LATE_S // 4, b=WHOLLY_LATE_S * 5)
    jobs = [job("a"), job("b"), job("unknown", NOW - AFTER_S), job("young", NOW)]
    protected = ProtectedJobs(late, AFTER_S, jobs, NOW, MACHINE)
    assert [protected.late_by(each) for each in jobs] == [0.25, 1.0, 0.0, None]


def test_a_held_job_holds_no_reservation() -> None:
    assert not is_protected(Late(late=1), AFTER_S, job("late", held=True), NOW)


def test_once_late_jobs_have_too_much_work_nobody_else_passes() -> None:
    late = Late(a=1, b=1, early=0)
    jobs = [job(name, NOW) for name in ("a", "b", "early", "unknown")]
    behind = ProtectedJobs(late, AFTER_S, jobs, NOW, MACHINE)
    assert [behind.let_pass(each) for each in jobs] == [True, True, False, False]
    for fewer in (jobs[1:], [job("a", held=True), *jobs[1:]]):
        protected = ProtectedJobs(late, AFTER_S, fewer, NOW, MACHINE)
        assert all(protected.let_pass(each) for each in fewer)
    unknown = ProtectedJobs(None, AFTER_S, jobs, NOW, MACHINE)
    assert all(unknown.let_pass(each) for each in jobs)


def test_late_jobs_keep_nobody_back_who_waits_for_other_nodes() -> None:
    late = Late(a=1, b=1)
    jobs = [job("a", NOW), job("b", NOW), job("other", NOW, queue="short")]
    protected = ProtectedJobs(late, AFTER_S, jobs, NOW, MACHINE)
    assert protected.let_pass(jobs[2])
    assert not protected.let_pass(job("both", NOW, queue="short,long"))
