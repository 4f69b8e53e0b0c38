"""On 24.11 MaxCPUsPerNode counts jobs of other partitions until one has run in its own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from foretime_sim import Snapshot, forward_runs
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

from tests.sim.engine.slurm.test_slurm_agreement import check_same
from tests.sim.engine.slurm.test_slurm_rules_agreement import stepwise
from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of


def case_of(version: tuple[int, int], count: int = 4) -> tuple[Workload, SlurmSite]:
    """A job of main has a CPU of both nodes until 300; small may have one of each."""
    parts = (SlurmPartition("main", ("n",)), SlurmPartition("small", ("n",)))
    rules = {"small": PartitionRules(max_cpus_per_node=1)}
    site = site_of(NodeGroup("n", nodes=2, cpus=4), parts=parts, rules=rules, version=version)
    workload, site_jobs = workload_of(
        [
            Asked(0, 300, 600, tasks=2, nodes=2, slurm_partitions="main"),
            Asked(30, 900, 900, slurm_partitions="small"),
            Asked(400, 300, 600, tasks=2, nodes=2, slurm_partitions="main"),
            Asked(430, 300, 600, slurm_partitions="small"),
        ][:count]
    )
    return with_machine(dataclasses.replace(workload, site_jobs=site_jobs), site.machine), site


@pytest.mark.parametrize(
    ("version", "starts"),
    [((22, 5), [0, 30, 400, 430]), ((24, 11), [1, 302, 400, 430]), ((26, 5), [1, 30, 400, 430])],
)
def test_the_first_job_of_a_partition_waits_and_no_later_one(
    version: tuple[int, int], starts: list[int]
) -> None:
    found = check_same(*case_of(version))
    assert [job.start for job in found.jobs] == starts


@pytest.mark.parametrize(("of_engine", "start"), [(True, 302), (False, 101)])
def test_a_real_queue_is_taken_to_have_run_jobs_everywhere(of_engine: bool, start: int) -> None:
    engine = stepwise(*case_of((24, 11), count=2), finish=False)
    engine.advance(100)
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    jobs = snapshot.engine_index.tolist()
    if not of_engine:
        snapshot = dataclasses.replace(snapshot, slurm_notes=None)
    runtimes = np.array([[engine.job(job).actual_runtime for job in jobs]], dtype=np.int64)
    found = forward_runs(snapshot, engine.policy, runtimes, threads=1)[0].tolist()
    assert found[jobs.index(1)] == start
