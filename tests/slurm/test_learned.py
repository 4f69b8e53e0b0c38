"""The scheme learned on live clusters: the hook takes its rows, and waiting jobs are refined."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from foretime_sidecar.clients.client import SchedulerClient
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.safety.heartbeat import heartbeat_path
from foretime_sidecar.safety.watchdog import watch
from foretime_sidecar.table.table import Mode, Scheme

from tests.slurm.harness.foretime_site import ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

NONE = "N/A"


@pytest.fixture(scope="module")
def cluster(native_release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(native_release, nodes=2)
    try:
        cluster.install_hook()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def site(cluster: SlurmCluster) -> Iterator[ForetimeSite]:
    """A daemon that goes by the mean of the last two runtimes: 2 of 20 minutes."""
    (cluster.folder / "store").unlink(missing_ok=True)
    site = ForetimeSite(cluster, estimator="last-two")
    site.publish()
    yield site
    site.store.close()
    for user in ("alice", "bob", "root"):
        cluster.run(["scancel", f"--user={user}"])
    cluster.wait_for(lambda: not cluster.run(["squeue", "-h"]).stdout, "an empty queue")


def full(cluster: SlurmCluster) -> str:
    job = cluster.sbatch("-N", "2", "--exclusive", "-t", "60", user="root")
    cluster.wait_for_state(job, "RUNNING")
    return job


def time_min(cluster: SlurmCluster, job: str) -> str:
    return cluster.job(job)["TimeMin"]


def test_a_waiting_job_is_refined_until_it_starts(
    cluster: SlurmCluster, site: ForetimeSite
) -> None:
    assert site.table().settings.scheme is Scheme.LEARNED
    assert site.table().settings.mode is Mode.ENFORCE
    filling = full(cluster)
    job, others = cluster.sbatch("-n", "1", "-t", "20"), cluster.sbatch("-t", "20", user="bob")
    site.look()
    assert [time_min(cluster, name) for name in (job, others)] == ["00:02:00"] * 2
    note = cluster.job(job)["AdminComment"]
    site.finish("alice", 9, 11)
    site.look()
    assert [time_min(cluster, name) for name in (job, others)] == ["00:10:00", "00:02:00"]
    assert cluster.job(job)["AdminComment"] == note
    site.restart()
    site.finish("alice", 3, 3)
    site.look()
    assert time_min(cluster, job) == "00:03:00"
    site.finish("alice", 20, 20)
    site.look()
    assert time_min(cluster, job) in ("00:20:00", NONE), "planned with all of it"
    site.finish("alice", 4, 4)
    site.look()
    assert time_min(cluster, job) == "00:04:00"
    site.look()
    cluster.run(["scancel", filling])
    assert cluster.wait_for_state(job, "RUNNING")["TimeLimit"] == "00:20:00"
    site.finish("alice", 9, 9)
    site.look()
    running = cluster.job(job)
    assert (running["TimeLimit"], running["TimeMin"]) == ("00:20:00", "00:04:00")
    decisions = site.sidecar.oversight.decisions.find(job_id=job)
    assert [one.scheduled_time_s for one in decisions] == [120, 600, 180, 1200, 240]
    assert {one.reason for one in decisions[1:]} == {"refined"}


def test_each_refinement_passes_the_filter(cluster: SlurmCluster, site: ForetimeSite) -> None:
    full(cluster)
    job = cluster.sbatch("-n", "1", "-t", "20")
    late = cluster.sbatch("-n", "1", "-t", "20", "--deadline=now+2hours")
    off = cluster.sbatch("-n", "1", "-t", "20", "--comment=foretime:off")
    both = cluster.sbatch("-n", "1", "-t", "20", ":", "-n", "1", "-t", "20")
    site.finish("alice", 9, 11)
    site.look()
    assert time_min(cluster, job) == "00:10:00"
    assert [time_min(cluster, name) for name in (late, off, both)] == [NONE] * 3
    made = cluster.scontrol(
        "create", "reservation", "ReservationName=r", "StartTime=now+10minutes",
        "Duration=10", "Users=root", "Nodes=n1", "Flags=IGNORE_JOBS",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    site.finish("alice", 5, 5)
    site.look()
    assert time_min(cluster, job) == NONE, "with all of its limit it reaches the reservation"
    assert cluster.scontrol("delete", "ReservationName=r").returncode == 0
    site.look()
    assert time_min(cluster, job) == "00:05:00"


def test_what_users_set_stays(cluster: SlurmCluster, site: ForetimeSite) -> None:
    full(cluster)
    own = cluster.sbatch("-n", "1", "-t", "20", "--time-min=1")
    floor = cluster.sbatch("-n", "1", "-t", "20", "--time-min=8")
    lowered, shorter = (cluster.sbatch("-n", "1", "-t", "20") for _ in range(2))
    site.look()
    user = {"user": "alice"}
    assert cluster.scontrol("update", f"JobId={shorter}", "TimeLimit=1", **user).returncode == 0
    assert cluster.scontrol("update", f"JobId={lowered}", "TimeMin=1", **user).returncode == 0
    site.finish("alice", 6, 6)
    site.look()
    names = (own, floor, lowered, shorter)
    assert [time_min(cluster, name) for name in names] == [
        "00:06:00", "00:08:00", "00:01:00", NONE,
    ]  # fmt: skip
    assert cluster.job(shorter)["TimeLimit"] == "00:01:00"


def test_no_refined_job_is_killed_where_the_soft_limit_is_lost(
    cluster: SlurmCluster, site: ForetimeSite
) -> None:
    """The daemon is dead, and Slurm lowers the limit to what was refined: the watchdog mends.

    docs/left_alone.md: V2.
    """
    whole = ("-n", "4", "-t", "15")  # what starts beside them has six minutes to do so
    running = [cluster.sbatch(*whole, "-w", node, user="root") for node in ("n1", "n2")]
    for name in running:
        cluster.wait_for_state(name, "RUNNING")
    # The head waits for n2, so that what starts on n1 must end in a quarter of an hour.
    cluster.sbatch("-N", "2", "--exclusive", "-t", "60", user="root")
    job = cluster.sbatch("-n", "4", "-t", "20")
    site.finish("alice", 9, 9)
    site.look()
    assert time_min(cluster, job) == "00:09:00"
    cluster.set_conf(scheduler_parameters={"time_min_as_soft_limit": False})
    try:
        cluster.run(["scancel", running[0]])
        lowered = cluster.wait_for_state(job, "RUNNING")["TimeLimit"]
        assert "00:09:00" <= lowered <= "00:15:00", "Slurm has cut it short for good"
        _watch(site, site.client)
        expected = "00:20:00" if lowered == "00:09:00" else lowered
        assert cluster.job(job)["TimeLimit"] == expected
        site.look()
    finally:
        cluster.set_conf(scheduler_parameters={"time_min_as_soft_limit": None})


def _watch(site: ForetimeSite, client: SchedulerClient) -> None:
    alive = heartbeat_path(site.settings.table)
    alive.touch()
    long_ago = time.time() - site.settings.table.watchdog_after_s - 1
    os.utime(alive, (long_ago, long_ago))
    site.store.close()
    watch(site.settings, client, time.time())
    site.restart()


def test_on_each_release_the_hook_takes_the_row(slurm: SlurmCluster) -> None:
    slurm.install_hook()
    mechanism = "slurm-soft-limit" if slurm.release.soft_limit else "rewrite-limit"
    site = ForetimeSite(slurm, estimator="last-two", mechanism=mechanism, planned_at="submission")
    site.publish()
    assert site.table().settings.scheme is Scheme.LEARNED
    assert {row.kind for row in site.table().learned_rows} >= {"user+request+size", "user+class"}
    filling = slurm.sbatch("-N", "4", "--exclusive", "-t", "60", user="root")
    slurm.wait_for_state(filling, "RUNNING")
    job, longer = slurm.sbatch("-n", "1", "-t", "20"), slurm.sbatch("-n", "1", "-t", "40")
    noted = [read_note(slurm.job(name)["AdminComment"]) for name in (job, longer)]
    assert [
        (note.requested_time, note.time_min or note.lowered_limit) for note in noted if note
    ] == [(1200, 120), (2400, 240)]
