"""Random machines of nodes, jobs for them, and policies."""

from __future__ import annotations

import numpy as np
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.families import FAMILIES, Compression, has_setting, with_settings
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import fit_requests
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st

from tests.support.workloads.scheduling_intervals import intervals


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Up to three groups of nodes and three overlapping slurm_partitions."""
    groups = tuple(
        NodeGroup(
            f"g{number}",
            nodes=draw(st.integers(1, 4)),
            cpus=draw(st.sampled_from([1, 4, 4, 6])),
            memory_mib=draw(st.sampled_from([0, 8, 16])),
            gpus=draw(st.sampled_from([0, 0, 2])),
            features=("fast",) if draw(st.booleans()) else (),
            weight=draw(st.sampled_from([1, 1, 2])),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    names = [group.name for group in groups]
    partitions = [
        SlurmPartition(
            f"p{number}",
            tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True))),
            priority_tier=draw(st.sampled_from([1, 1, 2])),
            max_time_s=draw(st.sampled_from([None, None, 200])),
            max_nodes=draw(st.sampled_from([None, None, 2])),
            max_cpus=draw(st.sampled_from([None, None, 10])),
            max_nodes_in_use=draw(st.sampled_from([None, None, 3])),
            default_memory_per_cpu_mib=draw(st.sampled_from([0, 2])),
            exclusive=draw(st.sampled_from([False, False, False, True])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    unused = set(names) - {name for part in partitions for name in part.node_groups}
    if unused:
        partitions.append(SlurmPartition("rest", tuple(sorted(unused))))
    return Machine(groups, tuple(partitions), draw(st.sampled_from(Selection)))


def _column(draw: st.DrawFn, jobs: int, values: st.SearchStrategy[int | None]) -> np.ma.MaskedArray:
    drawn = draw(st.lists(values, min_size=jobs, max_size=jobs))
    return np.ma.MaskedArray(
        np.array([0 if value is None else value for value in drawn], dtype=np.int64),
        mask=np.array([value is None for value in drawn], dtype=np.bool_),
    )


@st.composite
def workloads(draw: st.DrawFn, machine: Machine, most_jobs: int = 25) -> Workload:
    """Jobs that can run on a machine; perhaps none."""
    jobs = draw(st.integers(3, most_jobs))
    few = st.none() | st.integers(1, 3)
    partitions = [part.name for part in machine.slurm_partitions]
    names = [*partitions, *(f"{a},{b}" for a in partitions for b in partitions if a != b)]
    gaps, processors, runtimes, requested = (
        np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)
        for values in (
            st.sampled_from([0, 0, 1, 7, 30]),
            st.integers(1, 8),
            st.integers(0, 400),
            st.integers(1, 300),
        )
    )
    codes = draw(st.lists(st.integers(-1, len(names) - 1), min_size=jobs, max_size=jobs))
    wanted = draw(st.lists(st.sampled_from([-1, -1, 0]), min_size=jobs, max_size=jobs))
    requests = ResourceRequests(
        slurm_partitions=Labels(np.array(codes, dtype=np.int32), tuple(names)),
        nodes=_column(draw, jobs, few),
        tasks=None,
        cpus_per_task=_column(draw, jobs, few),
        memory_per_node_mib=_column(draw, jobs, st.none() | st.integers(0, 10)),
        memory_per_cpu_mib=_column(draw, jobs, st.none() | st.integers(0, 3)),
        gpus_per_node=_column(draw, jobs, st.sampled_from([None, None, 0, 1, 2])),
        constraints=Labels(np.array(wanted, dtype=np.int32), ("fast",)),
        exclusive=_column(draw, jobs, st.sampled_from([None, None, None, 1])),
    )
    workload = Workload(
        "random", machine.cpus, None, np.arange(jobs), np.cumsum(gaps), processors, runtimes,
        requested, requests=requests, machine=machine,
    )  # fmt: skip
    fitted = fit_requests(workload)
    workload = workload.take(fitted.request_of >= 0)
    fitted = fit_requests(workload)
    cpus = np.array([request.cpus for request in fitted.requests], dtype=np.int64)
    workload.processors[:] = cpus[fitted.request_of] if len(workload) else 0
    return workload


ON_NODES = [family for family in FAMILIES.values() if family.refusal(Place.NODES) is None]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    backfill = draw(st.sampled_from(ON_NODES))
    if has_setting(backfill, "depth"):
        backfill = with_settings(backfill, depth=draw(st.sampled_from([1, 1, 2, 3])))
    if has_setting(backfill, "compression"):
        backfill = with_settings(backfill, compression=draw(st.sampled_from(Compression)))
    if backfill.head_only:
        backfill = backfill.guarded(parse_guard(draw(st.none() | st.integers(0, 200))))
    event_order = draw(st.sampled_from(EventOrder))
    return Policy(
        order=draw(st.sampled_from(Order)),
        backfill=backfill,
        correction=draw(st.sampled_from(Correction)),
        roles=draw(st.builds(Roles, st.booleans(), st.booleans(), st.booleans())),
        event_order=event_order,
        scheduling_interval_s=draw(intervals(event_order, as_planned=backfill.starts_as_planned)),
    )
