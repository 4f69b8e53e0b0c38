"""Licenses that backfill plans, and MaxCPUsPerNode: worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

from tests.sim.engine.slurm.test_slurm_agreement import check_same
from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of

TEN = NodeGroup("n", nodes=10, cpus=1)
FOUR = NodeGroup("n", nodes=1, cpus=4)
PARTS = (SlurmPartition("thin", ("n",), default=True), SlurmPartition("thick", ("n",)))


def starts(site: SlurmSite, *jobs: Asked, unix_start_time: int = 0) -> list[int | None]:
    """Starts of jobs, in which core and specification agree."""
    workload, said = workload_of(jobs)
    machine = site.machine
    workload = replace(
        workload, machine=machine, machine_processors=machine.cpus, site_jobs=said,
        unix_start_time=unix_start_time,
    )  # fmt: skip
    return check_same(workload, site).start_times


@pytest.mark.parametrize(("planned", "expected"), [(True, [0, 600, 1200]), (False, [0, 930, 30])])
def test_a_license_is_kept_for_a_plan(planned: bool, expected: list[int]) -> None:
    # The last job has nodes at 30, when backfill runs. It would keep the license until 930, and the
    # one before it has its nodes from 600 on.
    site = site_of(TEN, licenses={"matlab": 1}, bf_licenses=planned)
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 600, 600, tasks=8, licenses="matlab"),
        Asked(0, 900, 900, tasks=2, licenses="matlab"),
    )
    assert starts(site, *jobs) == expected


@pytest.mark.parametrize(("planned", "start"), [(True, 30), (False, 0)])
def test_the_main_loop_ends_at_a_job_that_lacks_a_license(planned: bool, start: int) -> None:
    site = site_of(TEN, licenses={"matlab": 1}, bf_licenses=planned)
    holds = Asked(0, 600, 600, licenses="matlab")
    assert starts(site, holds, holds, Asked(0, 60, 60)) == [0, 600, start]


@pytest.mark.parametrize(("reserve", "start"), [(True, 660), (False, 30)])
def test_licenses_of_running_jobs_come_back_in_plans_if_so_said(reserve: bool, start: int) -> None:
    # The second job is planned for 600 if it is known that the license is free by then. It would
    # have two of the three nodes, so the last job has to wait for it.
    site = site_of(
        NodeGroup("n", nodes=3, cpus=1), licenses={"matlab": 1}, bf_licenses=True,
        bf_running_job_reserve=reserve,
    )  # fmt: skip
    jobs = (
        Asked(0, 600, 600, licenses="matlab"),
        Asked(0, 60, 60, tasks=2, licenses="matlab"),
        Asked(0, 900, 900, tasks=2),
    )
    assert starts(site, *jobs)[2] == start


def test_a_window_that_has_moved_on_leaves_no_room_for_a_plan() -> None:
    # The first job keeps a license until 483, in slots of 300 s; bf_max_job_test is the number of
    # slots, too. From 183 on the window goes beyond 483, which makes a third: the other job is
    # planned no more, so that backfill rests after 190, and runs as the first one ends.
    site = site_of(
        NodeGroup("n", nodes=1, cpus=1), version=(24, 11), licenses={"matlab": 2},
        bf_licenses=True, bf_running_job_reserve=True, bf_interval=5, bf_resolution=300,
        bf_window=600, bf_max_job_test=3, sched_interval=20, epilog=False,
    )  # fmt: skip
    jobs = (Asked(30, 180, 180, licenses="matlab"), Asked(30, 1, 60, licenses="matlab:2"))
    assert starts(site, *jobs, unix_start_time=117) == [31, 211]


def test_jobs_of_a_partition_have_so_many_cpus_of_a_node() -> None:
    # Two of the four CPUs are for jobs of the other partition.
    site = site_of(FOUR, parts=PARTS, rules={"thin": PartitionRules(max_cpus_per_node=2)})
    jobs = (
        Asked(0, 600, 600, slurm_partitions="thin"),
        Asked(0, 300, 300, slurm_partitions="thin"),
        Asked(0, 300, 300, slurm_partitions="thin"),
        Asked(0, 240, 240, tasks=2, slurm_partitions="thick"),
    )
    # The third waits for the second; the main loop keeps its partition's nodes from others, so that
    # the last one is backfilled.
    assert starts(site, *jobs) == [0, 0, 300, 30]
