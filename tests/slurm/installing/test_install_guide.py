"""docs/install_slurm.md on a live cluster: all of it, from nothing to observe and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_site_host import slurm_site_host
from tests.support.guide_page import run_guide


def test_the_page_leads_from_nothing_to_observe_and_back(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster], repository: Path
) -> None:
    cluster = new_cluster(release, conf={"PriorityType": "priority/multifactor"})
    cluster.add_accounting()
    with slurm_site_host(cluster) as host:
        conf = (cluster.folder / "etc/slurm.conf").read_bytes()
        run_guide(host, repository / "docs/install_slurm.md", "slurm")
        assert (cluster.folder / "etc/slurm.conf").read_bytes() == conf
