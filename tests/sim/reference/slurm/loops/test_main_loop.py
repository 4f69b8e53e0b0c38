"""What the main loop starts, and when it runs: worked out by hand."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.admission import After
from foretime_sim.machines.machine import NodeGroup, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.reference.slurm.jobs.schedule import JobOutcome, Loop
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

from tests.support.slurm.slurm_jobs import Asked, site_of, workload_of

TEN = NodeGroup("n", nodes=10, cpus=1)


def run(site: SlurmSite, *jobs: Asked, started_at: int | None = None) -> tuple[JobOutcome, ...]:
    workload, site_jobs = workload_of(jobs)
    return simulate_slurm(workload, site, site_jobs, started_at=started_at).jobs


def starts(*args: object, **settings: object) -> list[int | None]:
    return [job.start for job in run(*args, **settings)]  # type: ignore[arg-type]


def test_what_was_submitted_is_looked_at_after_a_delay() -> None:
    # slurmctld began at 0; batch_sched_delay counts from the last run of its background thread.
    jobs = (Asked(1, 60, 60), Asked(4, 60, 60), Asked(20, 60, 60))
    old = run(site_of(TEN, batch_sched_delay=3), *jobs, started_at=0)
    assert [(job.start, job.loop) for job in old] == [(n, Loop.MAIN) for n in (3, 6, 20)]
    new = run(site_of(TEN, version=(26, 5), batch_sched_delay=3), *jobs, started_at=0)
    assert [job.start for job in new] == [3, 6, 21]


@pytest.mark.parametrize(
    ("epilog", "defer", "start"), [(False, False, 14), (True, False, 11), (True, True, 14)]
)
def test_an_end_runs_the_main_loop_at_once_if_it_comes_with_an_epilog(
    epilog: bool, defer: bool, start: int
) -> None:
    # The first job starts at 1. The third one's submission is seen at 11, just before the first
    # ends: what asks from then on waits until 14, unless it comes with an epilog.
    jobs = (Asked(0, 10, 60, tasks=10), Asked(0, 10, 60, tasks=10), Asked(10, 10, 60, tasks=10))
    site = site_of(
        TEN, version=(26, 5), batch_sched_delay=3, backfill=False, epilog=epilog, defer=defer
    )
    assert starts(site, *jobs, started_at=-3)[:2] == [1, start]


def test_the_first_job_without_room_blocks_its_partition() -> None:
    jobs = (Asked(0, 600, 600, tasks=8), Asked(1, 60, 60, tasks=4), Asked(2, 60, 60, tasks=1))
    found = run(site_of(TEN, backfill=False), *jobs)
    assert [job.start for job in found] == [0, 600, 600]
    assert found[1].loop is Loop.MAIN


def test_a_blocked_partition_takes_its_nodes_from_others() -> None:
    # b shares x with a. When a's head waits, x is out of reach for b: its job of two nodes has too
    # few left, and blocks b as well; a job of one node of y is then blocked, too.
    groups = (NodeGroup("x", nodes=2, cpus=1), NodeGroup("y", nodes=1, cpus=1))
    parts = (
        SlurmPartition("a", ("x",), priority_tier=2, default=True),
        SlurmPartition("b", ("x", "y")),
    )
    jobs = (
        Asked(0, 600, 600, tasks=1, slurm_partitions="a"),
        Asked(1, 60, 60, tasks=2, slurm_partitions="a"),
        Asked(2, 60, 60, tasks=1, slurm_partitions="b"),  # y is left to it
        Asked(2, 60, 60, tasks=1, slurm_partitions="b", nodes=1),
    )
    assert starts(site_of(*groups, parts=parts, backfill=False), *jobs)[1:] == [600, 2, 62]
    wide = (*jobs[:2], Asked(2, 60, 60, tasks=2, nodes=2, slurm_partitions="b"), jobs[3])
    assert starts(site_of(*groups, parts=parts, backfill=False), *wide)[1:] == [600, 660, 660]


def test_too_few_cpus_left_by_another_partition_do_not_block() -> None:
    # As above, but by CPUs, not by nodes: the job is passed over (ESLURM_NODE_NOT_AVAIL).
    groups = (NodeGroup("x", nodes=2, cpus=1), NodeGroup("y", nodes=1, cpus=1))
    parts = (
        SlurmPartition("a", ("x",), priority_tier=2, default=True),
        SlurmPartition("b", ("x", "y")),
    )
    jobs = (
        Asked(0, 600, 600, tasks=1, slurm_partitions="a"),
        Asked(1, 60, 60, tasks=2, slurm_partitions="a"),
        Asked(2, 60, 60, tasks=2, slurm_partitions="b"),
        Asked(2, 60, 60, tasks=1, slurm_partitions="b"),
    )
    assert starts(site_of(*groups, parts=parts, backfill=False), *jobs)[1:] == [600, 660, 2]


def test_higher_tiers_come_first() -> None:
    parts = (
        SlurmPartition("low", ("n",), default=True),
        SlurmPartition("high", ("n",), priority_tier=5),
    )
    jobs = (
        Asked(0, 600, 600, tasks=10),
        Asked(1, 60, 60, tasks=10, slurm_partitions="low"),
        Asked(2, 60, 60, tasks=10, slurm_partitions="high"),
    )
    assert starts(site_of(TEN, parts=parts), *jobs) == [0, 660, 600]


def test_a_nice_job_lets_others_pass() -> None:
    # priority/basic: the priority falls by 1 with each job, and by its own nice value besides.
    jobs = (
        Asked(0, 600, 600, tasks=10),
        Asked(1, 60, 60, tasks=10, nice=100),
        Asked(2, 60, 60, tasks=10, nice=-500),
        Asked(3, 60, 60, tasks=10),
    )
    assert starts(site_of(TEN), *jobs) == [0, 720, 600, 660]


@pytest.mark.parametrize(("depth", "start"), [(100, 0), (2, 60)])
def test_a_quick_run_looks_at_so_many_jobs(depth: int, start: int) -> None:
    # Three jobs of partition a are blocked; one more than default_queue_depth is looked at. The
    # full run at 60 comes to the job of b.
    groups = (NodeGroup("x", nodes=1, cpus=1), NodeGroup("y", nodes=1, cpus=1))
    parts = (SlurmPartition("a", ("x",), default=True), SlurmPartition("b", ("y",)))
    jobs = (
        *(Asked(0, 600, 600) for _ in range(4)),
        Asked(0, 60, 60, slurm_partitions="b"),
        Asked(1, 60, 60, slurm_partitions="b"),
    )
    site = site_of(*groups, parts=parts, default_queue_depth=depth, defer=True, backfill=False)
    assert starts(site, *jobs)[4] == start


def test_so_many_jobs_of_a_partition_are_looked_at() -> None:
    jobs = [Asked(0, 600, 600) for _ in range(4)]
    site = site_of(TEN, partition_job_depth=2, defer=True, backfill=False)
    assert starts(site, *jobs) == [0, 0, 60, 60]


def test_so_many_jobs_are_started_in_a_run() -> None:
    jobs = [Asked(0, 600, 600) for _ in range(3)]
    site = site_of(TEN, sched_max_job_start=2, defer=True, backfill=False)
    assert starts(site, *jobs) == [0, 0, 60]


def test_the_main_loop_keeps_its_least_interval() -> None:
    # It runs at 0, and 5 s later at the earliest, although the second job could start at 2.
    jobs = (Asked(0, 2, 60, tasks=10), Asked(0, 10, 60, tasks=10))
    site = site_of(TEN, sched_min_interval_us=5_000_000, backfill=False)
    assert starts(site, *jobs, started_at=-5) == [0, 5]
    assert starts(site_of(TEN, backfill=False), *jobs, started_at=-5) == [0, 2]


def test_jobs_are_killed_at_their_limit_in_whole_minutes() -> None:
    (job,) = run(site_of(TEN), Asked(0, 600, 61))
    assert (job.end, job.killed) == (120, True)
    (job,) = run(site_of(TEN, over_time_limit_s=60), Asked(0, 600, 61))
    assert (job.end, job.killed) == (180, True)


def test_a_partition_that_is_down_starts_nothing_and_one_that_drains_takes_nothing() -> None:
    down = site_of(TEN, rules={"all": PartitionRules(state="DOWN")})
    (job,) = run(down, Asked(0, 60, 60))
    assert (job.start, job.reason) == (None, "PartitionDown")
    drain = site_of(TEN, rules={"all": PartitionRules(state="DRAIN")})
    workload, _ = workload_of([Asked(0, 60, 60)])
    assert simulate_slurm(workload, drain).refused == {0: "PartitionInactive"}


def test_a_job_ends_before_a_reservation_of_nodes_or_waits() -> None:
    course = NodeReservation("course", start=600, duration=600, node_groups=("n",))
    site = site_of(TEN, reservations=(course,))
    jobs = (
        Asked(0, 60, 600),  # ends by its start
        Asked(0, 60, 660),  # would not: after its end
        Asked(0, 60, 660, reservations="course"),
    )
    found = starts(site, *jobs)
    assert found[0] == 0
    assert found[1] in range(1200, 1203)
    assert found[2] in range(600, 604)


def test_licenses_are_waited_for_without_blocking() -> None:
    site = site_of(TEN, licenses={"matlab": 2})
    jobs = (
        Asked(0, 600, 600, licenses="matlab:2"),
        Asked(1, 60, 60, licenses="matlab"),
        Asked(2, 60, 60),
    )
    assert starts(site, *jobs) == [0, 600, 2]


def test_a_job_waits_for_another_and_for_its_time() -> None:
    jobs = (
        Asked(0, 100, 600),
        Asked(0, 60, 60, after=0, after_what=After.END),
        Asked(0, 60, 60, begin_time=200),
    )
    found = starts(site_of(TEN), *jobs)
    assert found[0] == 0
    assert found[1] == 100
    assert found[2] in range(200, 261)


def test_so_many_tasks_of_an_array_run_at_once() -> None:
    jobs = [Asked(0, 100, 600, array_ids="9", array_most_running=2) for _ in range(4)]
    assert starts(site_of(TEN), *jobs) == [0, 0, 100, 100]


def test_a_job_that_could_never_run_is_refused() -> None:
    with pytest.raises(InputError, match="job 1 could never run on this machine"):
        run(site_of(TEN), Asked(0, 60, 60, tasks=11))
