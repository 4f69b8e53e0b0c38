"""A site whose priorities are watched on live clusters.

Accounts with ties and with shares of the parent, QOS, two partitions, one with billing weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

MIB_OF_GIB = 1024
BY_LINEAGE = (23, 11)
"""From here on slurmctld has associations in the order of their names."""
SLURM_PARTITIONS = (
    "main Nodes=ALL Default=YES PriorityJobFactor=10 TRESBillingWeights=CPU=1.0,Mem=3.0G",
    "fast Nodes=n[1-2] PriorityJobFactor=25",
)
MACHINE = Machine(
    (NodeGroup("a", nodes=2, cpus=4, memory_mib=1000), NodeGroup("b", 2, 4, 1000)),
    (SlurmPartition("main", ("a", "b"), default=True), SlurmPartition("fast", ("a",))),
)
# As sshare lists them: each account with its users, then the accounts below it, by name.
TREE = (
    Association("root"),
    Association("root", user="root"),
    Association("biology", parent="root", shares=30, priority=5),
    Association("biology", user="carol", shares=1, priority=5),
    Association("biology", user="dave", shares=None, priority=20),
    Association("genes", parent="biology", shares=20, priority=5),
    Association("genes", user="erin", shares=5, priority=5),
    Association("old", parent="biology", shares=None, priority=5),
    Association("old", user="alice", shares=3, priority=5),
    Association("chemistry1", parent="root", shares=7),
    Association("chemistry1", user="alice", shares=1),
    Association("chemistry1", user="bob", shares=0),
    Association("chemistry2", parent="root", shares=7),
    Association("chemistry2", user="carol", shares=1),
    Association("chemistry2", user="dave", shares=0),
    Association("physics", parent="root", shares=40),
    Association("physics", user="alice", shares=10, priority=12),
    Association("physics", user="bob", shares=30),
)
QOS = {
    "normal": Qos("normal", priority=10),
    "high": Qos("high", priority=40, usage_factor=2.0),
    "low": Qos("low", priority=0, usage_factor=0.5),
}


@dataclass(frozen=True)
class Case:
    """Settings as slurm.conf has them, and as the model does."""

    conf: Mapping[str, str]
    priority: SlurmPriority
    enforced: frozenset[str]


WEIGHTS = {
    "PriorityWeightAge": "100000",
    "PriorityWeightAssoc": "3000",
    "PriorityWeightFairshare": "1000000",
    "PriorityWeightJobSize": "20000",
    "PriorityWeightPartition": "7000",
    "PriorityWeightQOS": "5000",
    "PriorityWeightTRES": "CPU=1234,Mem=4321",
    "PriorityMaxAge": "0-00:30:00",
    "PriorityDecayHalfLife": "0-00:02:00",
    "PriorityCalcPeriod": "1",
}
PRIORITY = SlurmPriority(
    weight_age=100_000,
    weight_assoc=3000,
    weight_fair_share=1_000_000,
    weight_job_size=20_000,
    weight_partition=7000,
    weight_qos=5000,
    weight_tres={"cpu": 1234.0, "mem": 4321.0},
    max_age_s=1800,
    decay_half_life_s=120,
    calc_period_s=60,
)
CASES = {
    "fair-tree": Case(
        {
            "AccountingStorageEnforce": "limits",
            "PriorityFlags": "MAX_TRES",
            "SelectTypeParameters": "CR_Core_Memory",
        },
        replace(PRIORITY, flags=frozenset({"MAX_TRES"})),
        frozenset({"associations", "limits"}),
    ),
    "classic": Case(
        {
            "AccountingStorageEnforce": "associations",
            "PriorityFlags": "NO_FAIR_TREE,NO_NORMAL_PART,NO_NORMAL_QOS",
            "FairShareDampeningFactor": "3",
            "PriorityFavorSmall": "YES",
        },
        replace(
            PRIORITY,
            flags=frozenset({"NO_FAIR_TREE", "NO_NORMAL_PART", "NO_NORMAL_QOS"}),
            dampening_factor=3,
            favor_small=True,
        ),
        frozenset({"associations"}),
    ),
    "running": Case(
        {
            "AccountingStorageEnforce": "limits",
            "PriorityFlags": "CALCULATE_RUNNING,INCR_ONLY,NO_NORMAL_TRES,NO_NORMAL_ASSOC",
            "SelectTypeParameters": "CR_Core_Memory",
        },
        replace(
            PRIORITY,
            flags=frozenset(
                {"CALCULATE_RUNNING", "INCR_ONLY", "NO_NORMAL_TRES", "NO_NORMAL_ASSOC"}
            ),
        ),
        frozenset({"associations", "limits"}),
    ),
    "oblivious": Case(
        {
            "AccountingStorageEnforce": "limits",
            "PriorityFlags": "DEPTH_OBLIVIOUS,SMALL_RELATIVE_TO_TIME,ACCRUE_ALWAYS",
        },
        replace(
            PRIORITY,
            flags=frozenset({"DEPTH_OBLIVIOUS", "SMALL_RELATIVE_TO_TIME", "ACCRUE_ALWAYS"}),
        ),
        frozenset({"associations", "limits"}),
    ),
}


def tree_of(version: tuple[int, int]) -> tuple[Association, ...]:
    """Put siblings in the order in which slurmctld has them, which decides who goes first of tied
    accounts: by name, and before 23.11 as slurmdbd had them, the newest first."""
    if version >= BY_LINEAGE:
        return TREE

    def below(account: Association) -> list[Association]:
        children = [
            one
            for one in reversed(TREE)
            if (one.account if one.user else one.parent) == account.account
        ]
        return [
            account,
            *(each for child in children for each in ([child] if child.user else below(child))),
        ]

    return tuple(below(TREE[0]))


def site_of(case: Case, version: tuple[int, int]) -> SlurmSite:
    """Give the site as the model has it."""
    weights = {"cpu": 1.0, "mem": 3.0 / MIB_OF_GIB}
    return SlurmSite(
        MACHINE,
        version=version,
        priority=case.priority,
        rules={
            "main": PartitionRules(priority_job_factor=10, billing_weights=weights),
            "fast": PartitionRules(priority_job_factor=25),
        },
        qos=QOS,
        associations=tree_of(version),
        enforced=case.enforced,
    )
