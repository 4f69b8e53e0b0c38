"""Backfill starts a job early that it would not have started on what its user asked for."""

from __future__ import annotations

import time
from collections.abc import Callable

from foretime_sidecar.table.table import TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

# Of two nodes one is free for five minutes, then both are the head job's. The hook plans
# alice's twenty minutes with two.
ROWS = [TableRow("user", "alice", 0, 100_000)]
CYCLES_S = 8.0


def blocked_head(cluster: SlurmCluster) -> str:
    """Fill n1 for five minutes and queue a job of bob's that needs both nodes."""
    running = cluster.sbatch("-t", "5", "-w", "n1", "--exclusive", user="bob")
    cluster.wait_for_state(running, "RUNNING")
    head = cluster.sbatch("-t", "60", "-w", "n[1-2]", "--exclusive", user="bob")
    cluster.wait_for(
        lambda: cluster.job(head)["Reason"] in ("Resources", "Nodes_required"), "the head job"
    )
    return head


def test_planned_job_is_backfilled_and_keeps_its_limit(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]
) -> None:
    slurm = new_cluster(release, nodes=2)
    head = blocked_head(slurm)
    plain = slurm.sbatch("-t", "20", user="alice")
    time.sleep(CYCLES_S)
    assert slurm.job(plain)["JobState"] == "PENDING", "on t_req it must wait for the head job"
    slurm.checked(["scancel", plain])

    slurm.install_hook(ROWS)
    hooked = slurm.sbatch("-t", "20", user="alice")
    other = slurm.sbatch("-t", "20", user="carol")
    slurm.wait_for_state(hooked, "RUNNING", timeout_s=30)
    slurm.wait_for(
        lambda: slurm.job(hooked)["TimeLimit"] == "00:20:00", "its own limit", timeout_s=10
    )
    time.sleep(CYCLES_S)
    assert slurm.job(other)["JobState"] == slurm.job(head)["JobState"] == "PENDING"
