"""Streit 2002's metrics: worked out by hand, and by the paper's formulas job by job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.workload import Workload
from foretime_studies.streit2002.measures import RUNTIME_CLASSES, Measures, runtime_class
from hypothesis import given
from hypothesis import strategies as st


def column(*values: int) -> Int64Array:
    return np.array(values, dtype=np.int64)


def workload_of(rows: list[tuple[int, int, int, int]], processors: int) -> Workload:
    """Jobs as (submit, processors, actual, estimated), in order of submission."""
    submit, width, actual, estimated = (column(*some) for some in zip(*rows, strict=True))
    return Workload(
        name="small",
        machine_processors=processors,
        unix_start_time=None,
        job_id=np.arange(len(rows)),
        submit_time=submit,
        processors=width,
        actual_runtime=actual,
        requested_time=estimated,
    )


def test_by_hand() -> None:
    """Four processors, FCFS planned.

    Job 1 (3 wide) runs 0-100; job 2 (2 wide, killed at 400) waits until 100 and runs to 500; job 3
    (1 wide, 30 s) starts when it comes at 10, job 4 (4 wide, 800 s) waits from 20 to 500.
    """
    workload = workload_of(
        [(0, 3, 100, 100), (0, 2, 900, 400), (10, 1, 30, 90), (20, 4, 800, 800)], 4
    )
    schedule = simulate(workload, Policy(backfill=Backfill.PLANNING))
    assert schedule.start_time.tolist() == [0, 100, 10, 500]
    found = Measures.of(workload, schedule)
    assert found.actual_runtime_s == (100 + 400 + 30 + 800) / 4
    assert found.wait_s == (100 + 480) / 4
    assert found.art_s == (100 + 500 + 30 + 1_280) / 4
    assert found.artww_s == (3 * 100 + 2 * 500 + 30 + 4 * 1_280) / 10
    # Response over runtime, neither below the bound: 1, 500/400, 60/60, 1280/800.
    assert found.sldww_60 == pytest.approx((3 + 2 * 1.25 + 1 + 4 * 1.6) / 10)
    # The same with 300: 300/300, 500/400, 300/300, 1280/800.
    assert found.sldww_300 == pytest.approx((3 + 2 * 1.25 + 1 + 4 * 1.6) / 10)
    assert found.utilization == pytest.approx((300 + 800 + 30 + 3_200) / (4 * 1_300))
    # Job 2 waits from 0 to 100, job 4 from 20 to 500: one idle but for job 3's 30 s, then two.
    assert found.loss_of_capacity == pytest.approx((100 - 30 + 400 * 2) / (4 * 1_300))
    assert list(found.jobs_of_class) == [2, 1, 1, 0, 0]
    assert list(found.slowdown_of_class) == [1, 1.25, 1.6, None, None]
    assert found.longest_wait_s == 480


def test_the_bound_matters_to_short_jobs_that_wait() -> None:
    """One processor: a job of 10 s waits for one of 200 s, so 210 / 60 and 300 / 300."""
    workload = workload_of([(0, 1, 200, 200), (0, 1, 10, 10)], 1)
    found = Measures.of(workload, simulate(workload, Policy(backfill=Backfill.PLANNING)))
    assert found.sldww_60 == (1 + 210 / 60) / 2
    assert found.sldww_300 == 1
    assert (found.utilization, found.loss_of_capacity) == (1, 0)


def test_when_somebody_always_waits_what_is_not_used_is_lost() -> None:
    """Section 5.2: "when the system is in a saturated state ... LOC = 1 - utilization".

    Three wide jobs on five processors one after another; the last is short, so that next to nothing
    of the time passes without anybody waiting.
    """
    workload = workload_of([(0, 3, 1_000, 1_000)] * 20 + [(0, 5, 1, 1)], 5)
    found = Measures.of(workload, simulate(workload, Policy(backfill=Backfill.PLANNING)))
    assert found.utilization == pytest.approx(0.6, abs=1e-4)
    assert found.loss_of_capacity == pytest.approx(1 - found.utilization, abs=1e-12)


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(1, 8), st.integers(0, 700), st.integers(1, 700)),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([Order.FCFS, Order.SJF, Order.LJF]),
)
def test_as_the_paper_writes_it(rows: list[tuple[int, int, int, int]], order: Order) -> None:
    """Section 5.1's sums, job by job; the loss of capacity by looking at every second."""
    workload = workload_of(sorted(rows, key=lambda row: row[0]), 8)
    schedule = simulate(workload, Policy(order=order, backfill=Backfill.PLANNING))
    jobs = list(
        zip(
            workload.submit_time.tolist(),
            schedule.start_time.tolist(),
            schedule.end_time.tolist(),
            workload.processors.tolist(),
            strict=True,
        )
    )
    first, last = min(job[0] for job in jobs), max(job[2] for job in jobs)
    widths = sum(width for *_, width in jobs)

    def slowdown(bound: int) -> float:
        weighted = sum(
            width * max(end - submit, bound) / max(end - start, bound)
            for submit, start, end, width in jobs
        )
        return float(weighted / widths)

    found = Measures.of(workload, schedule)
    assert found.artww_s == pytest.approx(
        sum(width * (end - submit) for submit, _, end, width in jobs) / widths
    )
    assert found.art_s == pytest.approx(sum(end - submit for submit, _, end, _ in jobs) / len(jobs))
    assert found.sldww_60 == pytest.approx(slowdown(60))
    assert found.sldww_300 == pytest.approx(slowdown(300))
    span = 8 * max(last - first, 1)
    used = sum(width * (end - start) for _, start, end, width in jobs)
    assert found.utilization == pytest.approx(used / span)
    lost = 0
    for second in range(first, last):
        idle = 8 - sum(width for _, start, end, width in jobs if start <= second < end)
        lost += idle * any(submit <= second < start for submit, start, *_ in jobs)
    assert found.loss_of_capacity == pytest.approx(lost / span)


def test_classes_end_at_their_bounds() -> None:
    runtime = column(0, 300, 301, 600, 601, 3_600, 3_601, 43_200, 43_201)
    names = [RUNTIME_CLASSES[code] for code in runtime_class(runtime)]
    assert names == [
        *["<= 5 min"] * 2,
        *["<= 10 min"] * 2,
        *["<= 1 h"] * 2,
        *["<= 12 h"] * 2,
        "> 12 h",
    ]


def test_another_workloads_schedule_is_refused() -> None:
    workload = workload_of([(0, 1, 5, 5), (0, 1, 5, 5)], 1)
    schedule = simulate(workload)
    with pytest.raises(InputError, match="2 start times for 1 jobs"):
        Measures.of(workload.head(1), schedule)
    with pytest.raises(InputError, match="not a schedule of this machine"):
        Measures.of(replace(workload, processors=column(1, 2)), schedule)
