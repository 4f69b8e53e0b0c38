"""A site of its slurm.conf alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site
from foretime_sim.engine.engine import simulate
from foretime_sim.models.workload_models import generate
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import with_machine

# The micro cluster, as tests.slurm.harness.site_clusters has it brought up.
MICRO = """\
ClusterName=micro
SlurmUser=slurm
ControlMachine=localhost
GresTypes=gpu
TopologyPlugin=topology/tree
KillWait=30
# scheduling
SchedulerType=sched/backfill
SchedulerParameters=bf_max_job_user=200,bf_window=1440,bf_interval=30,bf_max_time=30,\\
sched_interval=60,bf_max_job_test=1200,default_queue_depth=1200,bf_continue
FairShareDampeningFactor=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
prioritytype=priority/multifactor
PriorityDecayHalfLife=0-4
PriorityFavorSmall=NO
PriorityWeightFairshare=50000  # as in 2020
PriorityWeightAge=50000
PriorityWeightPartition=1000000
PriorityWeightJobSize=200000
PriorityWeightQOS=20000
PriorityMaxAge=0-5
EnforcePartLimits=YES
AccountingStorageEnforce=associations,limits,qos
Include nodes.conf
PartitionName=normal Nodes=n[1-4],m[1-4],g1,b1 Default=YES DefMemPerCPU=2800 MaxTime=INFINITE
PartitionName=debug Nodes=n[1-2] DefMemPerCPU=2800 MaxTime=INFINITE State=UP
"""
NODES = """\
NodeName=DEFAULT RealMemory=48000 Procs=12 Sockets=2 CoresPerSocket=6 ThreadsPerCore=1
NodeName=n[1-4] Feature=IB,CPU-N
NodeName=m[1-4] Procs=12 Feature=IB,CPU-M
NodeName=g1 Gres=gpu:2 Feature=IB,CPU-G
NodeName=b1 RealMemory=512000 Feature=IB,CPU-G,BigMem
"""


TOPOLOGY = """\
# leaves
SwitchName=IBN Nodes=n[1-4]
switchname=IBM nodes=m[1-100] LinkSpeed=10
SwitchName=IBG \\
  Nodes=g1,b1
SwitchName=TOP Switches=IBN,IBM,IBG
"""


def site_of(folder: Path, conf: str, nodes: str = NODES) -> SlurmSite:
    (folder / "slurm.conf").write_text(conf)
    (folder / "nodes.conf").write_text(nodes)
    (folder / "gres.conf").write_text("NodeName=g1 Name=gpu Count=2\n")
    (folder / "topology.conf").write_text(TOPOLOGY)
    return import_site(read_folder(folder), UTC).site


@pytest.mark.parametrize("release", ["22.05", "26.05"])
def test_it_says_what_the_live_cluster_said(tmp_path: Path, repository: Path, release: str) -> None:
    live = import_site(
        read_folder(repository / "tests/assets/slurm" / release / "ubccr-micro"), UTC
    ).site
    site = site_of(tmp_path, MICRO)

    def of_the_file(site: SlurmSite) -> SlurmSite:
        none = frozenset[str]()  # is enforced without associations
        return replace(
            site, version=(26, 5), not_modelled=(), qos={}, associations=(), enforced=none
        )

    assert of_the_file(site) == of_the_file(live)


def test_what_it_does_not_tell_is_said(tmp_path: Path) -> None:
    said, of_loops = sorted(site_of(tmp_path, MICRO).not_modelled)
    assert of_loops.startswith("SchedulerParameters bf_max_time: loops take no time")
    assert said == (
        "Accounts, QOS and their limits: no output of sacctmgr show assoc and qos was given, so "
        "AccountingStorageEnforce does not count."
    )


def test_without_associations_jobs_run_though_some_are_enforced(tmp_path: Path) -> None:
    site = site_of(tmp_path, MICRO)
    jobs = with_machine(generate("lublin2003", jobs=20, processors=24, seed=1), site.machine)
    assert simulate(jobs, Policy(backfill=Slurm(site))).never_ran == {}


def test_nodes_may_be_named_by_sets_and_by_all(tmp_path: Path) -> None:
    more = (
        "NodeSet=fast Feature=CPU-G\nPartitionName=DEFAULT MaxTime=60 Priority=7 DefaultTime=99\n"
        "PartitionName=fast Nodes=fast\nPartitionName=every Nodes=ALL MaxTime=2-0\n"
    )
    site = site_of(tmp_path, MICRO + more)
    fast, every = site.machine.slurm_partitions[2:]
    assert (fast.node_groups, len(every.node_groups)) == (("b", "g"), 5)
    assert (fast.priority_tier, fast.max_time_s, every.max_time_s) == (7, 3600, 172_800)
    assert site.rules["fast"].priority_job_factor == 7
    # Above MaxTime, slurmctld drops it.
    assert site.rules["fast"].default_time_s is None
    assert site.rules["every"].default_time_s == 99 * 60


FAULTS = {
    "no setting": ("SlurmUser\n", r"slurm\.conf:\d+: 'SlurmUser' is no setting: write KEY=VALUE"),
    "no such node": ("PartitionName=x Nodes=z1\n", "PartitionName=x: there is no node 'z1'"),
    "included": ("Include gone.conf\n", r"gone\.conf: there is no such file"),
    "word": ("NodeName=z1 CPUs\n", r"slurm\.conf:\d+: 'CPUs' is no KEY=VALUE"),
    "number": ("PriorityWeightAge=much\n", "PriorityWeightAge = much: is no whole number"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(tmp_path: Path, fault: str) -> None:
    line, said = FAULTS[fault]
    with pytest.raises(InputError, match=said):
        site_of(tmp_path, MICRO + line)


def test_a_file_that_ends_before_its_partitions_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"slurm\.conf: it has no line PartitionName=; is it cut"):
        site_of(tmp_path, MICRO[: MICRO.index("PartitionName")])
