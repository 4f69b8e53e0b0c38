"""How a model's starts are held against live runs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.slurm.runs.compare import agreement, first_difference, live_agreement
from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.recorded_runs import RecordedRun, less_for_nodes, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS, MICRO_FOLDER
from tests.slurm.runs.run_job import RunJob, parts_of, workload_of
from tests.slurm.runs.site_files import files_of
from tests.slurm.runs.slurmctld_log import decisions_of, loops_of


def run(starts: Sequence[int], submits: Sequence[int] | None = None) -> RecordedRun:
    start = np.array(starts, dtype=np.int64)
    submit = np.array(submits or [0] * len(starts), dtype=np.int64)
    size = len(starts)
    return RecordedRun(
        "26.05-1", submit, start, start + 10, ["Main"] * size, ["n1"] * size, ["COMPLETED"], {}
    )


def test_only_pairs_that_all_runs_start_in_one_order_are_asked_for() -> None:
    runs = [run([10, 20, 30]), run([10, 30, 20])]
    found = agreement(runs, np.array([10, 5, 30]))
    assert (found.pairs, found.in_order) == (2, 1)  # 1 and 2 differ from run to run
    assert found.share == 0.5
    assert not found.order_holds


def test_jobs_that_did_not_wait_together_are_no_pair() -> None:
    runs = [run([10, 20], [0, 10]), run([12, 20], [0, 10])]
    assert agreement(runs, np.array([20, 10])).pairs == 0


def test_starts_in_one_second_are_not_in_order() -> None:
    found = agreement([run([10, 20])], np.array([10, 10]))
    assert (found.pairs, found.in_order, found.ties) == (1, 0, 1)


def test_jobs_that_never_start_are_left_out() -> None:
    found = agreement([run([10, -1, 30])], np.array([10, 20, -1]))
    assert found.pairs == 0
    assert found.live_waits == (10.0,)


@pytest.mark.parametrize(("wait", "holds"), [(90, True), (120, True), (85, False), (125, False)])
def test_mean_wait_is_in_the_range_of_the_runs_or_near_their_mean(wait: int, holds: bool) -> None:
    runs = [run([90, 90]), run([100, 100]), run([120, 120])]
    assert agreement(runs, np.array([wait, wait])).wait_holds is holds
    alike = [run([100, 100]), run([100, 100])]
    assert agreement(alike, np.array([104, 104])).wait_holds
    assert not agreement(alike, np.array([106, 106])).wait_holds


def test_each_run_is_held_against_the_others() -> None:
    found = live_agreement([run([10, 20]), run([10, 20]), run([20, 10])])
    assert [(each.pairs, each.in_order) for each in found] == [(0, 0), (0, 0), (1, 0)]


def test_the_first_job_outside_the_range_of_the_runs_is_found() -> None:
    runs = [run([10, 50, 90]), run([14, 50, 90])]
    assert first_difference(runs, np.array([19, 50, 90])) is None
    assert first_difference(runs, np.array([10, 70, 60])) == 1


def test_the_same_seed_gives_the_same_jobs_of_the_load_asked_for() -> None:
    jobs = jobs_of(JobRecipe(jobs=300, load=1.5), 100, 7)
    assert jobs == jobs_of(JobRecipe(jobs=300, load=1.5), 100, 7)
    area = sum(job.runtime_s * job.tasks for job in jobs)
    assert area / 100 / jobs[-1].submit_s == pytest.approx(1.5, rel=0.05)
    assert all(job.runtime_s + 5 <= 60 * job.time_limit_min for job in jobs)


def test_every_configuration_is_a_cluster_and_a_workload() -> None:
    names = {name for name in CONFIGURATIONS if name != "ubccr-micro" or MICRO_FOLDER.exists()}
    for name in sorted(names):
        configuration = CONFIGURATIONS[name]
        files = files_of(configuration.site)
        assert len(files.node_settings) == configuration.site.machine.nodes
        jobs = configuration.jobs()
        workload, site_jobs = workload_of(name, configuration.site.machine, jobs)
        assert len(workload) == len(parts_of(jobs))
        if configuration.soft_limit:
            assert site_jobs.time_min_s is not None


def test_tasks_of_an_array_are_jobs_of_the_workload() -> None:
    jobs = [RunJob(0, "alice", 5, 60, array_tasks=3), RunJob(4, "bob", 5, 30, tasks=2)]
    machine = CONFIGURATIONS["default"].site.machine
    workload, _ = workload_of("two", machine, jobs)
    assert workload.submit_time.tolist() == [0, 0, 0, 4]
    assert workload.array_ids is not None
    assert workload.array_ids.by_job() == ["array 0"] * 3 + [None]


def test_the_log_says_when_the_loops_ran() -> None:
    log = """[2026-11-22T22:24:49.893] debug:  sched: Running job scheduler for default depth.
[2026-11-22T22:24:49.893] sched: Allocate JobId=7 NodeList=n[3-6,10] #CPUs=31 Partition=main
[2026-11-22T22:24:59.826] sched/backfill: _attempt_backfill: beginning
[2026-11-22T22:24:59.826] sched/backfill: _attempt_backfill: no jobs to backfill
[2026-11-22T22:25:19.827] sched/backfill: _attempt_backfill: beginning
[2026-11-22T22:25:19.828] sched/backfill: _attempt_backfill: completed testing 5(4) jobs, usec=934
[2026-11-22T22:25:20.940] debug:  sched: Running job scheduler for full queue.
"""
    zero = int(datetime.datetime.fromisoformat("2026-11-22T22:24:40").astimezone().timestamp())
    assert loops_of(log, zero) == {
        "main_loops": [[9.893, "d"], [40.94, "f"]],
        "backfill_cycles": [[39.827, 39.828, 4]],
    }


def test_decisions_are_told_in_seconds_of_the_run() -> None:
    begin = datetime.datetime.fromisoformat("2026-11-22T22:24:40").astimezone()
    zero = int(begin.timestamp())
    log = f"""[2026-11-22T22:25:19.827] sched/backfill: _dump_job_sched: JobId=13 to start at \
2026-11-22T22:26:23, end at 2026-11-22T22:29:00 on nodes n[3-7] in partition main
[2026-11-22T22:25:19.827] sched/backfill: BACKFILL: Try later JobId=14 later_start {zero + 260}
[2026-11-22T22:25:19.828] debug:  sackd_mgr_dump_state: saved state of 0 nodes
[2026-11-22T22:25:29.000] debug:  sched: Running job scheduler for full queue.
"""
    found = decisions_of(log, zero, 30, 40)
    assert [line.split()[0] for line in found] == ["39.827", "39.827"]
    assert "to start at 103 s, end at 260 s on nodes n[3-7]" in found[0]
    assert found[1].endswith("Try later JobId=14 later_start 260 s")


def test_a_run_began_at_the_latest_second_that_its_loops_allow() -> None:
    live = next(run for run in recorded_runs("ubccr-micro", "26.05") if run.name == "26.05-2")
    assert live.slurmctld_started(bf_interval=30) == -13  # priorities changed at 287, 587, ...


def test_22_05_counts_a_job_that_names_no_nodes_as_one_of_a_single_node() -> None:
    site = CONFIGURATIONS["age-and-size"].site
    plain = RunJob(submit_s=0, user="alice", time_limit_min=1, runtime_s=9, tasks=24)
    jobs = [plain, replace(plain, tasks_per_node=12), replace(plain, tasks_per_node=12, nodes=2)]
    less = less_for_nodes(replace(site, version=(22, 5)), jobs)
    assert less is not None
    assert less.tolist() == [0, -50, 0]  # 1,000 / 2 for one of ten nodes
    assert less_for_nodes(replace(site, version=(26, 5)), jobs) is None
