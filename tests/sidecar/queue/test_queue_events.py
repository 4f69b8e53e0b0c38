"""What forecasters are told: each event of each job once, in the order of time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    Queue,
    QueuedJob,
    QueueState,
)
from foretime_sidecar.queue import queue_events
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import (
    END,
    START,
    SUBMISSION,
    Event,
    Listener,
    PastEvents,
    QueueEvents,
    events_of,
    in_order,
)
from foretime_sidecar.store.store import Store
from hypothesis import given, settings
from hypothesis import strategies as st


def request(job_id: str, submit_time: int = 100) -> JobRequest:
    return JobRequest(job_id, "ann", "physics", 4, 3600, submit_time)


def told(events: list[Event]) -> list[tuple[int, int, str]]:
    return [(event.time, event.kind, event.request.job_id) for event in events]


def look(now: int, *jobs: QueuedJob) -> Look:
    return Look(now, Queue(64, jobs))


def test_a_job_is_told_of_as_it_comes_starts_and_ends() -> None:
    events = QueueEvents()
    waits = QueuedJob(request("1"), QueueState.PENDING)
    runs = replace(waits, state=QueueState.RUNNING, start_time=170)
    assert told(events.since_last(look(120, waits), [])) == [(100, SUBMISSION, "1")]
    assert events.since_last(look(150, waits), []) == []
    assert told(events.since_last(look(180, runs), [])) == [(170, START, "1")]
    assert events.since_last(look(240, runs), []) == []
    ended = FinishedJob(request("1"), 170, 250, 80, Ending.COMPLETED)
    assert told(events.since_last(look(300), [ended])) == [(250, END, "1")]


@pytest.mark.parametrize("ended_s", [-1, 0, 30])
def test_a_start_that_was_written_down_a_second_early_is_no_wait_below_zero(ended_s: int) -> None:
    waits: list[int] = []

    class Waits(Listener):
        def submitted(self, job: JobRequest) -> None:
            pass

        def started(self, job: JobRequest, start_time: int) -> None:
            waits.append(start_time - job.submit_time)

        def finished(self, job: FinishedJob) -> None:
            pass

    runs = QueuedJob(request("1"), QueueState.RUNNING, start_time=99)
    ended = FinishedJob(request("2"), 99, 100 + ended_s, ended_s + 1, Ending.COMPLETED)
    events = [*QueueEvents().since_last(look(100, runs), []), *events_of(ended)]
    for event in events:
        event.tell_waits(Waits())
    assert waits == [0, 0]
    kinds = [event.kind for event in in_order(events)]
    if ended_s >= 0:
        assert kinds.index(SUBMISSION) < kinds.index(START)


def test_what_no_look_has_seen_is_told_by_the_accounting() -> None:
    events = QueueEvents()
    brief = FinishedJob(request("1", 130), 140, 150, 10, Ending.COMPLETED)
    withdrawn = FinishedJob(request("2", 125), None, 145, 0, Ending.NEVER_STARTED)
    assert told(events.since_last(look(180), [brief, withdrawn])) == [
        (125, SUBMISSION, "2"), (130, SUBMISSION, "1"), (140, START, "1"), (145, END, "2"),
        (150, END, "1"),
    ]  # fmt: skip


def test_a_start_between_two_looks_is_told_with_the_end() -> None:
    events = QueueEvents()
    events.since_last(look(120, QueuedJob(request("1"), QueueState.PENDING)), [])
    ended = FinishedJob(request("1"), 130, 150, 20, Ending.COMPLETED)
    assert told(events.since_last(look(180), [ended])) == [(130, START, "1"), (150, END, "1")]


def test_tasks_of_an_array_start_one_by_one() -> None:
    events = QueueEvents()
    array = QueuedJob(request("7"), QueueState.PENDING, tasks=3, pending_tasks="1-5:2")
    assert told(events.since_last(look(120, array), [])) == [
        (100, SUBMISSION, "7_1"), (100, SUBMISSION, "7_3"), (100, SUBMISSION, "7_5"),
    ]  # fmt: skip
    first = QueuedJob(request("7_1"), QueueState.RUNNING, start_time=130)
    left = replace(array, tasks=2, pending_tasks="3,5")
    assert told(events.since_last(look(180, first, left), [])) == [(130, START, "7_1")]


def test_a_requeued_job_is_another() -> None:
    events = QueueEvents()
    runs = QueuedJob(request("1"), QueueState.RUNNING, start_time=110)
    events.since_last(look(120, runs), [])
    again = QueuedJob(request("1", 150), QueueState.PENDING)
    ended = FinishedJob(request("1"), 110, 150, 40, Ending.REQUEUED)
    assert told(events.since_last(look(180, again), [ended])) == [
        (150, END, "1"), (150, SUBMISSION, "1"),
    ]  # fmt: skip


def test_an_end_in_the_second_of_the_start_is_told_after_it() -> None:
    at_once = FinishedJob(request("1"), 130, 130, 0, Ending.FAILED)
    assert told(QueueEvents().since_last(look(180), [at_once])) == [
        (100, SUBMISSION, "1"), (130, START, "1"), (130, END, "1"),
    ]  # fmt: skip


def test_jobs_that_the_accounting_never_tells_of_are_forgotten() -> None:
    events = QueueEvents()
    events.since_last(look(120, QueuedJob(request("1"), QueueState.PENDING)), [])
    events.since_last(look(120 + 8 * 86_400), [])
    assert events._known == {}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.none() | st.integers(0, 300), st.integers(0, 300)),
        max_size=40,
    ),
    st.integers(1, 7),
    st.integers(0, 900),
)
def test_the_stored_past_is_told_whole_and_in_order(
    jobs: list[tuple[int, int | None, int]], at_a_time: int, since: int
) -> None:
    records = []
    for number, (submit_time, waited, ran) in enumerate(jobs):
        start = None if waited is None else submit_time + waited
        end = (submit_time if start is None else start) + ran
        ending = Ending.NEVER_STARTED if start is None else Ending.COMPLETED
        job = FinishedJob(request(str(number), submit_time), start, end, ran, ending)
        records.append(FinishedRecord(job, submit_time, ending.name))
    # The accounting tells of jobs in the order of their ends.
    records.sort(key=lambda record: record.job.end_time)
    store = Store(":memory:")
    store.add_finished(records, Cursor(0))
    past = PastEvents(store, threading.RLock())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_events, "_AT_A_TIME", at_a_time)
        events = list(past.all(since))
    wanted = [record.job for record in records if record.job.end_time >= since]
    every = [event for job in wanted for event in events_of(job)]
    assert sorted(told(events)) == sorted(told(every))
    assert [event.time for event in events] == sorted(event.time for event in events)
    first: dict[str, list[int]] = {}
    for event in events:
        first.setdefault(event.request.job_id, []).append(event.kind)
    assert all(kinds in ([SUBMISSION, START, END], [SUBMISSION, END]) for kinds in first.values())
    store.close()


def test_what_is_stored_later_is_given_once(record: Callable[..., FinishedRecord]) -> None:
    store = Store(":memory:")
    store.add_finished([record(1), record(2)], Cursor(0))
    past = PastEvents(store, threading.RLock())
    assert len(list(past.all(0))) == 6
    assert past.new() == []
    store.add_finished([record(3)], Cursor(0))
    assert [job.request.job_id for job in past.new()] == ["3"]
    assert past.new() == []
    store.close()
