"""Running jobs are ended once the minutes of their account are used up, as the model says.

When slurmctld charges and looks is not told, so the model gives bounds: usage is charged once a
minute, and jobs are looked at every 30 s.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.reasons import TresLimit, word
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

MINUTES = 2
CHARGED_S, LOOKED_S, BUSY_S = 60, 30, 15


@dataclass
class Found:
    """The records of two jobs that ran side by side, and why a third waits."""

    records: list[dict[str, str]]
    reason: str
    version: tuple[int, int]


def EXPERIMENT(release: SlurmRelease) -> Found:  # noqa: N802
    assert release.version is not None
    with SlurmCluster(release, nodes=1, cpus=4) as cluster:
        cluster.add_accounting()
        cluster.sacctmgr("add", "account", "a", f"GrpTRESMins=cpu={MINUTES}")
        cluster.sacctmgr("add", "user", "alice", "account=a")
        cluster.set_conf(
            {
                "AccountingStorageEnforce": "limits,qos",
                "PriorityType": "priority/multifactor",
                "PriorityCalcPeriod": "1",
            },
            restart=True,
        )
        ids = [cluster.sbatch("-t", "10", "-n", "1") for _ in range(2)]
        for job in ids:
            cluster.wait_for_state(job, "RUNNING")
        for job in ids:
            cluster.wait_for_end(job, timeout_s=2 * CHARGED_S + LOOKED_S + 2 * BUSY_S)
        last = cluster.sbatch("-t", "10", "-n", "1")
        time.sleep(5)
        reason = cluster.job(last)["Reason"]
        fields = ("State", "ElapsedRaw", "TimelimitRaw", "AllocCPUS")
        records = [cluster.sacct(*fields, job_id=job)[0] for job in ids]
    return Found(records, reason, release.version[:2])


def test_slurm_and_the_model_end_the_jobs_alike(experiment: Found) -> None:
    site = SlurmSite(
        Machine.flat(4),
        experiment.version,
        priority=SlurmPriority(calc_period_s=CHARGED_S),
        qos={"normal": Qos("normal")},
        associations=(
            Association("root", qos=("normal",)),
            Association("a", parent="root", limits=Limits(grp_tres_mins={"cpu": MINUTES})),
            Association("a", user="alice", default=True),
        ),
        enforced=frozenset({"limits", "qos"}),
    )
    ones = np.ones(2, dtype=np.int64)
    workload = Workload(
        "alice", 4, 0, np.arange(2), 0 * ones, ones, 3600 * ones, 600 * ones,
        users=Labels(np.zeros(2, dtype=np.int32), ("alice",)),
    )  # fmt: skip
    modelled = simulate(workload, Policy(backfill=Slurm(site)))
    assert modelled.used_up is not None
    assert modelled.used_up.all()
    assert experiment.reason == word(TresLimit.ASSOC_GROUP_MINUTES, "cpu")
    ran_s = (modelled.end_time - modelled.start_time)[0]
    for record in experiment.records:
        assert record["State"] == "TIMEOUT"
        assert record["TimelimitRaw"] == "10"
        assert abs(int(record["ElapsedRaw"]) - ran_s) <= CHARGED_S + LOOKED_S + BUSY_S
        assert int(record["ElapsedRaw"]) >= CHARGED_S * MINUTES / len(experiment.records)
