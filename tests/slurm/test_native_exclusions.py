"""Native mechanism: a job that Slurm would judge on time_min goes through as its user wrote it.

Each kind of job is submitted with the hook off and with it on, on the same cluster, and must fare
the same. That it would not without the exclusion is shown by giving it a time_min by hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.slurm.harness.foretime_site import ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

SLURM_PARTITIONS = (
    "main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60",
    "capped Nodes=ALL MaxTime=5",
    "limited Nodes=ALL MaxTime=INFINITE QOS=counted",
)
# More than any of the limits below, less than any with time_min.
ASKED = ("-n", "1", "-t", "20")
SETTLED_S = 6

# What is asked for besides ASKED.
KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "array": ("--array=1-3",),
    "dependent": ("--dependency=afterany:1",),
    "held": ("--hold",),
    "later": ("--begin=now+1hour",),
    "own time_min": ("--time-min=1",),
    "heterogeneous": (":", "-n", "1", "-t", "20"),
    "deadline missed": ("--deadline=now+3minutes",),
    "deadline kept": ("--deadline=now+1hour",),
    "above MaxTime": ("-p", "capped"),
    "above one MaxTime": ("-p", "main,capped"),
    "GrpTRESRunMins": ("-A", "tight"),
    "inherited GrpTRESRunMins": ("-A", "below"),
    "GrpTRESMins": ("-A", "spent"),
    "MaxTRESMins of the user": ("-A", "own"),
    "QOS": ("-q", "counted"),
    "QOS of the slurm_partition": ("-p", "limited"),
    "MaxWall": ("-q", "walled"),
    "--test-only": ("--test-only",),
    "--test-only above MaxTime": ("--test-only", "-p", "capped"),
}
PLANNED = {"plain", "array", "dependent", "held", "later", "own time_min", "MaxWall"}
# Those that would start if Slurm judged them on a time_min of a minute.
DANGERS = {"above MaxTime", "GrpTRESRunMins", "inherited GrpTRESRunMins", "GrpTRESMins", "QOS"}


@pytest.fixture(scope="module")
def cluster(native_release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(native_release)
    try:
        cluster.add_accounting()
        for account, limit in (
            ("free", ()),
            ("tight", ("GrpTRESRunMins=cpu=10",)),
            ("below", ("parent=tight",)),
            ("spent", ("GrpTRESMins=cpu=10",)),
            ("own", ()),
        ):
            cluster.sacctmgr("add", "account", account, *limit)
        cluster.sacctmgr("add", "qos", "counted", "MaxTRESRunMinsPU=cpu=10")
        cluster.sacctmgr("add", "qos", "walled", "MaxWall=10")
        names = "account=free,tight,below,spent"
        cluster.sacctmgr("add", "user", "alice,bob", names, "DefaultAccount=free")
        cluster.sacctmgr("modify", "user", "alice,bob", "set", "qos=normal,counted,walled")
        cluster.sacctmgr("add", "user", "carol", "account=free,own", "DefaultAccount=free")
        cluster.sacctmgr(
            "modify", "user", "carol", "where", "account=own", "set", "MaxTRESMins=cpu=9"
        )
        cluster.set_conf(
            {"AccountingStorageEnforce": "safe"}, slurm_partitions=SLURM_PARTITIONS, restart=True
        )
        yield cluster
    finally:
        cluster.stop()


def submit_all(cluster: SlurmCluster) -> tuple[dict[str, str], str]:
    """Submit one job of each kind to a full cluster.

    Gives the id of each, or why it was refused, and the id of the job that fills the cluster.
    """
    full = cluster.sbatch("-N", "4", "--exclusive", "-t", "60", user="root")
    cluster.wait_for_state(full, "RUNNING")
    fate = {}
    for kind, options in KINDS.items():
        user = "carol" if kind == "MaxTRESMins of the user" else "alice"
        reply = cluster.try_sbatch(*ASKED, *options, user=user)
        refused = reply.stderr.strip().splitlines()
        if reply.returncode:
            fate[kind] = f"refused: {refused[-1]}"
        else:
            fate[kind] = "allowed" if "--test-only" in options else reply.stdout.strip()
    return fate, full


def how_it_fares(cluster: SlurmCluster, fate: dict[str, str], full: str) -> dict[str, object]:
    """What Slurm makes of each job once there is room: states, reasons and limits of its parts."""
    cluster.run(["scancel", full])
    cluster.wait_for(
        lambda: "alice" in cluster.run(["squeue", "-ht", "R", "-o%u"]).stdout, "starts"
    )
    time.sleep(SETTLED_S)
    return {
        kind: sorted(
            (job["JobState"], job["Reason"], job["TimeLimit"]) for job in cluster.jobs(job_id)
        )
        if job_id.isdecimal()
        else job_id
        for kind, job_id in fate.items()
    }


def time_min(cluster: SlurmCluster, job_id: str) -> set[str]:
    return {job["TimeMin"] for job in cluster.jobs(job_id)}


def cancel_all(cluster: SlurmCluster) -> None:
    for user in ("alice", "carol", "root"):
        cluster.run(["scancel", f"--user={user}"])
    cluster.wait_for(lambda: not cluster.run(["squeue", "-h"]).stdout, "an empty queue")


@pytest.mark.parametrize("enforced", ["NO", "ALL"])
def test_every_kind_of_job_fares_as_without_the_hook(cluster: SlurmCluster, enforced: str) -> None:
    cluster.set_conf({"EnforcePartLimits": enforced})
    plain = how_it_fares(cluster, *submit_all(cluster))
    cancel_all(cluster)
    cluster.install_hook()
    site = ForetimeSite(cluster)
    site.poll()
    accounts = {("account", name) for name in ("tight", "below", "spent")}
    assert site.table().left_alone == accounts | {("user", "carol"), ("qos", "counted")}
    fate, full = submit_all(cluster)
    site.look()
    given = {
        kind: next(iter(time_min(cluster, job_id)))
        for kind, job_id in fate.items()
        if job_id.isdecimal() and time_min(cluster, job_id) != {"N/A"}
    }
    assert given == dict.fromkeys(PLANNED, "00:02:00")
    planned = how_it_fares(cluster, fate, full)
    assert planned == plain
    assert plain["plain"] == [("RUNNING", "None", "00:20:00")]
    _the_dangers_are_real(cluster, site, fate)
    cancel_all(cluster)
    cluster.remove_hook()


def _the_dangers_are_real(cluster: SlurmCluster, site: ForetimeSite, fate: dict[str, str]) -> None:
    """With a time_min by hand each would start; a look takes it away before."""
    dangers = {kind: fate[kind] for kind in DANGERS if fate[kind].isdecimal()}
    assert len(dangers) >= 4
    for job_id in dangers.values():
        cluster.scontrol("hold", job_id)
        assert cluster.scontrol("update", f"JobId={job_id}", "TimeMin=1").returncode == 0
    site.look()
    for kind, job_id in dangers.items():
        assert time_min(cluster, job_id) == {"N/A"}, kind
    kind, job_id = sorted(dangers.items())[0]
    cluster.scontrol("update", f"JobId={job_id}", "TimeMin=1")
    cluster.scontrol("release", job_id)
    assert cluster.wait_for_state(job_id, "RUNNING", timeout_s=20), kind
