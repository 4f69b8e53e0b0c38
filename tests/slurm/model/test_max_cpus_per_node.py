"""MaxCPUsPerNode counts jobs of other partitions on 24.11, until one has run in its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.sites.slurm.site import PartitionRules

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of

pytestmark = pytest.mark.every_release
ON_BOTH = ("-pmain", "-N2", "-n2", "-t10")
SETTLED_S = 6.0
"""Some turns of both loops."""


def modelled_starts(version: tuple[int, int]) -> list[int | None]:
    """A job has a CPU of both nodes until 300, and another one from 400 on."""
    parts = (SlurmPartition("main", ("n",)), SlurmPartition("small", ("n",)))
    rules = {"small": PartitionRules(max_cpus_per_node=1)}
    site = site_of(NodeGroup("n", nodes=2, cpus=4), parts=parts, rules=rules, version=version)
    workload, site_jobs = workload_of(
        [
            Asked(0, 300, 600, tasks=2, nodes=2, slurm_partitions="main"),
            Asked(30, 900, 900, slurm_partitions="small"),
            Asked(400, 300, 600, tasks=2, nodes=2, slurm_partitions="main"),
            Asked(430, 300, 600, slurm_partitions="small"),
        ]
    )
    return [job.start for job in simulate_slurm(workload, site, site_jobs).jobs]


def test_jobs_of_other_partitions_count_as_the_model_says(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]
) -> None:
    assert release.version is not None
    version = release.version[:2]
    partitions = ["main Nodes=ALL", "small Nodes=ALL MaxCPUsPerNode=1"]
    slurm = new_cluster(release, nodes=2, slurm_partitions=partitions)
    other = slurm.sbatch(*ON_BOTH)
    slurm.wait_for_state(other, "RUNNING")
    first = slurm.sbatch("-psmall", "-t10")
    time.sleep(SETTLED_S)
    found = slurm.job(first)
    waits = found["JobState"] == "PENDING"
    assert waits == (version == (24, 11))
    assert found["Reason"] == ("Resources" if waits else "None")
    slurm.checked(["scancel", other])
    slurm.wait_for_state(first, "RUNNING")
    slurm.wait_for_state(slurm.sbatch(*ON_BOTH), "RUNNING")
    slurm.wait_for_state(slurm.sbatch("-psmall", "-t10"), "RUNNING")

    _, start, _, beside = modelled_starts(version)
    assert start is not None
    assert beside is not None
    assert (start >= 300) == waits
    assert beside < 430 + 60
