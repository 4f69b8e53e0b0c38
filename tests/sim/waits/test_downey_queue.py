"""Downey's predictors for whole queues: by hand, at the head, in order, through gaps."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes, RunningLives
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey import combined_wait, mean_wait, median_wait
from foretime_sim.waits.downey_forecaster import SMALL_NEEDS, DowneyForecaster
from foretime_sim.waits.downey_queue import QueuePrediction, queue_order
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.moment import Moment
from foretime_sim.workloads.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forecasts.forecaster_checks import CHECKS, Check

NOW = 1_000_000
FCFS = Policy(backfill=Backfill.NONE)
EASY = Policy()


def exactly(seconds: float) -> Lifetimes:
    """Lives that are all nearly of this length."""
    return Lifetimes(np.log([seconds, seconds * 1.0001]), np.array([0.0, 1.0]))


def snapshot(
    processors: int,
    running: list[tuple[int, int]],
    pending: list[tuple[int, int]],
    submitted: list[int] | None = None,
) -> Snapshot:
    """Give running jobs by age and size, pending ones by size and request."""
    jobs = len(pending)
    return Snapshot(
        NOW,
        processors,
        RunningJobs(
            np.array([NOW - age for age, _ in running], dtype=np.int64),
            np.array([held for _, held in running], dtype=np.int64),
            np.full(len(running), 100_000),
        ),
        PendingJobs(
            NOW - np.arange(jobs, 0, -1) if submitted is None else np.array(submitted),
            np.array([held for held, _ in pending], dtype=np.int64),
            np.array([request for _, request in pending], dtype=np.int64),
        ),
    )


def waits_of(
    moment: Snapshot, models: list[Lifetimes | None], policy: Policy, small_need: float
) -> list[float]:
    ages = np.concatenate([moment.now - moment.running.start_time, np.zeros(len(moment.pending))])
    prediction = QueuePrediction(moment, RunningLives(models, ages), policy, small_need)
    waits: list[float] = prediction.waits(range(len(moment.pending))).tolist()
    return waits


@pytest.mark.parametrize("small_need", [0, 32, np.inf])
def test_known_lives_give_the_schedule(small_need: float) -> None:
    """With lives known to the second every predictor is right: 6 of 10 are held for 900 s more.

    The wide job starts then, its 8 are held for 300 s; the small ones wait behind it under FCFS.
    With backfilling they start now, as they asked for no more than the gap, but for the last one.
    """
    now = snapshot(10, [(100, 6)], [(8, 600), (2, 800), (2, 850), (2, 950)])
    models: list[Lifetimes | None] = [exactly(1_000), *[exactly(300)] * 4]
    assert waits_of(now, models, FCFS, small_need) == pytest.approx([900, 900, 1_200, 1_200], abs=1)
    assert waits_of(now, models, EASY, small_need) == pytest.approx([900, 0, 0, 900], abs=1)


def test_what_fits_starts_now() -> None:
    now = snapshot(10, [(100, 6)], [(3, 600), (1, 600), (1, 600)])
    models: list[Lifetimes | None] = [exactly(1_000)] * 4
    assert waits_of(now, models, FCFS, 32) == pytest.approx([0, 0, 900], abs=1)


@st.composite
def moments(draw: st.DrawFn) -> tuple[Snapshot, list[Lifetimes | None]]:
    held = draw(st.lists(st.integers(1, 30), min_size=1, max_size=5))
    pending = draw(
        st.lists(st.tuples(st.integers(1, 60), st.integers(1, 50_000)), min_size=1, max_size=5)
    )
    ages = draw(st.lists(st.integers(0, 9_000), min_size=len(held), max_size=len(held)))
    processors = max(sum(held), *(needs for needs, _ in pending)) + draw(st.integers(0, 20))
    model = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))
    models: list[Lifetimes | None] = [model] * (len(held) + len(pending))
    return snapshot(processors, list(zip(ages, held, strict=True)), pending), models


@given(moments(), st.sampled_from([FCFS, EASY]))
def test_the_first_job_has_the_predictors_of_the_head(
    drawn: tuple[Snapshot, list[Lifetimes | None]], policy: Policy
) -> None:
    now, models = drawn
    held = now.running.processors
    lives = RunningLives(models[: len(held)], now.now - now.running.start_time)
    needed = int(now.pending.processors[0]) - (now.machine_processors - int(held.sum()))
    for small_need, expected in (
        (np.inf, median_wait(needed, held, lives)),
        (0, mean_wait(needed, held, lives)),
        (32, combined_wait(needed, held, lives)),
    ):
        first = waits_of(now, models, policy, small_need)[0]
        assert first == pytest.approx(expected, rel=1e-3, abs=1e-6, nan_ok=True)


@given(moments())
def test_nobody_overtakes_under_fcfs_and_easy_delays_no_head(
    drawn: tuple[Snapshot, list[Lifetimes | None]],
) -> None:
    """B always answers, nobody overtakes under FCFS, and the first waits as long as with gaps."""
    now, models = drawn
    fcfs = np.array(waits_of(now, models, FCFS, 0))
    assert (fcfs >= 0).all()
    assert (np.diff(fcfs) >= 0).all()
    easy = np.array(waits_of(now, models, EASY, 0))
    assert (easy >= 0).all()
    assert easy[0] == pytest.approx(fcfs[0])


def test_the_queue_is_in_the_policys_order() -> None:
    now = snapshot(10, [], [(1, 50), (9, 400), (2, 100), (3, 400)], [NOW, NOW - 90, NOW - 90, NOW])

    def order(kind: Order) -> Int64Array:
        return queue_order(now, Policy(kind))

    assert order(Order.FCFS).tolist() == [1, 2, 0, 3]
    assert order(Order.SJF).tolist() == [0, 2, 1, 3]
    assert order(Order.LJF).tolist() == [1, 3, 2, 0]
    assert order(Order.XF).tolist() == [2, 1, 0, 3]
    assert order(Order.WFP).tolist() == [2, 1, 0, 3]
    later = snapshot(10, [], [(1, 50), (9, 400)], [NOW + 5, NOW])
    assert queue_order(later, Policy(Order.SJF)).tolist() == [1, 0]


def test_a_job_that_joins_later_starts_no_sooner() -> None:
    now = snapshot(10, [], [(4, 50)], [NOW + 70])
    assert waits_of(now, [exactly(50)], FCFS, 32) == [70]


def test_without_benefactor_a_has_no_answer_and_the_queue_neither() -> None:
    now = snapshot(10, [(1, 5), (1, 5)], [(8, 60), (1, 60)])
    model = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))
    models: list[Lifetimes | None] = [model] * 4
    assert np.isnan(waits_of(now, models, FCFS, np.inf)).tolist() == [True, True]
    assert not np.isnan(waits_of(now, models, FCFS, 32)).any()


def request(number: int, processors: int) -> JobRequest:
    return JobRequest(str(number), "u", None, processors, 10_000, NOW)


def test_the_forecaster_gives_the_distribution_at_the_head_and_one_number_elsewhere() -> None:
    now = snapshot(10, [(100, 8)], [(4, 10_000), (8, 10_000)])
    requests = [request(job, processors) for job, processors in enumerate((8, 4, 8))]
    moment = Moment(now, FCFS, requests, np.array([2, 1]))
    told = DowneyForecaster("downey").forecast(moment)
    assert told.answered.all()
    assert len(set(told.wait_s[0].tolist())) == 1
    assert (np.diff(told.wait_s[1]) > 0).all()
    # Nothing is known yet: every ln t up to the request alike, so the median life is 1,000 s.
    assert told.wait_s[1, MEDIAN] == pytest.approx(900, rel=1e-3)
    assert told.wait_s[1, LEVELS.index(0.95)] == pytest.approx(10**3.9 - 100, rel=1e-3)
    assert told.starts_now.tolist() == [0, 0]
    by_b = DowneyForecaster("downey-b").forecast(moment)
    assert len(set(by_b.wait_s[1].tolist())) == 1


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", [FCFS, Policy(Order.WFP)], ids=["fcfs", "wfp-easy"])
@pytest.mark.parametrize("name", SMALL_NEEDS)
def test_the_forecasters_pass_the_shared_checks(
    check: Check, policy: Policy, name: str, busy: Workload
) -> None:
    check(lambda _: DowneyForecaster(name), busy.take(np.arange(60)), policy)
