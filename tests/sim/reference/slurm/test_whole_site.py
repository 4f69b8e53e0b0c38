"""Loops with the priorities and limits of a site."""

from __future__ import annotations

import dataclasses

from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.reference.slurm.jobs.jobs_of_workload import slurm_jobs
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.workloads.resource_requests import with_machine

from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of

TEN = NodeGroup("n", nodes=10, cpus=1)


def starts(site: SlurmSite, *jobs: Asked) -> list[int | None]:
    workload, site_jobs = workload_of(jobs)
    return simulate_slurm(workload, site, site_jobs).start_times


def with_people(site: SlurmSite, limits: Limits, **settings: bool) -> SlurmSite:
    return dataclasses.replace(
        site,
        qos={"normal": Qos("normal", limits=limits)},
        associations=(
            Association("root", default_qos="normal", qos=("normal",)),
            Association("lab", parent="root"),
            Association("lab", user="ann", default=True),
            Association("lab", user="bob", default=True),
        ),
        enforced=frozenset({"limits"}),
        parameters=dataclasses.replace(site.parameters, **settings),
    )


def test_a_job_over_a_limit_waits_without_blocking_others() -> None:
    site = with_people(site_of(TEN), Limits(max_jobs=1))
    jobs = (
        Asked(0, 600, 600, users="ann"),
        Asked(1, 60, 60, users="ann"),
        Asked(2, 60, 60, users="bob"),
    )
    assert starts(site, *jobs) == [0, 600, 2]


def test_under_assoc_limit_stop_it_blocks_its_partition_once() -> None:
    # The job that comes with it waits for the backfill loop at 30.
    site = with_people(site_of(TEN), Limits(max_jobs=1), assoc_limit_stop=True, backfill=False)
    jobs = (
        Asked(0, 600, 600, users="ann"),
        Asked(1, 60, 60, users="ann"),
        Asked(1, 60, 60, users="bob"),
    )
    # In the next run its reason is known, and it is passed over.
    assert starts(site, *jobs) == [0, 600, 60]


def test_a_throttled_task_is_looked_at_before_its_throttle_in_backfill() -> None:
    """So it takes the place of the array that was rejected before it (``reject_array_job``)."""
    jobs = (
        Asked(0, 1000, 1000, tasks=6, licenses="x"),
        Asked(1, 60, 600, tasks=10),
        Asked(2, 300, 600, array_ids="a", array_most_running=1),
        Asked(3, 60, 60, array_ids="b", licenses="x"),
        Asked(4, 60, 60, array_ids="a", array_most_running=1),
        Asked(5, 60, 60, array_ids="b"),
    )
    site = site_of(TEN, licenses={"x": 1})
    found = starts(site, *jobs)
    assert found == [0, 1000, 30, 1060, 330, 30]
    workload, site_jobs = workload_of(jobs)
    workload = with_machine(dataclasses.replace(workload, site_jobs=site_jobs), site.machine)
    core = simulate(workload, Policy(backfill=Slurm(site)))
    assert core.start_time.tolist() == found


def test_a_refused_job_never_waits() -> None:
    site = with_people(site_of(TEN), Limits(max_submit_jobs=1))
    jobs = (Asked(0, 600, 600, users="ann"), Asked(1, 60, 60, users="ann"))
    workload, site_jobs = workload_of(jobs)
    schedule = simulate_slurm(workload, site, site_jobs)
    assert schedule.start_times == [0, None]
    assert list(schedule.refused) == [1]


def test_multifactor_priorities_order_the_queue() -> None:
    parts = (SlurmPartition("low", ("n",), default=True), SlurmPartition("high", ("n",)))
    rules = {"high": PartitionRules(priority_job_factor=10)}
    site = dataclasses.replace(
        site_of(TEN, parts=parts, rules=rules), priority=SlurmPriority(weight_partition=1000)
    )
    jobs = (
        Asked(0, 600, 600, tasks=10),
        Asked(1, 60, 60, tasks=10, slurm_partitions="low"),
        Asked(2, 60, 60, tasks=10, slurm_partitions="high"),
    )
    assert starts(site, *jobs) == [0, 660, 600]


def test_nodes_without_gpus_are_candidates_until_nodes_are_chosen() -> None:
    groups = (NodeGroup("cpu", 2, 4), NodeGroup("gpu", 1, 4, gpus=1), NodeGroup("thin", 1, 1))
    workload, site_jobs = workload_of([Asked(0, 60, 60, cpus_per_task=2, gpus_per_node=1)])
    (job,) = slurm_jobs(workload, site_of(*groups), site_jobs)
    assert job.request.choices[0].node_groups == (1,)
    assert job.node_groups == ((0, 1),)  # large enough for a task


def test_slurmctld_looks_for_jobs_over_their_limits_every_half_minute() -> None:
    workload, site_jobs = workload_of((Asked(5, 600, 60), Asked(5, 80, 60), Asked(8, 40, 60)))

    def ends(*looks: int) -> list[int | None]:
        found = simulate_slurm(workload, site_of(TEN), site_jobs, looks_at_limits=looks)
        return [job.end for job in found.jobs]

    at_limits = ends()
    assert ends(300) == [90, 5 + 80, at_limits[2]]
    assert ends(0, 305)[:2] == [90, 5 + 80]  # the nearest look tells
    assert at_limits[:2] == [5 + 60, 5 + 60]
