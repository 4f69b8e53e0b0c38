"""Priorities and fair share of a live Slurm, to the printed digit, against the model of them.

A tree of accounts with ties and shares of the parent, users, QOS, two partitions with billing
weights; jobs run, and sprio and sshare are read at every tick of the decay thread and between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.slurm_limits import Association, Qos
from foretime_sim.sites.slurm_priority import SlurmPriority
from foretime_sim.sites.slurm_site import PartitionRules, SlurmSite

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_priority_record import Record, record
from tests.slurm.harness.slurm_releases import SlurmRelease

TICKS = 3
MIB_OF_GIB = 1024
BY_LINEAGE = (23, 11)
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
        {"AccountingStorageEnforce": "limits", "PriorityFlags": "MAX_TRES"},
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


def tree_of(release: SlurmRelease) -> tuple[Association, ...]:
    """Put siblings in the order in which slurmctld has them, which decides who goes first of tied
    accounts: by name, and before 23.11 as slurmdbd had them, the newest first."""
    if release.version is not None and release.version >= BY_LINEAGE:
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


def site_of(case: Case, release: SlurmRelease) -> SlurmSite:
    """Give the site as the model has it."""
    weights = {"cpu": 1.0, "mem": 3.0 / MIB_OF_GIB}
    return SlurmSite(
        MACHINE,
        priority=case.priority,
        rules={
            "main": PartitionRules(priority_job_factor=10, billing_weights=weights),
            "fast": PartitionRules(priority_job_factor=25),
        },
        qos=QOS,
        associations=tree_of(release),
        enforced=case.enforced,
    )


def add_accounts(cluster: SlurmCluster) -> None:
    """Tell slurmdbd of the accounts, users and QOS."""
    cluster.sacctmgr("modify", "qos", "normal", "set", "priority=10")
    for qos in ("high", "low"):
        values = (f"priority={QOS[qos].priority}", f"usagefactor={QOS[qos].usage_factor}")
        cluster.sacctmgr("add", "qos", qos, *values)
    for one in TREE[2:]:
        values = (f"fairshare={'parent' if one.shares is None else one.shares}",)
        values += (f"priority={one.priority}",) if one.priority else ()
        if one.user is None:
            of = (f"parent={one.parent}", "qos=normal,high,low", "defaultqos=normal")
            cluster.sacctmgr("add", "account", one.account, *of, *values)
        else:
            cluster.sacctmgr("add", "user", one.user, f"account={one.account}", *values)


def submit(cluster: SlurmCluster) -> None:
    """Fill the machine, and let others wait."""

    def job(user: str, account: str, runs_s: int, *options: str, qos: str = "normal") -> None:
        words = ("-A", account, "-q", qos, *options)
        cluster.sbatch(*words, user=user, script=f"sleep {runs_s}")

    job("alice", "physics", 40, "-n4", "-t5", "--mem=100")
    job("bob", "physics", 100, "-n2", "-t5", "--mem=300", qos="high")
    job("carol", "biology", 75, "-n4", "-N1", "-t7", "--mem=800")
    job("dave", "biology", 1000, "-n2", "-t30", "--mem=100", qos="low")
    job("erin", "genes", 150, "-n4", "-t9", "--mem=100")
    for number, one in enumerate(TREE):
        if one.user in (None, "root"):
            continue
        job(one.user, one.account, 30, "-n16", "-N4", f"-t{number}", "--mem=50")
        job(one.user, one.account, 35, f"-n{1 + number % 3}", "-t20", "--mem=200", "--nice=17")
        job(one.user, one.account, 50, "-n2", "-p", "main,fast", "-t3", "--mem=300", qos="high")


def submit_more(cluster: SlurmCluster) -> None:
    """One more of everybody, whose priority is of no tick."""
    for one in TREE:
        if one.user not in (None, "root"):
            words = ("-A", one.account, "-q", "low", "-n3", "-t4", "--mem=400")
            cluster.sbatch(*words, user=one.user, script="sleep 20")


def watch(release: SlurmRelease, name: str) -> Record:
    """Record a case on a cluster of its own."""
    conf = {"PriorityType": "priority/multifactor", **WEIGHTS, **CASES[name].conf}
    with SlurmCluster(release, nodes=4, cpus=4, slurm_partitions=SLURM_PARTITIONS) as cluster:
        cluster.add_accounting()
        add_accounts(cluster)
        return record(cluster, conf, submit, [submit_more], TICKS)
