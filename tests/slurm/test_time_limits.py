"""No job is ended before the time that its user asked for, and every job over it is.

Limits are whole minutes and looked at every 30 s, so all jobs of a release, on a plain and on a
hooked cluster, wait at the same time. The hook plans with half of what was asked for.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from foretime_sidecar.table.table import TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

# Past t_sched, slurmctld's next look and KillWait, and still within t_req.
UNDER = "sleep 100"
OVER = "sleep 3600"
# slurmctld looks every 30 s and then waits KillWait; the rest is for a busy machine.
LATEST_KILL_S = 30 + 2 + 15
SETTLED_S = 300
HALF = [TableRow("user", "alice", 0, 500_000)]


@dataclass(frozen=True)
class Kind:
    """A kind of job: its options, script, and how it must end, at which limit."""

    options: tuple[str, ...]
    script: str
    state: str
    limit_min: int


KINDS: Mapping[str, Kind] = {
    "under": Kind(("-t", "2"), UNDER, "COMPLETED", 2),
    "over": Kind(("-t", "2"), OVER, "TIMEOUT", 2),
    "array-under": Kind(("-t", "2", "--array=1-2"), UNDER, "COMPLETED", 2),
    "array-over": Kind(("-t", "2", "--array=1-2"), OVER, "TIMEOUT", 2),
    "whole-node-under": Kind(("-t", "2", "--exclusive"), UNDER, "COMPLETED", 2),
    "two-nodes-over": Kind(("-t", "2", "-N", "2"), OVER, "TIMEOUT", 2),
    "dependent-under": Kind(("-t", "2", "--dependency=after:{first}"), UNDER, "COMPLETED", 2),
    "time-min-under": Kind(("-t", "2", "--comment=x", "--nice=1"), UNDER, "COMPLETED", 2),
    "signal": Kind(
        ("-t", "3", "--signal=B:USR1@60"),
        "trap 'echo $SECONDS >signal' USR1\nsleep 3600 & while :; do wait; done",
        "TIMEOUT",
        3,
    ),
    "lowered-while-running": Kind(("-t", "4"), OVER, "TIMEOUT", 1),
    "requeued-over": Kind(("-t", "2", "--requeue"), OVER, "TIMEOUT", 2),
}


@dataclass
class Ended:
    """How the jobs of one cluster ended, by kind, and the rest that was seen."""

    jobs: dict[str, list[dict[str, str]]]
    signal_s: int
    srun: subprocess.Popen[bytes]
    planned: dict[str, str]


def submit(cluster: SlurmCluster) -> dict[str, str]:
    ids: dict[str, str] = {}
    for name, kind in KINDS.items():
        options = [option.format(first=ids.get("under")) for option in kind.options]
        ids[name] = cluster.sbatch(*options, script=kind.script)
    return ids


def disturb(cluster: SlurmCluster, ids: Mapping[str, str]) -> None:
    for name in ("lowered-while-running", "requeued-over"):
        cluster.wait_for_state(ids[name], "RUNNING")
    lowered = cluster.scontrol(
        "update", f"JobId={ids['lowered-while-running']}", "TimeLimit=1", user="alice"
    )
    assert lowered.returncode == 0, lowered.stderr
    cluster.checked(["scontrol", "requeue", ids["requeued-over"]])
    cluster.wait_for_state(ids["requeued-over"], "PENDING")
    time.sleep(5)  # until its first run is over
    # Slurm would keep it for two minutes.
    cluster.checked(["scontrol", "update", f"JobId={ids['requeued-over']}", "StartTime=now"])


def EXPERIMENT(release: SlurmRelease) -> dict[str, Ended]:  # noqa: N802
    with SlurmCluster(release, cpus=8) as hooked, SlurmCluster(release, cpus=8) as plain:
        hooked.install_hook(HALF)
        clusters = {"hooked": hooked, "plain": plain}
        ids = {name: submit(cluster) for name, cluster in clusters.items()}
        planned = {name: cluster.job(ids[name]["signal"]) for name, cluster in clusters.items()}
        sruns = {
            name: cluster.namespace.start(
                [str(cluster.commands / "srun"), "-t", "2", *UNDER.split()],
                "alice",
                log=cluster.folder / "log/srun.out",
                in_root=False,
            )
            for name, cluster in clusters.items()
        }
        for name, cluster in clusters.items():
            disturb(cluster, ids[name])
        until = time.monotonic() + SETTLED_S
        for name, cluster in clusters.items():
            for job_id in ids[name].values():
                cluster.wait_for_end(job_id, max(until - time.monotonic(), 1))
        return {
            name: Ended(
                {kind: cluster.jobs(job_id) for kind, job_id in ids[name].items()},
                int((cluster.jobs_folder / "signal").read_text()),
                sruns[name],
                planned[name],
            )
            for name, cluster in clusters.items()
        }


def seconds(text: str) -> int:
    """Of HH:MM:SS."""
    match = re.fullmatch(r"(\d+):(\d+):(\d+)", text)
    assert match, text
    hours, minutes, rest = map(int, match.groups())
    return 3600 * hours + 60 * minutes + rest


@pytest.mark.parametrize("cluster", ["hooked", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_job_gets_what_was_asked_for_and_no_more(
    experiment: dict[str, Ended], cluster: str, kind: str
) -> None:
    expected = KINDS[kind]
    for job in experiment[cluster].jobs[kind]:
        assert job["JobState"] == expected.state, job
        assert seconds(job["TimeLimit"]) == 60 * expected.limit_min, job
        if expected.state == "TIMEOUT":
            runtime_s = seconds(job["RunTime"])
            assert 0 <= runtime_s - 60 * expected.limit_min <= LATEST_KILL_S, job


@pytest.mark.parametrize("cluster", ["hooked", "plain"])
def test_srun_is_not_cut(experiment: dict[str, Ended], cluster: str) -> None:
    assert experiment[cluster].srun.wait(1) == 0


@pytest.mark.parametrize("cluster", ["hooked", "plain"])
def test_signal_comes_before_the_end_that_was_asked_for(
    experiment: dict[str, Ended], cluster: str
) -> None:
    """Slurm sends it up to a minute early; by t_sched (2 min) it would have come at once."""
    assert 60 <= experiment[cluster].signal_s <= 120 + LATEST_KILL_S


def test_jobs_were_really_planned_with_less(
    experiment: dict[str, Ended], release: SlurmRelease
) -> None:
    planned = "tmin=2" if release.soft_limit else "tsched=2"
    assert f"foretime:treq=3,{planned}" in experiment["hooked"].planned["AdminComment"]
    assert experiment["plain"].planned["TimeMin"] == "N/A"
