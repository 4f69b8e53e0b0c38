"""What backfill plans, and what it starts: worked out by hand."""

from __future__ import annotations

import pytest
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.reference.slurm.fractions import Fractions
from foretime_sim.reference.slurm.jobs.schedule import JobOutcome, Loop
from foretime_sim.sites.slurm.site import SlurmSite

from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of

MINUTE = 60
TEN = NodeGroup("n", nodes=10, cpus=1)
OLD, NEW = (22, 5), (26, 5)
LATE = {OLD: 0, NEW: 1}
"""How late the main loop is: newer ones see in the next second what happens."""


def run(site: SlurmSite, *jobs: Asked, started_at: int | None = None) -> tuple[JobOutcome, ...]:
    workload, site_jobs = workload_of(jobs)
    return simulate_slurm(workload, site, site_jobs, started_at=started_at).jobs


def starts(*args: object, **settings: object) -> list[int | None]:
    return [job.start for job in run(*args, **settings)]  # type: ignore[arg-type]


def head_and_two_behind() -> tuple[Asked, ...]:
    """Ten nodes: eight taken for 10 minutes, then jobs of 10, of 8 for 20, and of 2 for 15."""
    return (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 600, 600, tasks=10),  # planned for 600
        Asked(0, 300, 1200, tasks=8),  # planned for 1200, when the head's limit is over
        Asked(0, 60, 900, tasks=2),  # fits now, but delays the head: until 900 > 600
    )


@pytest.mark.parametrize("version", [OLD, NEW])
def test_every_job_that_is_looked_at_is_planned_by_default(version: tuple[int, int]) -> None:
    # S1. The first backfill is at 30; the job of two nodes would end after the head's start.
    found = run(site_of(TEN, version=version), *head_and_two_behind())
    late = LATE[version]
    assert found[0].loop is Loop.MAIN
    # At 600 the first job has ended: the main loop starts the head. It ends at 1200.
    assert [job.start for job in found] == [late, 600 + 2 * late, 1200 + 3 * late, 1200 + 3 * late]
    assert [found[1].planned_start, found[2].planned_start] == [600 + late, 1200 + 2 * late]


def test_a_short_job_is_backfilled_before_the_plans_of_all() -> None:
    short = Asked(0, 60, 240, tasks=2)  # ends by 330, before the head's 600
    found = run(site_of(TEN), *head_and_two_behind()[:3], short)
    assert found[3].start == 30
    assert found[3].loop is Loop.BACKFILL


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(("count", "start"), [(0, 1800), (1, 30)])
def test_with_one_reservation_only_the_head_is_protected(
    version: tuple[int, int], count: int, start: int
) -> None:
    # S2. Eight of ten nodes run until 600; the head needs nine, the second job all ten. A job of
    # one node for 30 minutes leaves nine for the head, but it would delay the second job.
    site = site_of(TEN, version=version, bf_job_part_count_reserve=count)
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 600, 600, tasks=9),
        Asked(0, 600, 600, tasks=10),
        Asked(0, 60, 1800, tasks=1),
    )
    found = starts(site, *jobs)
    late = LATE[version]
    assert found[:3] == [late, 600 + 2 * late, 1200 + 3 * late]
    assert found[3] == start + (4 * late if count == 0 else 0)


def test_plans_take_whole_nodes_for_a_job_that_has_one_core_of_them() -> None:
    # Two nodes of four CPUs. The head needs both (8 tasks), planned for 600. On node 1 three CPUs
    # are free; a second job of four CPUs is planned for 1200 on node 0; one of one CPU for 30
    # minutes would fit on node 1 beside it for ever, but the head's plan has both nodes whole.
    nodes = NodeGroup("n", nodes=2, cpus=4)
    jobs = (
        Asked(0, 600, 600, tasks=5),  # node 0 whole, one CPU of node 1
        Asked(0, 600, 600, tasks=4, nodes=1),  # waits for node 0: planned for 600
        Asked(0, 60, 1800, tasks=1),  # fits on node 1 now: it is not planned for
    )
    assert starts(site_of(nodes), *jobs)[2] == 30
    smaller = (
        Asked(0, 600, 600, tasks=5),
        Asked(0, 600, 600, tasks=6),  # planned for 600: node 0 whole and two CPUs of node 1
        Asked(0, 60, 1800, tasks=1),  # there are two CPUs to spare on node 1, but it is planned
    )
    assert starts(site_of(nodes), *smaller) == [0, 600, 600]


@pytest.mark.parametrize("version", [OLD, NEW])
def test_nothing_is_reserved_for_a_start_beyond_the_window(version: tuple[int, int]) -> None:
    # bf_window of 10 minutes; the head could start after an hour: it is not protected.
    def second(window: int) -> int | None:
        jobs = (
            Asked(0, 3600, 3600, tasks=9),
            Asked(0, 60, 600, tasks=10),
            Asked(0, 7200, 7200, tasks=1),
        )
        return starts(site_of(TEN, version=version, bf_window=window), *jobs)[2]

    assert second(600) == 30
    assert second(86_400) == 3660 + 3 * LATE[version]


@pytest.mark.parametrize(("resolution", "start"), [(60, 650), (1, 70)])
def test_plans_begin_at_multiples_of_the_resolution(resolution: int, start: int) -> None:
    # The head is planned for 650. At 70 a job of 9 minutes would end at 610: before 650, but after
    # 600, where the plan begins by the minute.
    jobs = (
        Asked(50, 600, 600, tasks=8),
        Asked(65, 60, 60, tasks=10),
        Asked(65, 30, 540, tasks=2),
    )
    found = run(site_of(TEN, bf_resolution=resolution), *jobs, started_at=40)
    assert found[1].planned_start == 650
    assert (found[2].start == 70) == (start == 70)


@pytest.mark.parametrize(
    ("version", "planned"), [(OLD, 620), ((24, 11), 621), ((25, 5), 601), (NEW, 601)]
)
def test_before_25_05_a_start_is_the_end_of_the_last_job_of_the_window(
    version: tuple[int, int], planned: int
) -> None:
    # Both nodes are free within 30 s, the first one at 600; the job needs one.
    site = site_of(NodeGroup("n", nodes=2, cpus=1), version=version, bf_resolution=1)
    jobs = (Asked(0, 300, 600), Asked(20, 300, 600), Asked(40, 60, 60))
    found = run(site, *jobs)
    assert found[2].planned_start == planned


def test_soft_limits_plan_by_least_times_and_keep_the_limit() -> None:
    # The first job has a soft end at 180: the head is planned for it, then for now + half of the
    # rest. It really ends at 600.
    site = site_of(TEN, version=NEW, time_min_as_soft_limit=True, bf_interval=30)
    jobs = (
        Asked(0, 600, 1200, tasks=8, time_min_s=180),
        Asked(0, 60, 60, tasks=10),
        Asked(0, 290, 1200, tasks=2, time_min_s=120),  # fits before 180 by its least time
    )
    found = run(site, *jobs)
    assert [job.start for job in found] == [1, 602, 30]
    assert not found[2].killed
    # Last planned at 600, one second before the end: now + half of the 601 s that are left.
    assert found[1].planned_start == 600 + 300


def test_least_times_without_soft_limits_become_the_limit() -> None:
    # SCHEDULERS.md: on 22.05 the limit is lowered for good, and the job killed at it.
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 60, 60, tasks=10),
        Asked(0, 500, 1200, tasks=2, time_min_s=120),
    )
    old = run(site_of(TEN, version=OLD), *jobs)[2]
    assert (old.start, old.end, old.killed) == (30, 150, True)
    # As long as the plan of the head allows: 9 minutes from 30 on.
    new = run(site_of(TEN, version=NEW), *jobs)[2]
    assert (new.start, new.end, new.killed) == (30, 530, False)


def test_jobs_below_the_least_priority_are_not_planned() -> None:
    # S2: a head below bf_min_prio_reserve has no plan, nor does it block the main loop.
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 600, 600, tasks=10),
        Asked(0, 60, 1800, tasks=2),
    )
    assert starts(site_of(TEN, bf_min_prio_reserve=0xFFFFFFFF), *jobs)[2] == 0
    assert starts(site_of(TEN), *jobs)[2] == 1200


def test_young_jobs_are_not_planned() -> None:
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 600, 600, tasks=10),
        Asked(0, 60, 1800, tasks=2),
        Asked(0, 60, 1800, tasks=1),
    )
    assert starts(site_of(TEN, bf_min_age_reserve=300), *jobs)[2] == 0


def test_a_cycle_looks_at_so_many_jobs() -> None:
    jobs = (
        Asked(0, 600, 600, tasks=8),
        *(Asked(0, 60, 600, tasks=10) for _ in range(3)),
        Asked(0, 60, 60, tasks=1),
    )
    assert starts(site_of(TEN), *jobs)[4] == 30
    assert starts(site_of(TEN, bf_max_job_test=3), *jobs)[4] != 30


def test_so_many_jobs_of_a_user_are_looked_at() -> None:
    wide = [Asked(0, 60, 600, tasks=10, users="ann") for _ in range(2)]
    jobs = (
        Asked(0, 600, 600, tasks=8, users="bob"),
        *wide,
        Asked(0, 60, 60, tasks=1, users="ann"),
        Asked(0, 60, 60, tasks=1, users="bob"),
    )
    found = starts(site_of(TEN, bf_max_job_user=2), *jobs)
    assert found[4] == 30
    assert found[3] == 720  # the same two of ann come first in every cycle, until both have run


def test_so_many_jobs_are_started_in_a_cycle() -> None:
    jobs = (
        Asked(0, 600, 600, tasks=8),
        Asked(0, 60, 600, tasks=10),
        Asked(0, 60, 60, tasks=1),
        Asked(0, 60, 60, tasks=1),
    )
    assert starts(site_of(TEN, bf_max_job_start=1), *jobs)[2:] == [30, 60]


def test_so_many_tasks_of_an_array_are_planned() -> None:
    # Ten tasks of eight nodes each in a row; then a job of two nodes for 40 minutes. With two
    # tasks planned (600 to 1200, 1200 to 1800) it fits beside them; no task needs more than eight.
    tasks = [Asked(0, 600, 600, tasks=9, array_ids="7") for _ in range(4)]
    late = Asked(0, 60, 1200, tasks=1)
    jobs = (Asked(0, 600, 600, tasks=9), *tasks, Asked(0, 600, 600, tasks=10), late)
    # With all four tasks planned the ten-node job is planned for 3000: 1200 s from 30 end before.
    assert starts(site_of(TEN), *jobs)[6] == 30
    # With one, the ten-node job is planned for 1200, and delayed by the late one.
    assert starts(site_of(TEN, bf_max_job_array_resv=1), *jobs)[6] != 30


def test_a_job_in_two_partitions_starts_in_the_first_that_has_room() -> None:
    parts = (
        SlurmPartition("a", ("x",), default=True),
        SlurmPartition("b", ("y",)),
    )
    groups = (NodeGroup("x", nodes=2, cpus=1), NodeGroup("y", nodes=2, cpus=1))
    jobs = (
        Asked(0, 600, 600, tasks=2, slurm_partitions="a"),
        Asked(0, 600, 600, tasks=2, slurm_partitions="a,b"),
        Asked(0, 600, 600, tasks=2, slurm_partitions="a,b"),
    )
    found = run(site_of(*groups, parts=parts), *jobs)
    assert [job.slurm_partition for job in found[:2]] == [0, 1]
    assert found[2].start == 600
    assert found[2].planned_start == 600


def test_only_one_partition_is_planned_for_a_job_if_so_said() -> None:
    # Planned in both by default: the second job, in b alone, then has to wait for it.
    parts = (
        SlurmPartition("a", ("x",), default=True),
        SlurmPartition("b", ("y",)),
    )
    groups = (NodeGroup("x", nodes=2, cpus=1), NodeGroup("y", nodes=2, cpus=1))
    jobs = (
        Asked(0, 600, 600, tasks=2, slurm_partitions="a"),
        Asked(0, 900, 900, tasks=1, slurm_partitions="b"),
        Asked(0, 600, 600, tasks=2, slurm_partitions="a,b"),
        Asked(0, 60, 1800, tasks=1, slurm_partitions="b"),
    )
    assert starts(site_of(*groups, parts=parts), *jobs)[3] != 30
    assert starts(site_of(*groups, parts=parts, bf_one_resv_per_job=True), *jobs)[3] == 30


@pytest.mark.parametrize(("cycle", "start"), [(0.9, 60), (0.1, 90)])
def test_a_cycle_before_all_else_in_its_second_sees_a_submission_in_the_next(
    cycle: float, start: int
) -> None:
    short = Asked(60, 60, 240, tasks=2)
    workload, site_jobs = workload_of((*head_and_two_behind()[:3], short))
    found = simulate_slurm(
        workload, site_of(TEN), site_jobs, fractions=Fractions(0.0, backfill=cycle)
    )
    assert found.jobs[3].start == start
