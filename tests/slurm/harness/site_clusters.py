"""Clusters as sites have them: accounts, QOS, fair share, features, GPUs, licenses, limits.

`bring_up_varied` has something of everything that a site's file can say. `bring_up_from` makes a
cluster of a folder with a site's slurm.conf and the commands of sacctmgr that build its accounts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

_CPU = "CPUs=8 RealMemory=16000 Feature=avx2,ib Weight=10"
VARIED_NODES = {
    "n1": _CPU,
    "n2": _CPU,
    "n3": _CPU,
    "n10": _CPU,
    "g1": "CPUs=16 RealMemory=64000 Feature=avx512,ib Weight=100 Gres=gpu:a100:4",
    "g2": "CPUs=16 RealMemory=64000 Feature=avx512,ib Weight=100 Gres=gpu:a100:4",
    "b1": "CPUs=8 RealMemory=512000 Feature=avx2,bigmem Weight=50",
}
_PARTITIONS = """\
main Nodes=n[1-3,10],b1 Default=YES MaxTime=2-00:00:00 DefaultTime=1:00:00 DefMemPerCPU=1000
MaxMemPerCPU=4000 TRESBillingWeights=CPU=1.0,Mem=0.25G PreemptMode=REQUEUE

short Nodes=n[1-3] MaxTime=4:00:00 MaxNodes=2 PriorityTier=10 PriorityJobFactor=100
QOS=shortpart AllowQos=normal,high DefMemPerCPU=1000

gpu Nodes=g[1-2] MaxTime=1-00:00:00 AllowAccounts=physics,chemistry MaxCPUsPerNode=14
TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=8.0 DefMemPerNode=8000 OverTimeLimit=10 GraceTime=120

whole Nodes=n10,b1 MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE DenyQos=low DenyAccounts=biology\
"""
VARIED_PARTITIONS = tuple(text.replace("\n", " ") for text in _PARTITIONS.split("\n\n"))
VARIED_CONF = {
    "SelectTypeParameters": "CR_Core_Memory",
    "GresTypes": "gpu",
    "Licenses": "matlab:5,ansys:2",
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightAssoc": "50",
    "PriorityWeightFairShare": "100000",
    "PriorityWeightJobSize": "500",
    "PriorityWeightPartition": "2000",
    "PriorityWeightQOS": "10000",
    "PriorityWeightTRES": "cpu=10,mem=0.5,gres/gpu=3000",
    "PriorityMaxAge": "3-00:00:00",
    "PriorityDecayHalfLife": "2-00:00:00",
    "PriorityCalcPeriod": "1",
    "PriorityUsageResetPeriod": "MONTHLY",
    "PriorityFavorSmall": "YES",
    "PriorityFlags": "ACCRUE_ALWAYS,SMALL_RELATIVE_TO_TIME",
    "FairShareDampeningFactor": "3",
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
    "EnforcePartLimits": "ANY",
    "OverTimeLimit": "5",
    "KillWait": "20",
    "CompleteWait": "4",
    "JobSubmitPlugins": "all_partitions",
}
VARIED_SCHEDULING = {
    "bf_interval": "5",
    "bf_window": "2880",
    "bf_resolution": "300",
    "bf_max_job_user": "50",
    "bf_max_job_part": "100",
    "bf_min_age_reserve": "600",
    "bf_licenses": None,
    "max_rpc_cnt": "150",
    "assoc_limit_stop": None,
    "preempt_youngest_first": None,
    "bf_hetjob_prio": "min",
}
_ACCOUNTS = """
add qos high priority=1000 flags=DenyOnLimit,OverPartQOS maxtresperuser=cpu=24,gres/gpu=2
modify qos high set maxwall=1-00:00:00
add qos low priority=10 usagefactor=0.5 maxjobsperuser=4 maxsubmitjobsperuser=100
modify qos low set mintresperjob=cpu=2
add qos shortpart grptres=cpu=20,node=3 maxjobsperaccount=8 grptresrunmins=cpu=60000 flags=NoReserve
modify qos high set preempt=low preemptmode=requeue
add account science fairshare=30 grptres=cpu=40 maxjobs=20
add account physics parent=science fairshare=10 qos=normal,high,low defaultqos=normal
add account chemistry parent=science fairshare=parent qos=normal,low grpwall=1000:00:00
add account biology fairshare=5 qos=normal,low
add user alice account=physics fairshare=3 qos=normal,high,low defaultqos=normal
add user bob account=physics maxjobs=5 maxsubmitjobs=200 maxwall=12:00:00
add user bob account=chemistry fairshare=2
add user carol account=chemistry
add user dave account=biology grptresmins=cpu=100000
add user erin account=biology partition=main
"""


def build_accounts(slurm: SlurmCluster, commands: str) -> None:
    """Run commands of sacctmgr, a line each; remarks and lists are left out."""
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] not in ("list", "show"):
            slurm.sacctmgr(*words)


def bring_up_varied(release: SlurmRelease, accounts: str = _ACCOUNTS) -> SlurmCluster:
    """Bring up the cluster that has something of everything, and enforce its limits."""
    slurm = SlurmCluster(
        release,
        node_settings=VARIED_NODES,
        conf={**VARIED_CONF, "PriorityWeightTRES": "cpu=10"},
        scheduler_parameters=VARIED_SCHEDULING,
        slurm_partitions=_without_accounting(VARIED_PARTITIONS),
        files={"gres.conf": "NodeName=g[1-2] Name=gpu Type=a100 File=FOLDER/gpu[0-3]\n"},
    )
    try:
        slurm.add_accounting()
        # Limits of GPUs can be given only once they are counted.
        slurm.set_conf({"AccountingStorageTRES": "gres/gpu,license/matlab"}, restart=True)
        build_accounts(slurm, accounts)
        slurm.set_conf(
            {
                "AccountingStorageEnforce": "associations,limits,qos,safe",
                "PriorityWeightTRES": VARIED_CONF["PriorityWeightTRES"],
            },
            slurm_partitions=VARIED_PARTITIONS,
            restart=True,
        )
    except BaseException:
        slurm.stop()
        raise
    return slurm


_NOT_OF_A_COPY = re.compile(
    r"AuthType|Slurmctld(Host|Port|Debug|LogFile|PidFile|Timeout)|Slurmd\w+|SlurmUser|\w*LogFile"
    r"|Control\w+|JobCredential\w+|StateSaveLocation|JobComp\w+|AccountingStorage(Type|Host|Enforce)"
    r"|AcctGather\w+|JobAcctGather\w+|Proctrack\w+|FrontEnd\w+|CryptoType|ClusterName|SlurmSched\w+"
    r"|PropagateResource\w+|UsePAM|VSizeFactor|KillOnBadExit|SchedulerParameters|FirstJobId|MaxStep\w+",
    re.IGNORECASE,
)


def bring_up_from(release: SlurmRelease, site: Path, *, slurmd: bool = False) -> SlurmCluster:
    """Bring up a cluster in the shape of a folder's slurm.conf, with the accounts of its script."""
    values: dict[str, str] = {}
    parameters: dict[str, str | None] = {}
    nodes: dict[str, str] = {}
    partitions: list[str] = []
    defaults = {"NodeName": "", "PartitionName": ""}
    for line in (site / "slurm.conf").read_text(encoding="utf-8").splitlines():
        key, _, rest = line.partition("#")[0].strip().partition("=")
        name, _, more = rest.partition(" ")
        if key in defaults and name == "DEFAULT":
            defaults[key] = _merged(defaults[key], more)
        elif key == "NodeName":
            # CPUs of a node of cores are what slurmctld works out by itself.
            said = _merged(defaults[key], more)
            said = re.sub(r"\b(Procs|CPUs)=\S+ ?", "", said) if "Sockets" in said else said
            nodes |= dict.fromkeys(_names(name), said)
        elif key == "PartitionName":
            partitions.append(f"{name} {_merged(defaults[key], more)}")
        elif key == "SchedulerParameters":
            for word in rest.split(","):
                name, given, value = word.partition("=")
                parameters[name] = value if given else None
        elif key and not _NOT_OF_A_COPY.fullmatch(key):
            values[key] = rest.strip()
    later = ("AccountingStorageTRES", "PriorityWeightTRES")
    files = {
        name: "\n".join(
            line for line in (site / name).read_text().splitlines() if "AutoDetect" not in line
        )
        + "\n"
        for name in ("gres.conf", "topology.conf")
        if (site / name).exists()
    }
    slurm = SlurmCluster(
        release,
        node_settings=nodes,
        conf={key: text for key, text in values.items() if key not in later},
        slurm_partitions=_without_accounting(partitions),
        files=files,
        slurmd=slurmd,
    )
    try:
        slurm.conf.scheduler_parameters = parameters
        slurm.add_accounting()
        script = (site / "sacctmgr.script").read_text(encoding="utf-8")
        # The cluster is there, under a name of the tests'.
        script = re.sub(r"^add cluster Name=\S+ ", "modify cluster lab set ", script, flags=re.M)
        script = re.sub(r"^remove QOS where Name=normal$", "", script, flags=re.M)
        build_accounts(slurm, script)
        slurm.set_conf(
            {
                "AccountingStorageEnforce": "associations,limits,qos",
                **{key: values[key] for key in later if key in values},
            },
            slurm_partitions=[re.sub(r" State=\S+", "", text) for text in partitions],
            restart=True,
        )
    except BaseException:
        slurm.stop()
        raise
    return slurm


def _without_accounting(partitions: Sequence[str]) -> list[str]:
    """Leave out what needs accounting: QOS, weights of GPUs; and State, which is added."""
    needs = r" (\w*QOS|State|TRESBillingWeights)=\S+"
    return [re.sub(needs, "", text, flags=re.IGNORECASE) for text in partitions]


def _merged(first: str, more: str) -> str:
    """Give settings of a line on top of those of DEFAULT."""
    values = dict(word.split("=", 1) for word in f"{first} {more}".split())
    return " ".join(f"{key}={value}" for key, value in values.items())


def _names(expression: str) -> list[str]:
    found = re.fullmatch(r"(.*)\[(\d+)-(\d+)\]", expression)
    if not found:
        return [expression]
    return [
        f"{found[1]}{str(number).zfill(len(found[2]))}"
        for number in range(int(found[2]), int(found[3]) + 1)
    ]
