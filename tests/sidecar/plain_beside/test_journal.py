"""What the runs beside know of jobs: from looks, from the accounting, and from the store."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition, HeldNode
from foretime_sidecar.ordering.machine_parts import MachineParts
from foretime_sidecar.plain_beside.journal import Journal
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.late_jobs import LateJobs
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sidecar.store.store import Store

DAY = 86_400
ASKED = JobRequest("7", "ann", "physics", 4, 3600, 100)
WAITING = QueuedJob(ASKED, QueueState.PENDING, eligible_time=150)
RUNNING = replace(
    WAITING, state=QueueState.RUNNING, start_time=400, has_nodes=(HeldNode("n1", 4, 10),)
)
ENDED = FinishedJob(ASKED, 400, 900, 500, Ending.COMPLETED)


def expected(_job: QueuedJob, _now: int) -> RolePrediction:
    return RolePrediction(600, 700, 3600)


def look(now: int, *jobs: QueuedJob) -> Look:
    return Look(now, Queue(8, jobs))


def test_a_job_is_known_from_its_first_look_to_its_end() -> None:
    journal = Journal()
    assert journal.note(look(200, WAITING), [], expected)
    known = journal.jobs["7", 100]
    assert (known.could_start, known.start_time, known.runtime_at(200)) == (150, None, 700)
    assert journal.note(look(230, WAITING), [], expected) == [], "nothing is new"
    journal.note(look(430, RUNNING), [], expected)
    assert known.start_time == 400
    assert known.runtime_at(430) == 700
    assert known.runtime_at(1400) == 2000, "it has outlived what was expected: as long again"
    journal.note(look(930), [(ENDED, 150)], expected)
    assert (known.end_time, known.runtime_at(5000)) == (900, 500)


def test_a_job_that_no_look_saw_is_known_from_the_accounting() -> None:
    journal = Journal()
    journal.note(look(930), [(ENDED, None)], expected)
    known = journal.jobs["7", 100]
    assert (known.could_start, known.start_time, known.end_time, known.expected) == (
        *(100, 400, 900),
        None,
    )


def test_a_job_that_was_withdrawn_has_an_end_without_a_start() -> None:
    journal = Journal()
    journal.note(look(200, WAITING), [], expected)
    withdrawn = FinishedJob(ASKED, None, 500, 0, Ending.CANCELLED)
    journal.note(look(530), [(withdrawn, 150)], expected)
    known = journal.jobs["7", 100]
    assert (known.start_time, known.end_time) == (None, 500)


def test_a_held_job_can_start_once_it_is_let_go() -> None:
    journal = Journal()
    journal.note(look(200, replace(WAITING, held=True)), [], expected)
    known = journal.jobs["7", 100]
    assert known.could_start is None
    journal.note(look(260, replace(WAITING, eligible_time=250)), [], expected)
    assert known.could_start == 250


def test_a_job_that_vanishes_without_a_word_has_ended_as_it_was_last_seen() -> None:
    journal = Journal()
    journal.note(look(430, RUNNING), [], expected)
    journal.note(look(430 + 3 * DAY), [], expected)
    known = journal.jobs["7", 100]
    assert (known.end_time, known.runtime_s) == (430, 30)


def test_tasks_of_an_array_are_jobs_of_their_own() -> None:
    array = replace(WAITING, tasks=3, pending_tasks="1-3")
    journal = Journal()
    journal.note(look(200, array), [], expected)
    assert sorted(journal.jobs) == [("7_1", 100), ("7_2", 100), ("7_3", 100)]
    assert all(known.job.tasks == 1 for known in journal.jobs.values())


def test_what_is_known_is_the_same_after_a_restart() -> None:
    store = Store(":memory:")
    rows = PlainStarts(store)
    journal = Journal()
    rows.keep(job.as_row() for job in journal.note(look(430, RUNNING), [], expected))
    (again,) = (KnownJob.of_row(row) for row in rows.open())
    known = journal.jobs["7", 100]
    assert replace(again, last_seen=430) == known
    rows.keep([known.as_row(is_needed=False)])
    assert rows.open() == [], "no run needs it"


def test_nothing_is_kept_of_who_was_forgotten() -> None:
    store = Store(":memory:")
    with store.transaction("forget ann"):
        store.forgotten.mark("ann", 1000)
    store.forgotten.reread()
    rows = PlainStarts(store)
    rows.keep([KnownJob(WAITING, 200).as_row(), KnownJob(WAITING, 1001).as_row()])
    assert [row.seen_at for row in rows.open()] == [1001]


def test_a_job_is_late_once_it_waits_so_much_longer_than_on_the_plain_scheduler() -> None:
    late = LateJobs(3600, 0)
    late.note([KnownJob(WAITING, 200, plain_start=1000)])
    assert [late.late_s(WAITING, now) for now in (900, 4600, 4700)] == [0, 0, 100]
    assert (late.count(4600), late.count(4700)) == (0, 1)
    late.note([KnownJob(WAITING, 200)])
    assert late.late_s(WAITING, 9000) is None, "when it starts is not known"
    never = LateJobs(0, 0)
    never.note([KnownJob(WAITING, 200, plain_start=1000)])
    assert (never.late_s(WAITING, 10**6), never.count(10**6)) == (None, 0)


def test_foretime_is_behind_by_the_work_of_jobs_that_would_have_started() -> None:
    nodes = tuple(ClusterNode(f"n{n}", 1) for n in range(8))
    names = frozenset(node.name for node in nodes)
    half = frozenset({"n0", "n1", "n2", "n3"})
    pool = MachineParts(Cluster(nodes, (ClusterPartition("main", names, default=True),)))
    both = ClusterPartition("main", half, default=True), ClusterPartition("other", names)
    work = 700 * WAITING.request.processors
    for machine, behind_s in ((pool, work / 8), (MachineParts(Cluster(nodes, both)), work / 2)):
        for most_s, behind in ((round(behind_s) - 1, [behind_s]), (round(behind_s), [])):
            late = LateJobs(1, most_s)
            late.note([KnownJob(WAITING, 200, expected(WAITING, 200), plain_start=1000)])
            assert not late.behind_in([WAITING], 999, machine)
            assert late.behind_s == 0
            found = late.behind_in([WAITING], 1000, machine)
            assert [work / part.processors / part.share for part in found] == behind
            assert (late.is_behind, late.behind_s) == (bool(behind), behind_s)
            assert not late.behind_in([], 1000, machine), "it can't start"
            assert (late.is_behind, late.behind_s) == (False, 0)


@pytest.mark.parametrize(("started", "ended"), [(2000, None), (2000, 3000), (None, 3000)])
def test_who_has_started_or_was_withdrawn_does_not_wait(
    started: int | None, ended: int | None
) -> None:
    assert KnownJob(WAITING, 200).waits
    assert not KnownJob(WAITING, 200, start_time=started, end_time=ended).waits
