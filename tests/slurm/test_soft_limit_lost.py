"""Native mechanism: the soft limit is taken from slurm.conf, or the daemon dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from foretime_sidecar.safety.heartbeat import beat, heartbeat_path
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.table.table import Mode

from tests.slurm.harness.foretime_site import ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster


def full_cluster_and_planned_jobs(
    cluster: SlurmCluster, site: ForetimeSite
) -> tuple[str, str, str]:
    """Fill the cluster; a planned job waits, and one with a --time-min of its user's own."""
    site.publish()
    full = cluster.sbatch("-N", "2", "--exclusive", "-t", "60", user="root")
    cluster.wait_for_state(full, "RUNNING")
    job = cluster.sbatch("-n", "4", "-t", "20")
    own = cluster.sbatch("-n", "4", "-t", "20", "--time-min=1", user="bob")
    site.look()
    assert [cluster.job(name)["TimeMin"] for name in (job, own)] == ["00:02:00"] * 2
    return full, job, own


def lose_the_soft_limit(cluster: SlurmCluster) -> None:
    cluster.set_conf(scheduler_parameters={"time_min_as_soft_limit": False})


def test_a_look_takes_time_min_back_at_once(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster)
    full, job, own = full_cluster_and_planned_jobs(cluster, site)
    lose_the_soft_limit(cluster)
    site.look()
    assert [cluster.job(name)["TimeMin"] for name in (job, own)] == ["N/A", "00:01:00"]
    cluster.run(["scancel", full])
    assert cluster.wait_for_state(job, "RUNNING")["TimeLimit"] == "00:20:00"
    site.publish()
    assert site.table().settings.mode is Mode.OBSERVE
    cluster.set_conf(scheduler_parameters={"time_min_as_soft_limit": None})
    cluster.scontrol("requeue", job)
    cluster.wait_for_state(job, "PENDING")
    site.look()
    assert cluster.job(job)["TimeMin"] == "00:02:00", "it is planned again"


def test_a_job_that_starts_before_the_look_gets_its_limit_back(cluster: SlurmCluster) -> None:
    """The race (docs/left_alone.md: V2): Slurm lowers what starts between two looks."""
    site = ForetimeSite(cluster)
    site.publish()
    whole = ("-n", "4", "-t", "10")
    running = [cluster.sbatch(*whole, "-w", node, user="root") for node in ("n1", "n2")]
    for job in running:
        cluster.wait_for_state(job, "RUNNING")
    # The head waits for n2, so that what starts on n1 must end in ten minutes.
    cluster.sbatch("-N", "2", "--exclusive", "-t", "60", user="root")
    job = cluster.sbatch("-n", "4", "-t", "20")
    site.look()
    assert cluster.job(job)["TimeMin"] == "00:02:00"
    lose_the_soft_limit(cluster)
    cluster.run(["scancel", running[0]])
    lowered = cluster.wait_for_state(job, "RUNNING")["TimeLimit"]
    assert "00:02:00" <= lowered <= "00:10:00", "Slurm has cut it short for good"
    site.look()
    assert cluster.job(job)["TimeLimit"] == "00:20:00"


def test_the_watchdog_takes_time_min_back_for_a_dead_daemon(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster)
    full, job, own = full_cluster_and_planned_jobs(cluster, site)
    settings = cluster.folder / "foretime.toml"
    settings.write_text(to_toml(site.settings))
    alive = heartbeat_path(site.settings.table)
    beat(alive)
    program = Path(sys.executable).with_name("foretime")
    command = [str(program), "watchdog", "--settings", str(settings)]

    def watchdog() -> dict[str, object]:
        done = subprocess.run([*command, "--json"], capture_output=True, check=True, text=True)
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    assert watchdog()["alive"]
    assert cluster.job(job)["TimeMin"] == "00:02:00"
    longest_s = site.settings.table.watchdog_after_s
    os.utime(alive, (time.time() - longest_s - 1,) * 2)
    found = watchdog()
    assert (found["alive"], found["withdrew_table"]) == (False, True)
    assert [cluster.job(name)["TimeMin"] for name in (job, own)] == ["N/A", "00:01:00"]
    new = cluster.sbatch("-n", "4", "-t", "20")
    assert "AdminComment" not in cluster.job(new), "no table, no plan"
    cluster.run(["scancel", full])
    cluster.wait_for_state(job, "RUNNING")
    assert cluster.job(job)["TimeLimit"] == "00:20:00"


def test_users_may_lower_limits_as_ever(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster)
    full, job, own = full_cluster_and_planned_jobs(cluster, site)
    lowered = cluster.scontrol("update", f"JobId={job}", "TimeLimit=1", user="alice")
    assert lowered.returncode == 0, lowered.stderr
    assert cluster.scontrol("update", f"JobId={own}", "TimeLimit=10", user="bob").returncode == 0
    site.look()
    assert (cluster.job(job)["TimeLimit"], cluster.job(job)["TimeMin"]) == ("00:01:00", "N/A")
    assert (cluster.job(own)["TimeLimit"], cluster.job(own)["TimeMin"]) == ("00:10:00", "00:02:00")
    waiting = cluster.sbatch("-n", "4", "-t", "20")
    cluster.scontrol("update", f"JobId={waiting}", "Comment=foretime:off", user="alice")
    site.look()
    assert cluster.job(waiting)["TimeMin"] == "N/A", "opted out"
    cluster.run(["scancel", full])
    cluster.wait_for_state(own, "RUNNING")
    running = cluster.scontrol("update", f"JobId={own}", "TimeLimit=1", user="bob")
    assert running.returncode == 0, running.stderr
    site.look()
    assert cluster.job(own)["TimeLimit"] == "00:01:00"


def test_jobs_of_salloc_srun_and_requeue_keep_their_limits(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster)
    site.publish()
    environment = {"SLURM_TIME_FORMAT": "%s"}
    shown = cluster.run(
        ["srun", "-t", "20", "sh", "-c", "scontrol -o show job $SLURM_JOB_ID"],
        "alice",
        environment=environment,
    ).stdout
    assert "TimeLimit=00:20:00" in shown
    assert "AdminComment=foretime:treq=20,tmin=2" in shown
    reply = cluster.run(["salloc", "-t", "20", "--no-shell", "-n", "4"], "bob")
    assert reply.returncode == 0, reply.stderr
    allocated = next(job for job in cluster.jobs() if job["UserId"].startswith("bob"))
    assert (allocated["JobState"], allocated["TimeLimit"]) == ("RUNNING", "00:20:00")
    job = cluster.sbatch("-n", "4", "-t", "20", "--requeue")
    cluster.wait_for_state(job, "RUNNING")
    cluster.scontrol("requeuehold", job)
    cluster.wait_for_state(job, "PENDING")
    site.look()
    assert (cluster.job(job)["TimeLimit"], cluster.job(job)["TimeMin"]) == ("00:20:00", "00:02:00")
    cluster.scontrol("release", job)
    cluster.scontrol("update", f"JobId={job}", "StartTime=now")  # not in two minutes
    cluster.wait_for_state(job, "RUNNING")
    site.look()
    assert cluster.job(job)["TimeLimit"] == "00:20:00"
