"""The old mechanism on real Slurm: the limit is lowered for the plan, and raised at the start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_sidecar.safety.watchdog import watch
from foretime_sidecar.table.table import Mode

from tests.slurm.harness.foretime_site import PLANNED, ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease, why_no_cluster

SLURM_PARTITIONS = (
    "main Nodes=ALL Default=YES MaxTime=INFINITE",
    "capped Nodes=ALL MaxTime=5",
)


@pytest.fixture(scope="module")
def old_release() -> SlurmRelease:
    """The oldest release, which has no native soft limit."""
    release = min(RELEASES, key=lambda found: found.version or (99, 0, 0))
    missing = why_no_cluster() or release.missing
    if missing:
        pytest.skip(f"no live Slurm: {missing}")
    return release


@pytest.fixture(scope="module")
def cluster(old_release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(old_release, slurm_partitions=SLURM_PARTITIONS)
    try:
        cluster.add_accounting()
        cluster.sacctmgr("add", "account", "free")
        cluster.sacctmgr("add", "account", "walled", "MaxWall=10")
        names = "account=free,walled"
        cluster.sacctmgr("add", "user", "alice,bob", names, "DefaultAccount=free")
        cluster.set_conf({"AccountingStorageEnforce": "limits"}, restart=True)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def site(cluster: SlurmCluster) -> Iterator[ForetimeSite]:
    cluster.install_hook(PLANNED)
    site = ForetimeSite(cluster, mechanism="rewrite-limit")
    site.poll()
    assert site.table().settings.mode is Mode.ENFORCE
    yield site
    for user in ("alice", "bob", "root"):
        cluster.run(["scancel", f"--user={user}"])
    cluster.wait_for(lambda: not cluster.run(["squeue", "-h"]).stdout, "an empty queue")


def fill(cluster: SlurmCluster) -> str:
    full = cluster.sbatch("-N", "4", "--exclusive", "-t", "60", user="root")
    cluster.wait_for_state(full, "RUNNING")
    return full


def limits(cluster: SlurmCluster, job_id: str) -> dict[str, str]:
    """Limit of each part of a job, by its state."""
    return {job["JobState"]: job["TimeLimit"] for job in cluster.jobs(job_id)}


def test_every_job_runs_with_what_was_asked_for(cluster: SlurmCluster, site: ForetimeSite) -> None:
    """Jobs, arrays and requeued ones; what was changed meanwhile stays."""
    full = fill(cluster)
    job = cluster.sbatch("-n", "1", "-t", "20", "--requeue")
    array = cluster.sbatch("-n", "1", "-t", "20", "--array=1-3%2")
    signalled = cluster.sbatch(
        "-n", "1", "-t", "20", "--signal=B:USR1@110", script="trap 'exit 9' USR1; sleep 999 & wait"
    )
    changed = cluster.sbatch("-n", "1", "-t", "20")
    shortened = cluster.sbatch("-n", "1", "-t", "20")
    opted_out = cluster.sbatch("-n", "1", "-t", "20", "--comment=foretime:off")
    meant = cluster.sbatch("-n", "1", "-t", "20")
    noted = (job, array, signalled, changed, shortened, meant)
    for name in noted:
        shown = cluster.jobs(name)[0]
        assert (shown["TimeLimit"], shown["TimeMin"]) == ("00:20:00", "N/A")
        assert shown["AdminComment"].startswith("foretime:treq=20,tsched=2,generation=")
    # Before the look a user may ask for what lies between.
    between = cluster.scontrol("update", f"JobId={meant}", "TimeLimit=9", user="alice")
    assert between.returncode == 0, between.stderr
    site.look()
    for name in (job, array, signalled, changed, shortened):
        assert limits(cluster, name) == {"PENDING": "00:02:00"}
    assert limits(cluster, meant) == {"PENDING": "00:09:00"}
    assert limits(cluster, opted_out) == {"PENDING": "00:20:00"}
    # Root means what he says; a user may ask for less, and is told why not for something between.
    assert cluster.scontrol("update", f"JobId={changed}", "TimeLimit=7").returncode == 0
    less = cluster.scontrol("update", f"JobId={shortened}", "TimeLimit=1", user="alice")
    assert less.returncode == 0, less.stderr
    # Another tool's comment, with ours kept before it, as its tool should.
    note = cluster.job(job)["AdminComment"]
    cluster.scontrol("update", f"JobId={job}", f"AdminComment={note} theirs")
    site.look()
    assert limits(cluster, job) == {"PENDING": "00:02:00"}, "it waits with its plan"
    cluster.run(["scancel", full])
    for name in (job, signalled, changed, shortened, meant, opted_out):
        cluster.wait_for_state(name, "RUNNING")
    cluster.wait_for(lambda: "RUNNING" in limits(cluster, array), "the array's tasks")
    time.sleep(2)
    assert limits(cluster, job) == limits(cluster, signalled) == {"RUNNING": "00:20:00"}
    tasks = [task for task in cluster.jobs(array) if task["JobState"] == "RUNNING"]
    assert {task["TimeLimit"] for task in tasks} == {"00:20:00"}
    assert len(tasks) == 2
    assert limits(cluster, changed) == {"RUNNING": "00:07:00"}
    assert limits(cluster, shortened) == {"RUNNING": "00:01:00"}
    assert limits(cluster, meant) == {"RUNNING": "00:09:00"}
    site.look()
    assert limits(cluster, shortened) == {"RUNNING": "00:01:00"}
    cluster.scontrol("requeue", job)
    cluster.wait_for_state(job, "PENDING")
    assert limits(cluster, job) == {"PENDING": "00:20:00"}
    site.look()
    assert limits(cluster, job) == {"PENDING": "00:02:00"}, "it waits with its plan again"
    cluster.wait_for_state(job, "RUNNING", timeout_s=180)
    cluster.wait_for(lambda: limits(cluster, job) == {"RUNNING": "00:20:00"}, "its own limit")
    # Counted from the lowered limit the signal was due ten seconds after the start.
    cluster.wait_for(
        lambda: time.time() - int(cluster.job(signalled)["StartTime"]) > 15, "the signal's time"
    )
    assert limits(cluster, signalled) == {"RUNNING": "00:20:00"}


def test_what_would_be_refused_or_held_still_is(cluster: SlurmCluster, site: ForetimeSite) -> None:
    """MaxTime and MaxWall are judged on t_req, as without the hook (docs/left_alone.md: V4)."""
    longest = {(limit.kind, limit.name): limit.requested_time for limit in site.table().longest}
    assert longest == {("slurm_partition", "capped"): 300, ("account", "walled"): 600}
    above = cluster.sbatch("-n", "1", "-t", "20", "-p", "capped")
    walled = cluster.sbatch("-n", "1", "-t", "20", "-A", "walled")
    within = cluster.sbatch("-n", "1", "-t", "10", "-A", "walled")
    cluster.wait_for_state(within, "RUNNING")
    time.sleep(3)
    assert limits(cluster, within) == {"RUNNING": "00:10:00"}
    for job, reason in ((above, "PartitionTimeLimit"), (walled, "AssocMaxWallDurationPerJobLimit")):
        shown = cluster.job(job)
        assert (shown["JobState"], shown["TimeLimit"]) == ("PENDING", "00:20:00")
        assert shown["Reason"] == reason
    cluster.set_conf({"EnforcePartLimits": "ALL"})
    assert cluster.try_sbatch("-n", "1", "-t", "20", "-p", "capped").returncode != 0
    cluster.set_conf({"EnforcePartLimits": "NO"})


def test_a_prolog_that_fails_is_made_good_at_the_look(
    cluster: SlurmCluster, site: ForetimeSite, caplog: pytest.LogCaptureFixture
) -> None:
    prolog = cluster.folder / "etc/prolog_slurmctld"
    text = prolog.read_text()
    site_script = Path(f"{prolog}.site")
    site_script.write_text(f"#!/bin/sh\necho $SLURM_JOB_ID >>{cluster.jobs_folder}/seen\n")
    site_script.chmod(0o755)
    # Slurm's commands are not where it looks for them.
    prolog.write_text(
        text.replace("SLURM_BIN=/usr/bin:", "PATH=/bin; SLURM_BIN=/none:").replace(
            "bounded squeue", "bounded none"
        )
    )
    job = cluster.sbatch("-n", "1", "-t", "20", "--hold")
    site.look()
    cluster.scontrol("release", job)
    cluster.wait_for_state(job, "RUNNING", timeout_s=90)
    assert limits(cluster, job) == {"RUNNING": "00:02:00"}
    site.look()
    assert limits(cluster, job) == {"RUNNING": "00:20:00"}
    assert "PrologSlurmctld left" in caplog.text
    assert (cluster.jobs_folder / "seen").read_text().split() == [job], "the site's own has run"
    prolog.write_text(text)
    site_script.unlink()
    lost = cluster.sbatch("-n", "1", "-t", "20", "--hold")
    site.look()
    assert limits(cluster, lost) == {"PENDING": "00:02:00"}
    cluster.set_conf({"PrologSlurmctld": None}, restart=True)
    site.look()
    assert limits(cluster, lost) == {"PENDING": "00:20:00"}, "no prolog, no lowered limit"
    cluster.set_conf({"PrologSlurmctld": "/etc/slurm/prolog_slurmctld"}, restart=True)


def test_what_lua_is_not_shown_the_look_sees(cluster: SlurmCluster, site: ForetimeSite) -> None:
    """A deadline of the command line, and a reservation made while the job waits."""
    hopeless = cluster.sbatch("-n", "1", "-t", "20", "--deadline=now+10minutes", "--hold")
    hopeful = cluster.sbatch("-n", "1", "-t", "20", "--deadline=now+10hours", "--hold")
    waiting = cluster.sbatch("-n", "1", "-t", "20", "--hold")
    site.look()
    for job in (hopeless, hopeful):
        assert set(limits(cluster, job).values()) == {"00:20:00"}
    assert limits(cluster, waiting) == {"PENDING": "00:02:00"}
    words = "StartTime=now+8minutes Duration=60 Users=root Nodes=ALL Flags=MAINT,IGNORE_JOBS"
    cluster.checked(["scontrol", "create", "reservation", "ReservationName=later", *words.split()])
    try:
        site.look()
        assert limits(cluster, waiting) == {"PENDING": "00:20:00"}
    finally:
        cluster.scontrol("delete", "ReservationName=later")
    site.look()
    assert limits(cluster, waiting) == {"PENDING": "00:02:00"}, "the reservation is gone"
    assert (
        cluster.scontrol("update", f"JobId={waiting}", "TimeLimit=1", user="alice").returncode == 0
    )
    site.look()
    assert limits(cluster, waiting) == {"PENDING": "00:01:00"}, "its user meant it"


def test_a_running_job_is_saved_by_the_watchdog(cluster: SlurmCluster, site: ForetimeSite) -> None:
    """Where its prolog failed and the daemon is dead."""
    job = cluster.sbatch("-n", "1", "-t", "20")
    cluster.wait_for_state(job, "RUNNING", timeout_s=90)
    cluster.checked(["scontrol", "update", f"JobId={job}", "TimeLimit=2"])
    result = watch(site.settings, site.client, time.time())
    assert not result.alive
    assert limits(cluster, job) == {"RUNNING": "00:20:00"}
