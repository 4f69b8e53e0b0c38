"""Policies in Python: those that do what a built-in one does give its schedule, job for job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import (
    Backfill,
    Candidates,
    Compression,
    Conservative,
    Easy,
    with_settings,
)
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.policies.policy_views import FinishedView, MachineView, QueueView, StartedView
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.job_rows import JOB_VALUES, workload_of_rows

NAMES = ("ann", "bob", "cid")


def fcfs(queue: QueueView, now: int) -> Any:
    return [0] * len(queue)


def sjf(queue: QueueView, now: int) -> Any:
    return -queue.scheduled_time


def xf(queue: QueueView, now: int) -> Any:
    return (now - queue.submit_time + queue.scheduled_time) / queue.scheduled_time


def wfp(queue: QueueView, now: int) -> Any:
    ratio = queue.wait / queue.scheduled_time
    return ratio * ratio * ratio * queue.processors


def priority(queue: QueueView, now: int) -> Any:
    return queue.priority


def none(queue: QueueView, machine: MachineView, now: int) -> Any:
    return ()


def easy(queue: QueueView, machine: MachineView, now: int, in_order: Any = None) -> Any:
    """EASY as one would write it first: moment by moment, job by job."""
    running = machine.running
    jobs = list(zip(running.expected_end.tolist(), running.processors.tolist(), strict=True))
    free = machine.free_processors

    def free_at(time: int) -> int:
        return free + int(sum(processors for end, processors in jobs if end <= time))

    needed = int(queue.processors[0])
    shadow_time = min(end for end, _ in jobs if free_at(end) >= needed)
    extra = free_at(shadow_time) - needed
    start = []
    for place in range(1, len(queue)) if in_order is None else in_order:
        processors = queue.processors[place]
        in_time = now + queue.backfill_time[place] <= shadow_time
        if processors <= free and (in_time or processors <= extra):
            start.append(place)
            free -= processors
            extra -= 0 if in_time else processors
    return start


def easy_sjbf(queue: QueueView, machine: MachineView, now: int) -> Any:
    shortest = np.lexsort((queue.job, queue.backfill_time))
    return easy(queue, machine, now, shortest[shortest > 0])


ORDERS = {
    Order.FCFS: PythonOrder(fcfs),
    Order.SJF: PythonOrder(sjf),
    Order.XF: PythonOrder(xf),
    Order.WFP: PythonOrder(wfp),
    Order.PRIORITY: PythonOrder(priority),
}
PLANNED = [
    Easy(depth=2),
    Easy(Candidates.SJBF, depth=3),
    Conservative(Compression.RESERVATION_ORDER),
    Conservative(Compression.ONE_BY_ONE),
    Backfill.PLANNING,
    Backfill.FIRST_FIT,
]
CLAIMS = (AdvanceReservation(30, 40, 5), AdvanceReservation(90, 300, 8))
BACKFILLS = {
    Backfill.NONE: PythonBackfill(none),
    Backfill.EASY: PythonBackfill(easy),
    Backfill.EASY_SJBF: PythonBackfill(easy_sjbf),
}

policies = st.builds(
    Policy,
    order=st.sampled_from(list(ORDERS)),
    backfill=st.builds(
        lambda family, guard_s: family.guarded(parse_guard(guard_s)),
        st.sampled_from(list(BACKFILLS)),
        st.none() | st.integers(0, 200),
    ),
    correction=st.sampled_from(Correction),
    roles=st.builds(Roles, st.booleans(), st.booleans(), st.booleans()),
    event_order=st.sampled_from(EventOrder),
)
job_rows = st.tuples(*JOB_VALUES, st.integers(-1, 2))  # the last is the user
Rows = list[tuple[int, ...]]


def workload_of(rows: Sequence[tuple[int, ...]]) -> tuple[Workload, np.ndarray]:
    jobs, columns = workload_of_rows(rows, unix_start_time=86_400)
    return replace(jobs, users=Labels(columns[7].astype(np.int32), NAMES)), columns


def run_stepwise(jobs: Workload, rows: Rows, policy: Policy) -> Schedule:
    engine = Engine(8, policy, int(jobs.submit_time[0]), epoch_of_zero=jobs.epoch_of_zero)
    for index, (submit, row) in enumerate(zip(jobs.submit_time.tolist(), rows, strict=True)):
        engine.advance(submit)
        assert jobs.users is not None
        engine.submit(submit, *row[1:7], user=jobs.users.get(index))
    engine.finish()
    return engine.schedule()


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.counters == other.counters


def in_python(policy: Policy) -> Iterator[Policy]:
    """The same policy with its order, its backfilling or both in Python."""
    assert isinstance(policy.order, Order)
    order = ORDERS[policy.order]
    backfill = BACKFILLS[policy.backfill.guarded(None)].guarded(policy.guard)
    yield replace(policy, order=order)
    yield replace(policy, backfill=backfill)
    yield replace(policy, order=order, backfill=backfill)


@given(rows=st.lists(job_rows, min_size=1, max_size=30), policy=policies)
@settings(max_examples=150)
def test_python_gives_the_schedule_of_the_built_in(rows: Rows, policy: Policy) -> None:
    jobs, columns = workload_of(rows)
    built_in = simulate(jobs, policy, *columns[4:7])
    for own in in_python(policy):
        assert_same(built_in, simulate(jobs, own, *columns[4:7], check=True))
        assert_same(built_in, reference.simulate(jobs, own, *columns[4:7]))
        assert_same(built_in, run_stepwise(jobs, rows, own))


@given(
    rows=st.lists(job_rows, min_size=1, max_size=25),
    order=st.sampled_from([Order.SJF, Order.WFP, Order.XF]),
    family=st.sampled_from([*PLANNED, Backfill.EASY, Backfill.NONE]),
    event_order=st.sampled_from(EventOrder),
    reservations=st.sampled_from([(), (), CLAIMS]),
)
@settings(max_examples=100)
def test_a_built_in_order_in_python_is_itself_in_every_family(
    rows: Rows,
    order: Order,
    family: Backfilling,
    event_order: EventOrder,
    reservations: tuple[AdvanceReservation, ...],
) -> None:
    jobs, columns = workload_of(rows)
    policy = Policy(order, family, Correction.DOUBLING, event_order=event_order)
    own = replace(policy, order=ORDERS[order])
    built_in = simulate(jobs, policy, *columns[4:7], reservations=reservations)
    found = simulate(jobs, own, *columns[4:7], reservations=reservations, check=True)
    assert_same(built_in, found)
    plain = reference.simulate(jobs, own, *columns[4:7], reservations=reservations)
    assert_same(built_in, plain)
    if built_in.first_planned_start is not None:
        assert found.first_planned_start is not None
        np.testing.assert_array_equal(found.first_planned_start, built_in.first_planned_start)


class Whimsical:
    """Scores without sense that depend on all that a policy may know, and what it was told."""

    told: list[list[object]] = []  # of each run  # noqa: RUF012  # shared on purpose

    def __init__(self) -> None:
        self.log: list[object] = []
        self.told.append(self.log)

    def started(self, jobs: StartedView, now: int) -> None:
        self.log.append((now, jobs.job.tolist(), jobs.start_time.tolist()))

    def finished(self, jobs: FinishedView, now: int) -> None:
        users = [jobs.user_names[user] if user >= 0 else None for user in jobs.user]
        times = (jobs.start_time.tolist(), jobs.end_time.tolist())
        self.log.append((now, jobs.job.tolist(), times, users))

    def senseless(self, queue: QueueView, now: int) -> Any:
        named = np.array([-1, *map(hash_of, queue.user_names)])[queue.user + 1]
        return (
            queue.job * 37
            + queue.submit_time * 5
            + queue.wait * 11
            + queue.requested_time * 3
            + queue.backfill_time * 2
            + queue.scheduled_time
            + queue.priority * 17
            + named * 23
            + len(self.log) * 41
            + now
        ) % 101


def hash_of(name: str) -> int:
    return NAMES.index(name)


class WhimsicalOrder(Whimsical):
    def __call__(self, queue: QueueView, now: int) -> Any:
        scores = self.senseless(queue, now)
        self.log.append((now, queue.job.tolist(), scores.tolist()))
        return scores


class WhimsicalBackfill(Whimsical):
    def __call__(self, queue: QueueView, machine: MachineView, now: int) -> Any:
        running = machine.running
        ends = running.expected_end.tolist()
        assert min(ends) >= now
        assert running.processors.sum() + machine.free_processors == machine.processors
        self.log.append((now, queue.job.tolist(), running.job.tolist(), ends))
        in_order = np.argsort(self.senseless(queue, now), kind="stable")
        taken = np.cumsum(queue.processors[in_order])
        return in_order[taken <= machine.free_processors]


planned_whims = st.builds(
    lambda family, event_order: Policy(
        PythonOrder(WhimsicalOrder), family, event_order=event_order
    ),
    st.sampled_from(PLANNED),
    st.sampled_from(EventOrder),
)
whims = st.builds(
    Policy,
    order=st.sampled_from([Order.SJF, Order.WFP, PythonOrder(WhimsicalOrder)]),
    backfill=st.builds(
        lambda family, guard_s: family.guarded(parse_guard(guard_s)),
        st.sampled_from([Backfill.EASY, PythonBackfill(WhimsicalBackfill)]),
        st.none() | st.integers(0, 200),
    ),
    correction=st.sampled_from(Correction),
    event_order=st.sampled_from(EventOrder),
)


@given(rows=st.lists(job_rows, min_size=1, max_size=30), policy=whims | planned_whims)
@settings(max_examples=150)
def test_any_policy_sees_the_same_in_engine_and_reference(rows: Rows, policy: Policy) -> None:
    jobs, columns = workload_of(rows)
    runs: tuple[Callable[[], Schedule], ...] = (
        lambda: simulate(jobs, policy, *columns[4:7], check=True),
        lambda: reference.simulate(jobs, policy, *columns[4:7]),
        lambda: run_stepwise(jobs, rows, policy),
    )
    seen = []
    for run in runs:
        Whimsical.told.clear()
        seen.append((run(), list(Whimsical.told)))
    for schedule, told in seen[1:]:
        assert_same(seen[0][0], schedule)
        assert told == seen[0][1]


@pytest.mark.parametrize(
    ("log", "order", "backfill"),
    [
        ("KTH-SP2-1996-2.1-cln", Order.WFP, Backfill.EASY),
        ("SDSC-SP2-1998-4.2-cln", Order.XF, Backfill.EASY_SJBF),
        ("SDSC-BLUE-2000-4.2-cln", Order.SJF, Backfill.EASY),
    ],
)
def test_a_built_in_policy_in_python_is_itself_on_real_logs(
    trace: Callable[[str], Path], log: str, order: Order, backfill: Backfilling
) -> None:
    whole = workload_of_log(read_log(trace(f"{log}.swf.gz")))[0]
    jobs = whole.take(np.arange(10_000, 11_500))
    planned = (jobs.actual_runtime + jobs.requested_time) // 3
    for event_order, guard_s in product(EventOrder, (None, 3_600)):
        policy = Policy(
            order,
            with_settings(backfill, guard=parse_guard(guard_s)),
            Correction.SLURM,
            event_order=event_order,
        )
        built_in = simulate(jobs, policy, planned)
        for own in in_python(policy):
            assert_same(built_in, simulate(jobs, own, planned, check=True))


def test_ties_go_by_submission_then_by_place_in_the_log() -> None:
    """By submission, then by place in the log: as under first come, first served."""
    rows = [(0, 8, 10, 10, 10, 10, 0, 0)] * 5 + [(1, 8, 10, 10, 10, 10, 0, 0)]
    jobs, _ = workload_of(rows)
    schedule = simulate(jobs, Policy(PythonOrder(fcfs)))
    assert schedule.start_time.tolist() == [0, 10, 20, 30, 40, 50]


def test_places_start_in_the_order_given() -> None:
    """The two jobs behind the head end together; the one that started first is told first."""
    engine = Engine(8, Policy(backfill=PythonBackfill(lambda queue, machine, now: [2, 1])))
    engine.submit(0, 6, 100, 100)
    engine.submit(0, 8, 100, 100)
    engine.submit(0, 1, 10, 10)
    engine.submit(0, 1, 10, 10)
    assert engine.settle().started.tolist() == [0, 3, 2]


def test_the_date_is_known() -> None:
    seen = []

    def by_night(queue: QueueView, now: int) -> Any:
        seen.append((now, queue.submit_time.tolist()))
        return queue.processors if now // 3_600 % 24 >= 18 else -queue.processors

    jobs, _ = workload_of([(60, 1, 1, 1, 1, 1, 0, 0)])
    simulate(jobs, Policy(PythonOrder(by_night)))
    undated = replace(jobs, unix_start_time=None)
    simulate(undated, Policy(PythonOrder(by_night)))
    assert seen == [(86_460, [86_460]), (1_000_000_060, [1_000_000_060])]


def test_a_policy_sees_the_users_of_running_and_pending_jobs() -> None:
    seen = []

    class Watching:
        def started(self, jobs: StartedView, now: int) -> None:
            seen.append([jobs.user_names[user] for user in jobs.user])

        def __call__(self, queue: QueueView, now: int) -> Any:
            seen.append([queue.user_names[user] for user in queue.user])
            return -queue.job

    engine = Engine(4, Policy(PythonOrder(Watching)), now=100)
    engine.add_running(50, 2, 60, 60, user="ann")
    engine.add_pending(20, 2, 60, 60, user="bob")
    engine.add_pending(10, 2, 60, 60, user="ann")
    assert engine.settle().started.tolist() == [1]
    assert seen == [["ann"], ["ann", "bob"]]
    assert engine.queue().tolist() == [2]
    engine.finish()
    assert engine.job(2).start_time == 110


def test_nobody_is_asked_of_an_empty_queue() -> None:
    engine = Engine(4, Policy(PythonOrder(lambda queue, now: [queue.wait.max()] * len(queue))))
    assert engine.queue().tolist() == []
    engine.submit(0, 4, 10, 10)
    engine.finish()
    assert engine.queue().tolist() == []
