"""On nodes the native core and the plain Python specification agree job for job, node for node."""

from __future__ import annotations

import numpy as np
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import nodes as reference_nodes
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.node_workloads import machines, policies, workloads


def assert_same(one: Schedule, other: Schedule) -> None:
    names = ("start_time", "end_time", "started_by", "corrections", "killed", "slurm_partition",
             "first_planned_start")  # fmt: skip
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.counters == other.counters
    assert (one.allocation is None) == (other.allocation is None or not len(other.allocation))
    if one.allocation is not None and other.allocation is not None:
        tables = []
        for allocation in (one.allocation, other.allocation):
            table = np.stack(
                [allocation.job, allocation.node, allocation.cpus, allocation.memory_mib,
                 allocation.gpus],
            )  # fmt: skip
            tables.append(table[:, np.lexsort(table[1::-1])])
        np.testing.assert_array_equal(tables[0], tables[1])


@given(data=st.data(), workload=machines().flatmap(workloads), policy=policies())
@settings(max_examples=300)
def test_native_and_reference_agree(
    data: st.DataObject, workload: Workload, policy: Policy
) -> None:
    jobs = len(workload)
    if jobs == 0:
        return
    scheduled, limit = (
        np.array(data.draw(st.lists(st.integers(1, 400), min_size=jobs, max_size=jobs)))
        for _ in range(2)
    )
    priority = np.array(data.draw(st.lists(st.integers(0, 3), min_size=jobs, max_size=jobs)))
    native = simulate(workload, policy, scheduled, limit, priority, check=True)
    assert_same(native, reference_nodes.simulate(workload, policy, scheduled, limit, priority))
