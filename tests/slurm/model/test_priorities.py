"""Priorities and fair share of a live Slurm, to the printed digit, against the model of them.

Jobs run, and sprio and sshare are read at every tick of the decay thread and between them. The
records in ``tests/assets/slurm`` were made so; every test run compares them. To make them anew,
name that folder in ``$FORETIME_PRIORITY_RECORDS``.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_priority_record import record
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.support.slurm.slurm_priority_cases import (
    CASES,
    QOS,
    SLURM_PARTITIONS,
    TREE,
    WEIGHTS,
    site_of,
)
from tests.support.slurm.slurm_priority_record import Record
from tests.support.slurm.slurm_priority_replay import differences

if "FORETIME_LIVE_MODEL" not in os.environ:
    # Sixteen clusters with a database each, to the digit: they want a machine to themselves.
    pytest.skip("set FORETIME_LIVE_MODEL=1 for it", allow_module_level=True)

TICKS = 3


def add_accounts(cluster: SlurmCluster) -> None:
    """Tell slurmdbd of the accounts, users and QOS."""
    cluster.sacctmgr("modify", "qos", "normal", "set", "priority=10")
    for qos in ("high", "low"):
        of_qos = f"priority={QOS[qos].priority}", f"usagefactor={QOS[qos].usage_factor}"
        cluster.sacctmgr("add", "qos", qos, *of_qos)
    for one in TREE[2:]:
        values = [f"fairshare={'parent' if one.shares is None else one.shares}"]
        values += [f"priority={one.priority}"] if one.priority else []
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
    first, held = cluster.jobs()[0]["JobId"], ("-n3", "-t4", "--mem=100")
    job("bob", "physics", 20, *held, "--hold")
    job("bob", "physics", 20, *held, f"--dependency=afterany:{first}")
    job("bob", "physics", 20, *held, "--begin=now+90")


def submit_more(cluster: SlurmCluster) -> None:
    """One more of everybody, whose priority is of no tick; what was held is released."""
    for shown in cluster.jobs():
        if shown["Priority"] == "0":
            cluster.checked(["scontrol", "release", shown["JobId"]])
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


def EXPERIMENT(release: SlurmRelease) -> dict[str, Record]:  # noqa: N802
    with ThreadPoolExecutor(len(CASES)) as pool:
        found = pool.map(lambda name: watch(release, name), CASES)
        records = dict(zip(CASES, found, strict=True))
    if "FORETIME_PRIORITY_RECORDS" in os.environ:
        folder = Path(os.environ["FORETIME_PRIORITY_RECORDS"], release.name, "priorities")
        for name, made in records.items():
            made.write(folder / f"{name}.json")
    return records


@pytest.mark.parametrize("case", CASES)
def test_every_priority_and_share_is_the_models(
    experiment: dict[str, Record], release: SlurmRelease, case: str
) -> None:
    assert release.version is not None
    version = release.version[:2]
    found = differences(experiment[case], site_of(CASES[case], version), version)
    assert list(found) == []


@pytest.mark.parametrize("case", CASES)
def test_much_happened_meanwhile(experiment: dict[str, Record], case: str) -> None:
    made = experiment[case]
    happened = [event for event, _ in made.events]
    assert happened.count("tick") >= TICKS
    assert happened.count("done") >= 10
    whole = [sample for sample in made.samples if sample.events >= 0]
    assert len(whole) >= 2 * TICKS
    assert all(len(sample.sshare) == len(TREE) for sample in whole)
    assert sum(len(sample.sprio) for sample in whole) >= 100
