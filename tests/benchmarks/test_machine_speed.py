"""What nodes cost: as they grow, against the flat pool and against the plain Python reference.

Each figure is a ratio within one run. The flat pool's own speed is in test_engine_speed.py.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.models import lublin2003
from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.policies.families import FAMILIES, Backfill, Easy
from foretime_sim.policies.policy import Policy
from foretime_sim.reference import nodes as reference_nodes
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

JOBS = 5_000
CPUS = 8
NODES = [10, 100, 1_000, 10_000]
POLICIES = {
    "easy": Policy(),
    "first-fit": Policy(backfill=Backfill.FIRST_FIT),
    "easy-depth-8": Policy(backfill=Easy(depth=8)),
}


def machine(nodes: int, *, whole: bool) -> Machine:
    """Give ordinary nodes and a tenth as many with much memory, in two slurm_partitions."""
    big = max(nodes // 10, 1)
    groups = (
        NodeGroup("cpu", nodes - big, CPUS, memory_mib=32_000),
        NodeGroup("bigmem", big, CPUS, memory_mib=256_000, weight=2),
    )
    partitions = (
        SlurmPartition("all", ("cpu", "bigmem"), exclusive=whole),
        SlurmPartition("big", ("bigmem",), priority_tier=2, exclusive=whole),
    )
    return Machine(groups, partitions)


@cache
def workload(nodes: int) -> Workload:
    """Give jobs for so many nodes: a tenth in "big", with a memory of their own for each."""
    jobs = lublin2003.generate(JOBS, processors=nodes * CPUS, load=0.9)
    rng = np.random.default_rng(1)
    fits = jobs.processors <= max(nodes // 10, 1) * CPUS // 2
    big = fits & (rng.random(len(jobs)) < 0.1)
    memory = rng.choice([1_000, 2_000, 4_000], len(jobs))
    requests = ResourceRequests(
        slurm_partitions=Labels(big.astype(np.int32), ("all", "big")),
        memory_per_cpu_mib=np.ma.MaskedArray(memory, mask=np.zeros(len(jobs), dtype=np.bool_)),
    )
    return replace(jobs, requests=requests)


def cpu_seconds(jobs: Workload, policy: Policy) -> float:
    begin = time.process_time()
    simulate(jobs, policy)
    return time.process_time() - begin


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("whole", [False, True], ids=["shared", "whole"])
def test_nodes_against_the_flat_pool(benchmark: Any, nodes: int, policy: str, whole: bool) -> None:
    """The very jobs on nodes and on a flat pool of as many CPUs."""
    benchmark.group = f"nodes {policy}"
    jobs = with_machine(workload(nodes), machine(nodes, whole=whole), leave_out=True)
    flat = cpu_seconds(replace(jobs, machine=None), POLICIES[policy])
    benchmark.pedantic(cpu_seconds, args=(jobs, POLICIES[policy]), rounds=1)
    spent = cpu_seconds(jobs, POLICIES[policy])
    benchmark.extra_info["jobs_per_s"] = round(len(jobs) / spent)
    benchmark.extra_info["times_flat_pool"] = round(spent / flat, 1)
    print(f"{nodes} nodes, whole {whole}, {policy}: {benchmark.extra_info}")


@pytest.mark.parametrize(
    "backfill", [b for b in FAMILIES.values() if b.refusal(Place.NODES) is None]
)
def test_nodes_against_the_reference(benchmark: Any, backfill: Backfilling) -> None:
    """150 jobs on 20 nodes, native and in plain Python."""
    benchmark.group = "nodes reference"
    policy = Policy(backfill=backfill)
    jobs = with_machine(workload(20), machine(20, whole=False), leave_out=True).head(150)
    begin = time.process_time()
    reference_nodes.simulate(jobs, policy)
    plain = time.process_time() - begin
    benchmark.pedantic(cpu_seconds, args=(jobs, policy), rounds=3)
    benchmark.extra_info["times_reference"] = round(plain / cpu_seconds(jobs, policy))
    print(f"{backfill}: {benchmark.extra_info}")


@pytest.mark.parametrize("nodes", [10, 100])
@pytest.mark.parametrize("backfill", [Backfill.CONSERVATIVE, Backfill.PLANNING])
def test_planning_on_nodes(benchmark: Any, nodes: int, backfill: Backfilling) -> None:
    """Families that plan every job."""
    benchmark.group = "nodes planning"
    jobs = with_machine(workload(nodes), machine(nodes, whole=False), leave_out=True).head(2_000)
    spent = benchmark.pedantic(cpu_seconds, args=(jobs, Policy(backfill=backfill)), rounds=1)
    benchmark.extra_info["jobs_per_s"] = round(len(jobs) / spent)
    print(f"{nodes} nodes, {backfill}: {benchmark.extra_info}")
