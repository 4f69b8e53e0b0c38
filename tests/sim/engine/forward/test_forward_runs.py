"""Forward runs give, sample by sample, what the stepwise engine does."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import SampledArrivals, forward_runs, start_times_of, usable_cores
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.families import FAMILIES, Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.role_times import JobTimesUpdate, RoleTimes
from hypothesis import given
from hypothesis import strategies as st

MACHINE = 8
NOW = 1_000


def array(values: Sequence[int] | Sequence[Sequence[int]]) -> Int64Array:
    return np.array(values, dtype=np.int64)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw snapshots with overdue jobs, jobs still to come, and limits and times of all kinds."""
    ages, widths = [], []
    left = MACHINE
    while left and draw(st.booleans()):
        widths.append(draw(st.integers(1, left)))
        left -= widths[-1]
        ages.append(draw(st.integers(0, 150)))
    pending = draw(st.integers(0, 12))

    def column(jobs: int, least: int, most: int) -> Int64Array:
        return array(draw(st.lists(st.integers(least, most), min_size=jobs, max_size=jobs)))

    def times(jobs: int) -> Int64Array | RoleTimes | None:
        kind = draw(st.sampled_from(["requested", "scheduled", "by role"]))
        if kind == "requested":
            return None
        if kind == "scheduled":
            return column(jobs, 1, 120)
        return RoleTimes(column(jobs, 1, 120), None, column(jobs, 1, 120))

    def perhaps(jobs: int, least: int, most: int) -> Int64Array | None:
        return column(jobs, least, most) if draw(st.booleans()) else None

    running = RunningJobs(
        array([NOW - age for age in ages]),
        array(widths),
        column(len(ages), 1, 120),
        times(len(ages)),
        perhaps(len(ages), 1, 150),
    )
    waiting = PendingJobs(
        column(pending, NOW - 100, NOW + 40),
        column(pending, 1, MACHINE),
        column(pending, 1, 120),
        times(pending),
        perhaps(pending, 1, 150),
        perhaps(pending, -3, 3),
        perhaps(pending, NOW - 100, NOW + 60),
    )
    # None at once claims more than the machine with another.
    claims = st.builds(
        AdvanceReservation, st.integers(NOW - 50, NOW + 90), st.integers(1, 60), st.integers(1, 4)
    )
    reservations = draw(st.lists(claims, max_size=2))
    return Snapshot(NOW, MACHINE, running, waiting, tuple(reservations))


def row_time(times: Int64Array | RoleTimes | None, row: int) -> int | JobTimesUpdate | None:
    def at(column: Int64Array | None) -> int | None:
        return None if column is None else int(column[row])

    if isinstance(times, RoleTimes):
        return JobTimesUpdate(at(times.queue), at(times.backfill), at(times.drain))
    return at(times)


def stepwise(
    snapshot: Snapshot,
    policy: Policy,
    actual_runtime: Int64Array,
    arrivals: SampledArrivals | None = None,
    sample: int = 0,
) -> list[int]:
    """Run one sample in the stepwise engine, job by job."""
    engine = Engine(snapshot.machine_processors, policy, snapshot.now, snapshot.reservations)
    runtimes = iter(actual_runtime.tolist())
    running, pending = snapshot.running, snapshot.pending
    for row in range(len(running)):
        engine.add_running(
            int(running.start_time[row]),
            int(running.processors[row]),
            next(runtimes),
            int(running.requested_time[row]),
            row_time(running.scheduled_time, row),
            None if running.time_limit is None else int(running.time_limit[row]),
        )
    for row in range(len(pending)):
        joins_at = int(pending.submit_time[row])
        if pending.eligible_time is not None:
            joins_at = max(joins_at, int(pending.eligible_time[row]))
        add = engine.add_pending if joins_at <= snapshot.now else engine.submit
        add(
            joins_at,
            int(pending.processors[row]),
            next(runtimes),
            int(pending.requested_time[row]),
            row_time(pending.scheduled_time, row),
            None if pending.time_limit is None else int(pending.time_limit[row]),
            0 if pending.priority is None else int(pending.priority[row]),
        )
    if arrivals is not None:
        for row in np.flatnonzero(arrivals.sample == sample).tolist():
            engine.submit(
                int(arrivals.submit_time[row]),
                int(arrivals.processors[row]),
                int(arrivals.actual_runtime[row]),
                int(arrivals.requested_time[row]),
                row_time(arrivals.scheduled_time, row),
                None,
                0 if arrivals.priority is None else int(arrivals.priority[row]),
            )
    engine.finish()
    return [engine.job(index).start_time or 0 for index in range(len(snapshot))]


@given(snapshot=snapshots(), data=st.data(), seed=st.integers(0, 2**32), samples=st.integers(0, 3))
def test_each_sample_is_what_the_stepwise_engine_does(
    any_policy: st.SearchStrategy[Policy],
    snapshot: Snapshot,
    data: st.DataObject,
    seed: int,
    samples: int,
) -> None:
    policy = data.draw(any_policy)
    if snapshot.reservations:
        policy = replace(policy, scheduling_interval_s=None)
    rng = np.random.default_rng(seed)
    runtimes = rng.integers(0, 160, size=(samples, len(snapshot)))
    arrivals = None
    if samples and rng.random() < 0.5:
        jobs = int(rng.integers(0, 12))
        arrivals = SampledArrivals(
            rng.integers(0, samples, jobs),
            NOW + rng.integers(1, 120, jobs),
            rng.integers(1, MACHINE + 1, jobs),
            rng.integers(1, 120, jobs),
            rng.integers(0, 160, jobs),
            rng.integers(1, 120, jobs),
            priority=rng.integers(-3, 4, jobs),
        )
    starts = forward_runs(snapshot, policy, runtimes, arrivals=arrivals)
    assert starts.shape == (samples, len(snapshot))
    assert starts.dtype == np.int64
    assert bool((starts[:, len(snapshot.running) :] >= snapshot.now).all())
    for sample in range(samples):
        expected = stepwise(snapshot, policy, runtimes[sample], arrivals, sample)
        assert starts[sample].tolist() == expected
    if len(snapshot.pending):
        job = int(rng.integers(len(snapshot.running), len(snapshot)))
        one = start_times_of(job, snapshot, policy, runtimes, arrivals=arrivals)
        assert one.tolist() == starts[:, job].tolist()
        some = rng.permutation(np.arange(len(snapshot.running), len(snapshot)))[: rng.integers(4)]
        several = start_times_of(some, snapshot, policy, runtimes, arrivals=arrivals)
        assert several.tolist() == starts[:, some].tolist()


def crowded(running: int = 30, pending: int = 60, seed: int = 7) -> Snapshot:
    rng = np.random.default_rng(seed)
    widths = 2 ** rng.integers(0, 5, running)
    requested = rng.integers(1, 20, running) * 600
    return Snapshot(
        NOW,
        int(widths.sum()) + 3,
        RunningJobs(NOW - rng.integers(0, requested), widths, requested),
        PendingJobs(
            NOW - rng.integers(0, 9_000, pending),
            2 ** rng.integers(0, 6, pending),
            rng.integers(1, 20, pending) * 600,
        ),
    )


def sampled(snapshot: Snapshot, samples: int, seed: int = 3) -> Int64Array:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 12_000, size=(samples, len(snapshot)))


@pytest.mark.parametrize(
    "backfill", [b for b in FAMILIES.values() if b.refusal(Place.FORWARD) is None]
)
def test_the_number_of_threads_changes_nothing(backfill: Backfilling) -> None:
    snapshot, policy = crowded(), Policy(backfill=backfill)
    runtimes = sampled(snapshot, 40)
    one = forward_runs(snapshot, policy, runtimes, threads=1)
    for threads in (2, 3, 64):
        assert np.array_equal(forward_runs(snapshot, policy, runtimes, threads=threads), one)
    assert len(np.unique(one, axis=0)) > 1
    assert np.array_equal(forward_runs(snapshot, policy, runtimes), one)


def test_a_smaller_set_of_samples_is_a_part() -> None:
    snapshot = crowded()
    runtimes = sampled(snapshot, 10)
    whole = forward_runs(snapshot, Policy(), runtimes)
    assert np.array_equal(forward_runs(snapshot, Policy(), runtimes[3:5]), whole[3:5])


def nothing_running() -> RunningJobs:
    return RunningJobs(array([]), array([]), array([]))


def waiting(*rows: tuple[int, int]) -> PendingJobs:
    """Give jobs of so many processors and seconds, submitted one second after another."""
    submit = [NOW - len(rows) + row for row in range(len(rows))]
    return PendingJobs(
        array(submit), array([row[0] for row in rows]), array([row[1] for row in rows])
    )


def test_where_nothing_waits_running_jobs_keep_their_starts() -> None:
    running = RunningJobs(array([NOW - 5, NOW]), array([3, 5]), array([10, 10]))
    snapshot = Snapshot(NOW, MACHINE, running, waiting())
    starts = forward_runs(snapshot, Policy(), array([[9, 9], [0, 70]]))
    assert starts.tolist() == [[NOW - 5, NOW], [NOW - 5, NOW]]


def test_without_jobs_every_sample_is_empty() -> None:
    snapshot = Snapshot(NOW, MACHINE, nothing_running(), waiting())
    assert forward_runs(snapshot, Policy(), np.zeros((4, 0), dtype=np.int64)).shape == (4, 0)


def test_on_an_idle_machine_jobs_start_as_they_fit() -> None:
    # Eight processors: the first two start, the third (wide as the machine) after both.
    snapshot = Snapshot(NOW, MACHINE, nothing_running(), waiting((4, 50), (4, 50), (8, 50)))
    starts = forward_runs(snapshot, Policy(), array([[10, 20, 5], [50, 60, 5]]))
    assert starts.tolist() == [[NOW, NOW, NOW + 20], [NOW, NOW, NOW + 50]]  # killed at 50


def test_nothing_starts_before_overdue_jobs_end() -> None:
    # Past their requested times, but the limits that the scheduler holds are later: they may end
    # any moment, and nothing starts before they do.
    running = RunningJobs(
        array([NOW - 500, NOW - 300]),
        array([4, 4]),
        array([100, 200]),
        time_limit=array([900, 900]),
    )
    snapshot = Snapshot(NOW, MACHINE, running, waiting((8, 60), (4, 30)))
    starts = forward_runs(snapshot, Policy(), array([[520, 310, 60, 30], [2_000, 450, 60, 30]]))
    # First: 4 free at +10, all at +20, then the wide job and the narrow one after it, which can't
    # go before: the wide one may start any moment.
    assert starts[0, 2:].tolist() == [NOW + 20, NOW + 80]
    assert starts[1, 2:].tolist() == [NOW + 400, NOW + 460]


def test_a_runtime_below_the_age_ends_now() -> None:
    running = RunningJobs(array([NOW - 500]), array([8]), array([900]))
    snapshot = Snapshot(NOW, MACHINE, running, waiting((8, 60)))
    assert forward_runs(snapshot, Policy(), array([[400, 60]])).tolist() == [[NOW - 500, NOW]]


def test_a_job_as_wide_as_the_machine_waits_for_all() -> None:
    running = RunningJobs(array([NOW] * 8), array([1] * 8), array([99] * 8))
    snapshot = Snapshot(NOW, MACHINE, running, waiting((8, 60)))
    starts = start_times_of(-1, snapshot, Policy(), array([[*range(1, 9), 60], [99] * 8 + [60]]))
    assert starts.tolist() == [NOW + 8, NOW + 99]


def test_the_order_of_the_rows_can_be_kept() -> None:
    # The last submitted is first in the scheduler's own order.
    running = RunningJobs(array([NOW]), array([8]), array([10]))
    pending = waiting((8, 20), (8, 20), (8, 20))
    pending = replace(pending, submit_time=pending.submit_time[::-1])
    snapshot = Snapshot(NOW, MACHINE, running, pending)
    by_rows = forward_runs(
        snapshot.in_order_of_rows(), Policy(Order.PRIORITY), array([[10, 20, 20, 20]])
    )
    assert by_rows[0, 1:].tolist() == [NOW + 10, NOW + 30, NOW + 50]
    by_submission = forward_runs(snapshot, Policy(), array([[10, 20, 20, 20]]))
    assert by_submission[0, 1:].tolist() == [NOW + 50, NOW + 30, NOW + 10]
    last = snapshot.in_order_of_rows().with_job(8, 20)
    start = start_times_of(-1, last, Policy(Order.PRIORITY), array([[10, 20, 20, 20, 5]]))
    assert start.tolist() == [NOW + 70]


def test_with_job_is_a_job_like_the_others() -> None:
    snapshot = crowded(pending=5)
    runtimes = sampled(snapshot, 1)
    more = snapshot.with_job(3, 1_200, 600, submit_time=NOW + 50)
    starts = forward_runs(more, Policy(), np.append(runtimes, [[100]], axis=1))
    expected = stepwise(more, Policy(), np.append(runtimes[0], 100))
    assert starts[0].tolist() == expected
    assert more.pending.requested_time[-1] == 1_200
    assert isinstance(more.pending.scheduled_time, np.ndarray)
    assert more.pending.scheduled_time.tolist() == [*snapshot.pending.requested_time, 600]
    with pytest.raises(InputError, match="row 5: processors is 9999"):
        snapshot.with_job(9_999, 1)


def test_what_is_impossible_is_said() -> None:
    snapshot = Snapshot(NOW, MACHINE, nothing_running(), waiting((4, 50), (4, 50)))
    one = array([[10, 20]])
    with pytest.raises(InputError, match=r"shape \(1, 3\) .* of shape \(samples, 2\)"):
        forward_runs(snapshot, Policy(), array([[1, 2, 3]]))
    with pytest.raises(InputError, match="type float64"):
        forward_runs(snapshot, Policy(), one / 2)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(InputError, match="sample 0, job 1 is -1 s: it must be from 0"):
        forward_runs(snapshot, Policy(), array([[10, -1]]))
    in_python = Policy(PythonOrder(lambda queue, _now: -queue.processors))
    with pytest.raises(InputError, match="forward runs ask no policy in Python"):
        forward_runs(snapshot, in_python, one)
    with pytest.raises(InputError, match="threads is 0"):
        forward_runs(snapshot, Policy(), one, threads=0)
    for job in (2, -3):
        with pytest.raises(InputError, match=f"job {job} is not pending: .* from 0 to 1"):
            start_times_of(job, snapshot, Policy(), one)
    with pytest.raises(InputError, match="job 1 is asked about twice"):
        start_times_of([1, -1], snapshot, Policy(), one)
    with pytest.raises(InputError, match="running jobs use 9 processors, the machine has 8"):
        Snapshot(NOW, 8, RunningJobs(array([0, 0]), array([4, 5]), array([9, 9])), waiting())
    with pytest.raises(InputError, match="running jobs: row 0: start_time is 1001"):
        Snapshot(NOW, 8, RunningJobs(array([NOW + 1]), array([4]), array([9])), waiting())
    with pytest.raises(InputError, match="pending jobs: row 1: processors is 9"):
        Snapshot(NOW, 8, nothing_running(), waiting((1, 1), (9, 1)))
    with pytest.raises(InputError, match="estimated_at is 1001, after now"):
        Snapshot(NOW, 8, nothing_running(), waiting(), estimated_at=NOW + 1)
    with pytest.raises(InputError, match="advance reservation 0: 9 processors are claimed"):
        Snapshot(NOW, 8, nothing_running(), waiting(), (AdvanceReservation(NOW, 5, 9),))
    with pytest.raises(InputError, match="machine_processors is 0"):
        Snapshot(NOW, 0, nothing_running(), waiting())
    with pytest.raises(InputError, match="pending jobs: row 0: requested_time is 0"):
        waiting((1, 0))
    with pytest.raises(InputError, match=r"processors has shape \(2,\) .* each of the 1 jobs"):
        PendingJobs(array([0]), array([1, 2]), array([1]))
    missing = np.ma.MaskedArray(array([5, 5]), mask=[False, True])
    with pytest.raises(InputError, match="pending jobs: row 1: requested_time is missing"):
        PendingJobs(array([0, 0]), array([1, 1]), missing)
    late = SampledArrivals(array([0]), array([NOW]), array([1]), array([1]), array([1]))
    with pytest.raises(InputError, match="arrivals: row 0: submit_time is 1000"):
        forward_runs(snapshot, Policy(), one, arrivals=late)
    with pytest.raises(InputError, match="arrivals: row 0: sample is 1, it must be from 0 to 0"):
        forward_runs(snapshot, Policy(), one, arrivals=replace(late, sample=array([1])))


def test_a_run_ends_after_the_time_that_it_may_take() -> None:
    """On nodes, where each end has all that wait planned anew."""
    policy = Policy(backfill=Backfill.CONSERVATIVE)
    engine = Engine(64, policy, machine=Machine.flat(64))
    for number in range(800):
        engine.submit(0, 1 + number % 7, 9, 1_000 + number)
    snapshot = Snapshot.of(engine)
    runtimes = np.full((1, len(snapshot)), 9)
    began = time.thread_time()
    with pytest.raises(TimeoutError, match="longer than it may"):
        start_times_of(-1, snapshot, policy, runtimes, threads=1, most_cpu_s=0.05)
    assert time.thread_time() - began < 2


def test_threads_go_by_the_cores_that_this_process_may_use() -> None:
    assert usable_cores() >= 1


def test_signals_are_heeded_between_samples() -> None:
    """Handlers run during the call, and what one raises ends it, as Ctrl-C does."""
    snapshot = crowded(running=200, pending=1_500)
    runtimes = np.broadcast_to(sampled(snapshot, 1), (4_000, len(snapshot)))
    handled: list[int] = []

    class ReachedError(Exception):
        pass

    def handler(number: int, frame: object) -> None:
        # Left until the call returns, signals would be handled once and no more.
        handled.append(number)
        if len(handled) == 3:
            raise ReachedError

    before = signal.signal(signal.SIGUSR1, handler)
    main, done = threading.get_ident(), threading.Event()

    def send() -> None:
        while not done.wait(0.02):
            signal.pthread_kill(main, signal.SIGUSR1)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        with pytest.raises(ReachedError):
            forward_runs(snapshot, Policy(Order.WFP), runtimes, threads=2)
    finally:
        done.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def test_other_threads_of_python_go_on_meanwhile() -> None:
    snapshot = crowded(running=200, pending=500)
    runtimes = np.broadcast_to(sampled(snapshot, 1), (150, len(snapshot)))
    ticks: list[None] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(None)
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    try:
        before = len(ticks)
        forward_runs(snapshot, Policy(Order.WFP), runtimes, threads=1)
        during = len(ticks) - before
    finally:
        done.set()
        other.join()
    assert during > 3
