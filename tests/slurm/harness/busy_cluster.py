"""A test cluster for scheduler clients: jobs that ended, one that runs, and some that wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foretime_sidecar.clients.client import Cursor
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_rest import SlurmRest


def commands_of(slurm: SlurmCluster, cluster: str = "") -> SlurmCommands:
    """Give the client that asks by the cluster's commands; ``cluster``: for another by name."""
    return SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1), 0, cluster)


@contextmanager
def busy_cluster(release: SlurmRelease) -> Iterator[tuple[SlurmCluster, SlurmRest]]:
    """Bring it up, with accounting and slurmrestd."""
    with SlurmCluster(release, conf={"PriorityType": "priority/multifactor"}) as slurm:
        slurm.add_accounting()
        slurm.sacctmgr("add", "account", "physics")
        slurm.sacctmgr("add", "user", "alice,bob", "account=physics")
        address = slurm.add_rest()
        ended = [slurm.sbatch("-t5", script="true"), slurm.sbatch("-t5", script="exit 3")]
        ended.append(slurm.sbatch("-t5", "--array=1-2", script="true", user="bob"))
        for job_id in ended:
            slurm.wait_for_end(job_id)
        slurm.wait_for_state(slurm.sbatch("-n16", "-t60"), "RUNNING")
        for _ in range(3):
            slurm.sbatch("-n16", "-t30")
        slurm.sbatch("-n16", "-t30", "--array=1-5%2")
        client = commands_of(slurm)
        slurm.wait_for(lambda: len(client.site_factors()) == 4, "priorities")
        slurm.wait_for(lambda: len(client.finished_since(Cursor())[0]) == 4, "accounting")
        yield slurm, address
