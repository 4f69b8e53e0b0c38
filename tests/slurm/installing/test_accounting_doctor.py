"""The doctor beside a live slurmdbd: on a database that it can't work with, and ended."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.installing.test_install import Administrator

SNAPSHOTS = "--innodb-snapshot-isolation=ON"  # what MariaDB 11.6.2 and newer do by default


@pytest.fixture
def cluster(release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(release, nodes=1)
    try:
        cluster.add_accounting(SNAPSHOTS)
        yield cluster
    finally:
        cluster.stop()


def test_the_doctor_tells_of_slurmdbd_and_its_database(cluster: SlurmCluster) -> None:
    admin = Administrator(cluster)

    def accounting() -> tuple[str, str, str]:
        report = json.loads(admin.run("doctor", "--json").stdout)
        found = next(one for one in report if one["check"] == "accounting")
        return found["health"], found["message"], found["remedy"]

    health, message, remedy = accounting()
    if (cluster.release.version or ()) >= (26, 5, 0):  # slurmdbd looks for it
        assert (health, "innodb_snapshot_isolation on" in message) == ("problem", True)
        assert "innodb_snapshot_isolation=OFF" in remedy
    else:
        assert (health, "answers, MariaDB 10." in message) == ("ok", True)
    cluster.checked(["sh", "-c", f"kill $(cat {cluster.folder}/run/slurmdbd.pid)"])
    cluster.wait_for(
        lambda: cluster.run(["sacctmgr", "-n", "show", "cluster"]).returncode != 0, "it to end"
    )
    health, message, remedy = accounting()
    assert (health, "slurmdbd on 127.0.0.1 does not answer" in message) == ("problem", True)
    assert remedy
