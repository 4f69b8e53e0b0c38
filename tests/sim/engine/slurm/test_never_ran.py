"""Jobs that a site never lets run: why, and in which scores they count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators import parse_estimator
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import simulate_with_estimator
from foretime_sim.engine.schedule import NEVER, why_never
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.comparison import PairedRun, compare
from foretime_sim.scores.metrics import score
from foretime_sim.scores.policy_comparison import PolicyCase, compare_policies
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from tests.sim.engine.slurm.test_slurm_agreement import check_same


def site_of(**limits: object) -> SlurmSite:
    """Four processors for ann, whose account has these limits."""
    return SlurmSite(
        Machine.flat(4),
        associations=(
            Association("root"),
            Association("physics", parent="root", limits=Limits(**limits)),  # type: ignore[arg-type]
            Association("physics", user="ann", default=True),
        ),
        enforced=frozenset({"associations", "limits"}),
    )


TWO_CPUS = site_of(grp_tres={"cpu": 2})
WORKLOAD = Workload(
    "by hand",
    4,
    None,
    np.array([1, 2, 3, 4]),
    np.array([0, 0, 10, 20], dtype=np.int64),
    np.array([2, 3, 1, 1], dtype=np.int64),
    np.array([600, 600, 300, 60], dtype=np.int64),
    np.array([600, 600, 300, 60], dtype=np.int64),
    users=Labels(np.array([0, 0, 0, 1], dtype=np.int32), ("ann", "bob")),
)
"""Ann's second job is wider than her account may be; bob is nobody's user."""
NOBODY = "Invalid account or account/partition combination specified"


def test_who_never_runs_is_told_with_slurms_reason() -> None:
    check_same(WORKLOAD, TWO_CPUS)
    schedule = simulate(WORKLOAD, Policy(backfill=Slurm(TWO_CPUS)), check=True)
    assert schedule.never_ran == {1: "AssocGrpCpuLimit", 3: NOBODY}
    assert schedule.start_time[[1, 3]].tolist() == schedule.end_time[[1, 3]].tolist() == [NEVER] * 2
    assert not schedule.killed.any()
    assert why_never(schedule.never_ran) == {"AssocGrpCpuLimit": 1, NOBODY: 1}


def test_who_never_runs_is_not_scored() -> None:
    policy = Policy(backfill=Slurm(TWO_CPUS))
    alone = WORKLOAD.take(np.array([0, 2]))
    scores = [
        score(workload, simulate_with_estimator(workload, policy, parse_estimator("requested")))
        for workload in (WORKLOAD, alone)
    ]
    assert scores[0] == scores[1]


def test_cases_are_scored_on_the_jobs_that_run_under_all() -> None:
    wide = PolicyCase("wide", Policy(backfill=Slurm(site_of(grp_tres={"cpu": 3}))))
    narrow = PolicyCase("narrow", Policy(backfill=Slurm(TWO_CPUS)))
    found = compare_policies(WORKLOAD, [wide, narrow])
    assert [found.figure(case, "jobs").mean for case in (0, 1)] == [2, 2]
    assert found.never_ran(0) == {NOBODY: 1}
    assert found.never_ran(1) == {"AssocGrpCpuLimit": 1, NOBODY: 1}
    for case, run in enumerate(found.runs[0]):
        assert found.figure(case, "wait_max_s").mean == run.wait[[0, 2]].max()


def test_pairs_are_scored_on_the_jobs_that_run_in_both() -> None:
    def run(workload: Workload, repeat: int) -> PairedRun:
        del repeat
        requested = parse_estimator("requested")
        sites = (site_of(grp_tres={"cpu": 3}), TWO_CPUS)
        policies = [Policy(backfill=Slurm(site)) for site in sites]
        return PairedRun(*(simulate_with_estimator(workload, each, requested) for each in policies))

    found = compare(WORKLOAD, run)
    assert found["jobs"].baseline == found["jobs"].adjusted == 2


def test_a_log_of_which_no_job_runs_is_not_scored() -> None:
    nobodys = replace(WORKLOAD, users=None)
    with pytest.raises(InputError, match="none of the 4 jobs to score ever ran"):
        compare_policies(nobodys, [PolicyCase("site", Policy(backfill=Slurm(TWO_CPUS)))])
