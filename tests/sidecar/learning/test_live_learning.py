"""What the daemon learns and knows of a live queue is what a replay of the same jobs does."""

from __future__ import annotations

import threading

from foretime_estimators.estimators.job_events import learn_history
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.estimators.regression.runtime_features import RuntimeFeatures
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Queue, QueuedJob, QueueState
from foretime_sidecar.learning.event_feed import EventFeed
from foretime_sidecar.learning.guarded_estimator import HeldEstimator
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import PastEvents
from foretime_sidecar.store.model_states import NAMED, ModelStates
from foretime_sidecar.store.store import Store
from hypothesis import given, settings
from hypothesis import strategies as st

REGRESSION = "regression:squared-squared-constant"
JOBS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "ben", None]),
        st.integers(1, 16),  # processors
        st.integers(0, 3_000),  # submission
        st.none() | st.integers(0, 900),  # wait; none: withdrawn
        st.integers(0, 900),  # runtime, or until withdrawn
    ),
    min_size=1,
    max_size=12,
)


def jobs_of(drawn: list[tuple[str | None, int, int, int | None, int]]) -> list[FinishedJob]:
    jobs = []
    for number, (user, processors, submit_time, wait, ran) in enumerate(drawn):
        request = JobRequest(str(number), user, None, processors, 3_600, submit_time)
        if wait is None:
            never = Ending.NEVER_STARTED
            jobs.append(FinishedJob(request, None, submit_time + ran, 0, never))
        else:
            start_time = submit_time + wait
            end_time = start_time + ran
            jobs.append(FinishedJob(request, start_time, end_time, ran, Ending.COMPLETED))
    return jobs


def queued_at(jobs: list[FinishedJob], now: int) -> list[QueuedJob]:
    """Give the queue that a scheduler shows."""
    queue = []
    for job in jobs:
        if not job.request.submit_time <= now < job.end_time:
            continue
        if job.start_time is None or job.start_time > now:
            queue.append(QueuedJob(job.request, QueueState.PENDING))
        else:
            queue.append(QueuedJob(job.request, QueueState.RUNNING, start_time=job.start_time))
    return queue


def known_at(jobs: list[FinishedJob], now: int) -> RuntimeFeatures:
    """Tell of all starts and ends up to a time, in their order."""
    features = RuntimeFeatures()
    happened = []
    for index, job in enumerate(jobs):
        at_once = job.start_time == job.end_time or job.end_time == job.request.submit_time
        happened.append((job.end_time, 2 if at_once else 0, index))
        if job.start_time is not None:
            happened.append((job.start_time, 1, index))
    for time, kind, index in sorted(happened):
        if time <= now and kind == 1:
            features.start_one(jobs[index].request, time)
        elif time <= now:
            features.learn_one(jobs[index])
    return features


@settings(max_examples=60, deadline=None)
@given(JOBS, st.lists(st.integers(1, 900), max_size=8))
def test_live_is_as_in_a_replay(
    drawn: list[tuple[str | None, int, int, int | None, int]], steps: list[int]
) -> None:
    """Looks that lie minutes apart; jobs come, run and go between them, or stay."""
    jobs = jobs_of(drawn)
    by_end = sorted(jobs, key=lambda job: job.end_time)
    store, lock = Store(":memory:"), threading.RLock()
    held = HeldEstimator(REGRESSION)
    states = ModelStates(store, lock)
    feed = EventFeed(held, NAMED + "learned", PastEvents(store, lock), states, 10**9)
    now = stored = 0
    for step in [*steps, 10_000]:
        now += step
        ended = [job for job in by_end[stored:] if job.end_time <= now]
        stored += len(ended)
        records = [FinishedRecord(job, job.request.submit_time, job.ending.value) for job in ended]
        store.add_finished(records, Cursor(now), "slurm")
        feed.follow(Look(now, Queue(64, tuple(queued_at(jobs, now)))))
        assert held.state()["state"]["users"] == known_at(jobs, now).state()
    replayed = parse_estimator(REGRESSION)
    learn_history(replayed, jobs)
    assert held.state()["state"]["regression"] == replayed.state()["regression"]
