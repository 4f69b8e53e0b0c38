"""Native mechanism: no job runs on into a reservation, whenever that was made."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from foretime_sidecar.wording.durations import format_duration

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


def test_the_audit_agrees_with_scontrol(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, leave_users=["erin"])
    site.publish()
    for node in (1, 2):
        fill(cluster, node)
    jobs = [cluster.sbatch("-p", f"p{node}", "-n", "1", "-t", "20") for node in (1, 2)]

    def told_and_so() -> list[tuple[str, str, str, str]]:
        """What the audit has and what scontrol shows: each job's limit, and what it is planned by.

        Where it has a time_min, scontrol shows that; else it is planned with all of its limit.
        """
        site.look()
        found = []
        for job in jobs:
            last = site.sidecar.oversight.decisions.find(job_id=job)[-1]
            shown = cluster.job(job)
            limit = shown["TimeLimit"]
            planned_by = limit if shown["TimeMin"] == "N/A" else shown["TimeMin"]
            told = [last.requested_time_s, last.scheduled_time_s or last.requested_time_s]
            assert [format_duration(seconds) for seconds in told] == [limit, planned_by], last
            found.append((last.action, last.reason, limit, planned_by))
        return found

    whole, short = ("00:20:00", "00:20:00"), ("00:20:00", "00:02:00")
    assert told_and_so() == [("planned", "-", *short)] * 2
    name = reserve(cluster, 1, "user=carol")
    assert told_and_so() == [("cleared", "reservation", *whole), ("planned", "-", *short)]
    late = cluster.sbatch("-p", "p1", "-n", "1", "-t", "20")
    jobs.append(late)
    assert told_and_so()[2] == ("left", "reservation", *whole)
    assert cluster.scontrol("delete", f"reservation={name}").returncode == 0
    # What an administrator gives is judged anew, too.
    assert cluster.scontrol("update", f"jobid={jobs[1]}", "timelimit=40").returncode == 0
    assert told_and_so() == [
        ("changed", "-", *short),
        ("changed", "modified", "00:40:00", "00:02:00"),
        ("changed", "-", *short),
    ]


def test_a_limit_raised_by_an_administrator_is_judged_anew(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, mode="observe")
    site.publish()
    job = cluster.sbatch("-n", "1", "-t", "20", "--hold")

    def told() -> tuple[str, int, int | None]:
        site.look()
        last = site.sidecar.oversight.decisions.find(job_id=job)[-1]
        return last.action, last.requested_time_s, last.scheduled_time_s

    assert told() == ("observed", 1200, 120)
    assert cluster.scontrol("update", f"jobid={job}", "timelimit=100").returncode == 0
    assert told() == ("observed", 6000, 600)
