"""On a Blue Gene the native core, whole and stepwise, and plain Python agree job for job."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.role_times import JobTimesUpdate, RoleTimes
from foretime_sim.reference import bgp as reference_bgp
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.bgp_workloads import machines, policies, workloads


def assert_same(one: Schedule, other: Schedule) -> None:
    names = ("start_time", "end_time", "started_by", "corrections", "killed", "bgp_partition")
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.counters == other.counters


@given(data=st.data(), workload=machines.flatmap(workloads), policy=policies())
@settings(max_examples=400)
def test_native_stepwise_and_reference_agree(
    data: st.DataObject, workload: Workload, policy: Policy
) -> None:
    jobs = len(workload)
    queue, backfill, drain, limit, priority = (
        np.array(data.draw(st.lists(st.integers(1, most), min_size=jobs, max_size=jobs)))
        for most in (300, 300, 300, 400, 3)
    )
    times = RoleTimes(queue, backfill, drain)
    native = simulate(workload, policy, times, limit, priority, check=True)
    assert_same(native, reference_bgp.simulate(workload, policy, times, limit, priority))
    engine = Engine(
        workload.machine_processors,
        policy,
        int(workload.submit_time[0]),
        machine=workload.machine,
    )
    for job, submit in enumerate(workload.submit_time.tolist()):
        engine.advance(submit)
        engine.submit(
            submit,
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
            JobTimesUpdate(int(queue[job]), int(backfill[job]), int(drain[job])),
            int(limit[job]),
            int(priority[job]),
        )
    engine.finish()
    assert_same(native, engine.schedule())


@pytest.mark.parametrize("order", [Order.FCFS, Order.WFP])
def test_core_and_reference_agree_on_the_whole_of_intrepid(order: Order) -> None:
    rng = np.random.default_rng(4)
    jobs = 100
    requested = rng.choice([1_800, 3_600, 21_600], jobs)
    workload = Workload(
        "intrepid", 40_960, None, np.arange(jobs), np.sort(rng.integers(0, 12_000, jobs)),
        rng.choice([64, 512, 1_024, 2_048, 8_192, 16_384, 32_768], jobs),
        (requested * rng.random(jobs)).astype(np.int64), requested, machine=intrepid(),
    )  # fmt: skip
    policy = Policy(order=order)
    native = simulate(workload, policy, check=True)
    assert np.bincount(native.started_by, minlength=4)[1:].min() > 3  # each of the three kinds
    assert_same(native, reference_bgp.simulate(workload, policy))
