"""The test clusters themselves: what they offer, and that nothing of them stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
import requests_unixsocket
from foretime_sidecar.table.table import TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease


def processes_of(folder: str) -> list[str]:
    """Every process whose command line names a cluster's folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in command:
            found.append(command)
    return found


def test_jobs_of_users_run(slurm: SlurmCluster) -> None:
    first = slurm.sbatch("-t", "1", user="alice", script="id -un >who; hostname")
    second = slurm.sbatch("-t", "5", "-N", "2", user="bob", script="sleep 3600")
    assert slurm.wait_for_end(first)["JobState"] == "COMPLETED"
    assert (slurm.jobs_folder / "who").read_text() == "alice\n"
    assert slurm.wait_for_state(second, "RUNNING")["NumNodes"] == "2"
    assert slurm.run(["srun", "-t", "1", "id", "-un"], "carol").stdout == "carol\n"
    refused = slurm.scontrol("update", f"JobId={second}", "Nice=5", user="alice")
    assert refused.returncode != 0
    slurm.restart_slurmctld()
    assert slurm.job(second)["JobState"] == "RUNNING"


def test_clients_answer_outside_and_inside(slurm: SlurmCluster) -> None:
    job = slurm.sbatch("-t", "5", user="dave")
    reply = subprocess.run(
        [slurm.commands / "squeue", "--json"], capture_output=True, check=True
    ).stdout
    (outside,) = json.loads(reply)["jobs"]
    (inside,) = json.loads(slurm.checked(["squeue", "--json"], "alice"))["jobs"]
    assert str(outside["job_id"]) == str(inside["job_id"]) == job
    assert outside["user_name"] == inside["user_name"] == "dave"


@pytest.mark.every_release
def test_hook_is_loaded_by_slurmctld(slurm: SlurmCluster) -> None:
    slurm.install_hook([TableRow("user", "alice", 0, 200_000)])
    job = slurm.job(slurm.sbatch("-t", "60", "--hold"))
    other = slurm.job(slurm.sbatch("-t", "60", "--hold", user="bob"))
    if slurm.release.soft_limit:
        assert (job["TimeLimit"], job["TimeMin"]) == ("01:00:00", "00:12:00")
    else:
        assert (job["TimeLimit"], job["TimeMin"]) == ("00:12:00", "N/A")
        assert job["AdminComment"].startswith("foretime:treq=60,tsched=12")
    assert (other["TimeLimit"], other["TimeMin"]) == ("01:00:00", "N/A")
    slurm.remove_hook()
    job = slurm.job(slurm.sbatch("-t", "60", "--hold"))
    assert (job["TimeLimit"], job["TimeMin"]) == ("01:00:00", "N/A")


def test_a_cluster_has_accounting_and_rest_where_asked(slurm: SlurmCluster) -> None:
    slurm.add_accounting()
    slurm.sacctmgr("add", "account", "physics")
    slurm.sacctmgr("add", "user", "alice", "account=physics", "adminlevel=Operator")
    job = slurm.sbatch("-t", "7", "-A", "physics", script="true")
    slurm.wait_for_end(job)
    record = {"Account": "physics", "State": "COMPLETED", "Timelimit": "00:07:00"}
    slurm.wait_for(lambda: slurm.sacct(*record, job_id=job) == [record], "sacct")
    rest = slurm.add_rest()
    identity = {"X-SLURM-USER-NAME": "alice", "X-SLURM-USER-TOKEN": slurm.token("alice")}
    versions = [f"v0.0.{number}" for number in range(50, 35, -1)]
    pings = (
        requests.get(f"{rest.url}/slurm/{v}/ping", headers=identity, timeout=5) for v in versions
    )
    assert any(ping.ok for ping in pings)
    assert not requests.get(f"{rest.url}/slurm/{versions[0]}/ping", timeout=5).ok
    with requests_unixsocket.Session() as session:
        where = str(rest.socket).replace("/", "%2F")
        assert session.get(f"http+unix://{where}/openapi/v3", headers=identity, timeout=5).ok


_NEW_ACCOUNTS = """
import subprocess, sys
sys.path.insert(0, {repository!r})
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES
with SlurmCluster(next(r for r in RELEASES if r.name == {release!r}), nodes=1) as cluster:
    first = cluster.sbatch(user="bob")
    for name in ("passwd", "group"):  # as useradd does
        subprocess.run(f"cp -a /etc/{{name}} /etc/{{name}}+ && mv /etc/{{name}}+ /etc/{{name}}",
                       shell=True, check=True)
    subprocess.run(["rm", "-rf", "/etc/slurm"], check=True)
    second = cluster.sbatch(user="bob")
    told = [(job["JobId"], job["UserId"].split("(")[0]) for job in cluster.jobs()]
    assert told == [(first, "bob"), (second, "bob")], told
    cluster.checked(["scontrol", "reconfigure"])
    cluster.wait_for(cluster.answers, "slurmctld to answer")
"""
"""Run where /etc is a copy, which no one else sees."""


def test_a_cluster_lives_on_where_the_machine_gets_a_user(
    release: SlurmRelease, repository: Path, tmp_path: Path
) -> None:
    copied = (
        "mount --make-rprivate / && mount -t tmpfs etc $0 && cp -a /etc/. $0"
        ' && mkdir -p $0/slurm && mount --bind $0 /etc && exec "$@"'
    )
    code = _NEW_ACCOUNTS.format(repository=str(repository), release=release.name)
    command = ["bash", "-c", copied, str(tmp_path), sys.executable, "-c", code]
    reply = subprocess.run(
        ["unshare", "--mount", *command], capture_output=True, text=True, check=False
    )
    assert reply.returncode == 0, reply.stderr


def test_stopping_leaves_nothing(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]
) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    cluster = new_cluster(release, nodes=2)
    job = cluster.sbatch("-t", "5", script="trap '' TERM INT HUP; sleep 3600 & wait")
    cluster.wait_for_state(job, "RUNNING")
    assert processes_of(str(cluster.folder))
    cluster.stop()
    assert not processes_of(str(cluster.folder))
    assert not cluster.folder.exists()
    assert Path("/proc/self/mounts").read_text() == mounts
    cluster.stop()  # once more does no harm


_CHILD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
sys.path.insert(0, {repository!r})
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES
cluster = SlurmCluster(next(r for r in RELEASES if r.name == {release!r}), nodes=2)
cluster.wait_for_state(cluster.sbatch("-t", "5"), "RUNNING")
print(cluster.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_test_run(
    ending: signal.Signals, release: SlurmRelease, repository: Path
) -> None:
    code = _CHILD.format(repository=str(repository), release=release.name)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        folder = child.stdout.readline().strip()
        assert processes_of(folder)
        os.kill(child.pid, ending)
    until = time.monotonic() + 20
    while (processes_of(folder) or Path(folder).exists()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not processes_of(folder)
    assert not Path(folder).exists()
