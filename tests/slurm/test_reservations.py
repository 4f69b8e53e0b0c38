"""Native mechanism: no job runs on into a reservation, whenever that was made."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.slurm.harness.foretime_site import ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

# Each its own node, so that the cases wait side by side.
SLURM_PARTITIONS = (
    "main Nodes=ALL Default=YES MaxTime=INFINITE",
    *(f"p{number} Nodes=n{number} MaxTime=INFINITE" for number in range(1, 7)),
)
SETTLED_S = 5


@pytest.fixture
def cluster(native_release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(native_release, nodes=6, slurm_partitions=SLURM_PARTITIONS)
    try:
        cluster.install_hook()
        yield cluster
    finally:
        cluster.stop()


def reserve(cluster: SlurmCluster, node: int, *words: str, after_min: int = 4) -> str:
    """Make a reservation of one node; gives its name."""
    starts = "now" if after_min == 0 else f"now+{after_min}minutes"
    reply = cluster.scontrol(
        "create", "reservation", f"nodes=n{node}", f"starttime={starts}", "duration=10", *words
    )
    assert reply.returncode == 0, reply.stderr
    return str(re.findall(r"created: (\S+)", reply.stdout)[0])


def fill(cluster: SlurmCluster, node: int) -> str:
    """Run a job on all of a node."""
    job = cluster.sbatch("-p", f"p{node}", "-n", "4", "-t", "2", user="erin", script="sleep 999")
    cluster.wait_for_state(job, "RUNNING")
    return job


def test_no_planned_job_starts_into_a_reservation(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, leave_users=["erin"])
    kinds = {1: ("user=root", "flags=MAINT"), 2: ("user=carol",), 3: ("user=root", "flags=DAILY")}
    for node, words in kinds.items():
        reserve(cluster, node, *words)
    site.publish()
    filling = {node: fill(cluster, node) for node in range(1, 7)}
    jobs = {node: cluster.sbatch("-p", f"p{node}", "-n", "1", "-t", "20") for node in range(1, 7)}
    site.look()
    planned = {node: cluster.job(job)["TimeMin"] for node, job in jobs.items()}
    assert planned == {1: "N/A", 2: "N/A", 3: "N/A", 4: "00:02:00", 5: "00:02:00", 6: "00:02:00"}
    # Made after the submission, and one that draws jobs in; the last comes without a look.
    reserve(cluster, 4, "user=carol")
    reserve(cluster, 5, "user=alice", "flags=MAGNETIC")
    site.look()
    assert cluster.job(jobs[4])["TimeMin"] == cluster.job(jobs[5])["TimeMin"] == "N/A"
    reserve(cluster, 6, "user=carol")
    for job in filling.values():
        cluster.run(["scancel", job])
    # The danger is real: with its time_min, and no look between, a job starts.
    cluster.wait_for_state(jobs[6], "RUNNING")
    time.sleep(SETTLED_S)
    states = {node: cluster.job(job)["JobState"] for node, job in jobs.items()}
    del states[5]  # it may start where it is not drawn in
    assert states == {1: "PENDING", 2: "PENDING", 3: "PENDING", 4: "PENDING", 6: "RUNNING"}

    # What a reservation took comes back with its end.
    for job in (jobs[1], jobs[4]):
        assert cluster.scontrol("hold", job).returncode == 0
    for name in re.findall(
        r"ReservationName=(\S+)", cluster.scontrol("show", "reservation").stdout
    ):
        cluster.scontrol("delete", f"reservation={name}")
    site.look()
    assert cluster.job(jobs[1])["TimeMin"] == cluster.job(jobs[4])["TimeMin"] == "00:02:00"


def test_lead_time_bounds_what_a_late_reservation_can_meet(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, leave_users=["erin"], reservation_lead_time_s=600)
    site.publish()
    filling = fill(cluster, 1)
    long, short = (cluster.sbatch("-p", "p1", "-n", "4", "-t", minutes) for minutes in ("20", "10"))
    site.look()
    assert [cluster.job(job)["TimeMin"] for job in (long, short)] == ["N/A", "00:01:00"]
    # At such notice, and before any look: what has started ends before it, at the latest.
    reserve(cluster, 1, "user=root", "flags=MAINT", after_min=11)
    cluster.run(["scancel", filling])
    cluster.wait_for_state(short, "RUNNING")
    assert cluster.job(long)["JobState"] == "PENDING"
