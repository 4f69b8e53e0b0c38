"""What feeds estimators in the daemon: nothing twice, nothing left out, whatever breaks."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from foretime_estimators.estimators.estimator import StartObserver, clamped
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Queue, QueuedJob, QueueState
from foretime_sidecar.learning import guarded_estimator as held_estimator
from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.learning.guarded_estimator import HeldEstimator
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import PastEvents
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.personal_data import erase
from foretime_sidecar.store.store import Store
from hypothesis import given, settings
from hypothesis import strategies as st

Record = Callable[..., FinishedRecord]
NAME = NAMED + "diary"
HISTORY_S = 10**9


class Diary:
    """A model that remembers what it was told, in the order told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int]] = []

    def submitted(self, job: JobRequest) -> None:
        self.lines.append(("submitted", job.job_id, job.submit_time))

    def started(self, job: JobRequest, start_time: int) -> None:
        self.lines.append(("started", job.job_id, start_time))

    def finished(self, job: FinishedJob) -> None:
        self.lines.append(("finished", job.request.job_id, job.end_time))

    def begin_anew(self) -> None:
        self.lines.clear()

    def state(self) -> dict[str, Any]:
        return {"lines": [list(line) for line in self.lines]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.lines = [(what, job_id, time) for what, job_id, time in state["lines"]]


class Home:
    """A store, its lock, and feeds as a daemon would make them at each of its starts."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.states = ModelStates(store, self.lock)

    def start(self) -> tuple[Diary, EventFeed]:
        diary = Diary()
        past = PastEvents(self.store, self.lock)
        return diary, EventFeed(diary, NAME, past, self.states, HISTORY_S)


@pytest.fixture
def home() -> Home:
    return Home(Store(":memory:"))


def look(now: int, *jobs: QueuedJob) -> Look:
    return Look(now, Queue(64, jobs))


def queued(job: FinishedJob, now: int) -> QueuedJob | None:
    if not job.request.submit_time <= now or job.end_time <= now:
        return None
    if job.start_time is None or job.start_time > now:
        return QueuedJob(job.request, QueueState.PENDING)
    return QueuedJob(job.request, QueueState.RUNNING, start_time=job.start_time)


def test_the_stored_past_is_told_first(home: Home, record: Record) -> None:
    home.store.add_finished([record(1), record(2)], Cursor(0))
    diary, feed = home.start()
    before = feed.caught_up
    feed.follow(look(1_000_100))
    assert (before, feed.caught_up) == (False, True)
    assert [line[0] for line in diary.lines if line[1] == "1"] == [
        "submitted", "started", "finished",
    ]  # fmt: skip
    assert len(diary.lines) == 6


def test_a_little_at_a_time_tells_the_same(home: Home, record: Record) -> None:
    home.store.add_finished([record(number) for number in range(1, 6)], Cursor(0))
    at_once, feed = home.start()
    feed.follow(look(1_000_100))
    diary, slow = home.start()
    home.states.save(NAME, 0, {}, lambda: True)  # nothing that can be used
    calls = 0
    while not slow.caught_up:
        slow.follow(look(1_000_100), most_s=-1)
        calls += 1
    assert diary.lines == at_once.lines
    assert calls >= len(diary.lines)


_JOBS = st.lists(
    st.tuples(st.integers(0, 300), st.none() | st.integers(0, 200), st.integers(0, 200)),
    max_size=15,
)


@settings(max_examples=60, deadline=None)
@given(
    jobs=_JOBS,
    steps=st.lists(st.integers(1, 120), max_size=12),
    restart_after=st.integers(0, 12),
    saved=st.booleans(),
)
def test_a_restart_tells_nothing_twice_and_leaves_nothing_out(
    jobs: list[tuple[int, int | None, int]], steps: list[int], restart_after: int, *, saved: bool
) -> None:
    """Whether saved or not: after the last job has ended all was told exactly once."""
    finished = []
    for number, (submit_time, waited, ran) in enumerate(jobs):
        start = None if waited is None else submit_time + waited
        end = (submit_time + ran) if start is None else start + ran
        request = JobRequest(str(number), "ann", None, 4, 3600, submit_time)
        ending = Ending.NEVER_STARTED if start is None else Ending.COMPLETED
        finished.append(FinishedJob(request, start, end, 0 if start is None else ran, ending))
    home = Home(Store(":memory:"))
    diary, feed = home.start()
    now, stored = 0, 0
    by_end = sorted(finished, key=lambda job: job.end_time)
    for turn, step in enumerate([*steps, 1000]):
        now += step
        ended = [job for job in by_end[stored:] if job.end_time <= now]
        stored += len(ended)
        home.store.add_finished(
            [FinishedRecord(job, job.request.submit_time, "") for job in ended], Cursor(now)
        )
        feed.follow(look(now, *filter(None, (queued(job, now) for job in finished))))
        if turn == restart_after:
            if saved:
                feed.save(now)
            diary, feed = home.start()
    feed.follow(look(now))
    wanted = sorted(
        line
        for job in finished
        for line in (
            ("submitted", job.request.job_id, min(job.request.submit_time, job.end_time)),
            *([] if job.start_time is None else [("started", job.request.job_id, job.start_time)]),
            ("finished", job.request.job_id, job.end_time),
        )
    )
    assert sorted(diary.lines) == wanted


def test_what_cannot_be_used_is_learned_anew(
    home: Home, record: Record, caplog: pytest.LogCaptureFixture
) -> None:
    home.store.add_finished([record(1)], Cursor(0))
    for saved in (
        {"version": 2},
        {"version": 1},
        {"version": 1, "last_seq": "x", "seen": [], "model": {}},
        {"version": 1, "last_seq": 1, "seen": [[1]], "model": {}},
        {"version": 1, "last_seq": 1, "seen": [], "model": {}},
        {"version": 1, "last_seq": 1, "seen": [], "model": {"lines": [[1]]}},
    ):
        home.states.save(NAME, 0, saved)
        diary, feed = home.start()
        feed.follow(look(1_000_100))
        assert len(diary.lines) == 3, saved
        assert "learned anew from the store" in caplog.messages[-1]
    home.store.write("spoil", "UPDATE model_states SET state = ? WHERE name = ?", [("{", NAME)])
    diary, feed = home.start()
    feed.follow(look(1_000_100))
    assert len(diary.lines) == 3


def test_a_store_that_fails_is_read_again(
    home: Home, record: Record, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home.store.add_finished([record(1)], Cursor(0))
    diary, feed = home.start()

    def full(*_: object) -> None:
        raise StateError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(home.store, "finished_after", full)
        with pytest.raises(StateError):
            feed.follow(look(1_000_100))
    assert not feed.caught_up
    with monkeypatch.context() as patch:
        patch.setattr(home.store, "transaction", full)
        feed.follow(look(1_000_200))
        feed.save(1_000_200)
    assert len(diary.lines) == 3
    assert "is not saved: disk full" in caplog.text


def test_whoever_is_forgotten_is_in_no_state_any_more(home: Home, record: Record) -> None:
    home.store.add_finished([record(1), record(2, user="bob")], Cursor(0))
    diary, feed = home.start()
    feed.follow(look(1_000_100))
    feed.save(1_000_100)
    assert home.states.saved(NAME) is not None
    home.states.save("calibration", 0, {"no": "names"})
    with home.lock:
        erase(home.store, "alice", 1_000_100)
        feed.forget()
    assert home.states.saved(NAME) is None
    assert home.states.saved("calibration") == {"no": "names"}
    assert not feed.caught_up
    feed.save(1_000_100)  # still what was known of alice
    assert home.states.saved(NAME) is None
    feed.follow(look(1_000_200))
    assert {line[1] for line in diary.lines} == {"2"}


# An estimator as it is held


JOB = JobRequest("1", "alice", "physics", 4, 3600, 1_000_000)


class Faulty:
    """An estimator that does what a test says."""

    oracle = False

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def predict_one(self, job: JobRequest, now: int) -> object:
        return self.do()

    def learn_one(self, job: FinishedJob) -> None:
        self.do()

    def state(self) -> dict[str, Any]:
        self.do()
        return {"answer": math.nan}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.do()

    def do(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [ZeroDivisionError(), MemoryError(), KeyError("x"), math.nan, 1.5, 0, -3, 3601, None, "9"],
)
def test_a_faulty_estimator_says_nothing_and_harms_nobody(
    answer: object, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: Faulty(answer))
    held = HeldEstimator("similar")
    states = [held.in_order]
    for _ in range(10):
        assert held.predict(JOB, 1_000_000) is None
    assert held.failures == 10
    assert "estimator similar can't predict" in held.last_failure
    states.append(held.in_order)
    held.finished(record(1).job)
    held.started(JOB, 1_000_000)
    held.submitted(JOB)
    if isinstance(answer, Exception):
        with pytest.raises(StateError, match="can't tell its state"):
            held.state()
    held.begin_anew()
    assert [*states, held.in_order] == [True, False, True]


def test_failures_are_told_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: Faulty(0))
    held = HeldEstimator("similar")
    for _ in range(1000):
        held.predict(JOB, 1_000_000)
    assert len(caplog.messages) == 10


def test_it_works_again_once_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = Faulty(0)
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: estimator)
    held = HeldEstimator("similar")
    for _ in range(20):
        held.predict(JOB, 1_000_000)
    estimator.answer = 60
    assert held.predict(JOB, 1_000_000) == 60
    assert held.in_order


@pytest.mark.parametrize(
    "name", [entry.name for entry in ESTIMATORS if not entry.oracle and entry.parameter is None]
)
def test_every_estimator_can_be_held(name: str, record: Record) -> None:
    held, other = HeldEstimator(name), HeldEstimator(name)
    for number in range(1, 30):
        job = record(number, runtime=60 * number).job
        held.submitted(job.request)
        held.started(job.request, job.start_time or 0)
        held.finished(job)
    predicted = held.predict(JOB, 1_000_400)
    assert predicted is not None
    assert 1 <= predicted <= 3600
    other.restore(json.loads(json.dumps(held.state())))
    assert other.predict(JOB, 1_000_400) == predicted
    another = "user" if name != "user" else "similar"
    with pytest.raises(ValueError, match="it is of estimator"):
        HeldEstimator(another).restore(held.state())
    if held.state()["state"]:
        with pytest.raises(ValueError, match="Error"):
            other.restore({"estimator": name, "state": {}})
        assert other.predict(JOB, 1_000_400) == HeldEstimator(name).predict(JOB, 1_000_400)


def test_one_that_observes_starts_is_told_and_learns_from_submissions(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str, int]] = []

    class Observer:
        oracle = False

        def predict_one(self, job: JobRequest, now: int) -> int:
            told.append(("asked", job.job_id, now))
            return clamped(60, job)

        def start_one(self, job: JobRequest, start_time: int) -> None:
            told.append(("started", job.job_id, start_time))

        def learn_one(self, job: FinishedJob) -> None:
            told.append(("ended", job.request.job_id, job.end_time))

        def state(self) -> dict[str, Any]:
            return {}

        def restore(self, state: Mapping[str, Any]) -> None: ...

    assert isinstance(Observer(), StartObserver)
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: Observer())
    held = HeldEstimator("similar")
    job = record(1).job
    held.submitted(job.request)
    held.predict(replace(job.request), job.request.submit_time + 5)
    held.started(job.request, job.start_time or 0)
    held.finished(job)
    assert [what for what, *_ in told] == ["asked", "asked", "started", "ended"]
    assert [job_id for _, job_id, _ in told] == ["1", "foretime", "1", "1"]


def test_a_name_that_there_is_not_is_told() -> None:
    with pytest.raises(InputError, match="there is none of that name"):
        HeldEstimator("oracle-of-delphi")
    with pytest.raises(InputError, match="needs the actual runtimes"):
        HeldEstimator("actual")


@pytest.mark.parametrize(("takes_s", "saved"), [(0.0, [3601, 7201, 10801]), (36.0, [3601, 10801])])
def test_saving_takes_no_more_than_a_hundredth_of_the_time(
    home: Home, monkeypatch: pytest.MonkeyPatch, takes_s: float, saved: list[int]
) -> None:
    """Each hour; where it takes 36 s not before an hour has passed on the machine's clock, too."""
    diary, feed = home.start()
    machine_s = 0.0
    monkeypatch.setattr("time.monotonic", lambda: machine_s)
    kept: list[int] = []

    def state() -> dict[str, Any]:
        nonlocal machine_s
        machine_s += takes_s
        return {}

    monkeypatch.setattr(diary, "state", state)
    monkeypatch.setattr(home.states, "save", lambda _name, now, *_: kept.append(now))
    for hour in range(4):
        feed.follow(look(1 + 3600 * hour))
        machine_s += 1800
    assert kept == saved
