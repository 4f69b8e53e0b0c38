"""Who was told what their jobs use, as the sidecar works it out for the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, QueuedJob, QueueState
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.advice_log import ToldUsers
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

DAY = 86_400
NOW = 10_000_000


def learner(record: Callable[..., FinishedRecord]) -> Learner:
    made = Learner(Settings.model_validate({"accuracy": {"threshold": 5}}))
    for number in range(20):
        made.learn_one(record(number, requested_time=36_000, runtime=3600).job)
    return made


def pending(user: str | None, at: int, requested_time: int = 36_000) -> QueuedJob:
    request = JobRequest("1", user, None, 4, requested_time, at)
    return QueuedJob(request, QueueState.PENDING)


def store_under(*modes: str, since: int = NOW - 3 * DAY, each_s: int = DAY) -> Store:
    """A store whose tables had these modes, one after the other; the last is still in place."""
    store = Store(":memory:")
    for number, mode in enumerate(modes):
        written_at = since + number * each_s
        store.mark_published(store.begin_generation(written_at, written_at + 9 * DAY, mode, 1))
    return store


def test_users_with_long_requests_count_as_told(record: Callable[..., FinishedRecord]) -> None:
    store = store_under("advise")
    told, known = ToldUsers(store), learner(record)
    assert told.advice(known, NOW).told_until is None  # before the first look nobody may be told
    jobs = [
        pending("alice", NOW - 100),
        pending("alice", NOW - 50),
        pending("bob", NOW - 10),  # no history
        pending(None, NOW - 10),
        pending("alice", NOW - 2 * DAY),
    ]
    told.note(jobs, [], known, NOW)
    advice = told.advice(known, NOW + 5)
    assert (advice.told_until, advice.told) == (NOW, (("alice", NOW - 100),))
    # The daemon starts anew; the day after she is told again, by a job that came and went.
    told = ToldUsers(store)
    told.note([], [], known, NOW + 60)
    assert told.advice(known, NOW + 60).told == (("alice", NOW - 100),)
    later = NOW - 100 + DAY
    ended = [pending("alice", later - 1).request, pending("alice", later).request]
    told.note([], ended, known, later + 5)
    assert told.advice(known, later + 5).told == (("alice", later),)
    assert told.advice(known, later + DAY).told == ()


def test_who_submitted_under_another_mode_was_not_told(
    record: Callable[..., FinishedRecord],
) -> None:
    # The hook observed until a minute ago, then it advised.
    store = store_under("observe", "advise", since=NOW - 3600, each_s=3540)
    told, known = ToldUsers(store), learner(record)
    jobs = [pending("alice", NOW - 100), pending("alice", NOW - 30)]
    told.note(jobs, [pending("alice", NOW - 90).request], known, NOW)
    assert told.advice(known, NOW).told == (("alice", NOW - 30),)


def test_median_waits_are_of_many_jobs(record: Callable[..., FinishedRecord]) -> None:
    store, known = Store(":memory:"), learner(record)
    records = [record(number, requested_time=600) for number in range(19)]
    for number in range(21):
        one = record(100 + number, requested_time=36_000, end_time=NOW - 100 - number)
        submitted = one.job.end_time - one.job.actual_runtime - 1000 * number
        request = replace(one.job.request, submit_time=submitted)
        records.append(replace(one, job=replace(one.job, request=request), eligible_time=None))
    store.add_finished(records, Cursor(NOW))
    told = ToldUsers(store)
    told.note([], [], known, NOW)
    time_class = known.class_of_requested_time(36_000)
    assert told.advice(known, NOW).median_wait_s == ((time_class, 10_000),)
