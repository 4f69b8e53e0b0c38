"""The learned forecast: what it sees of a moment, what it learns, and how it corrects another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecaster, WaitForecasts
from foretime_sim.waits.learned_forecaster import FEWEST, LearnedForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.moment_features import RecentEvents, moment_features
from foretime_sim.waits.survival_forest import ForestSettings

SETTINGS = ForestSettings(trees=20, least_jobs=5, tried=0.5)


def request(name: object, queue: str, submit_time: int, processors: int = 1) -> JobRequest:
    return JobRequest(str(name), f"user of {queue}", None, processors, 3_600, submit_time, queue)


def moment_of(jobs: list[JobRequest], now: int, running: int = 0) -> Moment:
    """All jobs of one size; those that run have run for 600 s."""
    size, ones = np.array([job.processors for job in jobs]), np.ones(len(jobs), dtype=np.int64)
    snapshot = Snapshot(
        now,
        100,
        RunningJobs((now - 600) * ones[:running], size[:running], 3_600 * ones[:running]),
        PendingJobs(
            np.array([job.submit_time for job in jobs[running:]], dtype=np.int64),
            size[running:],
            3_600 * ones[running:],
            priority=np.arange(len(jobs) - running),
        ),
    )
    return Moment(snapshot, Policy(Order.PRIORITY), jobs, np.arange(running, len(jobs)))


def test_a_moment_is_seen_as_worked_out_by_hand() -> None:
    """One job runs, two wait, the later one first by priority; each has 4 processors."""
    now = 10 * 86_400 + 7_200
    jobs = [request(number, queue, now - 900, 4) for number, queue in enumerate("aab")]
    events = RecentEvents()
    events.started(request("x", "a", now - 1_000), now - 900)
    events.finished(FinishedJob(request("y", "a", 0), 5, 905, 900, Ending.COMPLETED))
    rows = moment_features(moment_of(jobs, now, running=1), events)
    amounts = np.expm1(rows[:, :-5]).round(6)
    # What is asked for, and for how long: users of a run a quarter of it, and so do all others.
    assert amounts[0, :5].tolist() == [4, 3_600, 14_400, 900, 900]
    # Ahead: jobs, processors, requested and expected processor seconds; the last has priority.
    assert amounts[0, 5:9].tolist() == [1, 4, 14_400, 3_600]
    assert amounts[1, 5:9].tolist() == [0, 0, 0, 0]
    # Free processors; what runs has 3,000 s left of its request, and 300 s are expected.
    assert amounts[0, 13:18].tolist() == [96, 1, 4, 12_000, 1_200]
    assert amounts[0, 18:22].tolist() == [2, 8, 28_800, 7_200]
    # Starts of the last hour, six hours and day, the time of day, and of the week.
    assert amounts[0, 22:30].tolist() == [1, 1, 1, 1, 1, 1, 7_200, 3]
    # In the queue of the first: one runs, none is ahead; in that of the second nothing runs.
    assert amounts[0, 30:38].tolist() == [1, 4, 12_000, 1_200, 0, 0, 0, 0]
    assert amounts[1, 30:38].tolist() == [0] * 8
    # Waits of the same user and size, user, size, queue, and of all: one, of 100 s, elsewhere.
    log_wait = math.log1p(100)
    np.testing.assert_allclose(rows[0, -5:], [-1, log_wait, -1, log_wait, log_wait])
    np.testing.assert_allclose(rows[1, -5:], [-1, -1, -1, -1, log_wait])


def live(
    forecaster: WaitForecaster, waits: dict[str, int], jobs: int, seed: int = 3
) -> WaitForecasts:
    """Submit jobs to queues one by one, each waiting as its queue does; then ask about one each."""
    rng = np.random.default_rng(seed)
    pending: list[tuple[int, JobRequest]] = []
    now = 0
    for number in range(jobs):
        now += int(rng.integers(1, 200))
        for start, job in sorted((one for one in pending if one[0] < now), key=lambda one: one[0]):
            forecaster.started(job, start)
        pending = [one for one in pending if one[0] >= now]
        queue = str(rng.choice(list(waits)))
        job = request(number, queue, now)
        forecaster.submitted(job)
        forecaster.forecast(moment_of([job], now))
        pending.append((now + int(waits[queue] * rng.uniform(0.8, 1.25)), job))
    last = [request(queue, queue, now) for queue in waits]
    return forecaster.forecast(moment_of(last, now))


def test_it_learns_what_queues_wait() -> None:
    found = live(LearnedForecaster(settings=SETTINGS), {"a": 100, "b": 5_000}, 900)
    np.testing.assert_allclose(found.wait_s[:, MEDIAN], [100, 5_000], rtol=0.15)
    assert (found.starts_now < 0.05).all()
    soon = live(LearnedForecaster(settings=SETTINGS, now_within_s=300), {"a": 100, "b": 5_000}, 900)
    np.testing.assert_allclose(soon.starts_now, [1, 0], atol=0.05)
    np.testing.assert_array_equal(soon.wait_s, found.wait_s)


def test_waits_that_go_on_are_known_to_be_long() -> None:
    """Nothing of queue b has started for most of the log: that says enough."""
    found = live(LearnedForecaster(settings=SETTINGS), {"a": 100, "b": 10**7}, 900)
    assert found.wait_s[0, MEDIAN] < 130
    assert found.wait_s[1, MEDIAN] > 10_000


class TwiceTooLong:
    """Says of every job that it waits for 200 s, or 2,000 s if it has two processors."""

    name, oracle = "twice", False

    def forecast(self, moment: Moment) -> WaitForecasts:
        said = [200 * 10 ** (moment.requests[column].processors - 1) for column in moment.asked]
        wait_s = np.repeat(np.array(said, dtype=np.float64)[:, np.newaxis], len(LEVELS), axis=1)
        return WaitForecasts(wait_s, np.zeros(len(said)))

    def submitted(self, job: JobRequest) -> None: ...
    def started(self, job: JobRequest, start_time: int) -> None: ...
    def finished(self, job: FinishedJob) -> None: ...


def test_it_corrects_another() -> None:
    learned = LearnedForecaster(TwiceTooLong(), SETTINGS)
    assert learned.name == "learned from twice"
    first = learned.forecast(moment_of([request("first", "a", 0)], 0))
    assert (first.wait_s == 200).all()
    found = live(learned, {"a": 100}, 500)
    assert found.wait_s[0, MEDIAN] == pytest.approx(100, rel=0.1)


def test_a_forest_is_grown_when_enough_is_known() -> None:
    before = live(LearnedForecaster(settings=SETTINGS), {"a": 10}, FEWEST)
    assert not before.answered.any()
    after = live(LearnedForecaster(settings=SETTINGS), {"a": 10}, FEWEST + 3)
    assert after.answered.all()


def test_a_job_that_is_withdrawn_waited_at_least_as_long() -> None:
    learned = LearnedForecaster(settings=ForestSettings(trees=1, least_jobs=1_000))
    for number in range(FEWEST):
        job = request(number, "a", 100 * number)
        learned.submitted(job)
        learned.forecast(moment_of([job], job.submit_time))
        if number % 2:
            learned.started(job, job.submit_time + 90)
        else:
            end = job.submit_time + 20
            learned.finished(FinishedJob(job, None, end, 0, Ending.NEVER_STARTED))
    asked = request("last", "a", 10**5)
    found = learned.forecast(moment_of([asked], 10**5))
    assert found.wait_s[0, LEVELS.index(0.05)] > 80
