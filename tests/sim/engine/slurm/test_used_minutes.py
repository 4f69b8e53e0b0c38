"""Running jobs that Slurm ends once the minutes of a limit are used up: worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.forward import NEVER, forward_runs
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from tests.sim.engine.slurm.test_slurm_agreement import check_same

OLD, NEW = (22, 5), (26, 5)


def site_of(version: tuple[int, int], limits: Limits, *enforced: str) -> SlurmSite:
    """Four processors; usage of ann's account is charged once a minute, and never decays."""
    return SlurmSite(
        Machine.flat(4),
        version,
        SlurmParameters(batch_sched_delay=0),
        SlurmPriority(calc_period_s=60, decay_half_life_s=0),
        qos={"normal": Qos("normal")},
        associations=(
            Association("root", qos=("normal",)),
            Association("physics", parent="root", limits=limits),
            Association("physics", user="ann", default=True),
        ),
        enforced=frozenset({"associations", "limits", *enforced}),
    )


def jobs_of(*rows: tuple[int, int, int, int]) -> Workload:
    """Ann's jobs: submission, CPUs, runtime and time limit."""
    submit, processors, runtime, limit = np.array(rows, dtype=np.int64).T
    users = Labels(np.zeros(len(rows), dtype=np.int32), ("ann",))
    return Workload(
        "by hand", 4, 0, np.arange(1, len(rows) + 1), submit, processors, runtime, limit,
        users=users,
    )  # fmt: skip


def run_of(workload: Workload, site: SlurmSite) -> list[tuple[int, int]]:
    """Starts and ends, in which core and specification agree."""
    check_same(workload, site)
    schedule = simulate(workload, Policy(backfill=Slurm(site)), check=True)
    return list(zip(schedule.start_time.tolist(), schedule.end_time.tolist(), strict=True))


# It runs from 60 on, and the fifth minute is charged at 360. 26.05 looks at jobs before that.
@pytest.mark.parametrize(("version", "submit", "times"), [
    (OLD, 60, (60, 360)), (NEW, 59, (60, 390)),
])  # fmt: skip
def test_a_job_is_ended_at_the_look_that_finds_its_account_used_up(
    version: tuple[int, int], submit: int, times: tuple[int, int]
) -> None:
    workload = jobs_of((0, 1, 1, 60), (submit, 1, 3000, 3600))
    site = site_of(version, Limits(grp_tres_mins={"cpu": 5}))
    assert run_of(workload, site)[1] == times
    schedule = simulate(workload, Policy(backfill=Slurm(site)))
    assert schedule.killed.tolist() == [False, True]
    assert schedule.used_up is not None
    assert schedule.used_up.tolist() == [False, True]


def test_two_jobs_use_their_accounts_minutes_up_together() -> None:
    # Five minutes of two CPUs are charged at 180: six. A third job waits for ever then.
    workload = jobs_of((0, 1, 3000, 3600), (0, 1, 100, 3600), (200, 1, 60, 60))
    site = site_of(OLD, Limits(grp_tres_mins={"cpu": 4}))
    # 60: 2, 120: 3 + 40/60 (the second has ended at 100), 180: 4 + 40/60.
    assert run_of(workload, site)[:2] == [(0, 180), (0, 100)]
    schedule = simulate(workload, Policy(backfill=Slurm(site)))
    assert schedule.never_ran == {2: "AssocGrpCPUMinutesLimit"}


def test_the_first_is_charged_before_the_second_is_looked_at() -> None:
    # Both are looked at at 60, after they were charged: with two minutes, both go at once.
    workload = jobs_of((0, 1, 3000, 3600), (0, 2, 3000, 3600))
    assert run_of(workload, site_of(OLD, Limits(grp_tres_mins={"cpu": 3}))) == [(0, 60), (0, 60)]


def test_under_safe_no_job_is_ended_but_none_starts_that_could_be() -> None:
    # Four minutes of the six are the first job's, of which it leaves some; the second has three.
    workload = jobs_of((0, 1, 200, 240), (0, 1, 30, 180))
    site = site_of(OLD, Limits(grp_tres_mins={"cpu": 6}), "safe")
    assert run_of(workload, site) == [(0, 200), (200, 230)]
    schedule = simulate(workload, Policy(backfill=Slurm(site)))
    assert schedule.used_up is not None
    assert not schedule.used_up.any()
    both = site_of(OLD, Limits(grp_tres_mins={"cpu": 6}))
    assert run_of(workload, both) == [(0, 200), (0, 30)]


@pytest.mark.parametrize(("version", "times"), [(OLD, (0, 180)), (NEW, (1, 210))])
def test_a_job_is_ended_for_its_own_minutes(
    version: tuple[int, int], times: tuple[int, int]
) -> None:
    # It may ask for four of five minutes, and runs on beyond its limit until it has had six.
    workload = jobs_of((0, 2, 3000, 120))
    site = site_of(version, Limits(max_tres_mins_per_job={"cpu": 5}))
    site = replace(site, parameters=replace(site.parameters, over_time_limit_s=600))
    check_same(workload, site)
    schedule = simulate(workload, Policy(backfill=Slurm(site)))
    assert (schedule.start_time[0], schedule.end_time[0]) == times


def test_wall_time_of_a_group_ends_jobs_of_any_size() -> None:
    workload = jobs_of((0, 2, 3000, 3600))
    assert run_of(workload, site_of(OLD, Limits(grp_wall_s=120))) == [(0, 120)]


def test_nobody_need_wait_for_a_job_to_be_ended_in_a_forward_run() -> None:
    site = site_of(NEW, Limits(grp_tres_mins={"cpu": 5}))
    workload = jobs_of((0, 4, 3000, 3600), (10, 4, 60, 60))
    engine = Engine(4, Policy(backfill=Slurm(site)))
    for job in range(2):
        engine.advance(int(workload.submit_time[job]))
        engine.submit(
            int(workload.submit_time[job]), 4, int(workload.actual_runtime[job]),
            int(workload.requested_time[job]), user="ann",
        )  # fmt: skip
    engine.advance(50)
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    runtimes = workload.actual_runtime[snapshot.engine_index][None, :]
    starts = forward_runs(snapshot, Policy(backfill=Slurm(site)), runtimes, threads=1)
    engine.finish()
    # Whose account is used up never starts; it is ended on the way all the same.
    assert engine.job(0).used_up
    assert engine.ran(0) == (1, 150)
    assert starts.tolist() == [[1, NEVER]]


def test_usage_that_decays_lets_others_go_again() -> None:
    site = site_of(OLD, Limits(grp_tres_mins={"cpu": 5}))
    site = replace(site, priority=replace(site.priority, decay_half_life_s=600))
    workload = jobs_of((0, 4, 3000, 3600), (10, 4, 60, 60))
    (start, end), (later, _) = run_of(workload, site)
    assert (start, end) == (0, 120)
    # Each minute of four CPUs is charged as 224 s: 433 s at 120, which are below 300 from 438 on.
    assert later == 480
