"""Workloads at the edges under every policy, and the laws of conservation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule, ScheduleError, check
from foretime_sim.policies.families import (
    FAMILIES,
    Compression,
    Conservative,
    has_setting,
    with_settings,
)
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.workloads.workload import Workload

POLICIES = [
    *(Policy(backfill=backfill) for backfill in FAMILIES.values()),
    *(
        Policy(backfill=with_settings(backfill, guard=Guard(0)))
        for backfill in FAMILIES.values()
        if has_setting(backfill, "guard")
    ),
    *(
        Policy(backfill=with_settings(backfill, depth=2))
        for backfill in FAMILIES.values()
        if has_setting(backfill, "depth")
    ),
    Policy(backfill=Conservative(Compression.SUBMISSION_ORDER)),
    Policy(backfill=Conservative(Compression.ONE_BY_ONE)),
]
EVERY_POLICY = [
    dataclasses.replace(family, order=order, correction=correction, event_order=event_order)
    for family in POLICIES
    for order in Order
    for correction in Correction
    for event_order in EventOrder
]


def workload(rows: list[tuple[int, int, int, int]], machine: int) -> Workload:
    """Rows are submit time, processors, actual runtime, requested time."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Workload("edge", machine, None, np.arange(len(rows)), *columns)


def starts(rows: list[tuple[int, int, int, int]], machine: int, policy: Policy) -> list[int]:
    jobs = workload(rows, machine)
    schedule = simulate(jobs, policy, jobs.requested_time, check=True)
    return [int(start) for start in schedule.start_time]


def test_without_jobs_nothing_starts() -> None:
    for policy in EVERY_POLICY:
        assert starts([], 4, policy) == []


def test_equal_jobs_at_one_second_run_in_log_order() -> None:
    for policy in EVERY_POLICY:
        assert starts([(7, 2, 10, 10)] * 6, 4, policy) == [7, 7, 17, 17, 27, 27]


def test_one_processor_is_a_queue() -> None:
    jobs = [(time, 1, 5, 5) for time in range(4)]
    for policy in EVERY_POLICY:
        assert starts(jobs, 1, policy) == [0, 5, 10, 15]


def test_jobs_as_wide_as_the_machine_run_alone() -> None:
    for policy in EVERY_POLICY:
        assert starts([(0, 4, 5, 9), (0, 4, 5, 9), (99, 4, 5, 9)], 4, policy) == [0, 5, 99]


def test_runtimes_of_zero_leave_the_machine_at_once() -> None:
    """Each takes its processors for that moment, so that the next starts in a further pass."""
    for policy in EVERY_POLICY:
        assert starts([(3, 4, 0, 9)] * 50, 4, policy) == [3] * 50


@pytest.mark.parametrize("family", POLICIES)
@pytest.mark.parametrize("correction", Correction)
@pytest.mark.parametrize("event_order", EventOrder)
def test_scheduled_times_of_a_second(
    family: Policy, correction: Correction, event_order: EventOrder
) -> None:
    """Nobody is killed by them, and plans are corrected until the job ends or t_req is reached."""
    jobs = workload([(0, 1, 100, 200), (0, 2, 10, 10)], 2)
    policy = dataclasses.replace(family, correction=correction, event_order=event_order)
    schedule = simulate(jobs, policy, np.array([1, 1]), check=True)
    assert schedule.start_time.tolist() == [0, 100]
    assert schedule.end_time.tolist() == [100, 110]
    assert not schedule.killed.any()
    first = {
        Correction.REQUESTED: 1,  # 200
        Correction.INCREMENTAL: 2,  # 61, 301 held to 200
        Correction.DOUBLING: 7,  # 2, 4, 8, 16, 32, 64, 128
        Correction.SLURM: 1,  # 100, where it ends
        Correction.PBS: 99,  # 2, 3, ..., 100
    }
    assert schedule.corrections[0] == first[correction]


def test_killed_at_the_limit_that_the_scheduler_holds() -> None:
    jobs = workload([(0, 1, 100, 200)], 1)
    schedule = simulate(jobs, time_limit=np.array([60]), check=True)
    assert schedule.end_time.tolist() == [60]
    assert schedule.killed.tolist() == [True]


def test_the_longest_times_do_not_overflow() -> None:
    jobs = workload([(0, 1, LONGEST_S, LONGEST_S)] * 3, 1)
    assert simulate(jobs, check=True).end_time[-1] == 3 * LONGEST_S


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 0, 1, 1), "processors is 0"),
        ((0, 1, -1, 1), "actual_runtime is -1"),
        ((0, 1, 1, 0), "requested_time is 0"),
        ((0, 1, 1, LONGEST_S + 1), "requested_time is"),
        ((-5, 1, 1, 1), "comes after a job submitted later"),
    ],
)
def test_impossible_values_are_named(row: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(workload([(0, 1, 1, 1), row], 4))


def test_columns_of_another_length_or_type_are_refused() -> None:
    jobs = workload([(0, 1, 1, 1)], 4)
    with pytest.raises(InputError, match="scheduled_time has shape"):
        simulate(jobs, scheduled_time=np.array([1, 2]))
    with pytest.raises(InputError, match=r"time_limit has shape .* type float64"):
        simulate(jobs, time_limit=np.array([1.5]))


# The laws of conservation can fail: each of these schedules breaks one.


@pytest.fixture
def lawful() -> tuple[Workload, Schedule]:
    jobs = workload([(0, 3, 10, 20), (2, 3, 10, 20), (4, 1, 30, 20)], 4)
    return jobs, simulate(jobs, check=True)


def test_a_lawful_schedule_passes(lawful: tuple[Workload, Schedule]) -> None:
    jobs, schedule = lawful
    check(jobs, schedule, jobs.requested_time)


@pytest.mark.parametrize(
    ("column", "job", "change", "law"),
    [
        ("start_time", 2, -5, "started before its submission"),
        ("end_time", 0, -1, "did not run for its actual runtime"),
        ("end_time", 2, 1, "was killed, but not at its time limit"),
        ("killed", 0, 1, "was killed, but not at its time limit"),
        ("killed", 2, -1, "was killed or spared against its time limit"),
        ("started_by", 1, -1, "never started"),
    ],
)
def test_a_broken_schedule_is_named(
    lawful: tuple[Workload, Schedule], column: str, job: int, change: int, law: str
) -> None:
    jobs, schedule = lawful
    values = getattr(schedule, column).copy()
    values[job] = values[job] + change
    broken = dataclasses.replace(schedule, **{column: values})
    with pytest.raises(ScheduleError, match=f"job {job} {law}"):
        check(jobs, broken, jobs.requested_time)


def test_too_many_processors_in_use_are_named(lawful: tuple[Workload, Schedule]) -> None:
    jobs, schedule = lawful
    early = np.array([0, -1, 0])
    broken = dataclasses.replace(
        schedule, start_time=schedule.start_time + early, end_time=schedule.end_time + early
    )
    with pytest.raises(ScheduleError, match="processors in use at 9 s, the machine has 4"):
        check(jobs, broken, jobs.requested_time)
