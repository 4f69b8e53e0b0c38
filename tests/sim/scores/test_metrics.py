"""Metrics: a schedule worked out by hand, plain loops, and what must hold for any schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from foretime_estimators.arrays import BoolArray, Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.scores.machine_use import MachineUse
from foretime_sim.scores.metrics import (
    JOB_METRICS,
    METRICS,
    Distribution,
    ScoredSpan,
    ScoreSettings,
    job_metrics,
    score,
    scored_span,
)
from foretime_sim.workloads.workload import Workload
from hypothesis import given
from hypothesis import strategies as st


@dataclass(frozen=True)
class Times:
    """A schedule as metrics read it."""

    start_time: Int64Array
    end_time: Int64Array
    started_by: Int8Array
    outlived: BoolArray
    used_up: BoolArray | None = None


def column(*values: int) -> Int64Array:
    return np.array(values, dtype=np.int64)


def by_hand() -> tuple[Workload, Times]:
    """Five jobs on four processors.

    ====  ======  ==========  =====  =====  =====  ====  =======================
    job   submit  processors  t_act  t_req  start   end  what
    ====  ======  ==========  =====  =====  =====  ====  =======================
      1        0           2     10     20      0    10  starts from the head
      2        0           4     10     10     10    20  waits for job 1
      3        2           2      5      8      2     7  backfilled
      4        5           1      0      5     20    20  out of order; runs 0 s
      5       30           1    100     50     30    80  killed at t_req; outlives
    ====  ======  ==========  =====  =====  =====  ====  =======================
    """
    workload = Workload(
        name="by hand",
        machine_processors=4,
        unix_start_time=None,
        job_id=column(1, 2, 3, 4, 5),
        submit_time=column(0, 0, 2, 5, 30),
        processors=column(2, 4, 2, 1, 1),
        actual_runtime=column(10, 10, 5, 0, 100),
        requested_time=column(20, 10, 8, 5, 50),
    )
    schedule = Times(
        start_time=column(0, 10, 2, 20, 30),
        end_time=column(10, 20, 7, 20, 80),
        started_by=np.array(
            [
                StartedBy.HEAD,
                StartedBy.HEAD,
                StartedBy.BACKFILLED,
                StartedBy.OUT_OF_ORDER,
                StartedBy.HEAD,
            ],
            dtype=np.int8,
        ),
        outlived=np.array([False, False, False, False, True]),
    )
    return workload, schedule


def test_every_metric_is_as_worked_out_by_hand() -> None:
    workload, schedule = by_hand()
    settings = ScoreSettings(starved_wait_s=9, starved_wait_over_requested=2)
    scores = score(workload, schedule, settings)
    expected = {
        "jobs": 5,
        # 0, 10, 0, 15, 0
        "wait_mean_s": 5,
        "wait_mean_below_p99_s": 5,
        "wait_p50_s": 0,
        "wait_p90_s": 15,
        "wait_p99_s": 15,
        "wait_p99_9_s": 15,
        "wait_max_s": 15,
        "wait_top_share": 15 / 25,
        # 0, 1, 0, 3, 0
        "unitless_wait_mean": 0.8,
        "unitless_wait_mean_below_p99": 0.8,
        "unitless_wait_p50": 0,
        "unitless_wait_p90": 3,
        "unitless_wait_p99": 3,
        "unitless_wait_p99_9": 3,
        "unitless_wait_max": 3,
        "unitless_wait_top_share": 3 / 4,
        # 1, 2, 1, 16, 1
        "slowdown_mean": 4.2,
        "slowdown_mean_below_p99": 4.2,
        "slowdown_p50": 1,
        "slowdown_p90": 16,
        "slowdown_p99": 16,
        "slowdown_p99_9": 16,
        "slowdown_max": 16,
        "slowdown_top_share": 16 / 21,
        # 1, 2, 1 (5/10 below the bound), 1.5, 1
        "bounded_slowdown_mean": 1.3,
        "bounded_slowdown_mean_below_p99": 1.3,
        "bounded_slowdown_p50": 1,
        "bounded_slowdown_p90": 2,
        "bounded_slowdown_p99": 2,
        "bounded_slowdown_p99_9": 2,
        "bounded_slowdown_max": 2,
        "bounded_slowdown_top_share": 2 / 6.5,
        "bounded_slowdown_weighted_mean": (2 + 8 + 2 + 1.5 + 1) / 10,
        # 10, 20, 5, 15, 50
        "turnaround_time_mean_s": 20,
        "turnaround_time_mean_below_p99_s": 20,
        "turnaround_time_p50_s": 15,
        "turnaround_time_p90_s": 50,
        "turnaround_time_p99_s": 50,
        "turnaround_time_p99_9_s": 50,
        "turnaround_time_max_s": 50,
        "turnaround_time_top_share": 0.5,
        "turnaround_time_weighted_mean_s": (20 + 80 + 10 + 15 + 50) / 10,
        "makespan_s": 80,
        # 2 x 10 + 4 x 10 + 2 x 5 + 0 + 1 x 50 of 4 x 80; until 30 all but the last
        "utilization_makespan": 120 / 320,
        "utilization_arrivals": 70 / 120,
        # 2 idle in [0, 2) and [7, 10); only job 4, from 5 to 20, would have fitted
        "loss_of_capacity": 10 / 320,
        "avoidable_loss_of_capacity": 6 / 320,
        "started_from_head_jobs": 3,
        "started_out_of_order_jobs": 1,
        "backfilled_jobs": 1,
        "outlived_jobs": 1,
        "killed_at_requested_jobs": 1,
        "killed_early_jobs": 0,
        "used_up_jobs": 0,
        # job 2 waited 10 > 9 s, but not more than 2 x 10; job 4 did both
        "starved_jobs": 1,
    }
    assert scores.to_dict() == pytest.approx(expected)
    assert list(scores.to_dict()) == list(METRICS)


def test_a_job_killed_before_its_request_is_counted() -> None:
    workload, schedule = by_hand()
    early = replace(schedule, end_time=column(10, 20, 7, 20, 79))
    scores = score(workload, early)
    assert (scores.killed_early_jobs, scores.killed_at_requested_jobs) == (1, 0)


def test_only_the_scored_jobs_count_but_the_warm_up_uses_the_machine() -> None:
    workload, schedule = by_hand()
    scores = score(workload, schedule, span=ScoredSpan(2, 30))
    assert scores.jobs == 2
    assert scores.wait.mean == 7.5
    # From 2 to 20: 4 x 5 + 2 x 3 + 4 x 10 of 4 x 18 processor-seconds.
    assert scores.makespan_s == 18
    assert scores.utilization_makespan == pytest.approx(66 / 72)
    # Arrivals from 2 to 5: all four in use.
    assert scores.utilization_arrivals == 1


def test_tau_and_top_share_are_settable() -> None:
    workload, schedule = by_hand()
    scores = score(workload, schedule, ScoreSettings(tau_s=1, top_share=0.4))
    assert scores.bounded_slowdown.mean == pytest.approx((1 + 2 + 1 + 15 + 1) / 5)
    assert scores.wait.top_share == 1


def test_no_arrival_span_means_no_utilization_over_it() -> None:
    workload, schedule = by_hand()
    scores = score(workload, schedule, span=ScoredSpan(30, None))
    assert scores.utilization_arrivals is None
    assert scores.wait.top_share is None
    assert scores.utilization_makespan == 0.25


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("start_time", column(0, 10, 1, 20, 30), "job 3 starts before its submission"),
        ("end_time", column(10, 20, 7, 19, 80), "job 4 ends before its start"),
        ("start_time", column(0, 10), "2 start times for 5 jobs"),
        ("start_time", column(0, 9, 2, 20, 30), "6 processors in use at 9 s on a machine of 4"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(field: str, value: Int64Array, says: str) -> None:
    workload, schedule = by_hand()
    wrong = Times(
        start_time=value if field == "start_time" else schedule.start_time,
        end_time=value if field == "end_time" else schedule.end_time,
        started_by=schedule.started_by,
        outlived=schedule.outlived,
    )
    with pytest.raises(InputError, match=says):
        score(workload, wrong)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (lambda: ScoreSettings(tau_s=0), "tau_s is 0"),
        (lambda: ScoreSettings(starved_wait_s=-1), "starved_wait_s is -1"),
        (lambda: ScoreSettings(starved_wait_over_requested=-0.5), "over_requested is -0"),
        (lambda: ScoreSettings(top_share=0.0), "top_share is 0"),
    ],
)
def test_settings_out_of_range_are_refused(
    settings: Callable[[], ScoreSettings], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        settings()


def test_warm_up_and_cool_down_bound_what_is_scored() -> None:
    workload, _ = by_hand()
    assert scored_span(workload) == ScoredSpan(None, None)
    assert scored_span(workload, warm_up_s=3, cool_down_s=4) == ScoredSpan(3, 27)
    # Two of five jobs lead to the third's second; the two submitted at 0 stay together.
    assert scored_span(workload, warm_up_share=0.4) == ScoredSpan(2, None)
    assert scored_span(workload, warm_up_share=0.2) == ScoredSpan(0, None)
    assert scored_span(workload, cool_down_share=0.2) == ScoredSpan(None, 30)
    with pytest.raises(InputError, match="none of 5 jobs is left"):
        scored_span(workload, warm_up_s=100).select(workload)
    with pytest.raises(InputError, match="not both"):
        scored_span(workload, warm_up_s=1, warm_up_share=0.1)
    with pytest.raises(InputError, match=r"warm-up is 1\.5"):
        scored_span(workload, warm_up_share=1.5)
    with pytest.raises(InputError, match="cool-down is -1 s"):
        scored_span(workload, cool_down_s=-1)


def test_percentiles_are_nearest_ranks() -> None:
    found = Distribution.of(np.arange(1, 1001), top_share=0.001)
    assert (found.p50, found.p90, found.p99, found.p99_9, found.max) == (500, 900, 990, 999, 1000)
    assert found.mean == 500.5
    assert found.mean_below_p99 == 495.5
    assert found.top_share == 1000 / 500500


@st.composite
def runs(draw: st.DrawFn) -> tuple[Workload, Times]:
    """Jobs that run at random times on a machine that is just large enough for them."""
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(0, 30),  # submission
                st.integers(0, 20) | st.just(0),  # wait
                st.integers(0, 20),  # actual runtime
                st.integers(1, 20),  # requested time
                st.integers(1, 5),  # processors
                st.integers(1, 3),  # started by
                st.booleans(),  # outlived
            ),
            min_size=1,
            max_size=12,
        )
    )
    jobs.sort(key=lambda job: job[0])
    submit, wait, actual, requested, processors, started_by, outlived = (
        np.array(values, dtype=np.int64) for values in zip(*jobs, strict=True)
    )
    start = submit + wait
    end = start + np.minimum(actual, requested)
    most = max(
        sum(int(p) for s, e, p in zip(start, end, processors, strict=True) if s <= now < e)
        for now in range(80)
    )
    workload = Workload(
        name="random",
        machine_processors=max(1, most + draw(st.integers(0, 3))),
        unix_start_time=None,
        job_id=np.arange(len(jobs), dtype=np.int64),
        submit_time=submit,
        processors=processors,
        actual_runtime=actual,
        requested_time=requested,
    )
    return workload, Times(start, end, started_by.astype(np.int8), outlived.astype(np.bool_))


@given(runs())
def test_machine_use_agrees_with_looking_at_every_second(run: tuple[Workload, Times]) -> None:
    workload, schedule = run
    since, until = int(workload.submit_time[0]), int(schedule.end_time.max())
    used = lost = avoidable = 0
    jobs = range(len(workload))
    for now in range(since, until):
        running = [j for j in jobs if schedule.start_time[j] <= now < schedule.end_time[j]]
        waiting = [j for j in jobs if workload.submit_time[j] <= now < schedule.start_time[j]]
        busy = sum(int(workload.processors[j]) for j in running)
        idle = workload.machine_processors - busy
        used += busy
        lost += idle if waiting else 0
        avoidable += idle if any(workload.processors[j] <= idle for j in waiting) else 0
    machine = MachineUse.of(workload, schedule.start_time, schedule.end_time)
    found = (
        machine.utilization(since, until),
        machine.loss_of_capacity(since, until),
        machine.avoidable_loss_of_capacity(since, until),
    )
    capacity = workload.machine_processors * (until - since)
    if capacity == 0:
        assert found == (None, None, None)
    else:
        assert found == (used / capacity, lost / capacity, avoidable / capacity)


@given(runs())
def test_scores_agree_with_plain_loops(run: tuple[Workload, Times]) -> None:
    workload, schedule = run
    scores = score(workload, schedule)
    per_job: dict[str, list[Fraction]] = {name: [] for name in JOB_METRICS}
    for j in range(len(workload)):
        wait = int(schedule.start_time[j] - workload.submit_time[j])
        runtime = int(schedule.end_time[j] - schedule.start_time[j])
        per_job["wait"].append(Fraction(wait))
        per_job["unitless_wait"].append(Fraction(wait, int(workload.requested_time[j])))
        seconds = runtime or 1
        per_job["slowdown"].append(Fraction(wait + seconds, seconds))
        per_job["bounded_slowdown"].append(
            max(Fraction(1), Fraction(wait + runtime, max(10, runtime)))
        )
        per_job["turnaround_time"].append(Fraction(wait + runtime))
    count = len(workload)
    for name, values in per_job.items():
        ordered = sorted(values)
        found: Distribution = getattr(scores, name)
        assert found.mean == pytest.approx(float(sum(values) / count))
        kept = ordered[: math.ceil(Fraction(99, 100) * count)]
        assert found.mean_below_p99 == pytest.approx(float(sum(kept) / len(kept)))
        for share, percentile in ((50, found.p50), (90, found.p90), (99, found.p99)):
            expected = ordered[math.ceil(Fraction(share, 100) * count) - 1]
            assert percentile == pytest.approx(float(expected))
    weights = [int(p) for p in workload.processors]
    assert scores.turnaround_time_weighted_mean_s == pytest.approx(
        float(
            sum(w * v for w, v in zip(weights, per_job["turnaround_time"], strict=True))
            / sum(weights)
        )
    )


@given(runs())
def test_the_scores_of_any_run_fit_together(run: tuple[Workload, Times]) -> None:
    workload, schedule = run
    scores = score(workload, schedule)
    assert scores.killed_early_jobs == 0
    assert (
        scores.started_from_head_jobs + scores.started_out_of_order_jobs + scores.backfilled_jobs
        == scores.jobs
    )
    for name in JOB_METRICS:
        d: Distribution = getattr(scores, name)
        assert d.p50 <= d.p90 <= d.p99 <= d.p99_9 <= d.max
        assert d.mean_below_p99 <= d.mean <= d.max
    assert scores.bounded_slowdown.mean >= 1
    assert scores.slowdown.mean >= 1
    if scores.utilization_makespan is not None:
        assert scores.loss_of_capacity is not None
        assert scores.avoidable_loss_of_capacity is not None
        assert 0 <= scores.avoidable_loss_of_capacity <= scores.loss_of_capacity
        assert scores.utilization_makespan + scores.loss_of_capacity <= 1


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_jobs_does_not_matter(run: tuple[Workload, Times], random: Random) -> None:
    workload, schedule = run
    order = list(range(len(workload)))
    random.shuffle(order)
    shuffled = np.array(order)
    other = Times(
        schedule.start_time[shuffled],
        schedule.end_time[shuffled],
        schedule.started_by[shuffled],
        schedule.outlived[shuffled],
    )
    assert score(workload.take(shuffled), other) == score(workload, schedule)


def test_job_metrics_are_those_listed() -> None:
    workload, schedule = by_hand()
    assert list(job_metrics(workload, schedule)) == list(JOB_METRICS)
