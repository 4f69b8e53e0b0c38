"""The first 1,200 real records of Intrepid's published log on the model of Intrepid.

The archive counts processors, four to a node. What the records say of waits is not compared: in
that first week of production the machine stood idle for days while up to 74 jobs waited.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule, StartedBy, check
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.swf import read_swf
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import bgp as reference_bgp
from foretime_sim.workloads.bgp_jobs import with_bgp_machine
from foretime_sim.workloads.workload import Workload

POLICIES = [
    Policy(order=order, backfill=backfill)
    for order in (Order.FCFS, Order.WFP)
    for backfill in (Backfill.NONE, Backfill.EASY)
]

NAMES = [f"{policy.order}-{policy.backfill}" for policy in POLICIES]


@pytest.fixture(scope="module")
def log(trace: Callable[[str], Path]) -> Workload:
    """The records, in processors."""
    return workload_of_log(read_swf(trace("ANL-Intrepid-2009-1-first1200.swf.gz")))[0]


def crowded(log: Workload) -> Workload:
    """Put the jobs on Intrepid in nodes, and within a sixth of the time, so that they queue."""
    placed = with_bgp_machine(log, intrepid(), processors_per_node=4)
    return replace(placed, submit_time=placed.submit_time // 6)


def test_processors_become_whole_nodes(log: Workload) -> None:
    placed = with_bgp_machine(log, intrepid(), processors_per_node=4)
    assert (log.machine_processors, placed.machine_processors) == (163_840, 40_960)
    assert len(placed) == 1_200
    np.testing.assert_array_equal(placed.processors, -(-log.processors // 4))
    assert placed.processors.max() == 40_960
    with pytest.raises(InputError, match="say how many of the log's processors are a node"):
        with_bgp_machine(log, intrepid())


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_all_laws_hold(log: Workload, policy: Policy) -> None:
    workload = crowded(log)
    schedule = simulate(workload, policy)
    check(workload, schedule, workload.requested_time)
    _check_uses(workload, schedule)
    if policy.backfill is Backfill.EASY:
        ways = set(schedule.started_by.tolist())
        assert {StartedBy.HEAD, StartedBy.BACKFILLED} <= ways


def _check_uses(workload: Workload, schedule: Schedule) -> None:
    """Check, from names alone, that no midplane and no wire serves two jobs at once."""
    machine = workload.machine
    assert isinstance(machine, BgpMachine)
    assert schedule.bgp_partition is not None
    users: dict[str, list[tuple[int, int]]] = {}
    for job, index in enumerate(schedule.bgp_partition.tolist()):
        part = machine.bgp_partitions[index]
        smallest = min(size for size in machine.sizes if size >= workload.processors[job])
        assert part.nodes == smallest
        midplanes = [machine.midplane_names[midplane] for midplane in part.midplanes]
        for used in (*midplanes, *part.wires):
            interval = (int(schedule.start_time[job]), int(schedule.end_time[job]))
            users.setdefault(used, []).append(interval)
    assert len(users) > 800  # 80 midplanes, and nearly all of the 768 wires
    for used, intervals in users.items():
        intervals.sort()
        for (_, end), (start, _) in itertools.pairwise(intervals):
            assert end <= start, used


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_the_reference_agrees(log: Workload, policy: Policy) -> None:
    workload = crowded(log).take(np.arange(150))
    ours, plain = simulate(workload, policy), reference_bgp.simulate(workload, policy)
    np.testing.assert_array_equal(ours.start_time, plain.start_time)
    np.testing.assert_array_equal(ours.bgp_partition, plain.bgp_partition)
