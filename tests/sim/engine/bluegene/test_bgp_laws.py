"""What holds of any schedule on a Blue Gene, and what is refused there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.engine.schedule import Schedule, ScheduleError, StartedBy, check
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import FAMILIES, Backfill, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import bgp as reference_bgp
from foretime_sim.workloads.bgp_jobs import with_bgp_machine
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings

from tests.support.workloads.bgp_workloads import machines, policies, workloads

# Two racks of two midplanes; each rack is one wire's, which its midplanes alone do not need.
RACKS = BgpMachine(
    "two racks",
    4,
    ("A0", "A1", "B0", "B1"),
    (
        BgpPartition("all", 16, (0, 1, 2, 3), wires=frozenset({"a", "b"})),
        BgpPartition("A", 8, (0, 1), wires=frozenset({"a"})),
        BgpPartition("B", 8, (2, 3), wires=frozenset({"b"})),
        *(BgpPartition(name, 4, (n,)) for n, name in enumerate(["A0", "A1", "B0", "B1"])),
    ),
)


def workload_of(rows: Sequence[tuple[int, ...]], machine: BgpMachine = RACKS) -> Workload:
    """Submission, nodes, runtime, requested time."""
    submit, nodes, runtime, requested = np.array(rows, dtype=np.int64).T
    return Workload(
        "by hand", machine.nodes, None, np.arange(len(rows)), submit, nodes, runtime, requested,
        machine=machine,
    )  # fmt: skip


def ran_on(schedule: Schedule, machine: BgpMachine) -> list[BgpPartition]:
    assert schedule.bgp_partition is not None
    return [machine.bgp_partitions[index] for index in schedule.bgp_partition]


@given(workload=machines.flatmap(workloads), policy=policies())
@settings(max_examples=200)
def test_no_midplane_and_no_wire_is_in_two_that_run(workload: Workload, policy: Policy) -> None:
    schedule = simulate(workload, policy)
    machine = workload.machine
    assert isinstance(machine, BgpMachine)
    parts = ran_on(schedule, machine)
    begin, end = schedule.start_time.tolist(), schedule.end_time.tolist()
    for job, part in enumerate(parts):
        assert part.nodes == min(size for size in machine.sizes if size >= workload.processors[job])
        for other in range(job):
            if max(begin[job], begin[other]) < min(end[job], end[other]):
                assert not set(part.midplanes) & set(parts[other].midplanes)
                assert not part.wires & parts[other].wires


@given(workload=machines.flatmap(lambda machine: workloads(machine, exact=True)))
@settings(max_examples=200)
def test_nobody_delays_the_job_that_drains_when_estimates_are_exact(workload: Workload) -> None:
    """Under FCFS a head job stays the head, so that its first plan is a promise."""
    engine = Engine(
        workload.machine_processors, now=int(workload.submit_time[0]), machine=workload.machine
    )
    for job, submit in enumerate(workload.submit_time.tolist()):
        runtime = int(workload.actual_runtime[job])
        engine.submit(submit, int(workload.processors[job]), runtime, runtime)
    promised: dict[int, int] = {}
    while (moment := engine.next_event_time) is not None:
        engine.advance(moment)
        engine.settle()
        if len(queue := engine.queue()):
            planned = engine.planned_start(head := int(queue[0]))
            assert planned is not None
            assert planned > engine.now
            assert planned <= promised.setdefault(head, planned)
    schedule = engine.schedule()
    for job, planned in promised.items():
        assert schedule.start_time[job] <= planned


def test_the_three_kinds_of_start() -> None:
    """A head job for all waits for A: beside nothing is left, so others must fit the window."""
    jobs = workload_of([(0, 8, 10, 10), (1, 16, 5, 5), (2, 8, 8, 8), (2, 4, 9, 9), (2, 4, 2, 2)])
    schedule = simulate(jobs, check=True)
    assert schedule.start_time.tolist() == [0, 10, 2, 15, 15]
    kinds = [StartedBy(how).name for how in schedule.started_by]
    assert kinds == ["HEAD", "HEAD", "BACKFILLED", "HEAD", "HEAD"]
    # Head for a rack: A is drained until 10, and the other rack is of no use to it.
    jobs = workload_of([(0, 4, 10, 10), (0, 8, 20, 20), (1, 8, 5, 5), (1, 4, 9, 9), (1, 4, 10, 10)])
    schedule = simulate(jobs, check=True)
    assert schedule.start_time.tolist() == [0, 0, 10, 1, 15]
    assert StartedBy(schedule.started_by[3]) is StartedBy.BACKFILLED


@pytest.mark.parametrize("run", [simulate, reference_bgp.simulate])
def test_the_guard_lets_in_by_requested_times(run: Any) -> None:
    """The third job outlives its t_sched, and the head job misses its plan on t_req, 10."""
    jobs = workload_of([(0, 4, 10, 10), (1, 16, 5, 5), (2, 4, 30, 30), (12, 4, 5, 30)])
    scheduled = np.array([10, 5, 2, 5])
    free = run(jobs, Policy(), scheduled)
    assert free.start_time.tolist() == [0, 32, 2, 12]
    guarded = run(jobs, Policy(backfill=Easy(guard=Guard(1))), scheduled)
    assert guarded.start_time.tolist() == [0, 32, 2, 37]
    assert (free.guard_activations, guarded.guard_activations) == (0, 1)


def test_the_partition_that_blocks_least_is_taken_then_the_first_by_name() -> None:
    jobs = workload_of([(0, 4, 9, 9), (0, 4, 9, 9), (0, 8, 9, 9)])
    schedule = simulate(jobs)
    assert [part.name for part in ran_on(schedule, RACKS)] == [
        "A0",
        "A1",
        "B",
    ]  # A1 blocks itself alone, B0 would block B, too


def test_a_wire_keeps_two_apart_that_share_no_midplane() -> None:
    parts = tuple(
        BgpPartition(name, 8, midplanes, wires=frozenset({"x"}))
        for name, midplanes in (("A", (0, 1)), ("B", (2, 3)))
    )
    machine = replace(RACKS, bgp_partitions=parts)
    jobs = workload_of([(0, 8, 10, 10), (0, 8, 5, 5)], machine)
    assert simulate(jobs, check=True).start_time.tolist() == [0, 10]


@pytest.mark.parametrize("estimator", ["last-two", "actual"])
def test_estimators_in_the_loop_keep_the_laws(estimator: str) -> None:
    rng = np.random.default_rng(2)
    rows = [
        (60 * job, int(rng.choice([4, 8, 16])), int(rng.integers(1, 900)), 900)
        for job in range(120)
    ]
    jobs = replace(workload_of(rows), users=Labels(np.zeros(len(rows), dtype=np.int32), ("one",)))
    policy = Policy(order=Order.WFP)
    run = simulate_with_estimator(jobs, policy, estimator_of(estimator, jobs), check=True)
    assert (run.scheduled_time < 900).any()
    again = simulate(jobs, policy, run.scheduled_time)
    for name in ("start_time", "started_by", "bgp_partition"):
        np.testing.assert_array_equal(getattr(run, name), getattr(again, name))


def test_check_finds_two_that_conflict() -> None:
    jobs = workload_of([(0, 8, 9, 9), (0, 8, 9, 9)])
    good = simulate(jobs, check=True)
    bad = replace(good, bgp_partition=np.full(2, 1, dtype=np.int32))
    with pytest.raises(ScheduleError, match="A and A, which conflict, are both in use at 0 s"):
        check(jobs, bad, jobs.requested_time)
    small = replace(good, bgp_partition=np.array([1, 3], dtype=np.int32))
    with pytest.raises(ScheduleError, match="job 1 of 8 nodes ran on A0, which has 4"):
        check(jobs, small, jobs.requested_time)


def test_cores_become_whole_nodes_and_jobs_that_nothing_holds_are_told() -> None:
    cores = replace(workload_of([(0, 64, 5, 5), (0, 13, 5, 5), (0, 65, 5, 5)]), machine=None)
    jobs = with_bgp_machine(cores, RACKS, processors_per_node=4, leave_out=True)
    assert jobs.processors.tolist() == [16, 4]
    assert jobs.machine_processors == 16
    assert jobs.notes[-1] == (
        "1 job left out that no partition of two racks holds: more than 16 nodes."
    )
    with pytest.raises(InputError, match="job 2 needs 17 nodes, the largest partition of two"):
        with_bgp_machine(cores, RACKS, processors_per_node=4)


def without_the_largest() -> BgpMachine:
    return replace(RACKS, bgp_partitions=RACKS.bgp_partitions[1:])


def run_larger() -> None:
    simulate(workload_of([(0, 9, 1, 1)], without_the_largest()))


def submit_larger() -> None:
    Engine(16, machine=without_the_largest()).submit(0, 9, 1, 1)


def add_without_room() -> None:
    engine = Engine(16, machine=RACKS, now=5)
    for _ in range(3):
        engine.add_running(0, 1, 9, 9)
    engine.add_running(0, 5, 9, 9)


def reserve() -> None:
    simulate(workload_of([(0, 4, 1, 1)]), reservations=[AdvanceReservation(0, 5, 4)])


def snapshot() -> None:
    Snapshot.of(Engine(16, machine=RACKS))


def ask_resources() -> None:
    Engine(16, machine=RACKS).submit(0, 4, 1, 1, resources=JobResources())


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (run_larger, "job 0 needs 9 nodes, the largest partition of two racks has 8"),
        (submit_larger, "needs 9 nodes, the largest partition of two racks has 8"),
        (add_without_room, "has 5 nodes, but no partition that holds it is free"),
        (reserve, "advance reservations are of a flat pool's processors"),
        (snapshot, "this engine has a Blue Gene"),
        (ask_resources, "resources are for a machine of nodes"),
        (lambda: Engine(15, machine=RACKS), "machine_processors is 15: the machine has 16 nodes"),
        *(
            (
                lambda backfill=backfill: simulate(
                    workload_of([(0, 4, 1, 1)]), Policy(backfill=backfill)
                ),
                f"backfilling is {backfill}: on a Blue Gene .two racks. use easy",
            )
            for backfill in FAMILIES.values()
            if backfill not in (Backfill.NONE, Backfill.EASY)
        ),
        (
            lambda: simulate(workload_of([(0, 4, 1, 1)]), Policy(backfill=Easy(depth=2))),
            "easy with a depth of 2: on a Blue Gene",
        ),
    ],
)
def test_what_is_not_for_blue_genes_is_refused(act: Callable[[], None], why: str) -> None:
    with pytest.raises(InputError, match=why):
        act()


def test_a_running_job_is_placed_as_if_it_started_now() -> None:
    engine = Engine(16, machine=RACKS, now=5)
    engine.add_running(0, 8, 10, 10)
    waiting = engine.submit(5, 16, 1, 1)
    engine.settle()
    assert engine.planned_start(waiting) == 10
    engine.finish()
    schedule = engine.schedule()
    assert schedule.bgp_partition is not None
    assert schedule.bgp_partition.tolist() == [1, 0]
    assert schedule.start_time.tolist() == [0, 10]


def test_cancelling_the_head_job_lets_others_start() -> None:
    engine = Engine(16, machine=RACKS)
    engine.submit(0, 4, 10, 10)
    head = engine.submit(0, 16, 5, 5)
    other = engine.submit(0, 4, 20, 20)
    engine.advance(1)
    assert (engine.planned_start(head), engine.job(other).state) == (10, "pending")
    engine.cancel(head)
    engine.settle()
    assert engine.job(other).start_time == 1


def test_a_pending_job_that_is_updated_is_backfilled() -> None:
    engine = Engine(16, machine=RACKS)
    engine.submit(0, 4, 10, 10)
    engine.submit(0, 16, 5, 5)
    other = engine.submit(0, 4, 5, 20)
    engine.advance(1)
    engine.update(other, scheduled_time=9)
    engine.settle()
    assert engine.job(other).start_time == 1
    assert engine.job(other).started_by is StartedBy.BACKFILLED
